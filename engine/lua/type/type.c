/* type.c: Type objects: interned types, one object per type, so that == and
 * table keys work. */

#include "lua/binding.h"

static const char *const kind_names[PLN_N_TYPE_KINDS] = {
    "incomplete", "tensor",   "tuple",    "func", "ref",    "var",
    "call",       "sequence", "optional", "map",  "sparse", "opaque",
    "global_var", "relation", "hole",     "prim", "pointer"};

/* Keys in the table of interned objects: types are even, attributes odd. */
void pln_lua_push_type(lua_State *L, pln_lua *b, pln_type type) {
  (void)b;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.interned);
  if (lua_rawgeti(L, -1, 2 * (lua_Integer)type) == LUA_TNIL) {
    lua_pop(L, 1);
    *(pln_type *)pln_lua_userdata(L, PLN_LUA_TYPE, sizeof type, 0) = type;
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, 2 * (lua_Integer)type);
  }
  lua_remove(L, -2);
}

pln_type pln_lua_check_type(lua_State *L, pln_lua *b, int arg) {
  pln_type type;
  if (lua_type(L, arg) != LUA_TSTRING)
    return *(pln_type *)luaL_checkudata(L, arg, PLN_LUA_TYPE);
  pln_slice text;
  text.data = lua_tolstring(L, arg, &text.size);
  pln_lua_must(L, b, pln_parse_type_text(b->engine, text, 0, NULL, &type));
  return type;
}

static int unknown_dtype(lua_State *L, int arg, const char *name) {
  const char *names[PLN_N_DTYPES];
  char hint[64];
  uint32_t n = 0;
  for (int i = PLN_DTYPE_NONE + 1; i < PLN_N_DTYPES; i++)
    if (pln_dtype_name((pln_dtype)i)[0])
      names[n++] = pln_dtype_name((pln_dtype)i);
  pln_suggest(name, n, names, hint, sizeof hint);
  return luaL_argerror(
      L, arg, lua_pushfstring(L, "no dtype is called '%s'%s", name, hint));
}

pln_dtype pln_lua_check_dtype(lua_State *L, int arg, pln_dtype fallback) {
  pln_slice name;
  if (lua_isnoneornil(L, arg))
    return fallback;
  name.data = luaL_checklstring(L, arg, &name.size);
  pln_dtype dtype = pln_dtype_find(name);
  if (dtype == PLN_DTYPE_NONE)
    unknown_dtype(L, arg, name.data);
  return dtype;
}

void pln_lua_push_dim(lua_State *L, pln_lua *b, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim)) {
    lua_pushinteger(L, dim);
    return;
  }
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_print_dim(b->engine, dim, pln_buffer_write, text));
  pln_lua_text_done(L);
}

