/* npy.c: reads and writes NumPy .npy files. Failures return nil and a
 * diagnostic. */

#include "lua/binding.h"

static void clear_npy_result(pln_lua *b) {
  if (b->depth == 0)
    pln_diag_clear(b->engine);
}

/* npy_load(path) -> Tensor, or nil and a diagnostic */
static int npy_load(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 1);
  pln_tensor **slot = pln_lua_new_tensor(L);
  clear_npy_result(b);
  pln_status status = pln_npy_load(b->engine, path, slot);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* npy_parse(bytes [, name]) -> Tensor, or nil and a diagnostic */
static int npy_parse(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice bytes;
  bytes.data = luaL_checklstring(L, 1, &bytes.size);
  const char *name = luaL_optstring(L, 2, NULL);
  pln_tensor **slot = pln_lua_new_tensor(L);
  clear_npy_result(b);
  pln_status status = pln_npy_parse(b->engine, bytes, name, slot);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* npy_save(tensor, path) -> true, or nil and a diagnostic */
static int npy_save(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 2);
  const pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  clear_npy_result(b);
  pln_status status = pln_npy_save(tensor, path);
  lua_pushboolean(L, true);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* npy_tostring(tensor) -> the file's bytes, or nil and a diagnostic */
static int npy_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  const pln_tensor *tensor = pln_lua_check_tensor(L, 1);
  clear_npy_result(b);
  pln_status status = pln_npy_write(tensor, pln_buffer_write, text);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  pln_lua_text_done(L);
  return 1;
}

void pln_lua_open_npy(lua_State *L) {
  static const luaL_Reg functions[] = {{"npy_load", npy_load},
                                       {"npy_parse", npy_parse},
                                       {"npy_save", npy_save},
                                       {"npy_tostring", npy_tostring},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
