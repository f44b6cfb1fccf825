/* functions.c: mod.functions: a view of a module's functions by name.
 *
 * A name is looked up when it is accessed, so that iterating over n functions
 * takes linear time. Like its module, the view never changes. */

#include "lua/binding.h"

#define FUNCTIONS "perilune.Functions"

int pln_lua_push_functions(lua_State *L, const pln_module *module) {
  pln_module **slot = pln_lua_userdata(L, FUNCTIONS, sizeof *slot, 0);
  *slot = pln_module_retain(module);
  return 1;
}

static const pln_module *check_view(lua_State *L) {
  pln_module **slot = luaL_checkudata(L, 1, FUNCTIONS);
  luaL_argcheck(L, *slot, 1, "the functions have been released");
  return *slot;
}

static int functions_gc(lua_State *L) {
  pln_module **slot = luaL_checkudata(L, 1, FUNCTIONS);
  pln_module *module = *slot;
  *slot = NULL;
  if (module)
    pln_module_release(module);
  return 0;
}

static int functions_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_module *module = check_view(L);
  if (lua_type(L, 2) != LUA_TSTRING)
    return 0;
  uint32_t i = pln_module_find(module, pln_lua_check_symbol(L, b, 2));
  if (i == PLN_NONE)
    return 0;
  pln_lua_push_root(L, b, pln_module_function_at(module, i));
  return 1;
}

static int functions_len(lua_State *L) {
  lua_pushinteger(L, pln_module_count(check_view(L)));
  return 1;
}

/* Pushes name and function `i`.  [-0, +2] */
static int push_row(lua_State *L, pln_lua *b, const pln_module *module,
                    uint32_t i) {
  pln_slice name = pln_symbol_text(b->engine, pln_module_name_at(module, i));
  lua_pushlstring(L, name.data, name.size);
  pln_lua_push_root(L, b, pln_module_function_at(module, i));
  return 2;
}

/* The iterator of pairs, for modules and views. Upvalue 2 is the index of the
 * next function, upvalue 3 a view. */
static int next_function(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_module *module =
      *(pln_module **)lua_touserdata(L, lua_upvalueindex(3));
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
  if (i >= pln_module_count(module))
    return 0;
  lua_pushinteger(L, i + 1);
  lua_replace(L, lua_upvalueindex(2));
  return push_row(L, b, module, (uint32_t)i);
}

int pln_lua_pairs_of_functions(lua_State *L, const pln_module *module) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, 0);
  pln_lua_push_functions(L, module);
  lua_pushcclosure(L, next_function, 3);
  lua_pushvalue(L, 1);
  return 2;
}

static int functions_pairs(lua_State *L) {
  return pln_lua_pairs_of_functions(L, check_view(L));
}

void pln_lua_check_functions(lua_State *L, int arg) {
  pln_lua *b = pln_lua_state_of(L);
  pln_module **slot = luaL_testudata(L, arg, FUNCTIONS);
  if (!slot || !*slot) {
    luaL_checktype(L, arg, LUA_TTABLE);
    return;
  }
  lua_createtable(L, 0, (int)pln_module_count(*slot));
  for (uint32_t i = 0; i < pln_module_count(*slot); i++) {
    push_row(L, b, *slot, i);
    lua_rawset(L, -3);
  }
  lua_replace(L, arg);
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {
    {"__gc", functions_gc},
    {"__len", functions_len},
    {"__pairs", functions_pairs},
    {NULL, NULL},
};

void pln_lua_open_functions(lua_State *L) {
  pln_lua_class(L, FUNCTIONS, none, meta, functions_index);
}
