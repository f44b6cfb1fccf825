/* coroutine.c: replacements of resume, wrap and close in Lua's table
 * `coroutine`. They do the same, and tell the binding which coroutine runs, so
 * that limit.seconds and interrupts stop that one and not its creator when it
 * yields.
 *
 * Lua has no other way to find the running thread. A host asks for them
 * (guard_coroutines), as the command does for its scripts. Invariant: while a
 * callback is active, b->body is the running thread. */

#include "lua/binding.h"

static lua_State *check_thread(lua_State *L, int arg) {
  lua_State *co = lua_tothread(L, arg);
  if (!co)
    luaL_typeerror(L, arg, "coroutine");
  return co;
}

/* Switches b->body. A stop that was requested meanwhile was delivered to the
 * other thread, so it is requested again. */
static lua_State *switch_to(pln_lua *b, lua_State *to) {
  lua_State *from = b->body;
  if (b->depth == 0)
    return from;
  b->body = to;
  pln_lua_stop_again(b, to);
  return from;
}

static void switch_back(pln_lua *b, lua_State *L, lua_State *outer) {
  b->L = L;
  if (b->depth == 0)
    return;
  b->body = outer;
  pln_lua_stop_again(b, outer);
}

/* Resumes `co` with the n values on top. Returns the number of results, or -1
 * with the error on top.  [-n, +results] */
static int resume_thread(lua_State *L, pln_lua *b, lua_State *co, int n) {
  int results = 0;
  if (!lua_checkstack(co, n)) {
    lua_pop(L, n);
    lua_pushliteral(L, "too many arguments to resume");
    return -1;
  }
  lua_xmove(L, co, n);
  lua_State *outer = switch_to(b, co);
  int status = lua_resume(co, L, n, &results);
  switch_back(b, L, outer);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return -1;
  }
  if (!lua_checkstack(L, results + 1)) {
    lua_pop(co, results);
    lua_pushliteral(L, "too many results to resume");
    return -1;
  }
  lua_xmove(co, L, results);
  return results;
}

/* resume(co, ...) -> true, ... | false, error */
static int co_resume(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_State *co = check_thread(L, 1);
  int n = resume_thread(L, b, co, lua_gettop(L) - 1);
  lua_pushboolean(L, n >= 0);
  if (n < 0)
    n = 1;
  lua_insert(L, -(n + 1));
  return n + 1;
}

static int end(lua_State *L, pln_lua *b, lua_State *co) {
  lua_State *outer = switch_to(b, co);
  int status = lua_resetthread(co);
  switch_back(b, L, outer);
  return status;
}

/* The function that wrap returns: resumes, and raises errors. */
static int co_wrapped(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_State *co = lua_tothread(L, lua_upvalueindex(2));
  int n = resume_thread(L, b, co, lua_gettop(L));
  if (n >= 0)
    return n;
  int status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) {
    status =
        end(L, b, co); /* a to-be-closed variable may raise another error */
    lua_xmove(co, L, 1);
  }
  if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return pln_lua_raise_top(L);
}

/* wrap(f) -> a function that resumes a new coroutine */
static int co_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, co_wrapped, 2);
  return 1;
}

/* Returns the status of a coroutine that is running or normal; NULL for
 * others. */
static const char *busy(lua_State *L, lua_State *co) {
  lua_Debug ar;
  if (co == L)
    return "running";
  if (lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar))
    return "normal";
  return NULL;
}

/* close(co) -> true | false, error */
static int co_close(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_State *co = check_thread(L, 1);
  const char *state = busy(L, co);
  if (state)
    return luaL_error(L, "cannot close a %s coroutine", state);
  int status = end(L, b, co);
  lua_pushboolean(L, status == LUA_OK);
  if (status == LUA_OK)
    return 1;
  lua_xmove(co, L, 1);
  return 2;
}

/* guard_coroutines([t]): stores the three functions in the table, or in
 * `coroutine` */
static int core_guard_coroutines(lua_State *L) {
  static const luaL_Reg functions[] = {{"resume", co_resume},
                                       {"wrap", co_wrap},
                                       {"close", co_close},
                                       {NULL, NULL}};
  lua_settop(L, 1);
  if (lua_isnil(L, 1)) {
    lua_getglobal(L, "coroutine");
    lua_replace(L, 1);
  }
  luaL_checktype(L, 1, LUA_TTABLE);
  pln_lua_functions(L, functions);
  return 1;
}

static const luaL_Reg functions[] = {
    {"guard_coroutines", core_guard_coroutines}, {NULL, NULL}};

void pln_lua_open_coroutine(lua_State *L) {
  pln_lua_functions(L, functions);
}
