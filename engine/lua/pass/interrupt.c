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

/* ------------------------------------------------------ handlers of errors */

/* Returns true if the innermost protected call is xpcall, whose handler would
 * be called for an error that is raised now. At level 0 a protected call begins
 * or has ended. */
static bool has_handler(lua_State *L, const pln_lua *b) {
  lua_Debug ar;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "f", &ar);
    lua_CFunction f = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (f && f == b->protected_body)
      return false;
    if (f && level > 0 && (f == b->pcall || f == b->xpcall))
      return f == b->xpcall;
  }
  return false;
}

/* A lua_Alloc that refuses a new block, and again after the collection that Lua
 * makes then. */
static void *refuse(void *ud, void *block, size_t old_size, size_t new_size) {
  pln_lua *b = ud;
  size_t before = block ? old_size : 0;
  if (new_size <= before)
    return b->host_alloc(b->host_ud, block, old_size, new_size);
  if (b->refusals++ > 0)
    lua_setallocf(b->refused, b->host_alloc, b->host_ud);
  return NULL;
}

/* Hooks are off while a handler runs that an error raised by a hook calls: one
 * that loops could not be stopped. An error for lack of memory is the only one
 * that calls no handler. The code around xpcall is stopped next. */
static void raise_past_handler(lua_State *L, pln_lua *b) {
  b->host_alloc = lua_getallocf(L, &b->host_ud);
  b->refused = L;
  b->refusals = 0;
  lua_setallocf(L, refuse, b);
  lua_newuserdatauv(L, 1, 0);
  lua_setallocf(L, b->host_alloc, b->host_ud);
  lua_pop(L, 1);
}

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
  if (status == PLN_OK) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (has_handler(L, b))
    raise_past_handler(L, b);
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

/* within_seconds(seconds, f, ...) -> the results of pcall(f, ...). All passes
 * and runs that f begins end together after so many seconds, with
 * PLN_ERR_LIMIT. Within a pass that has a limit of time its limit holds. */
static int core_within_seconds(lua_State *L) {
  static const double least = 1e-6;
  pln_lua *b = pln_lua_state_of(L);
  double seconds = luaL_checknumber(L, 1);
  bool owns_timer = !b->engine->has_timer;
  luaL_checkany(L, 2);
  lua_remove(L, 1);
  if (owns_timer)
    pln_lua_must(L, b,
                 pln_stop_after(b->engine, seconds > least ? seconds : least));
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  if (owns_timer)
    (void)!pln_stop_after(b->engine, 0);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

static const luaL_Reg functions[] = {{"hold", core_hold},
                                     {"until_stopped", core_until_stopped},
                                     {"within_seconds", core_within_seconds},
                                     {NULL, NULL}};

void pln_lua_open_script_stop(lua_State *L) {
  pln_lua_functions(L, functions);
}

void pln_lua_open_interrupt(lua_State *L, pln_lua *b) {
  lua_pushlightuserdata(L, b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  pln_engine_on_interrupt(b->engine, request_lua_stop, b);
}
