/* infer.c: type inference, kind checking and match coverage, for scripts. */

#include "lua/binding.h"

static const pln_module *optional_module(lua_State *L, int arg) {
  return lua_isnoneornil(L, arg) ? NULL : pln_lua_check_module(L, arg);
}

/* infer_type(node [, module]) -> the typed node, or nil and a diagnostic;
 * `node` itself if all its types are known */
static int core_infer_type(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
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
  pln_lua *b = pln_lua_state_of(L);
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

/* Reads the types in the table at `arg` into scratch memory.  [-0, +1] */
static pln_type *check_types(lua_State *L, pln_lua *b, int arg, uint32_t *n) {
  luaL_checktype(L, arg, LUA_TTABLE);
  size_t count = lua_rawlen(L, arg);
  luaL_argcheck(L, count < INT32_MAX, arg, "too many types");
  pln_type *types = lua_newuserdatauv(L, (count + 1) * sizeof *types, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    types[i] = pln_lua_check_type(L, b, lua_gettop(L));
    lua_pop(L, 1);
  }
  *n = (uint32_t)count;
  return types;
}

static void set_integer(lua_State *L, const char *field, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, field);
}

/* Pushes { failed, empty, typed, results_empty, message, numbers, params }.
 * [-0, +1] */
static void push_trial(lua_State *L, const pln_signature_result *trial,
                       uint32_t n, const bool *params) {
  lua_createtable(L, 0, 7);
  if (trial->failed != PLN_NONE) {
    set_integer(L, "failed", trial->failed);
    lua_pushstring(L, trial->message);
    lua_setfield(L, -2, "message");
  }
  if (trial->empty != PLN_NONE)
    set_integer(L, "empty", trial->empty);
  set_integer(L, "typed", trial->n_typed);
  lua_pushboolean(L, trial->results_empty);
  lua_setfield(L, -2, "results_empty");
  lua_createtable(L, (int)trial->n_numbers, 0);
  for (uint32_t i = 0; i < trial->n_numbers; i++) {
    lua_pushinteger(L, trial->numbers[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "numbers");
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushboolean(L, params[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "params");
}

/* try_types(fn, types [, module]) -> the result of inferring fn under these
 * parameter types; see pln_graph_infer_signature */
static int core_try_types(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_module *module = optional_module(L, 3);
  lua_settop(L, 3);
  pln_lua_graph *from = pln_lua_push_rooted(L, b, 1);
  uint32_t n;
  pln_signature_result trial;
  pln_type *types = check_types(L, b, 2, &n);
  bool *params = lua_newuserdatauv(L, n + 1u, 0);
  pln_lua_must(
      L, b,
      pln_graph_infer_signature(from->graph, module, n, types, &trial, params));
  push_trial(L, &trial, n, params);
  return 1;
}

/* check_kind(type [, module]) -> "Type", "Constraint", ..., or nil and a
 * diagnostic */
static int core_check_kind(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  pln_type_var_kind kind;
  pln_status status =
      pln_type_check_kind(b->engine, optional_module(L, 2), type, &kind);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushstring(L, pln_type_var_kind_name(kind));
  return 1;
}

/* unmatched_cases(match [, module]) -> a PatternTuple of the cases that no arm
 * covers, or nil and a diagnostic */
static int core_unmatched_cases(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_ref ref;
  pln_lua_check_node(L, 1);
  optional_module(L, 2);
  lua_settop(L, 2);
  pln_lua_graph *from = pln_lua_push_rooted(L, b, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  const pln_module *module = optional_module(L, 2);
  pln_status status =
      pln_build_uncovered_cases(pln_lua_builder(L, b, to), from->graph,
                                pln_graph_root(from->graph), module, &ref);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  pln_lua_push_node(L, -1, ref);
  return 1;
}

static const luaL_Reg functions[] = {{"infer_type", core_infer_type},
                                     {"infer_module", core_infer_module},
                                     {"try_types", core_try_types},
                                     {"check_kind", core_check_kind},
                                     {"unmatched_cases", core_unmatched_cases},
                                     {NULL, NULL}};

void pln_lua_open_infer(lua_State *L) {
  pln_lua_functions(L, functions);
}
