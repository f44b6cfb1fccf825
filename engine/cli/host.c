/* host.c: the module perilune.cli.host: the clock, the memory and the files of
 * the system, which Lua's own library does not tell about.
 *
 * Used by lua/perilune/cli only; a script that runs elsewhere has no need of
 * it. */

#include <dirent.h>
#include <errno.h>
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

static int names_gc(lua_State *L) {
  DIR **folder = lua_touserdata(L, 1);
  if (*folder)
    closedir(*folder);
  *folder = NULL;
  return 0;
}

/* list(path) -> { name, ... } of a folder, in no order; nil, reason */
static int host_list(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  const struct dirent *entry;
  DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
  *folder = NULL;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, names_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  if (!(*folder = opendir(path)))
    return luaL_fileresult(L, 0, path);
  lua_newtable(L);
  for (lua_Integer n = 1; errno = 0, (entry = readdir(*folder)); n++) {
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, -2, n);
  }
  if (errno != 0)
    return luaL_fileresult(L, 0, path);
  closedir(*folder);
  *folder = NULL;
  return 1;
}

/* make_folder(path) -> true, also when it is there; nil, reason */
static int host_make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat s;
  bool there = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
  return luaL_fileresult(L, there || mkdir(path, 0777) == 0, path);
}

int pln_cli_host(lua_State *L) {
  static const luaL_Reg functions[] = {{"clock", host_clock},
                                       {"peak_rss", host_peak_rss},
                                       {"stat", host_stat},
                                       {"list", host_list},
                                       {"make_folder", host_make_folder},
                                       {NULL, NULL}};
  luaL_newlib(L, functions);
  luaL_setfuncs(L, pln_cli_stop_functions, 0);
  lua_pushstring(L, pln_version());
  lua_setfield(L, -2, "version");
  return 1;
}
