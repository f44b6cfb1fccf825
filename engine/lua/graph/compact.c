/* compact.c: garbage collection of the floating builder, which all scripts
 * share.
 *
 * Free construction appends to one floating builder, which lives as long as any
 * of its handles. When it has twice as many nodes as were alive at the last
 * compaction, nodes that no handle reaches are dropped; the others get new
 * numbers, and handles are updated. Invariant: this happens only on the main
 * thread while no other function of the binding runs, so that only handles hold
 * node numbers. */

#include "ir/graph/layout/compact.h"
#include "lua/binding.h"

enum { FEWEST = 4096 };

/* Pushes the floating builder if it needs a compaction; else returns NULL.
 * [-0, +1] */
static pln_lua_graph *push_grown(lua_State *L, pln_lua *b) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.floating);
  lua_rawgeti(L, -1, 1);
  lua_remove(L, -2);
  pln_lua_graph *slot = lua_touserdata(L, -1);
  if (!slot || !slot->builder)
    return NULL;
  const pln_graph *g = slot->builder->graph;
  if (g->n_nodes < FEWEST || g->n_nodes < slot->compact_at || g->refs > 1)
    return NULL;
  bool main = lua_pushthread(L);
  lua_pop(L, 1);
  return main && !b->rewriting && !pln_lua_is_nested(L) ? slot : NULL;
}

/* Collects the nodes of the handles in the table at `handles` into new memory.
 * [-0, +1] */
static pln_ref *push_roots(lua_State *L, int handles, uint32_t *n) {
  *n = 0;
  for (lua_pushnil(L); lua_next(L, handles); lua_pop(L, 1))
    ++*n;
  pln_ref *roots = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *roots, 0);
  uint32_t i = 0;
  for (lua_pushnil(L); lua_next(L, handles); lua_pop(L, 1))
    roots[i++] = (pln_ref)(lua_tointeger(L, -2) - 1);
  return roots;
}

/* Pushes a copy of the table at `from` keyed by new numbers.  [-0, +1] */
static void push_renumbered(lua_State *L, int from, const pln_ref *map) {
  pln_lua_new_weak(L);
  int to = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
    pln_ref image = map[lua_tointeger(L, -2) - 1];
    if (image == PLN_NONE)
      continue;
    lua_pushvalue(L, -1);
    lua_rawseti(L, to, (lua_Integer)image + 1);
  }
}

static void renumber(lua_State *L, int handles, const pln_ref *map) {
  for (lua_pushnil(L); lua_next(L, handles); lua_pop(L, 1)) {
    pln_lua_node *node = lua_touserdata(L, -1);
    node->ref = map[node->ref];
  }
}

/* compact(box, compaction). After its last step nothing can fail. */
static int compact(lua_State *L) {
  pln_lua_graph *slot = lua_touserdata(L, 1);
  pln_compaction *c = lua_touserdata(L, 2);
  uint32_t n, n_tensors = slot->builder->graph->n_tensors;
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_getiuservalue(L, 1, 1);
  lua_getiuservalue(L, 1, 2);
  int handles = 3, sealed = 4;
  pln_ref *roots = push_roots(L, handles, &n);
  uint32_t *tensors =
      lua_newuserdatauv(L, ((size_t)n_tensors + 1) * sizeof *tensors, 0);
  memset(tensors, 0, ((size_t)n_tensors + 1) * sizeof *tensors);
  pln_lua_must(L, slot->state,
               pln_compaction_begin(c, slot->builder, n, roots));
  push_renumbered(L, handles, c->map);
  push_renumbered(L, sealed, c->map);
  pln_compaction_apply(c, tensors);
  renumber(L, handles, c->map);
  lua_setiuservalue(L, 1, 2);
  lua_setiuservalue(L, 1, 1);
  return 0;
}

/* No finalizer may run and make handles or nodes meanwhile. */
static int compact_without_gc(lua_State *L, pln_compaction *c) {
  bool collects = lua_gc(L, LUA_GCISRUNNING);
  lua_gc(L, LUA_GCSTOP);
  lua_pushcfunction(L, compact);
  lua_pushvalue(L, -2);
  lua_pushlightuserdata(L, c);
  int status = lua_pcall(L, 2, 0, 0);
  if (collects)
    lua_gc(L, LUA_GCRESTART);
  return status;
}

void pln_lua_compact(lua_State *L, pln_lua *b) {
  if (b->depth > 0 || b->target || !lua_checkstack(L, LUA_MINSTACK))
    return;
  pln_lua_graph *slot = push_grown(L, b);
  if (slot) {
    lua_gc(L, LUA_GCCOLLECT);
    pln_compaction c = {0};
    if (compact_without_gc(L, &c) != LUA_OK)
      lua_pop(L, 1); /* without memory the builder stays as it is */
    if (c.b)
      pln_compaction_end(&c);
    slot->compact_at = 2 * slot->builder->graph->n_nodes;
  }
  lua_pop(L, 1);
}
