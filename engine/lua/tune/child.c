/* child.c: child processes with limits, for lua/perilune/tune/child.lua. */

#include <errno.h>
#include <unistd.h>

#include "lua/tune/child.h"

#define RESULT "perilune.ChildResult"

enum { MOST_WORDS = 256 };

static int result_gc(lua_State *L) {
  pln_child_result *result = lua_touserdata(L, 1);
  if (result->output.engine)
    pln_buffer_free(&result->output);
  return 0;
}

/* Pushes an empty result that owns its output.  [-0, +1] */
static pln_child_result *new_result(lua_State *L) {
  pln_child_result *result = lua_newuserdatauv(L, sizeof *result, 0);
  *result = (pln_child_result){0};
  luaL_setmetatable(L, RESULT);
  return result;
}

static pln_child_limits read_limits(lua_State *L, int arg) {
  luaL_checktype(L, arg, LUA_TTABLE);
  return (pln_child_limits){
      .seconds = pln_lua_number_field(L, arg, "seconds"),
      .memory = (uint64_t)pln_lua_int_field(L, arg, "memory", 0),
      .output = (size_t)pln_lua_int_field(L, arg, "output", 1 << 20),
      .pinned = pln_lua_bool_field(L, arg, "pinned")};
}

static void set_integer(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

void pln_lua_push_child_end(lua_State *L, const pln_child_end *end) {
  lua_createtable(L, 0, 8);
  set_boolean(L, "timed_out", end->timed_out);
  set_integer(L, "signal", end->signal);
  lua_pushstring(L, end->signal ? strsignal(end->signal) : NULL);
  lua_setfield(L, -2, "signal_name");
  set_integer(L, "code", end->code);
}

/* Pushes { output, timed_out, too_long, signal, signal_name, code, resident,
 * seconds }.  [-0, +1] */
static void push_fields(lua_State *L, const pln_child_result *result) {
  pln_lua_push_child_end(L, &result->end);
  lua_pushlstring(L, result->output.size ? result->output.data : "",
                  result->output.size);
  lua_setfield(L, -2, "output");
  set_boolean(L, "too_long", result->too_long);
  set_integer(L, "resident", (int64_t)result->resident);
  lua_pushnumber(L, result->seconds);
  lua_setfield(L, -2, "seconds");
}

static void write_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;
    bytes += n;
    size -= (size_t)n;
  }
}

/* In the child: calls the function on top of the stack. Its first letter says
 * whether what follows is the result or the message of an error. */
static void call_function(void *ud, int fd) {
  lua_State *L = ud;
  size_t size;
  bool ok = lua_pcall(L, 0, 1, 0) == LUA_OK;
  write_all(fd, ok ? "+" : "-", 1);
  lua_getglobal(L, "tostring");
  lua_insert(L, -2);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK || lua_type(L, -1) != LUA_TSTRING)
    return;
  const char *text = lua_tolstring(L, -1, &size);
  write_all(fd, text, size);
}

/* child_call(f, limits) -> what became of it: f runs in a fork of this process,
 * what it returns is the output as text, behind a + (an error: behind a -) */
static int core_child_call(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  pln_child_limits limits = read_limits(L, 2);
  luaL_checkstack(L, 8, NULL);
  pln_child_result *result = new_result(L);
  lua_pushvalue(L, 1);
  pln_lua_must(L, b,
               pln_child_call(b->engine, &limits, call_function, L, result));
  lua_pop(L, 1);
  push_fields(L, result);
  return 1;
}

const char **pln_lua_push_words(lua_State *L, int arg) {
  luaL_checktype(L, arg, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, arg);
  luaL_argcheck(L, n >= 1 && n <= MOST_WORDS, arg, "1 to 256 words expected");
  const char **words = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *words, 0);
  lua_createtable(L, (int)n, 0); /* keeps them */
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(L, arg, i + 1);
    words[i] = luaL_checkstring(L, -1);
    lua_rawseti(L, -2, i + 1);
  }
  words[n] = NULL;
  return words;
}

/* child_run(words, limits) -> what became of the program */
static int core_child_run(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_child_limits limits = read_limits(L, 2);
  const char **words = pln_lua_push_words(L, 1);
  pln_child_result *result = new_result(L);
  pln_lua_must(L, b, pln_child_run(b->engine, &limits, words, result));
  push_fields(L, result);
  return 1;
}

/* reset_memory_peak(): the peak of core.memory() is what is held now */
static int core_reset_memory_peak(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  b->engine->memory.peak = pln_engine_memory(b->engine, NULL);
  return 0;
}

/* process_id() */
static int core_process_id(lua_State *L) {
  lua_pushinteger(L, getpid());
  return 1;
}

void pln_lua_open_child(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"child_call", core_child_call},
      {"child_run", core_child_run},
      {"reset_memory_peak", core_reset_memory_peak},
      {"process_id", core_process_id},
      {NULL, NULL}};
  luaL_newmetatable(L, RESULT);
  lua_pushcfunction(L, result_gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  pln_lua_functions(L, functions);
}
