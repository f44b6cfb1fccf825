/* sqlite.c: databases of SQLite, for lua/perilune/tune/database. */

#include "tune/sqlite.h"

#include "lua/binding.h"

#define SQLITE "perilune.Sqlite"

enum { MOST_PARAMS = 32 };

static int sqlite_gc(lua_State *L) {
  pln_sqlite **db = luaL_checkudata(L, 1, SQLITE);
  pln_sqlite_close(*db);
  *db = NULL;
  return 0;
}

static pln_sqlite *check_open(lua_State *L, int arg) {
  pln_sqlite **db = luaL_checkudata(L, arg, SQLITE);
  luaL_argcheck(L, *db != NULL, arg, "the database is closed");
  return *db;
}

/* sqlite_open(path, writable, seconds) -> Sqlite, or nil and a diagnostic */
static int core_sqlite_open(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t n;
  const char *path = luaL_checklstring(L, 1, &n);
  luaL_argcheck(L, strlen(path) == n, 1, "a path has no zeros");
  bool writable = lua_toboolean(L, 2);
  double seconds = luaL_checknumber(L, 3);
  pln_sqlite **db = lua_newuserdatauv(L, sizeof *db, 0);
  *db = NULL;
  luaL_setmetatable(L, SQLITE);
  pln_status status = pln_sqlite_open(b->engine, path, writable, seconds, db);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* sqlite_close(db) */
static int core_sqlite_close(lua_State *L) {
  return sqlite_gc(L);
}

static pln_sqlite_value param_at(lua_State *L, int index) {
  pln_sqlite_value value = {.kind = PLN_SQLITE_TEXT};
  if (lua_isnil(L, index)) {
    value.kind = PLN_SQLITE_NULL;
  } else if (lua_isinteger(L, index)) {
    value.kind = PLN_SQLITE_INTEGER;
    value.integer = lua_tointeger(L, index);
  } else if (lua_type(L, index) == LUA_TNUMBER) {
    value.kind = PLN_SQLITE_NUMBER;
    value.number = lua_tonumber(L, index);
  } else {
    value.text.data = luaL_checklstring(L, index, &value.text.size);
  }
  return value;
}

/* Rows on their way into a table. */
typedef struct rows {
  lua_State *L; /* the list is at the top of its stack */
  lua_Integer n;
  uint32_t columns;
  const char *const *names;
  const pln_sqlite_value *fields;
} rows;

static void push_field(lua_State *L, const pln_sqlite_value *field) {
  switch (field->kind) {
  case PLN_SQLITE_NULL: lua_pushnil(L); break;
  case PLN_SQLITE_INTEGER: lua_pushinteger(L, field->integer); break;
  case PLN_SQLITE_NUMBER: lua_pushnumber(L, field->number); break;
  case PLN_SQLITE_TEXT:
    lua_pushlstring(L, field->text.data, field->text.size);
    break;
  }
}

/* [list, rows]: appends a row to the list. */
static int append_row(lua_State *L) {
  rows *r = lua_touserdata(L, 2);
  lua_createtable(L, 0, (int)r->columns);
  for (uint32_t i = 0; i < r->columns; i++) {
    push_field(L, &r->fields[i]);
    lua_setfield(L, -2, r->names[i]);
  }
  lua_rawseti(L, 1, ++r->n);
  return 0;
}

/* Lua's errors do not cross SQLite. */
static pln_status take_row(void *ud, uint32_t n, const char *const *names,
                           const pln_sqlite_value *fields) {
  rows *r = ud;
  r->columns = n;
  r->names = names;
  r->fields = fields;
  lua_pushcfunction(r->L, append_row);
  lua_pushvalue(r->L, -2);
  lua_pushlightuserdata(r->L, r);
  if (lua_pcall(r->L, 2, 0, 0) == LUA_OK)
    return PLN_OK;
  lua_pop(r->L, 1);
  return PLN_ERR_NOMEM;
}

/* A statement that runs. */
typedef struct statement {
  pln_sqlite *db;
  pln_slice sql;
  uint32_t n;
  const pln_sqlite_value *params;
  pln_status status;
} statement;

/* [statement] -> a list of rows */
static int run_statement(lua_State *L) {
  statement *s = lua_touserdata(L, 1);
  rows r = {.L = L};
  lua_newtable(L);
  s->status = pln_sqlite_run(s->db, s->sql, s->n, s->params, take_row, &r);
  return 1;
}

/* sqlite_run(db, sql, ...) -> a list of rows by the names of their columns, or
 * nil and a diagnostic. No finalizer closes the database meanwhile. */
static int core_sqlite_run(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_sqlite_value params[MOST_PARAMS];
  statement s = {.params = params};
  int n = lua_gettop(L) - 2;
  luaL_argcheck(L, n <= MOST_PARAMS, 3, "too many parameters");
  s.sql.data = luaL_checklstring(L, 2, &s.sql.size);
  for (int i = 0; i < n; i++)
    params[i] = param_at(L, i + 3);
  luaL_checkstack(L, 8, NULL);
  s.n = n > 0 ? (uint32_t)n : 0;
  s.db = check_open(L, 1);
  pln_lua_without_finalizers(L, run_statement, &s, 1);
  if (s.status == PLN_ERR_NOMEM)
    s.status = pln_nomem(b->engine);
  return s.status == PLN_OK ? 1 : pln_lua_fail(L, b, s.status);
}

/* sqlite_changes(db) -> the rows that the last statement changed */
static int core_sqlite_changes(lua_State *L) {
  lua_pushinteger(L, pln_sqlite_changes(check_open(L, 1)));
  return 1;
}

/* sqlite_version(db) -> the library's version */
static int core_sqlite_version(lua_State *L) {
  lua_pushstring(L, pln_sqlite_version(check_open(L, 1)));
  return 1;
}

void pln_lua_open_sqlite(lua_State *L) {
  static const luaL_Reg functions[] = {{"sqlite_open", core_sqlite_open},
                                       {"sqlite_close", core_sqlite_close},
                                       {"sqlite_run", core_sqlite_run},
                                       {"sqlite_changes", core_sqlite_changes},
                                       {"sqlite_version", core_sqlite_version},
                                       {NULL, NULL}};
  pln_lua_handle_type(L, SQLITE, sqlite_gc);
  pln_lua_functions(L, functions);
}
