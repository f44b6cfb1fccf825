/* pattern_table.c: tables of dataflow patterns for scripts
 * (lua/perilune/dataflow_pattern/table.lua). */

#include "rule/dataflow/pattern_table.h"
#include "lua/rule/dataflow.h"

/* Reads the row at the top: { name, compiled pattern, check or nil }.  [-1,
 * +0] */
static void read_row(lua_State *L, pln_lua *b, pln_lua_callback **slot,
                     pln_pattern_row *row) {
  int at = lua_gettop(L);
  luaL_checktype(L, at, LUA_TTABLE);
  lua_rawgeti(L, at, 1);
  row->name = pln_lua_check_symbol(L, b, at + 1);
  lua_rawgeti(L, at, 2);
  row->pattern = pln_lua_check_dataflow_pattern(L, at + 2);
  if (lua_rawgeti(L, at, 3) == LUA_TFUNCTION) {
    pln_lua_set_callback(L, b, slot);
    row->check = pln_lua_op_function(*slot);
  }
  lua_settop(L, at - 1);
}

/* pattern_table(name, rows) registers the rows, which keep their patterns. */
static int core_pattern_table(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice name;
  name.data = luaL_checklstring(L, 1, &name.size);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  uint32_t n = (uint32_t)lua_rawlen(L, 2);
  pln_pattern_row *rows =
      lua_newuserdatauv(L, (n + (size_t)1) * sizeof *rows, 0);
  pln_lua_callback **slots = pln_lua_new_callbacks(L, n + 1);
  memset(rows, 0, (n + (size_t)1) * sizeof *rows);
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    read_row(L, b, &slots[i], &rows[i]);
  }
  lua_pushvalue(L, 2);
  pln_lua_set_callback(L, b, &slots[n]);
  pln_lua_must(L, b,
               pln_pattern_table_register(b->engine, name, n, rows,
                                          pln_lua_release_callback, slots[n]));
  memset(slots, 0, (n + (size_t)1) * sizeof(pln_lua_callback *));
  return 0;
}

void pln_lua_open_pattern_table(lua_State *L) {
  static const luaL_Reg functions[] = {{"pattern_table", core_pattern_table},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
