/* profile.c: what runs cost: pl.profile, pl.cost. */

#include "eval/profile.h"
#include "lua/binding.h"
#include "op/cost.h"

#define PROFILE "perilune.Profile"

static int profile_gc(lua_State *L) {
  pln_profile **profile = lua_touserdata(L, 1);
  pln_profile_free(*profile);
  *profile = NULL;
  return 0;
}

static pln_profile *push_profile(lua_State *L, pln_lua *b) {
  pln_profile **profile = lua_newuserdatauv(L, sizeof *profile, 0);
  *profile = NULL;
  if (luaL_newmetatable(L, PROFILE)) {
    lua_pushcfunction(L, profile_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  pln_lua_must(L, b, pln_profile_new(b->engine, profile));
  return *profile;
}

static void set_number(lua_State *L, const char *name, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

static void set_seconds(lua_State *L, const char *name, uint64_t nanoseconds) {
  lua_pushnumber(L, (lua_Number)nanoseconds * 1e-9);
  lua_setfield(L, -2, name);
}

/* Where the node comes from: "node 'a' (Conv)", if it is known. */
static void set_source(lua_State *L, const pln_profile_row *row) {
  const pln_graph *g = row->graph;
  char text[256];
  if (!g->origins || !pln_origins_describe(g->origins, g->origin[row->node],
                                           text, sizeof text))
    return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, "source");
}

/* Pushes a row; the box of its graph is at `graph`.  [-0, +1] */
static void push_profile_row(lua_State *L, int graph,
                             const pln_profile_row *row) {
  lua_createtable(L, 0, 7);
  pln_lua_push_node(L, graph, row->node);
  lua_setfield(L, -2, "node");
  set_seconds(L, "begin", row->begin);
  set_seconds(L, "seconds", row->nanoseconds);
  set_number(L, "macs", row->macs);
  set_number(L, "flops", row->flops);
  set_number(L, "bytes", row->bytes);
  set_source(L, row);
}

/* Pushes the list of rows.  [-0, +1] */
static void push_profile_rows(lua_State *L, pln_lua *b,
                              const pln_profile *profile) {
  const pln_graph *last = NULL;
  uint32_t n = pln_profile_count(profile);
  luaL_checkstack(L, 8, NULL);
  lua_createtable(L, (int)n, 0);
  lua_pushnil(L); /* the box of the last row's graph */
  for (uint32_t i = 0; i < n; i++) {
    const pln_profile_row *row = pln_profile_at(profile, i);
    if (row->graph != last) {
      pln_lua_push_graph(L, b, row->graph);
      lua_replace(L, -2);
      last = row->graph;
    }
    push_profile_row(L, lua_gettop(L), row);
    lua_rawseti(L, -3, (lua_Integer)i + 1);
  }
  lua_pop(L, 1);
}

/* profiled(f, ...) -> rows, the results of f: what the calls of operators cost
 * that runs inside of f compute */
static int core_profiled(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  pln_profile *outer = b->engine->profile, *profile = push_profile(L, b);
  lua_insert(L, 1);
  pln_eval_set_profile(b->engine, profile);
  int failed = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
  pln_eval_set_profile(b->engine, outer);
  if (failed)
    return lua_error(L);
  push_profile_rows(L, b, profile);
  lua_replace(L, 1); /* the profile is freed when it is collected */
  return lua_gettop(L);
}

/* cost(node) -> multiply-accumulates, operations: numbers, expressions of dims,
 * or nil where they are unknown */
static int core_cost(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  pln_dim macs, flops;
  pln_lua_must(L, b, pln_node_cost(g, node->ref, &macs, &flops));
  if (macs == PLN_DIM_UNKNOWN)
    lua_pushnil(L);
  else
    pln_lua_push_dim(L, b, macs);
  if (flops == PLN_DIM_UNKNOWN)
    lua_pushnil(L);
  else
    pln_lua_push_dim(L, b, flops);
  return 2;
}

void pln_lua_open_profile(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"profiled", core_profiled}, {"cost", core_cost}, {NULL, NULL}};
  pln_lua_functions(L, functions);
}
