/* option.c: converts rows of options and config keys to and from Lua.
 *
 *     { name =, default =, doc =, choices =, least =, most = }
 *     { name =, doc =, fields = { rows } }
 *
 * The default's type is the row's type; an empty table needs `type`. Called by
 * pass.c and registry.c. Invariant: rows that were read borrow their texts from
 * the Lua table. */

#include <stdio.h>
#include <stdlib.h>

#include "lua/binding.h"
#include "pass/pass.h"

/* ------------------------------------------------------------------ to Lua */

static const char *type_name(const pln_option *row) {
  switch (row->kind) {
  case PLN_ATTR_INT: return row->is_bool ? "boolean" : "integer";
  case PLN_ATTR_FLOAT: return "number";
  case PLN_ATTR_INTS: return "integers";
  case PLN_ATTR_FLOATS: return "numbers";
  case PLN_ATTR_STRINGS: return "strings";
  case PLN_ATTR_LIST: return "lists";
  case PLN_ATTR_DICT: return "table";
  case PLN_ATTR_NONE: return "function";
  default: return "string";
  }
}

static void set_string(lua_State *L, const char *field, const char *text) {
  lua_pushstring(L, text ? text : "");
  lua_setfield(L, -2, field);
}

static void set_bound(lua_State *L, const char *field, const char *text) {
  if (!text)
    return;
  if (!lua_stringtonumber(L, text))
    lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

/* Pushes a row without its fields.  [-0, +1] */
static void push_row(lua_State *L, pln_lua *b, const pln_option *row) {
  pln_attr value;
  lua_createtable(L, 0, 8);
  set_string(L, "name", row->name);
  set_string(L, "type", type_name(row));
  set_string(L, "doc", row->doc);
  if (row->choices)
    set_string(L, "choices", row->choices);
  set_bound(L, "least", row->least);
  set_bound(L, "most", row->most);
  if (row->kind == PLN_ATTR_NONE)
    return;
  pln_lua_must(L, b, pln_option_default(b->engine, row, &value));
  pln_lua_push_attr(L, b, &value);
  lua_setfield(L, -2, "default");
}

void pln_lua_push_option(lua_State *L, pln_lua *b, const pln_option *row) {
  push_row(L, b, row);
  if (!row->n_fields)
    return;
  lua_createtable(L, (int)row->n_fields, 0);
  for (uint32_t i = 0; i < row->n_fields; i++) {
    push_row(L, b, &row->fields[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "fields");
}

/* ---------------------------------------------------------------- from Lua */

/* Pushes the value on top as text that reads back as the same value.  [-0,
 * +1] */
static void push_option_text(lua_State *L) {
  char number[40];
  if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1)) {
    double value = lua_tonumber(L, -1);
    snprintf(number, sizeof number, "%.14g", value);
    if (strtod(number, NULL) != value)
      snprintf(number, sizeof number, "%.17g", value);
    lua_pushstring(L, number);
  } else {
    luaL_tolstring(L, -1, NULL);
  }
}

/* Kind of a list: strings, integers, or floats if one element is a float. */
static pln_attr_kind list_kind(lua_State *L, int list, const char *name) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  pln_attr_kind kind = PLN_ATTR_INTS;
  for (lua_Integer i = 1; i <= n; i++) {
    int type = lua_rawgeti(L, list, i);
    if (i == 1 && type == LUA_TSTRING)
      kind = PLN_ATTR_STRINGS;
    if (type != (kind == PLN_ATTR_STRINGS ? LUA_TSTRING : LUA_TNUMBER))
      pln_lua_error(L, PLN_ERR_TYPE,
                    "option '%s': a list is of strings or of numbers", name);
    if (type == LUA_TNUMBER && !lua_isinteger(L, -1))
      kind = PLN_ATTR_FLOATS;
    lua_pop(L, 1);
  }
  return kind;
}

/* Replaces the list on top by its text, "[1,2]" or "[\"a\"]". Returns its
 * kind. */
static pln_attr_kind list_text(lua_State *L, const char *name) {
  pln_lua *b = pln_lua_state_of(L);
  int list = lua_gettop(L);
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  pln_attr_kind kind = list_kind(L, list, name);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_buffer_text(text, "["));
  for (lua_Integer i = 1; i <= n; i++) {
    pln_slice item;
    lua_rawgeti(L, list, i);
    push_option_text(L);
    item.data = lua_tolstring(L, -1, &item.size);
    if (i > 1)
      pln_lua_must(L, b, pln_buffer_text(text, ","));
    if (kind == PLN_ATTR_STRINGS)
      pln_lua_must(L, b, pln_pipeline_quote(item, pln_buffer_write, text));
    else
      pln_lua_must(L, b, pln_buffer_add(text, item.data, item.size));
    lua_pop(L, 2);
  }
  pln_lua_must(L, b, pln_buffer_text(text, "]"));
  pln_lua_text_done(L);
  lua_replace(L, list);
  lua_settop(L, list);
  return kind;
}

