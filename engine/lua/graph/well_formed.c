/* well_formed.c: Relay's well-formedness check and TIR's SSA check, for
 * scripts. */

#include "ir/tir/tir.h"
#include "lua/binding.h"

/* well_formed_node(node) -> true, or nil and a diagnostic */
static int well_formed_node(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_status status =
      pln_graph_well_formed(pln_lua_push_rooted(L, b, 1)->graph);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

/* well_formed_module(module) -> the same for a module */
static int well_formed_module(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_status status = pln_module_well_formed(pln_lua_check_module(L, 1));
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

/* loop_ssa(node) -> true, or nil and a diagnostic */
static int loop_ssa(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_status status = pln_tir_verify_ssa(pln_lua_push_rooted(L, b, 1)->graph);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

void pln_lua_open_well_formed(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"well_formed_node", well_formed_node},
      {"well_formed_module", well_formed_module},
      {"loop_ssa", loop_ssa},
      {NULL, NULL}};
  pln_lua_functions(L, functions);
}