static int push_shape(lua_State *L, pln_lua *b, pln_type type) {
  int32_t rank = pln_type_rank(b->engine, type);
  if (rank < 0)
    return 0;
  lua_createtable(L, rank, 0);
  for (int32_t i = 0; i < rank; i++) {
    pln_lua_push_dim(L, b, pln_type_dims(b->engine, type)[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int push_symbol(lua_State *L, pln_lua *b, pln_type type) {
  pln_symbol symbol = pln_type_symbol(b->engine, type);
  if (symbol == 0)
    return 0;
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, text.data, text.size);
  return 1;
}

static int push_dtype(lua_State *L, pln_lua *b, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(b->engine, type);
  if (kind != PLN_TYPE_TENSOR && kind != PLN_TYPE_PRIM)
    return 0;
  pln_dtype dtype = pln_type_dtype(b->engine, type);
  if (dtype == PLN_DTYPE_NONE)
    return 0;
  lua_pushstring(L, pln_dtype_name(dtype));
  return 1;
}

static int push_type_list(lua_State *L, pln_lua *b, pln_type type, uint32_t n,
                          pln_type (*get)(const pln_engine *, pln_type,
                                          uint32_t)) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_type(L, b, get(b->engine, type, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Pushes .params, .ret_type, .type_params or .constraints of a function type; 0
 * for another key. */
static int push_of_function(lua_State *L, pln_lua *b, pln_type type,
                            const char *key) {
  const pln_engine *e = b->engine;
  uint32_t n = pln_type_n_parts(e, type) - 1;
  if (!strcmp(key, "params"))
    return push_type_list(L, b, type, n, pln_type_part_at);
  if (!strcmp(key, "type_params"))
    return push_type_list(L, b, type, pln_type_n_vars(e, type),
                          pln_type_var_at);
  if (!strcmp(key, "constraints"))
    return push_type_list(L, b, type, pln_type_n_constraints(e, type),
                          pln_type_constraint_at);
  if (strcmp(key, "ret_type") != 0)
    return 0;
  pln_lua_push_type(L, b, pln_type_part_at(e, type, n));
  return 1;
}

/* Pushes .var_kind of a variable or name, .n_inputs or .attrs of a relation,
 * .lanes of a TIR scalar or of a tensor's elements, .element of a type that has
 * one; 0 for another key. */
static int push_of_kind(lua_State *L, pln_lua *b, pln_type type,
                        const char *key) {
  const pln_engine *e = b->engine;
  pln_type_kind kind = pln_type_get_kind(e, type);
  bool one = kind == PLN_TYPE_REF || kind == PLN_TYPE_POINTER ||
             kind == PLN_TYPE_SEQUENCE || kind == PLN_TYPE_OPTIONAL ||
             kind == PLN_TYPE_SPARSE;
  if (kind == PLN_TYPE_FUNC)
    return push_of_function(L, b, type, key);
  if (one && !strcmp(key, "element"))
    pln_lua_push_type(L, b, pln_type_part_at(e, type, 0));
  else if ((kind == PLN_TYPE_VAR || kind == PLN_TYPE_GLOBAL_VAR) &&
           !strcmp(key, "var_kind"))
    lua_pushstring(L, pln_type_var_kind_name(pln_type_var_get_kind(e, type)));
  else if (kind == PLN_TYPE_PRIM && !strcmp(key, "lanes"))
    lua_pushinteger(L, pln_type_number(e, type));
  else if (kind == PLN_TYPE_TENSOR && !strcmp(key, "lanes"))
    lua_pushinteger(L, pln_type_number(e, type) ? pln_type_number(e, type) : 1);
  else if (kind == PLN_TYPE_RELATION && !strcmp(key, "n_inputs"))
    lua_pushinteger(L, pln_type_number(e, type));
  else if (kind == PLN_TYPE_RELATION && !strcmp(key, "attrs"))
    pln_lua_push_attrs(L, b, pln_type_attrs(e, type));
  else
    return 0;
  return 1;
}

/* type.kind, .dtype, .rank, .shape (dims: an integer, "?", "N+1"), .parts,
 * .name, and the fields of its kind */
static int type_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = *(pln_type *)luaL_checkudata(L, 1, PLN_LUA_TYPE);
  const char *key = luaL_checkstring(L, 2);
  int32_t rank = pln_type_rank(b->engine, type);
  if (!strcmp(key, "kind")) {
    lua_pushstring(L, kind_names[pln_type_get_kind(b->engine, type)]);
    return 1;
  }
  if (!strcmp(key, "dtype"))
    return push_dtype(L, b, type);
  if (!strcmp(key, "shape"))
    return push_shape(L, b, type);
  if (!strcmp(key, "rank") && rank >= 0) {
    lua_pushinteger(L, rank);
    return 1;
  }
  if (!strcmp(key, "parts"))
    return push_type_list(L, b, type, pln_type_n_parts(b->engine, type),
                          pln_type_part_at);
  if (!strcmp(key, "name"))
    return push_symbol(L, b, type);
  if (push_of_kind(L, b, type, key))
    return 1;
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(2));
  return 1;
}

static int type_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = *(pln_type *)luaL_checkudata(L, 1, PLN_LUA_TYPE);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_print_type(b->engine, type, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* type(text | Type) -> Type */
static int core_type(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_push_type(L, b, pln_lua_check_type(L, b, 1));
  return 1;
}

/* type_meet(a, b) -> the most general Type that implies both, or nil if they
 * contradict */
static int core_type_meet(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type x = pln_lua_check_type(L, b, 1), y = pln_lua_check_type(L, b, 2);
  bool conflict;
  pln_lua_must(L, b, pln_type_meet(b->engine, x, y, &x, &conflict));
  if (conflict)
    luaL_pushfail(L);
  else
    pln_lua_push_type(L, b, x);
  return 1;
}

static const luaL_Reg methods[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__tostring", type_tostring}, {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"type", core_type}, {"type_meet", core_type_meet}, {NULL, NULL}};

void pln_lua_open_type(lua_State *L) {
  pln_lua_class(L, PLN_LUA_TYPE, methods, meta, type_index);
  pln_lua_functions(L, functions);
}
