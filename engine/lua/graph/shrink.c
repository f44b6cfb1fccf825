/* shrink.c: core.cut: replaces nodes of a function by something smaller, for
 * test-case reduction. */

#include "lua/binding.h"

/* Reads the action for the node whose handle is below the value on top. */
static uint32_t check_shrink_action(lua_State *L) {
  static const char *const names[] = {"free", "zero", "value", NULL};
  static const uint32_t cuts[] = {PLN_SHRINK_FREE_VAR, PLN_SHRINK_TO_ZERO,
                                  PLN_SHRINK_LET_VALUE};
  if (lua_type(L, -1) == LUA_TSTRING)
    return cuts[luaL_checkoption(L, -1, NULL, names)];
  int ok;
  lua_Integer k = lua_tointegerx(L, -1, &ok);
  if (!ok || k < 1 || k > INT32_MAX)
    luaL_error(L, "shrink: 'free', 'zero', 'value' or the number of an operand "
                  "expected");
  return PLN_SHRINK_TO_OPERAND + (uint32_t)(k - 1);
}

/* Reads the actions from the table at `arg`, keyed by nodes of the graph. */
static void read_shrink_actions(lua_State *L, int arg,
                                const pln_lua_graph *slot, uint32_t *cuts) {
  uint32_t n = pln_graph_size(slot->graph);
  memset(cuts, 0, n * sizeof *cuts);
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
    const pln_lua_node *node = pln_lua_test_node(L, -2);
    if (!node || node->graph != slot || node->ref >= n)
      luaL_error(L, "shrink: the keys are nodes of the function");
    cuts[node->ref] = check_shrink_action(L);
  }
}

/* cut(fn, { [node] = "free" | "zero" | "value" | k }) -> a copy in which each
 * node is replaced by a new free variable, zeros, the value of a let, or
 * operand or branch k */
static int core_shrink(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  const pln_lua_graph *slot = pln_lua_push_rooted(L, b, 1);
  size_t n = pln_graph_size(slot->graph);
  uint32_t *cuts = lua_newuserdatauv(L, (n + 1) * sizeof *cuts, 0);
  read_shrink_actions(L, 2, slot, cuts);
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  pln_lua_must(L, b, pln_graph_shrink(slot->graph, cuts, &out->graph));
  if (out->graph == slot->graph) {
    lua_pushvalue(L, 1);
    return 1;
  }
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

void pln_lua_open_shrink(lua_State *L) {
  static const luaL_Reg functions[] = {{"shrink", core_shrink}, {NULL, NULL}};
  pln_lua_functions(L, functions);
}
