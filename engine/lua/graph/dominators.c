/* dominators.c: post-dominator trees, the test for basic block normal form, and
 * the features of functions, for scripts. */

#include "ir/analysis/features.h"
#include "lua/binding.h"

/* dominators(node) -> { [node] = its immediate post-dominator } of the graph
 * with that root; a node without one is left out */
static int dominators(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_graph *g = pln_lua_push_rooted(L, b, 1)->graph;
  int slot = lua_gettop(L);
  uint32_t n = pln_graph_size(g);
  pln_ref *tree = lua_newuserdatauv(L, n * sizeof *tree, 0);
  pln_lua_must(L, b, pln_graph_dominators(g, tree));
  lua_newtable(L);
  for (pln_ref i = 0; i < n; i++) {
    if (tree[i] == PLN_NONE)
      continue;
    pln_lua_push_node(L, slot, i);
    pln_lua_push_node(L, slot, tree[i]);
    lua_rawset(L, -3);
  }
  return 1;
}

/* basic_blocks(node) -> true, or false and a node that several blocks use */
static int basic_blocks(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_ref node;
  const pln_graph *g = pln_lua_push_rooted(L, b, 1)->graph;
  int slot = lua_gettop(L);
  pln_lua_must(L, b, pln_graph_basic_blocks(g, &node));
  lua_pushboolean(L, node == PLN_NONE);
  if (node == PLN_NONE)
    return 1;
  pln_lua_push_node(L, slot, node);
  return 2;
}

/* features(node) -> the features of the function, a set by name */
static int features(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_graph *g = pln_lua_push_rooted(L, b, 1)->graph;
  uint32_t bits;
  pln_lua_must(L, b, pln_graph_features(g, &bits));
  lua_newtable(L);
  for (uint32_t i = 0; i < PLN_N_FEATURES; i++)
    if (bits >> i & 1) {
      lua_pushboolean(L, true);
      lua_setfield(L, -2, pln_feature_names[i]);
    }
  return 1;
}

/* feature_names() -> list */
static int feature_names(lua_State *L) {
  lua_newtable(L);
  for (uint32_t i = 0; i < PLN_N_FEATURES; i++) {
    lua_pushstring(L, pln_feature_names[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

void pln_lua_open_dominators(lua_State *L) {
  static const luaL_Reg functions[] = {{"dominators", dominators},
                                       {"basic_blocks", basic_blocks},
                                       {"features", features},
                                       {"feature_names", feature_names},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