/* Reads `type`, which is needed for empty lists and for numbers. */
static void read_type(lua_State *L, int row, pln_option *option) {
  const char *type = pln_lua_string_field(L, row, "type", NULL);
  bool empty = option->kind == PLN_ATTR_INTS && !strcmp(option->fallback, "[]");
  if (!type)
    return;
  if (!strcmp(type, "strings") && empty)
    option->kind = PLN_ATTR_STRINGS;
  if (!strcmp(type, "numbers") && option->kind == PLN_ATTR_INTS)
    option->kind = PLN_ATTR_FLOATS;
  if (!strcmp(type, "number") && option->kind == PLN_ATTR_INT)
    option->kind = PLN_ATTR_FLOAT;
  if (strcmp(type, type_name(option)) != 0)
    pln_lua_error(L, PLN_ERR_TYPE,
                  "option '%s': the default is not a value of type '%s'",
                  option->name, type);
}

/* Pops a text and stores it in the row, which keeps it alive.  [-1, +0] */
static const char *keep_text(lua_State *L, int row) {
  push_option_text(L);
  const char *text = lua_tostring(L, -1);
  luaL_ref(L, row);
  lua_pop(L, 1);
  return text;
}

static void read_default(lua_State *L, int row, pln_option *option) {
  int type = lua_getfield(L, row, "default");
  if (type == LUA_TBOOLEAN) {
    option->kind = PLN_ATTR_INT;
    option->is_bool = true;
  } else if (type == LUA_TNUMBER) {
    option->kind = lua_isinteger(L, -1) ? PLN_ATTR_INT : PLN_ATTR_FLOAT;
  } else if (type == LUA_TTABLE) {
    option->kind = list_text(L, option->name);
  } else if (type != LUA_TSTRING) {
    pln_lua_error(
        L, PLN_ERR_TYPE,
        "option '%s': the default is a boolean, number, string or list",
        option->name);
  }
  option->fallback = keep_text(L, row);
  read_type(L, row, option);
}

static const char *read_option_bound(lua_State *L, int row, const char *name,
                                     const char *option) {
  int type = lua_getfield(L, row, name);
  if (type == LUA_TNUMBER)
    return keep_text(L, row);
  if (type != LUA_TNIL)
    pln_lua_error(L, PLN_ERR_TYPE, "option '%s': '%s' is a number, got %s",
                  option, name, luaL_typename(L, -1));
  lua_pop(L, 1);
  return NULL;
}

static void check_row_fields(lua_State *L, int row, const char *name) {
  static const char *const known[] = {"name", "default", "doc",  "choices",
                                      "type", "least",   "most", "fields"};
  for (lua_pushnil(L); lua_next(L, row); lua_pop(L, 1)) {
    bool found = lua_type(L, -2) != LUA_TSTRING;
    for (size_t i = 0; i < PLN_COUNT(known) && !found; i++)
      found = !strcmp(lua_tostring(L, -2), known[i]);
    if (!found)
      pln_lua_error(L, PLN_ERR_TYPE, "option '%s' has no field '%s'", name,
                    lua_tostring(L, -2));
  }
}

/* Reads the row on top without its fields; the row keeps its texts alive. [-0,
 * +0] */
static void read_row(lua_State *L, pln_option *option) {
  int row = lua_gettop(L);
  luaL_checktype(L, row, LUA_TTABLE);
  const char *name = pln_lua_string_field(L, row, "name", NULL);
  if (!name)
    pln_lua_error(L, PLN_ERR_TYPE,
                  "an option has a name: { name = ..., default = ... }");
  *option =
      (pln_option){.name = name,
                   .kind = PLN_ATTR_STRING,
                   .doc = pln_lua_string_field(L, row, "doc", ""),
                   .choices = pln_lua_string_field(L, row, "choices", NULL)};
  check_row_fields(L, row, name);
  if (lua_getfield(L, row, "fields") != LUA_TNIL)
    option->kind = PLN_ATTR_DICT;
  lua_settop(L, row);
  if (option->kind != PLN_ATTR_DICT)
    read_default(L, row, option);
  option->least = read_option_bound(L, row, "least", name);
  option->most = read_option_bound(L, row, "most", name);
  lua_settop(L, row);
}

/* Reads the rows in the list on top into memory that the list keeps alive. [-0,
 * +0] */
static const pln_option *read_rows(lua_State *L, uint32_t *n) {
  int list = lua_gettop(L);
  *n = (uint32_t)lua_rawlen(L, list);
  pln_option *rows = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *rows, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    read_row(L, &rows[i]);
    lua_pop(L, 1);
  }
  lua_setfield(L, list, "\001rows");
  return rows;
}

const pln_option *pln_lua_check_options(lua_State *L, int arg, uint32_t *n) {
  arg = lua_absindex(L, arg);
  if (lua_isnoneornil(L, arg))
    lua_newtable(L);
  else
    lua_pushvalue(L, arg);
  luaL_checktype(L, -1, LUA_TTABLE);
  pln_option *rows = (pln_option *)read_rows(L, n);
  for (uint32_t i = 0; i < *n; i++) {
    if (rows[i].kind != PLN_ATTR_DICT)
      continue;
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    lua_getfield(L, -1, "fields");
    luaL_checktype(L, -1, LUA_TTABLE);
    rows[i].fields = read_rows(L, &rows[i].n_fields);
    lua_pop(L, 2);
  }
  return rows;
}
