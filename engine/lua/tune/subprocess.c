/* subprocess.c: programs that run beside this one, for
 * lua/perilune/tune/queue. */

#include "base/process/subprocess.h"

#include "lua/tune/child.h"

#define SUBPROCESS "perilune.Subprocess"

static int subprocess_gc(lua_State *L) {
  pln_subprocess **p = luaL_checkudata(L, 1, SUBPROCESS);
  pln_subprocess_free(*p);
  *p = NULL;
  return 0;
}

static pln_subprocess *check_subprocess(lua_State *L, int arg) {
  pln_subprocess **p = luaL_checkudata(L, arg, SUBPROCESS);
  luaL_argcheck(L, *p != NULL, arg, "the process is closed");
  return *p;
}

/* subprocess_start(words) -> Subprocess */
static int core_subprocess_start(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char **words = pln_lua_push_words(L, 1);
  pln_subprocess **p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = NULL;
  luaL_setmetatable(L, SUBPROCESS);
  pln_lua_must(L, b, pln_subprocess_start(b->engine, words, p));
  return 1;
}

/* subprocess_send(p, text) -> true, or nil and a diagnostic */
static int core_subprocess_send(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  pln_subprocess *p = check_subprocess(L, 1);
  text.data = luaL_checklstring(L, 2, &text.size);
  pln_status status = pln_subprocess_send(p, text);
  if (status == PLN_ERR_INTERRUPTED)
    return pln_lua_raise(L, b, status);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* subprocess_end_input(p) */
static int core_subprocess_end_input(lua_State *L) {
  pln_subprocess_end_input(check_subprocess(L, 1));
  return 0;
}

/* subprocess_wait(list, seconds) -> the index of one that has a line or has
 * ended its output; nil when the time is over */
static int core_subprocess_wait(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  double seconds = luaL_checknumber(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  size_t n = lua_rawlen(L, 1), ready;
  pln_subprocess **list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    list[i] = check_subprocess(L, -1);
    lua_pop(L, 1); /* the table at 1 keeps it */
  }
  pln_lua_must(L, b, pln_subprocess_wait(b->engine, list, n, seconds, &ready));
  if (ready == n)
    lua_pushnil(L);
  else
    lua_pushinteger(L, (lua_Integer)ready + 1);
  return 1;
}

/* subprocess_line(p) -> its next line; nil when there is none yet */
static int core_subprocess_line(lua_State *L) {
  pln_slice line;
  if (pln_subprocess_line(check_subprocess(L, 1), &line))
    lua_pushlstring(L, line.size ? line.data : "", line.size);
  else
    lua_pushnil(L);
  return 1;
}

/* subprocess_at_end(p) -> whether no line will come */
static int core_subprocess_at_end(lua_State *L) {
  lua_pushboolean(L, pln_subprocess_at_end(check_subprocess(L, 1)));
  return 1;
}

/* subprocess_finish(p, seconds) -> { timed_out, signal, signal_name, code }: it
 * has that much time to end; the process is closed then */
static int core_subprocess_finish(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_subprocess *p = check_subprocess(L, 1);
  pln_child_end end;
  pln_lua_must(L, b, pln_subprocess_finish(p, luaL_checknumber(L, 2), &end));
  subprocess_gc(L);
  pln_lua_push_child_end(L, &end);
  return 1;
}

/* subprocess_id(p) */
static int core_subprocess_id(lua_State *L) {
  lua_pushinteger(L, pln_subprocess_id(check_subprocess(L, 1)));
  return 1;
}

void pln_lua_open_subprocess(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"subprocess_start", core_subprocess_start},
      {"subprocess_send", core_subprocess_send},
      {"subprocess_end_input", core_subprocess_end_input},
      {"subprocess_wait", core_subprocess_wait},
      {"subprocess_line", core_subprocess_line},
      {"subprocess_at_end", core_subprocess_at_end},
      {"subprocess_finish", core_subprocess_finish},
      {"subprocess_id", core_subprocess_id},
      {NULL, NULL}};
  luaL_newmetatable(L, SUBPROCESS);
  lua_pushcfunction(L, subprocess_gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  pln_lua_functions(L, functions);
}
