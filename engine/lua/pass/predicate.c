/* predicate.c: Lua functions as options of passes.
 *
 * Called by core.make. A function gets a node of the function that the pass
 * runs on and answers true or false; another answer, like an error, fails the
 * pass.
 *
 *     pl.passes.EliminateCommonSubexpr {
 *       fskip = function(node) return node.kind == "Call" end }  */

#include "lua/binding.h"
#include "pass/pass.h"

typedef struct predicate_call {
  pln_lua *state;
  const void *callback;
  const pln_graph *graph;
  pln_ref node;
  bool answer;
} predicate_call;

static int call_function(lua_State *L) {
  predicate_call *call = lua_touserdata(L, 1);
  pln_lua_registry_get(L, &pln_lua_key.callbacks, call->callback);
  pln_lua_push_graph(L, call->state, call->graph);
  pln_lua_push_node(L, lua_gettop(L), call->node);
  lua_remove(L, -2);
  lua_call(L, 1, 1);
  if (!lua_isboolean(L, -1))
    luaL_error(L, "true or false expected as the function's answer, got %s",
               luaL_typename(L, -1));
  call->answer = lua_toboolean(L, -1);
  return 0;
}

/* pln_predicate.call of every Lua function. */
static pln_status ask_function(void *ud, const pln_pass_run *run,
                               const pln_graph *graph, pln_ref node,
                               bool *answer) {
  pln_lua_callback *callback = ud;
  predicate_call call = {callback->state, callback, graph, node, false};
  pln_status status = pln_lua_protect(callback->state, call_function, &call);
  if (status == PLN_ERR_CALLBACK)
    pln_lua_name_failed_pass(callback->state, run);
  *answer = call.answer;
  return status;
}

/* Pushes a copy of the table at `arg` without its functions.  [-0, +1] */
void pln_lua_push_plain_options(lua_State *L, int arg) {
  if (!lua_istable(L, arg)) {
    lua_pushvalue(L, arg);
    return;
  }
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, arg);) {
    if (lua_isfunction(L, -1)) {
      lua_pop(L, 1);
      continue;
    }
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

/* Gives the pass the function on top.  [-1, +0] */
static void set_function(lua_State *L, pln_lua *b, pln_pass *pass,
                         const char *name) {
  pln_lua_callback **slot = pln_lua_new_callbacks(L, 1);
  lua_insert(L, -2);
  pln_lua_set_callback(L, b, slot);
  pln_predicate predicate = {ask_function, *slot, pln_lua_release_callback};
  pln_status status = pln_pass_set_predicate(pass, name, &predicate);
  *slot = NULL;
  pln_lua_must(L, b, status);
  lua_pop(L, 1);
}

void pln_lua_set_functions(lua_State *L, pln_lua *b, int arg, pln_pass *pass) {
  if (!lua_istable(L, arg))
    return;
  for (lua_pushnil(L); lua_next(L, arg);) {
    if (lua_isfunction(L, -1) && lua_type(L, -2) == LUA_TSTRING)
      set_function(L, b, pass, lua_tostring(L, -2));
    else
      lua_pop(L, 1);
  }
}
