/* output.c: files that replace their target when they are complete, for
 * lua/perilune/replace_file (base/file/file.h says what holds). */

#include "base/file/file.h"
#include "lua/binding.h"

#define OUTPUT "perilune.Output"

static int output_gc(lua_State *L) {
  pln_output **output = luaL_checkudata(L, 1, OUTPUT);
  if (*output)
    pln_output_abort(*output);
  *output = NULL;
  return 0;
}

/* output_open(path) -> Output, or nil and a diagnostic */
static int core_output_open(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t n;
  const char *path = luaL_checklstring(L, 1, &n);
  luaL_argcheck(L, strlen(path) == n, 1, "a path has no zeros");
  pln_output **output = lua_newuserdatauv(L, sizeof *output, 0);
  *output = NULL;
  luaL_setmetatable(L, OUTPUT);
  pln_status status = pln_output_open(b->engine, path, output);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

static pln_output **check_open(lua_State *L) {
  pln_output **output = luaL_checkudata(L, 1, OUTPUT);
  luaL_argcheck(L, *output != NULL, 1, "the output is closed");
  return output;
}

static int push_done(lua_State *L, pln_lua *b, pln_status status) {
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

/* output_write(output, text) -> true, or nil and a diagnostic */
static int core_output_write(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t size;
  const char *text = luaL_checklstring(L, 2, &size);
  return push_done(L, b, pln_output_write(*check_open(L), text, size));
}

/* output_commit(output) -> true, or nil and a diagnostic; closes it */
static int core_output_commit(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_output **place = check_open(L), *output = *place;
  *place = NULL;
  return push_done(L, b, pln_output_commit(output));
}

/* output_abort(output): leaves the target as it was */
static int core_output_abort(lua_State *L) {
  return output_gc(L);
}

void pln_lua_open_output(lua_State *L) {
  static const luaL_Reg functions[] = {{"output_open", core_output_open},
                                       {"output_write", core_output_write},
                                       {"output_commit", core_output_commit},
                                       {"output_abort", core_output_abort},
                                       {NULL, NULL}};
  pln_lua_handle_type(L, OUTPUT, output_gc);
  pln_lua_functions(L, functions);
}
