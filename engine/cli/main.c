/* main.c: the command `perilune`: a Lua state with the library and the
 * command's scripts embedded.
 *
 * What the command does is written in lua/perilune/cli. Scripts are found in
 * the table of embedded scripts (script.h), then where Lua usually looks. The
 * exit status is what perilune.cli.main returns: 0 done, 1 the work failed, 2
 * wrong usage. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "cli/host.h"
#include "cli/script.h"

/* Defined in lua/core.c. */
int luaopen_perilune_core(lua_State *L);

/* A searcher as in package.searchers: returns a loader and its origin. */
static int find_script(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const pln_embedded_script *s = pln_scripts;
  while (s->name && strcmp(s->name, name) != 0)
    s++;
  if (!s->name) {
    lua_pushfstring(L, "no script '%s' in the command", name);
    return 1;
  }
  if (luaL_loadbufferx(L, (const char *)s->code, s->size, s->name, "b"))
    return lua_error(L);
  lua_pushfstring(L, "(in the command) %s", name);
  return 2;
}

/* Inserts the searcher after that of package.preload, before those of files. */
static void add_searcher(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = luaL_len(L, -1); i >= 2; i--) {
    lua_geti(L, -1, i);
    lua_seti(L, -2, i + 1);
  }
  lua_pushcfunction(L, find_script);
  lua_seti(L, -2, 2);
  lua_pop(L, 2);
}

static void preload(lua_State *L, const char *name, lua_CFunction open) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, open);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

static int trace(lua_State *L) {
  const char *text = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, text, 1);
  return 1;
}

/* (argc, argv) -> exit status */
static int start_cli(lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  luaL_checkversion(L);
  luaL_openlibs(L);
  preload(L, "perilune.core", luaopen_perilune_core);
  preload(L, "perilune.cli.host", pln_cli_host);
  add_searcher(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "perilune.cli.main");
  lua_call(L, 1, 1);
  lua_createtable(L, argc, 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_seti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

/* errno of a failed write to stdout; exit handlers take no arguments. */
static bool finish_output(void) {
  int reason = fflush(stdout) != 0 ? errno : 0;
  if (!reason && !ferror(stdout))
    return true;
  fprintf(stderr, "perilune: standard output: %s\n",
          reason ? strerror(reason) : "not all of it could be written");
  if (!freopen("/dev/null", "w", stdout))
    clearerr(stdout);
  return false;
}

/* Scripts may end the process by os.exit. */
static void finish_output_at_exit(void) {
  if (!finish_output())
    _exit(1);
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (!L) {
    fputs("perilune: out of memory\n", stderr);
    return 1;
  }
  atexit(finish_output_at_exit);
  pln_cli_catch_failed_writes();
  lua_pushcfunction(L, trace);
  lua_pushcfunction(L, start_cli);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  int status = 1;
  if (lua_pcall(L, 2, 1, 1) == LUA_OK)
    status = (int)lua_tointeger(L, -1);
  else
    fprintf(stderr, "perilune: %s\n", lua_tostring(L, -1));
  if (!finish_output()) /* now: finalisers may not end */
    status = 1;
  pln_cli_guard_begin(status);
  pln_cli_forget_state();
  lua_close(L);
  pln_cli_guard_end();
  return status;
}
