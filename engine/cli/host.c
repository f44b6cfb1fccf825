/* host.c: the module perilune.cli.host: the clock, the memory and the files of
 * the system, which Lua's own library does not tell about.
 *
 * Used by lua/perilune/cli only; a script that runs elsewhere has no need of
 * it. */

#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "cli/host.h"
#include "perilune.h"

/* clock() -> seconds since some moment, monotonic */
static int host_clock(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + (lua_Number)t.tv_nsec * 1e-9);
  return 1;
}

/* peak_rss() -> the most bytes this process ever had resident */
static int host_peak_rss(lua_State *L) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
#ifdef __APPLE__
  lua_pushinteger(L, (lua_Integer)u.ru_maxrss);
#else
  lua_pushinteger(L, (lua_Integer)u.ru_maxrss * 1024);
#endif
  return 1;
}

/* stat(path) -> "file", "directory" or "other", and bytes; nil, reason */
static int host_stat(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat s;
  if (stat(path, &s) != 0)
    return luaL_fileresult(L, 0, path);
  lua_pushstring(L, S_ISREG(s.st_mode)   ? "file"
                    : S_ISDIR(s.st_mode) ? "directory"
                                         : "other");
  lua_pushinteger(L, (lua_Integer)s.st_size);
  return 2;
}

/* terminal() -> whether messages go to a terminal */
static int host_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDERR_FILENO));
  return 1;
}

int pln_cli_host(lua_State *L) {
  static const luaL_Reg functions[] = {{"clock", host_clock},
                                       {"peak_rss", host_peak_rss},
                                       {"stat", host_stat},
                                       {"terminal", host_terminal},
                                       {NULL, NULL}};
  luaL_newlib(L, functions);
  lua_pushstring(L, pln_version());
  lua_setfield(L, -2, "version");
  return 1;
}
