/* xgboost.c: the binding of tune/xgboost.c for lua/perilune/tune/cost. */

#include "tune/xgboost.h"
#include "lua/binding.h"

#define XGBOOST "perilune.xgboost"

static int xgboost_gc(lua_State *L) {
  pln_xgboost **model = lua_touserdata(L, 1);
  pln_xgboost_free(*model);
  *model = NULL;
  return 0;
}

/* A list of numbers at `index` of the stack, appended to `out`. */
static void read_numbers(lua_State *L, int index, uint32_t n, float *out) {
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    out[i] = (float)luaL_checknumber(L, -1);
    lua_pop(L, 1);
  }
}

/* xgboost_fit(library or nil, rows, targets) -> a model: rows is a list of
 * lists of one length */
static int core_xgboost_fit(lua_State *L) {
  enum { MOST = 1 << 24 };
  pln_lua *b = pln_lua_state_of(L);
  const char *file = luaL_optstring(L, 1, NULL);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  size_t rows = lua_rawlen(L, 2);
  luaL_argcheck(L, rows > 0 && rows == lua_rawlen(L, 3), 2,
                "rows and targets differ in length");
  luaL_argcheck(L, lua_rawgeti(L, 2, 1) == LUA_TTABLE, 2, "a list expected");
  size_t columns = lua_rawlen(L, -1);
  lua_pop(L, 1);
  luaL_argcheck(L, columns > 0 && columns <= MOST / rows, 2, "too large");
  float *features = lua_newuserdatauv(L, rows * columns * sizeof *features, 0);
  float *targets = lua_newuserdatauv(L, rows * sizeof *targets, 0);
  for (size_t i = 0; i < rows; i++) {
    bool fits = lua_rawgeti(L, 2, (lua_Integer)i + 1) == LUA_TTABLE &&
                lua_rawlen(L, -1) == columns;
    luaL_argcheck(L, fits, 2, "rows differ in length");
    read_numbers(L, lua_gettop(L), (uint32_t)columns, features + i * columns);
    lua_pop(L, 1);
  }
  read_numbers(L, 3, (uint32_t)rows, targets);
  pln_xgboost **model = lua_newuserdatauv(L, sizeof *model, 0);
  *model = NULL;
  luaL_setmetatable(L, XGBOOST);
  pln_lua_must(L, b,
               pln_xgboost_fit(b->engine, file, (uint32_t)rows,
                               (uint32_t)columns, features, targets, model));
  return 1;
}

/* xgboost_predict(model, row) -> number */
static int core_xgboost_predict(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_xgboost **model = luaL_checkudata(L, 1, XGBOOST);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t n = pln_xgboost_columns(*model);
  luaL_argcheck(L, lua_rawlen(L, 2) == n, 2, "a row of other length expected");
  float *row = lua_newuserdatauv(L, n * sizeof *row, 0);
  double value = 0;
  read_numbers(L, 2, n, row);
  pln_lua_must(L, b, pln_xgboost_predict(*model, row, &value));
  lua_pushnumber(L, value);
  return 1;
}

void pln_lua_open_xgboost(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"xgboost_fit", core_xgboost_fit},
      {"xgboost_predict", core_xgboost_predict},
      {NULL, NULL}};
  pln_lua_handle_type(L, XGBOOST, xgboost_gc);
  pln_lua_functions(L, functions);
}
