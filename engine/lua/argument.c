/* argument.c: argument checks and usage errors.
 *
 * Replaces the luaL_check... functions in all files of the binding (binding.h).
 * Those name the line that called the C function, which is usually a line of
 * the library's own scripts. These name the line of the user's script that
 * called the library, and the library function that it called. */

#include <string.h>

#include "lua/binding.h"

/* Pushes "deploy.lua:7: ", or "" if the engine called, not a script.  [-0,
 * +1] */
static void push_where(lua_State *L) {
  lua_Debug ar;
  bool by_script =
      lua_getstack(L, 1, &ar) && lua_getinfo(L, "l", &ar) && ar.currentline > 0;
  if (by_script && pln_lua_caller(L, &ar))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

int pln_lua_misuse(lua_State *L, const char *format, ...) {
  va_list args;
  push_where(L);
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  lua_concat(L, 2);
  return lua_error(L);
}

/* Reports an error in an argument of the C function itself, like
 * luaL_argerror. */
static int own_argument(lua_State *L, int arg, const char *reason) {
  lua_Debug ar = {.name = NULL, .namewhat = ""};
  if (lua_getstack(L, 0, &ar))
    lua_getinfo(L, "n", &ar);
  const char *name = ar.name ? ar.name : "?";
  arg -= !strcmp(ar.namewhat, "method");
  if (arg == 0)
    return pln_lua_misuse(L, "calling '%s' on bad self (%s)", name, reason);
  return pln_lua_misuse(L, "bad argument #%d to '%s' (%s)", arg, name, reason);
}

/* The name of the function at a level, as its call site spells it; NULL if
 * unknown, as after a tail call. A C function found there is pcall. */
static const char *name_at(lua_State *L, int level) {
  lua_Debug ar;
  if (!lua_getstack(L, level, &ar))
    return NULL;
  lua_getinfo(L, "nSt", &ar);
  return ar.istailcall || (level > 0 && ar.what[0] == 'C') ? NULL : ar.name;
}

/* If library scripts lie between the user's line and the C function, the
 * argument's number is counted in the user's call. */
int pln_lua_bad_argument(lua_State *L, int arg, const char *reason) {
  lua_Debug ar;
  int level = pln_lua_caller(L, &ar) - 1;
  if (level < 2)
    return own_argument(L, arg, reason);
  const char *name = name_at(L, level - 1);
  if (!name)
    name = name_at(L, 0);
  return pln_lua_misuse(L, "%s: %s", name ? name : "?", reason);
}

int pln_lua_bad_type(lua_State *L, int arg, const char *wanted) {
  const char *got = luaL_typename(L, arg);
  if (luaL_getmetafield(L, arg, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  return pln_lua_bad_argument(
      L, arg, lua_pushfstring(L, "%s expected, got %s", wanted, got));
}

const char *pln_lua_check_text(lua_State *L, int arg, size_t *size) {
  const char *text = lua_tolstring(L, arg, size);
  if (!text)
    pln_lua_bad_type(L, arg, lua_typename(L, LUA_TSTRING));
  return text;
}

const char *pln_lua_opt_text(lua_State *L, int arg, const char *otherwise,
                             size_t *size) {
  if (!lua_isnoneornil(L, arg))
    return pln_lua_check_text(L, arg, size);
  if (size)
    *size = otherwise ? strlen(otherwise) : 0;
  return otherwise;
}

lua_Number pln_lua_check_number(lua_State *L, int arg) {
  int is_number;
  lua_Number number = lua_tonumberx(L, arg, &is_number);
  if (!is_number)
    pln_lua_bad_type(L, arg, lua_typename(L, LUA_TNUMBER));
  return number;
}

lua_Number pln_lua_opt_number(lua_State *L, int arg, lua_Number otherwise) {
  return lua_isnoneornil(L, arg) ? otherwise : pln_lua_check_number(L, arg);
}

lua_Integer pln_lua_check_integer(lua_State *L, int arg) {
  int is_integer;
  lua_Integer integer = lua_tointegerx(L, arg, &is_integer);
  if (!is_integer && lua_isnumber(L, arg))
    pln_lua_bad_argument(L, arg, "number has no integer representation");
  else if (!is_integer)
    pln_lua_bad_type(L, arg, lua_typename(L, LUA_TNUMBER));
  return integer;
}

lua_Integer pln_lua_opt_integer(lua_State *L, int arg, lua_Integer otherwise) {
  return lua_isnoneornil(L, arg) ? otherwise : pln_lua_check_integer(L, arg);
}

void pln_lua_check_lua_type(lua_State *L, int arg, int type) {
  if (lua_type(L, arg) != type)
    pln_lua_bad_type(L, arg, lua_typename(L, type));
}

void pln_lua_check_any(lua_State *L, int arg) {
  if (lua_isnone(L, arg))
    pln_lua_bad_argument(L, arg, "value expected");
}

void *pln_lua_check_userdata(lua_State *L, int arg, const char *class) {
  void *slot = luaL_testudata(L, arg, class);
  if (!slot)
    pln_lua_bad_type(L, arg, class);
  return slot;
}

int pln_lua_check_option(lua_State *L, int arg, const char *otherwise,
                         const char *const names[]) {
  const char *name = pln_lua_opt_text(L, arg, otherwise, NULL);
  if (!name)
    pln_lua_bad_type(L, arg, lua_typename(L, LUA_TSTRING));
  for (int i = 0; name && names[i]; i++)
    if (!strcmp(names[i], name))
      return i;
  return pln_lua_bad_argument(L, arg,
                              lua_pushfstring(L, "invalid option '%s'", name));
}

void pln_lua_known_keys(lua_State *L, int arg, const char *what,
                        const char *const *names, uint32_t n) {
  char hint[128];
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
    bool known = false;
    const char *key = luaL_tolstring(L, -2, NULL);
    for (uint32_t i = 0; i < n; i++)
      known = known || !strcmp(key, names[i]);
    pln_suggest(key, n, names, hint, sizeof hint);
    if (!known)
      pln_lua_error(L, PLN_ERR_ARGUMENT, "%s has no option '%s'%s", what, key,
                    hint);
    lua_pop(L, 1);
  }
}
