/* test_host.c: what a host written in C gets of errors: a string where no
 * script catches them, a Diag with code and message where one does. */

#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "check.h"

int luaopen_perilune_core(lua_State *L);

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  if (!L)
    return NULL;
  luaL_openlibs(L);
  luaL_requiref(L, "perilune.core", luaopen_perilune_core, 1);
  lua_setglobal(L, "core");
  return L;
}

/* The error that the script ends with, as hosts print it. */
static const char *error_of(lua_State *L, const char *script) {
  lua_settop(L, 0);
  if (luaL_loadbufferx(L, script, strlen(script), "=host", "t") != LUA_OK)
    return "the script does not compile";
  return lua_pcall(L, 0, 0, 0) == LUA_OK ? "" : lua_tostring(L, -1);
}

static bool has(const char *text, const char *part) {
  return text && strstr(text, part);
}

static void uncaught_errors_are_strings(void) {
  lua_State *L = open_state();
  REQUIRE(L);
  CHECK(has(error_of(L, "core.text_parse('x', { nam = 1 })"),
            "host:1: error: reading text has no option 'nam'"));
  CHECK(has(error_of(L, "local x = core.var('x', 'int32')\n"
                        "return (core.call(core.op 'add', x))"),
            "host:2: error: 'add' takes at least 2 arguments"));
  CHECK(has(error_of(L, "core.raise(core.diag('type', 'by hand'))"),
            "error: by hand"));
  CHECK(has(error_of(L, "core.op(7 .. '', {}):nothing()"), "host:1:"));
  lua_close(L);
}

static void caught_errors_are_diags(void) {
  lua_State *L = open_state();
  REQUIRE(L);
  static const char script[] =
      "local function wrong() return (core.text_parse('x', { nam = 1 })) end\n"
      "local ok, err = pcall(wrong)\n"
      "assert(not ok and err.code == 'argument' and err.message, 'pcall')\n"
      "ok = xpcall(wrong, function(e) err = e return 'x' end)\n"
      "assert(not ok and err.code == 'argument', 'xpcall')\n"
      "ok, err = coroutine.resume(coroutine.create(wrong))\n"
      "assert(not ok and err.code == 'argument', 'resume')\n"
      "ok, err = pcall(function() return (pcall(error)), wrong() end)\n"
      "assert(not ok and err.code == 'argument', 'nested')";
  CHECK_STR(error_of(L, script), "");
  /* What was caught and is raised again outside is the host's. */
  CHECK(has(error_of(L, "local _, err = pcall(core.text_parse, 'x', { nam = 1 "
                        "})\ncore.raise(err)"),
            "reading text has no option 'nam'"));
  lua_close(L);
}

static void failing_passes_are_strings_too(void) {
  lua_State *L = open_state();
  REQUIRE(L);
  static const char script[] =
      "local x = core.var('x', 'int32')\n"
      "local mod = core.module { main = core.func({ x }, x) }\n"
      "local pass = core.pass { name = 'P', kind = 'module', options = {},\n"
      "  run = function() error 'no' end }\n"
      "pass(mod)";
  CHECK(has(error_of(L, script), "pass 'P'"));
  lua_close(L);
}

static void other_error_objects_stay(void) {
  lua_State *L = open_state();
  REQUIRE(L);
  CHECK(error_of(L, "error {}") == NULL && lua_istable(L, -1));
  CHECK(error_of(L, "core.raise {}") == NULL && lua_istable(L, -1));
  lua_close(L);
}

static const check_test tests[] = {
    {"uncaught errors are strings", uncaught_errors_are_strings},
    {"caught errors are diags", caught_errors_are_diags},
    {"failing passes are strings too", failing_passes_are_strings_too},
    {"other error objects stay", other_error_objects_stay},
};
CHECK_MAIN(tests)
