/* interrupt.c: stops a script that runs in a pass. A stop request sets Lua's
 * debug hook, which raises at the next instruction, and again until the body
 * has ended, even if the script uses pcall. A coroutine is stopped when it
 * yields, or at once if the host guards coroutines (coroutine.c).
 *
 * Requests come from signal handlers of this thread (pln_engine_interrupt,
 * limit.seconds), which may set hooks. Invariant: without a request there is no
 * hook, so that scripts run at full speed. */

#include "lua/binding.h"

/* Registry key of the binding for the hook, which has no upvalues. */
static const char state_key;

/* The handler of an error gets that error, which tells where the script was. */
static void stop(lua_State *L, lua_Debug *ar) {
  if (pln_lua_is_message_handler(L, ar))
    return;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (b && b->quiet)
    return;
  pln_status status = b && b->engine && b->depth ? pln_poll(b->engine) : PLN_OK;
  if (status == PLN_OK)
    lua_sethook(L, NULL, 0, 0);
  else
    pln_lua_raise(L, b, status);
}

static void set_hook(lua_State *L) {
  lua_sethook(L, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

void pln_lua_stop_again(const pln_lua *b, lua_State *L) {
  atomic_signal_fence(memory_order_seq_cst);
  if (b->engine && atomic_load(&b->engine->stop) != PLN_GO_ON)
    set_hook(L);
}

/* Runs in a signal handler: only lua_sethook is allowed. The thread that called
 * the binding last may be dead by now; the thread of the body is not. */
static void request_lua_stop(void *ud) {
  const pln_lua *b = ud;
  if (b->depth > 0)
    set_hook(b->body);
  if (b->on_stop)
    b->on_stop(b->stop_ud);
}

void pln_lua_on_stop(lua_State *L, void (*f)(void *ud), void *ud) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (!b)
    return;
  b->on_stop = NULL;
  b->stop_ud = ud;
  b->on_stop = f;
}

pln_lua *pln_lua_state(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b;
}

pln_engine *pln_lua_engine(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  const pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b ? b->engine : NULL;
}

/* ---------------------------------------------- scripts run to define passes
 */

static int refuse_stopped_coroutine(lua_State *L) {
  return pln_lua_error(L, PLN_ERR_INTERRUPTED,
                       "passes can only be made here, not run");
}

/* Raises at each instruction while the script is held. */
static void stop_running_script(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  const pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (b && b->holder)
    refuse_stopped_coroutine(L);
  else
    lua_sethook(L, NULL, 0, 0);
}

int pln_lua_stop_script(lua_State *L, pln_lua *b) {
  lua_sethook(b->holder, stop_running_script, LUA_MASKCOUNT, 1);
  lua_sethook(L, stop_running_script, LUA_MASKCOUNT, 1);
  return refuse_stopped_coroutine(L);
}

/* hold(f, ...) -> the results of pcall(f, ...); applying a pass ends f */
static int core_hold(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  if (b->holder)
    return pln_lua_error(
        L, PLN_ERR_ARGUMENT,
        "a script that is loaded for its passes cannot replay");
  luaL_checkany(L, 1);
  b->holder = L;
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  b->holder = NULL;
  if (lua_gethook(L) == stop_running_script)
    lua_sethook(L, NULL, 0, 0);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

/* until_stopped(f, ...) -> "interrupted", "limit" or nil, then the results of
 * pcall(f, ...). A stop request ends f and is served by that: what comes behind
 * goes on. For passes that have a result at any time. */
static int core_until_stopped(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 1);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  int why = atomic_exchange(&b->engine->stop, PLN_GO_ON);
  if (lua_gethook(L) == stop)
    lua_sethook(L, NULL, 0, 0);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  lua_pushstring(L, why == PLN_STOP_REQUESTED ? "interrupted"
                    : why == PLN_STOP_TIME    ? "limit"
                                              : NULL);
  lua_insert(L, 1);
  return lua_gettop(L);
}

static const luaL_Reg functions[] = {
    {"hold", core_hold}, {"until_stopped", core_until_stopped}, {NULL, NULL}};

void pln_lua_open_script_stop(lua_State *L) {
  pln_lua_functions(L, functions);
}

void pln_lua_open_interrupt(lua_State *L, pln_lua *b) {
  lua_pushlightuserdata(L, b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_engine_on_interrupt(b->engine, request_lua_stop, b);
}
