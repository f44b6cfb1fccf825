/* lua.c: the interpreter that runs the specs in builds with AddressSanitizer,
 * as `lua5.4 SCRIPT [ARGUMENT]...` or `lua5.4 -e CHUNK`. Its runtime must be
 * the first of the libraries of a process, and Debian's interpreter is linked
 * without it. LD_PRELOAD would do, but reaches every process that a spec
 * starts: the C compiler takes twice its time under it. */

#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* As in lua.c of Lua: the script is arg[0], what is before it has indices
 * below. */
static void set_arg(lua_State *L, int argc, char **argv, int script) {
  lua_createtable(L, argc - script, script + 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

static int traceback(lua_State *L) {
  luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
  return 1;
}

static int load(lua_State *L, bool chunk, const char *what) {
  return chunk ? luaL_loadbuffer(L, what, strlen(what), "=(command line)")
               : luaL_loadfile(L, what);
}

static int run(lua_State *L, int argc, char **argv) {
  bool chunk = argc > 2 && !strcmp(argv[1], "-e");
  int script = chunk ? 2 : 1;
  if (argc < 2) {
    fputs("Usage: lua5.4 SCRIPT [ARGUMENT]... | -e CHUNK\n", stderr);
    return 2;
  }
  luaL_openlibs(L);
  set_arg(L, argc, argv, chunk ? 0 : script);
  lua_pushcfunction(L, traceback);
  int status = load(L, chunk, argv[script]);
  if (status == LUA_OK) {
    int n = chunk ? 0 : argc - script - 1;
    luaL_checkstack(L, n, "too many arguments");
    for (int i = 0; i < n; i++)
      lua_pushstring(L, argv[script + 1 + i]);
    status = lua_pcall(L, n, 0, 1);
  }
  if (status == LUA_OK)
    return 0;
  fprintf(stderr, "lua5.4: %s\n", lua_tostring(L, -1));
  return 1;
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (!L) {
    fputs("lua5.4: out of memory\n", stderr);
    return 1;
  }
  int status = run(L, argc, argv);
  lua_close(L);
  return status;
}
