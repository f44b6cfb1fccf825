/* model_count.c: counts the nodes and operators of a model file without
 * importing it, for tools that report. */

#include "lua/binding.h"

typedef struct counts_userdata {
  pln_engine *engine;
  pln_onnx_model_stats counts;
} counts_userdata;

static int counts_gc(lua_State *L) {
  counts_userdata *slot = lua_touserdata(L, 1);
  pln_onnx_model_stats_free(slot->engine, &slot->counts);
  return 0;
}

static void push_symbol(lua_State *L, pln_lua *b, pln_symbol symbol) {
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, text.data, text.size);
}

static void set_count(lua_State *L, const char *key, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, key);
}

/* onnx_count(path) or onnx_count(nil, bytes) -> { nodes, compute_nodes,
 * operators = { name = count }, files = { name, ... } }, or nil, diag */
static int core_onnx_count(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_optstring(L, 1, NULL);
  pln_slice bytes = {0};
  if (!path)
    bytes.data = luaL_checklstring(L, 2, &bytes.size);
  counts_userdata *slot =
      pln_lua_userdata(L, "perilune.Counts", sizeof *slot, 0);
  slot->engine = b->engine;
  pln_onnx_model_stats *n = &slot->counts;
  pln_status status = path ? pln_onnx_stats(b->engine, path, n)
                           : pln_onnx_stats_bytes(b->engine, bytes, n);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_createtable(L, 0, 4);
  set_count(L, "nodes", n->nodes);
  set_count(L, "compute_nodes", n->compute_nodes);
  lua_createtable(L, 0, (int)n->n_operators);
  for (uint32_t i = 0; i < n->n_operators; i++) {
    push_symbol(L, b, n->operators[i].name);
    lua_pushinteger(L, (lua_Integer)n->operators[i].count);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "operators");
  lua_createtable(L, (int)n->n_files, 0);
  for (uint32_t i = 0; i < n->n_files; i++) {
    push_symbol(L, b, n->files[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "files");
  pln_onnx_model_stats_free(b->engine, n);
  return 1;
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", counts_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"onnx_count", core_onnx_count},
                                     {NULL, NULL}};

void pln_lua_open_count(lua_State *L) {
  pln_lua_class(L, "perilune.Counts", none, meta, NULL);
  pln_lua_functions(L, functions);
}
