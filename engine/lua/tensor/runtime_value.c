/* runtime_value.c: converts arguments and results of evaluation between Lua and
 * runtime values.
 *
 * A tensor is a Tensor, a number or a nested table; a sequence is a table of
 * tensors where the type asks for one; a map is a table from its keys to its
 * values, numbers or strings; an empty optional is nil. Values under
 * construction belong to a box, so that an error releases them. */

#include "lua/binding.h"

#define DATA "perilune.Data"

void pln_lua_release_runtime_values(pln_lua_runtime_values *slot) {
  for (uint32_t i = 0; i < slot->count; i++)
    pln_runtime_value_release(slot->engine, &slot->items[i]);
  slot->count = 0;
}

static int data_gc(lua_State *L) {
  pln_lua_release_runtime_values(lua_touserdata(L, 1));
  return 0;
}

pln_lua_runtime_values *pln_lua_push_runtime_values(lua_State *L, pln_lua *b,
                                                    uint32_t n) {
  pln_lua_runtime_values *slot =
      pln_lua_userdata(L, DATA, sizeof *slot + n * sizeof *slot->items, 0);
  slot->engine = b->engine;
  slot->count = n;
  return slot;
}

/* A table whose first element is a Tensor is a sequence, whatever the type
 * is. */
static bool is_sequence(lua_State *L, pln_lua *b, int arg, pln_type type) {
  if (pln_type_get_kind(b->engine, type) == PLN_TYPE_SEQUENCE)
    return true;
  if (!lua_istable(L, arg))
    return false;
  lua_rawgeti(L, arg, 1);
  bool tensors = pln_lua_test_tensor(L, -1) != NULL;
  lua_pop(L, 1);
  return tensors;
}

/* Reads the value at `arg` as a tensor.  [-0, +0] */
static void read_lua_tensor(lua_State *L, pln_lua *b, int arg, pln_type type,
                            pln_runtime_value *out) {
  int top = lua_gettop(L);
  pln_dtype dtype = pln_type_dtype(b->engine, type);
  *out = pln_runtime_value_tensor(pln_lua_to_tensor(L, b, arg, dtype));
  lua_settop(L, top);
}

static bool is_map(pln_lua *b, pln_type type) {
  return pln_type_get_kind(b->engine, type) == PLN_TYPE_MAP;
}

/* Lists the keys of the table at `arg`, and their values: two tables.
 * [-0, +2] */
static void list_entries(lua_State *L, int arg) {
  lua_Integer n = 0;
  lua_newtable(L);
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, arg)) {
    lua_rawseti(L, -3, ++n); /* the value */
    lua_pushvalue(L, -1);
    lua_rawseti(L, -4, n); /* the key */
  }
}

/* Reads a map.  [-0, +0] */
static void read_map(lua_State *L, pln_lua *b, int arg, pln_type type,
                     pln_runtime_value *out) {
  int top = lua_gettop(L);
  pln_tensor *parts[2];
  luaL_checktype(L, arg, LUA_TTABLE);
  list_entries(L, arg);
  for (int i = 0; i < 2; i++) {
    pln_type part = pln_type_part_at(b->engine, type, (uint32_t)i);
    parts[i] =
        pln_lua_to_tensor(L, b, top + 1 + i, pln_type_dtype(b->engine, part));
  }
  pln_lua_must(L, b, pln_runtime_value_map(b->engine, parts[0], parts[1], out));
  lua_settop(L, top);
}

/* Reads a sequence of tensors or maps.  [-0, +0] */
static void read_sequence(lua_State *L, pln_lua *b, int arg, pln_type type,
                          pln_runtime_value *out) {
  luaL_checktype(L, arg, LUA_TTABLE);
  bool typed = pln_type_get_kind(b->engine, type) == PLN_TYPE_SEQUENCE;
  pln_type element = typed ? pln_type_part_at(b->engine, type, 0) : 0;
  uint32_t n = (uint32_t)lua_rawlen(L, arg);
  pln_lua_runtime_values *items = pln_lua_push_runtime_values(L, b, n);
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    if (is_map(b, element))
      read_map(L, b, lua_gettop(L), element, &items->items[i]);
    else
      read_lua_tensor(L, b, lua_gettop(L), element, &items->items[i]);
    lua_pop(L, 1);
  }
  pln_lua_must(L, b,
               pln_runtime_value_sequence(b->engine, n, items->items, out));
  pln_lua_release_runtime_values(items);
  lua_pop(L, 1);
}

void pln_lua_read_runtime_value(lua_State *L, pln_lua *b, int arg,
                                pln_type type, pln_runtime_value *out) {
  if (lua_isnil(L, arg))
    *out = pln_runtime_value_tensor(NULL);
  else if (is_sequence(L, b, arg, type))
    read_sequence(L, b, arg, type, out);
  else if (is_map(b, type))
    read_map(L, b, arg, type, out);
  else
    read_lua_tensor(L, b, arg, type, out);
}

/* [-0, +1] */
static void push_map(lua_State *L, const pln_runtime_value *value) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_tensor *keys = pln_runtime_value_at(value, 0)->of.tensor;
  const pln_tensor *values = pln_runtime_value_at(value, 1)->of.tensor;
  const void *key_data, *value_data;
  pln_lua_must(L, b, pln_tensor_data(keys, &key_data));
  pln_lua_must(L, b, pln_tensor_data(values, &value_data));
  lua_newtable(L);
  for (size_t i = 0; i < pln_tensor_count(keys); i++) {
    pln_lua_push_element(L, pln_tensor_dtype(keys), key_data, i);
    pln_lua_push_element(L, pln_tensor_dtype(values), value_data, i);
    lua_rawset(L, -3);
  }
}

void pln_lua_push_runtime_value(lua_State *L, const pln_runtime_value *value) {
  uint32_t n = pln_runtime_value_count(value);
  luaL_checkstack(L, 8, "the data is nested too deep");
  if (value->kind == PLN_RUNTIME_TENSOR) {
    pln_lua_push_tensor(L, value->of.tensor);
    return;
  }
  if (value->kind == PLN_RUNTIME_MAP) {
    push_map(L, value);
    return;
  }
  if (value->kind != PLN_RUNTIME_SEQUENCE && value->kind != PLN_RUNTIME_TUPLE) {
    lua_pushnil(L);
    return;
  }
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    const pln_runtime_value *item = pln_runtime_value_at(value, i);
    if (item->kind == PLN_RUNTIME_MAP)
      push_map(L, item);
    else if (item->kind == PLN_RUNTIME_TENSOR)
      pln_lua_push_tensor(L, item->of.tensor);
    else
      luaL_error(L, "a sequence of sequences has no form in Lua");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

void pln_lua_open_runtime_value(lua_State *L) {
  static const luaL_Reg none[] = {{NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", data_gc}, {NULL, NULL}};
  pln_lua_class(L, DATA, none, meta, NULL);
}
