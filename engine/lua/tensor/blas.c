/* blas.c: chooses the implementation of large matrix products. The environment
 * variable PERILUNE_BLAS=auto, own or openblas sets the default, for scripts
 * and the command. */

#include <stdlib.h>

#include "lua/binding.h"

static void choose_blas_by_name(lua_State *L, pln_lua *b, pln_slice name) {
  pln_blas_choice choice;
  pln_lua_must(L, b, pln_blas_find(b->engine, name, &choice));
  pln_lua_must(L, b, pln_blas_set_choice(b->engine, choice));
}

/* blas([choice]) -> the choice, and whether OpenBLAS was opened */
static int core_blas(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t size;
  const char *name = luaL_optlstring(L, 1, NULL, &size);
  if (name)
    choose_blas_by_name(L, b, (pln_slice){name, size});
  lua_pushstring(L, pln_blas_name(pln_blas_get_choice(b->engine)));
  lua_pushboolean(L, pln_blas_is_open(b->engine));
  return 2;
}

static const luaL_Reg functions[] = {{"blas", core_blas}, {NULL, NULL}};

void pln_lua_open_blas(lua_State *L) {
  pln_lua_functions(L, functions);
  const char *chosen = getenv("PERILUNE_BLAS");
  if (!chosen || !*chosen)
    return;
  lua_getfield(L, -1, "blas");
  lua_pushstring(L, chosen);
  lua_call(L, 1, 0);
}
