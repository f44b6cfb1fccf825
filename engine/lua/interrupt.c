/* interrupt.c: stops a script that runs in a pass: a request for a stop sets
 * Lua's hook, which raises at the next instruction, and again until the body
 * has ended, whatever pcall catches. A coroutine is stopped when it yields.
 *
 * The request comes from a signal handler of this thread (pln_engine_interrupt,
 * limit.seconds), which may set hooks. What always holds: without a request
 * there is no hook, and a script pays nothing. */

#include "lua/binding.h"

/* The state that the hook of a thread is about; hooks have no upvalues. */
static const char state_key;

static void stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
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

/* Called by a signal handler: nothing here but what lua_sethook allows. The
 * thread that called in last may be dead by now; that of the body is not. */
static void ask(void *ud) {
  const pln_lua *b = ud;
  if (b->depth > 0)
    lua_sethook(b->body, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

pln_engine *pln_lua_engine(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  const pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b ? b->engine : NULL;
}

void pln_lua_open_interrupt(lua_State *L, pln_lua *b) {
  lua_pushlightuserdata(L, b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_engine_on_interrupt(b->engine, ask, b);
}
