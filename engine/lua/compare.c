/* compare.c: tensors compared within a tolerance, for scripts. */

#include "lua/binding.h"

/* The indices, from 1, of element `at` of the tensor.  [-0, +1] */
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
  pln_lua *b = pln_lua_here(L);
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
  pln_lua *b = pln_lua_here(L);
  pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  lua_Integer at = luaL_checkinteger(L, 2);
  luaL_argcheck(L, at >= 1, 2, "elements are counted from 1");
  pln_lua_must(
      L, b, pln_tensor_element_text(tensor, (size_t)at - 1, text, sizeof text));
  lua_pushstring(L, text);
  return 1;
}

void pln_lua_open_compare(lua_State *L) {
  static const luaL_Reg functions[] = {{"tensor_compare", tensor_compare},
                                       {"element_text", element_text},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
