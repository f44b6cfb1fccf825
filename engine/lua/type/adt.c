/* adt.c: definitions of algebraic data types in modules, for scripts. */

#include "lua/binding.h"

static pln_symbol check_type_name(lua_State *L, pln_lua *b, int table) {
  pln_slice text;
  pln_symbol symbol = 0;
  if (lua_getfield(L, table, "name") != LUA_TSTRING)
    luaL_error(L, "a definition and each of its constructors has a name");
  text.data = lua_tolstring(L, -1, &text.size);
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &symbol));
  lua_pop(L, 1);
  return symbol;
}

/* Pushes the field `name` of the table at `table` and returns its length; nil
 * counts as empty.  [-0, +1] */
static uint32_t check_list(lua_State *L, int table, const char *name) {
  int type = lua_getfield(L, table, name);
  if (type == LUA_TNIL) {
    lua_pop(L, 1);
    lua_newtable(L);
  } else if (type != LUA_TTABLE) {
    luaL_error(L, "'%s' is a list, got a %s", name, luaL_typename(L, -1));
  }
  lua_Unsigned n = lua_rawlen(L, -1);
  if (n > UINT16_MAX)
    luaL_error(L, "'%s' is too long", name);
  return (uint32_t)n;
}

/* Reads type variables, or names for which new ones are made, into scratch
 * memory.  [-0, +1] */
static pln_type *check_vars(lua_State *L, pln_lua *b, int table,
                            uint32_t *out) {
  uint32_t n = check_list(L, table, "vars");
  int list = lua_gettop(L);
  pln_type *vars = lua_newuserdatauv(L, (n + 1) * sizeof *vars, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_symbol name;
    pln_slice text;
    if (lua_rawgeti(L, list, (lua_Integer)i + 1) == LUA_TSTRING) {
      text.data = lua_tolstring(L, -1, &text.size);
      pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &name));
      pln_lua_must(L, b,
                   pln_type_var(b->engine, name, PLN_TKIND_TYPE, &vars[i]));
    } else {
      vars[i] = pln_lua_check_type(L, b, lua_gettop(L));
      if (pln_type_get_kind(b->engine, vars[i]) != PLN_TYPE_VAR)
        luaL_error(L, "'vars' has type variables, or their names");
    }
    lua_pop(L, 1);
  }
  lua_remove(L, list);
  *out = n;
  return vars;
}

/* Reads one constructor, a table on top: { name =, inputs = { types } }.
 * Texts may use the definition's variables. Leaves its inputs on the stack.
 * [-1, +1] */
static void check_constructor(lua_State *L, pln_lua *b,
                              const pln_type_def *data, pln_constructor *out) {
  int table = lua_gettop(L);
  if (!lua_istable(L, table))
    luaL_error(L, "a constructor is { name = ..., inputs = { ... } }");
  out->name = check_type_name(L, b, table);
  out->n_inputs = check_list(L, table, "inputs");
  int list = lua_gettop(L);
  pln_type *inputs =
      lua_newuserdatauv(L, (out->n_inputs + 1) * sizeof *inputs, 0);
  for (uint32_t i = 0; i < out->n_inputs; i++) {
    if (lua_rawgeti(L, list, (lua_Integer)i + 1) == LUA_TSTRING) {
      pln_slice text;
      text.data = lua_tolstring(L, -1, &text.size);
      pln_lua_must(L, b,
                   pln_parse_type_text(b->engine, text, data->n_vars,
                                       data->vars, &inputs[i]));
    } else {
      inputs[i] = pln_lua_check_type(L, b, lua_gettop(L));
    }
    lua_pop(L, 1);
  }
  out->inputs = inputs;
  lua_replace(L, table);
  lua_settop(L, table);
}

/* mod:with_type { name =, vars =, constructors =, extern = } -> changed copy */
int pln_lua_module_with_type(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_check_module(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  pln_type_def data = {.name = check_type_name(L, b, 2)};
  data.vars = check_vars(L, b, 2, &data.n_vars);
  lua_getfield(L, 2, "extern");
  data.is_extern = lua_toboolean(L, -1);
  data.n_constructors = check_list(L, 2, "constructors");
  int list = lua_gettop(L);
  if (data.is_extern && data.n_constructors > 0)
    luaL_error(L, "an extern type has no constructors");
  pln_constructor *all =
      lua_newuserdatauv(L, (data.n_constructors + 1) * sizeof *all, 0);
  luaL_checkstack(L, (int)data.n_constructors + 8, "too many constructors");
  for (uint32_t i = 0; i < data.n_constructors; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    check_constructor(L, b, &data, &all[i]);
  }
  data.constructors = all;
  pln_module **out = pln_lua_new_module(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_lua_must(L, b, pln_module_with_type(module, &data, out));
  return 1;
}

static void push_symbol(lua_State *L, pln_lua *b, pln_symbol symbol) {
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, text.data, text.size);
}

static void push_adt_types(lua_State *L, pln_lua *b, uint32_t n,
                           const pln_type *types) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_type(L, b, types[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* Pushes { name =, inputs = { types }, type = its function type }. */
static void push_constructor(lua_State *L, pln_lua *b, const pln_module *module,
                             uint32_t of, uint32_t index) {
  const pln_constructor *c =
      &pln_module_type_def_at(module, of)->constructors[index];
  pln_type type;
  lua_createtable(L, 0, 3);
  push_symbol(L, b, c->name);
  lua_setfield(L, -2, "name");
  push_adt_types(L, b, c->n_inputs, c->inputs);
  lua_setfield(L, -2, "inputs");
  pln_lua_must(L, b, pln_module_constructor_type(module, of, index, &type));
  pln_lua_push_type(L, b, type);
  lua_setfield(L, -2, "type");
}

/* Pushes { name =, vars = { types }, extern =, constructors = { ... } }. */
static void push_definition(lua_State *L, pln_lua *b, const pln_module *module,
                            uint32_t index) {
  const pln_type_def *data = pln_module_type_def_at(module, index);
  lua_createtable(L, 0, 4);
  push_symbol(L, b, data->name);
  lua_setfield(L, -2, "name");
  push_adt_types(L, b, data->n_vars, data->vars);
  lua_setfield(L, -2, "vars");
  lua_pushboolean(L, data->is_extern);
  lua_setfield(L, -2, "extern");
  lua_createtable(L, (int)data->n_constructors, 0);
  for (uint32_t i = 0; i < data->n_constructors; i++) {
    push_constructor(L, b, module, index, i);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "constructors");
}

/* Pushes the definitions as a list that is also keyed by name.  [-0, +1] */
int pln_lua_push_definitions(lua_State *L, pln_lua *b,
                             const pln_module *module) {
  uint32_t n = pln_module_n_types(module);
  lua_createtable(L, (int)n, (int)n);
  for (uint32_t i = 0; i < n; i++) {
    push_definition(L, b, module, i);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, (lua_Integer)i + 1);
    push_symbol(L, b, pln_module_type_def_at(module, i)->name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
  }
  return 1;
}
