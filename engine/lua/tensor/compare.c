/* compare.c: the primitives of pl.check: generated arguments, sizes substituted
 * for symbolic dims, comparison within tolerances. */

#include "ir/type/dim.h"
#include "lua/binding.h"

/* Pushes the indices, from 1, of element `at` of the tensor.  [-0, +1] */
static void push_indices(lua_State *L, const pln_tensor *tensor, size_t at) {
  uint32_t rank = pln_tensor_rank(tensor);
  lua_createtable(L, (int)rank, 0);
  for (uint32_t i = rank; i-- > 0;) {
    size_t extent = (size_t)pln_tensor_dims(tensor)[i];
    lua_pushinteger(L, (lua_Integer)(at % extent) + 1);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
    at /= extent;
  }
}

static void set_element(lua_State *L, pln_lua *b, const char *field,
                        const pln_tensor *tensor, size_t at) {
  char text[128];
  pln_lua_must(L, b, pln_tensor_element_text(tensor, at, text, sizeof text));
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

/* tensor_compare(tensor, expected, relative, absolute, scaled) -> "none",
 * "dtype", "shape" or "elements", { largest, differing, index, got, expected }
 */
static int tensor_compare(lua_State *L) {
  static const char *const kinds[] = {"none", "dtype", "shape", "elements"};
  pln_lua *b = pln_lua_state_of(L);
  pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  pln_tensor *expected = pln_lua_check_tensor(L, 2);
  pln_tolerance tolerance = {luaL_optnumber(L, 3, 0), luaL_optnumber(L, 4, 0),
                             lua_toboolean(L, 5)};
  pln_difference d;
  luaL_argcheck(L, tolerance.relative >= 0, 3, "a tolerance is at least 0");
  luaL_argcheck(L, tolerance.absolute >= 0, 4, "a tolerance is at least 0");
  pln_lua_must(L, b, pln_tensor_compare(tensor, expected, &tolerance, &d));
  lua_pushstring(L, kinds[d.kind]);
  lua_createtable(L, 0, 5);
  lua_pushnumber(L, d.largest);
  lua_setfield(L, -2, "largest");
  lua_pushinteger(L, (lua_Integer)d.n_differ);
  lua_setfield(L, -2, "differing");
  if (d.kind != PLN_DIFFERENT_ELEMENTS)
    return 2;
  push_indices(L, tensor, d.first);
  lua_setfield(L, -2, "index");
  set_element(L, b, "got", tensor, d.first);
  set_element(L, b, "expected", expected, d.first);
  return 2;
}

/* element_text(tensor, i) -> element `i`, from 1 in row-major order, as text */
static int element_text(lua_State *L) {
  char text[128];
  pln_lua *b = pln_lua_state_of(L);
  pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  lua_Integer at = luaL_checkinteger(L, 2);
  luaL_argcheck(L, at >= 1, 2, "elements are counted from 1");
  pln_lua_must(
      L, b, pln_tensor_element_text(tensor, (size_t)at - 1, text, sizeof text));
  lua_pushstring(L, text);
  return 1;
}

/* generate_input(dtype, dims, kind, seed) -> Tensor */
static int generate_input(lua_State *L) {
  static const char *const kinds[] = {"ordinary", "small", "special", NULL};
  pln_lua *b = pln_lua_state_of(L);
  int64_t dims[PLN_LUA_MAX_RANK];
  pln_dtype dtype = pln_lua_check_dtype(L, 1, PLN_FLOAT32);
  uint32_t rank = pln_lua_check_dims(L, 2, dims);
  int kind = luaL_checkoption(L, 3, "ordinary", kinds);
  lua_Integer seed = luaL_optinteger(L, 4, 0);
  pln_tensor **slot = pln_lua_new_tensor(L);
  pln_lua_must(L, b,
               pln_tensor_generate(b->engine, dtype, rank, dims,
                                   (pln_generator_kind)kind, (uint64_t)seed,
                                   slot));
  return 1;
}

/* type_symbols(type) -> { name or false, ... }: for each dim of a tensor type
 * its symbol, if the dim is a bare symbol; nil if the rank is unknown */
static int type_symbols(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  int32_t rank = pln_type_rank(b->engine, type);
  if (rank < 0)
    return 0;
  lua_createtable(L, rank, 0);
  for (int32_t i = 0; i < rank; i++) {
    pln_symbol name =
        pln_dim_name(b->engine, pln_type_dims(b->engine, type)[i]);
    pln_slice text = pln_symbol_text(b->engine, name);
    if (name)
      lua_pushlstring(L, text.data, text.size);
    else
      lua_pushboolean(L, false);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Substitutes sizes from the table at `arg` for symbols in a dim. */
static pln_dim substitute(lua_State *L, pln_lua *b, int arg, pln_dim dim) {
  pln_symbol symbols[PLN_DIM_MAX_WEIGHT];
  uint32_t n = pln_dim_symbols(b->engine, dim, symbols);
  for (uint32_t i = 0; i < n; i++) {
    pln_slice name = pln_symbol_text(b->engine, symbols[i]);
    lua_pushlstring(L, name.data, name.size);
    if (lua_rawget(L, arg) != LUA_TNIL) {
      luaL_argcheck(L, lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0, arg,
                    "sizes by name");
      pln_lua_must(L, b,
                   pln_dim_substitute(b->engine, dim, symbols[i],
                                      lua_tointeger(L, -1), &dim));
    }
    lua_pop(L, 1);
  }
  return dim;
}

/* type_sizes(type, { name = size }) -> the shape of a tensor type with sizes
 * substituted for symbols, in the form of .shape; nil if the rank is unknown */
static int type_sizes(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  int32_t rank = pln_type_rank(b->engine, type);
  if (rank < 0)
    return 0;
  lua_createtable(L, rank, 0);
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = pln_type_dims(b->engine, type)[i];
    pln_lua_push_dim(L, b, substitute(L, b, 2, dim));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

void pln_lua_open_compare(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"tensor_compare", tensor_compare}, {"element_text", element_text},
      {"generate_input", generate_input}, {"type_symbols", type_symbols},
      {"type_sizes", type_sizes},         {NULL, NULL}};
  pln_lua_functions(L, functions);
}
