/* infer.c: types that are found by inference, kinds of types, and cases that a
 * Match does not cover, for scripts. */

#include "lua/binding.h"

static const pln_module *optional_module(lua_State *L, int arg) {
  return lua_isnoneornil(L, arg) ? NULL : pln_lua_check_module(L, arg);
}

/* infer_type(node [, module]) -> the typed node, or nil and a diagnostic. The
 * same node when all of its types are known. */
static int core_infer_type(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_lua_check_node(L, 1);
  optional_module(L, 2);
  lua_settop(L, 2);
  pln_lua_graph *from = pln_lua_push_rooted(L, b, 1);
  pln_lua_graph *to = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  const pln_module *module = optional_module(L, 2);
  size_t mark = pln_diag_count(b->engine);
  pln_status status = pln_graph_infer(from->graph, module, &to->graph);
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  bool same = to->graph == from->graph;
  pln_lua_unique(L, to->graph);
  if (same)
    lua_pushvalue(L, 1);
  else
    pln_lua_push_node(L, -1, pln_graph_root(from->graph));
  return 1;
}

/* infer_module(module) -> the typed module, or nil and a diagnostic */
static int core_infer_module(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_module **out = pln_lua_new_module(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  size_t mark = pln_diag_count(b->engine);
  pln_status status = pln_module_infer(module, out);
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  if (*out == module)
    lua_pushvalue(L, 1);
  return 1;
}

/* check_kind(type [, module]) -> "Type", "Constraint", ..., or nil and a
 * diagnostic */
static int core_check_kind(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  pln_type_var_kind kind;
  pln_status status =
      pln_type_check_kind(b->engine, optional_module(L, 2), type, &kind);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushstring(L, pln_type_var_kind_name(kind));
  return 1;
}

/* unmatched_cases(match [, module]) -> a PatternTuple of the cases, or nil and
 * a diagnostic */
static int core_unmatched_cases(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_lua_check_node(L, 1);
  optional_module(L, 2);
  lua_settop(L, 2);
  pln_lua_graph *from = pln_lua_push_rooted(L, b, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  const pln_module *module = optional_module(L, 2);
  pln_status status =
      pln_build_unmatched(pln_lua_builder(L, b, to), from->graph,
                          pln_graph_root(from->graph), module, &ref);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  pln_lua_push_node(L, -1, ref);
  return 1;
}

static const luaL_Reg functions[] = {{"infer_type", core_infer_type},
                                     {"infer_module", core_infer_module},
                                     {"check_kind", core_check_kind},
                                     {"unmatched_cases", core_unmatched_cases},
                                     {NULL, NULL}};

void pln_lua_open_infer(lua_State *L) {
  pln_lua_functions(L, functions);
}
