/* mismatch.c: the first difference between two nodes or modules, for
 * pl.assert_equal, and comparisons that map free variables; structural equality
 * and hash of types. */

#include "lua/binding.h"

/* -> text, node_a, node_b. The nodes are nil if the difference is in no
 * function. The boxes of the two graphs are on top of the stack. */
static int push_mismatch(lua_State *L, const pln_mismatch *m) {
  lua_pushstring(L, m->text);
  if (m->a == PLN_NONE)
    return 1;
  pln_lua_push_node(L, -3, m->a);
  pln_lua_push_node(L, -3, m->b);
  return 3;
}

/* node_mismatch(a, b, map_free_vars [, contents]) -> nil if equal; else a text
 * with path and difference, and the two nodes that differ; `contents` also
 * compares large constants by content */
static int node_mismatch(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_mismatch m;
  bool map = lua_toboolean(L, 3);
  pln_graph *x = pln_lua_push_rooted(L, b, 1)->graph;
  pln_graph *y = pln_lua_push_rooted(L, b, 2)->graph;
  pln_lua_must(L, b,
               pln_graph_mismatch(x, pln_graph_root(x), y, pln_graph_root(y),
                                  map, lua_toboolean(L, 4), &m));
  return m.equal ? 0 : push_mismatch(L, &m);
}

/* module_mismatch(a, b, map_free_vars [, contents]): the same for modules */
static int module_mismatch(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_mismatch m;
  pln_module *x = pln_lua_check_module(L, 1), *y = pln_lua_check_module(L, 2);
  bool map = lua_toboolean(L, 3);
  pln_lua_must(L, b, pln_module_mismatch(x, y, map, lua_toboolean(L, 4), &m));
  if (m.equal)
    return 0;
  if (m.a != PLN_NONE) {
    pln_lua_push_graph(L, b, pln_module_function_at(x, m.function_a));
    pln_lua_push_graph(L, b, pln_module_function_at(y, m.function_b));
  }
  return push_mismatch(L, &m);
}

/* type_equal(a, b, map_free_vars) -> boolean; names of bound type variables do
 * not matter */
static int type_equal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  bool equal;
  pln_type x = pln_lua_check_type(L, b, 1), y = pln_lua_check_type(L, b, 2);
  pln_lua_must(L, b,
               pln_type_equal(b->engine, x, y, lua_toboolean(L, 3), &equal));
  lua_pushboolean(L, equal);
  return 1;
}

/* type_hash(type, map_free_vars) -> integer. A free variable is equal only to
 * itself. */
static int type_hash(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  uint64_t hash = pln_type_hash(b->engine, type);
  if (pln_type_get_kind(b->engine, type) == PLN_TYPE_VAR &&
      !lua_toboolean(L, 2))
    hash ^= (uint64_t)type << 32;
  lua_pushinteger(L, (lua_Integer)hash);
  return 1;
}

void pln_lua_open_mismatch(lua_State *L) {
  static const luaL_Reg functions[] = {{"node_mismatch", node_mismatch},
                                       {"module_mismatch", module_mismatch},
                                       {"type_equal", type_equal},
                                       {"type_hash", type_hash},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
