/* module.c: Module objects: immutable, ordered maps of functions.
 *
 * A box owns one reference. Two boxes of the same module are equal (__eq). */

#include <stdlib.h>

#include "lua/binding.h"

pln_module **pln_lua_new_module(lua_State *L) {
  return pln_lua_large_userdata(L, PLN_LUA_MODULE, sizeof(pln_module *), 1);
}

void pln_lua_push_module(lua_State *L, const pln_module *module) {
  pln_module **slot = pln_lua_new_module(L);
  *slot = pln_module_retain(module);
}

pln_module *pln_lua_test_module(lua_State *L, int arg) {
  pln_module **slot = luaL_testudata(L, arg, PLN_LUA_MODULE);
  return slot ? *slot : NULL;
}

pln_module *pln_lua_check_module(lua_State *L, int arg) {
  pln_module **slot = luaL_checkudata(L, arg, PLN_LUA_MODULE);
  if (!*slot)
    luaL_argerror(L, arg, "the module has been closed");
  return *slot;
}

pln_module *pln_lua_pin_module(lua_State *L, int arg) {
  pln_module **slot = pln_lua_new_module(L);
  return *slot = pln_module_retain(pln_lua_check_module(L, arg));
}

static int module_gc(lua_State *L) {
  pln_module **slot = luaL_checkudata(L, 1, PLN_LUA_MODULE);
  pln_module *module = *slot;
  *slot = NULL;
  if (module)
    pln_module_release(module);
  return 0;
}

static pln_symbol check_function_name(lua_State *L, pln_lua *b, int arg) {
  pln_symbol symbol;
  pln_slice text;
  if (lua_type(L, arg) != LUA_TSTRING)
    luaL_error(L, "names of functions are strings, got a %s",
               luaL_typename(L, arg));
  text.data = lua_tolstring(L, arg, &text.size);
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &symbol));
  return symbol;
}

/* ----------------------------------------------------------------- changes */

/* The functions to add to a module. A table keeps the boxes of their graphs
 * alive. */
typedef struct module_changes {
  size_t all; /* the number of names, of which n were read */
  uint32_t n;
  const char **texts;
  pln_symbol *names;
  const pln_graph **functions;
} module_changes;

/* Reads the function at -1 with the name at -2; puts its graph's box into the
 * table at `boxes`.  [-0, +0] */
static void read_function(lua_State *L, pln_lua *b, int boxes,
                          module_changes *a) {
  int function = lua_gettop(L);
  a->names[a->n] = check_function_name(L, b, function - 1);
  pln_lua_node *node = pln_lua_test_node(L, function);
  if (!node || !pln_lua_is_function(L, node))
    luaL_error(L, "function '%s': a Function expected, got %s",
               lua_tostring(L, function - 1), luaL_typename(L, function));
  a->functions[a->n] = pln_lua_push_rooted(L, b, function)->graph;
  lua_rawseti(L, boxes, (lua_Integer)++a->n);
}

static int by_name(const void *x, const void *y) {
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Reads the names in the table at `arg`, sorted, into new memory on the stack.
 * [-0, +1] */
static module_changes push_additions(lua_State *L, int arg) {
  size_t n = 0, i = 0;
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1))
    n++;
  module_changes a = {.all = n};
  char *room = lua_newuserdatauv(
      L, (n + 1) * (sizeof *a.texts + sizeof *a.functions + sizeof *a.names),
      0);
  a.texts = (const char **)(void *)room;
  a.functions = (const pln_graph **)(void *)(a.texts + n);
  a.names = (pln_symbol *)(void *)(a.functions + n);
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      luaL_argerror(L, arg, "names of functions are strings");
    a.texts[i++] = lua_tostring(L, -2);
  }
  qsort(a.texts, n, sizeof *a.texts, by_name);
  return a;
}

/* Adds the functions of the table at `arg`, sorted by name, to the module in
 * the box on top. They are added together, so that a function and its callers
 * can change at once. */
static void add_functions(lua_State *L, pln_lua *b, int arg) {
  int slot = lua_gettop(L);
  module_changes a = push_additions(L, arg);
  lua_newtable(L);
  for (size_t i = 0; i < a.all; i++) {
    lua_pushstring(L, a.texts[i]);
    lua_getfield(L, arg, a.texts[i]);
    read_function(L, b, slot + 2, &a);
    lua_pop(L, 2);
  }
  pln_module **new = pln_lua_new_module(L);
  pln_module **old = lua_touserdata(L, slot);
  pln_lua_must(L, b,
               pln_module_with_functions(*old, a.n, a.names, a.functions, new));
  pln_module *before = *old;
  *old = *new;
  *new = NULL;
  pln_module_release(before);
  lua_settop(L, slot);
}

/* module([functions [, attrs]]) -> Module of { name = Function } */
static int core_module(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  if (!lua_isnoneornil(L, 1))
    pln_lua_check_functions(L, 1);
  lua_settop(L, 2);
  pln_module **slot = pln_lua_new_module(L);
  pln_lua_must(L, b, pln_module_new(b->engine, slot));
  if (lua_istable(L, 1))
    add_functions(L, b, 1);
  if (!lua_isnil(L, 2)) {
    pln_attrs attrs = pln_lua_check_attrs(L, b, 2);
    pln_module **out = pln_lua_new_module(L);
    pln_lua_must(L, b, pln_module_with_attrs(*slot, attrs, out));
  }
  return 1;
}

/* mod:with { name = Function, ... } -> changed copy */
static int module_with(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_check_module(L, 1);
  pln_lua_check_functions(L, 2);
  lua_settop(L, 2);
  pln_lua_pin_module(L, 1);
  add_functions(L, b, 2);
  if (*(pln_module **)lua_touserdata(L, 3) == pln_lua_test_module(L, 1))
    lua_pushvalue(L, 1);
  return 1;
}

/* Reads the names in the list at `arg` into new memory on the stack.  [-0,
 * +1] */
static pln_symbol *push_names_of(lua_State *L, pln_lua *b, int arg,
                                 uint32_t *n) {
  lua_Unsigned count = lua_rawlen(L, arg);
  luaL_argcheck(L, count < UINT32_MAX, arg, "too many names");
  *n = (uint32_t)count;
  pln_symbol *names = lua_newuserdatauv(L, (count + 1) * sizeof *names, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    names[i] = check_function_name(L, b, lua_gettop(L));
    lua_pop(L, 1);
  }
  return names;
}

/* mod:without(name), mod:without { name, ... } -> changed copy */
static int module_without(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol one, *names = &one;
  uint32_t n = 1;
  pln_lua_check_module(L, 1);
  lua_settop(L, 2);
  if (lua_istable(L, 2))
    names = push_names_of(L, b, 2, &n);
  else
    one = check_function_name(L, b, 2);
  pln_module **out = pln_lua_new_module(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_lua_must(L, b, pln_module_without_functions(module, n, names, out));
  if (*out == module)
    lua_pushvalue(L, 1);
  return 1;
}

/* mod:with_attrs(table) -> changed copy with these attributes */
static int module_with_attrs(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_check_module(L, 1);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 2);
  pln_module **out = pln_lua_new_module(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_lua_must(L, b, pln_module_with_attrs(module, attrs, out));
  return 1;
}

/* mod:fix_dim(name, size) -> copy with a symbolic dim replaced by a number, or
 * nil and a diagnostic */
static int module_fix_dim(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice name;
  pln_lua_check_module(L, 1);
  name.data = luaL_checklstring(L, 2, &name.size);
  lua_Integer size = luaL_checkinteger(L, 3);
  pln_module **out = pln_lua_new_module(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_status status = pln_module_fix_dim(module, name, size, out);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* Reads the dims in the table at `arg`; "?" and -1 leave a dim unchanged. */
static uint32_t check_shape(lua_State *L, int arg, int64_t *dims) {
  luaL_checktype(L, arg, LUA_TTABLE);
  size_t rank = lua_rawlen(L, arg);
  luaL_argcheck(L, rank <= PLN_LUA_MAX_RANK, arg,
                "a tensor has at most 32 dims");
  for (size_t i = 0; i < rank; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    bool left =
        lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "?") == 0;
    luaL_argcheck(L, left || lua_isinteger(L, -1), arg,
                  "dims are integers, or '?' for what is left as it is");
    dims[i] = left ? -1 : lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return (uint32_t)rank;
}

/* mod:fix_shape(input, dims) -> copy in which that input of main has these
 * dims, or nil and a diagnostic */
static int module_fix_shape(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_module *module = pln_lua_check_module(L, 1);
  int64_t dims[PLN_LUA_MAX_RANK];
  pln_slice name;
  name.data = luaL_checklstring(L, 2, &name.size);
  uint32_t rank = check_shape(L, 3, dims);
  pln_module **out = pln_lua_new_module(L);
  pln_status status = pln_module_fix_shape(module, name, rank, dims, out);
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

/* ----------------------------------------------------------------- reading */

static int push_function(lua_State *L, pln_lua *b, const pln_module *module,
                         int key) {
  pln_symbol name = check_function_name(L, b, key);
  uint32_t i = pln_module_find(module, name);
  if (i == PLN_NONE)
    return 0;
  pln_lua_push_root(L, b, pln_module_function_at(module, i));
  return 1;
}

static int module_pairs(lua_State *L) {
  return pln_lua_pairs_of_functions(L, pln_lua_pin_module(L, 1));
}

static int module_len(lua_State *L) {
  lua_pushinteger(L, pln_module_count(pln_lua_check_module(L, 1)));
  return 1;
}

static int push_names(lua_State *L, pln_lua *b, const pln_module *module) {
  lua_createtable(L, (int)pln_module_count(module), 0);
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    pln_slice name = pln_symbol_text(b->engine, pln_module_name_at(module, i));
    lua_pushlstring(L, name.data, name.size);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* The table may be large, so the box keeps it and it is made once. Scripts must
 * not change it. */
static int push_definitions(lua_State *L, pln_lua *b,
                            const pln_module *module) {
  if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE)
    return 1;
  pln_lua_push_definitions(L, b, module);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, 1, 1);
  return 1;
}

/* mod.functions, .names, .types, .attrs, a method, or the function of that
 * name */
static int module_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *key = luaL_checkstring(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL)
    return 1;
  const pln_module *module = pln_lua_pin_module(L, 1);
  if (!strcmp(key, "functions"))
    return pln_lua_push_functions(L, module);
  if (!strcmp(key, "names"))
    return push_names(L, b, module);
  if (!strcmp(key, "types"))
    return push_definitions(L, b, module);
  if (strcmp(key, "attrs") != 0)
    return push_function(L, b, module, 2);
  pln_lua_push_attrs(L, b, pln_module_attrs(module));
  return 1;
}

static int module_eq(lua_State *L) {
  pln_module *x = pln_lua_test_module(L, 1);
  lua_pushboolean(L, x && x == pln_lua_test_module(L, 2));
  return 1;
}

/* Pushes the text of the module at 1. */
static int push_module_text(lua_State *L, const pln_print_options *options) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b,
               pln_print_module(pln_lua_check_module(L, 1), options,
                                pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* tostring(mod): text for reading, without the elements of large constants */
static int module_tostring(lua_State *L) {
  pln_module **slot = luaL_checkudata(L, 1, PLN_LUA_MODULE);
  pln_print_options options = {.constants = PLN_CONSTANTS_BRIEF};
  if (*slot)
    return push_module_text(L, &options);
  lua_pushliteral(L, "Module (closed)");
  return 1;
}

/* mod:text([options]) -> the complete text */
static int module_text(lua_State *L) {
  pln_lua_check_module(L, 1);
  pln_print_options options = pln_lua_text_options(L, 2);
  return push_module_text(L, &options);
}

/* --------------------------------------------------------------- functions */

/* module_equal(a, b), module_hash(a), verify_module(a) */
static int core_module_equal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_module *x = pln_lua_check_module(L, 1), *y = pln_lua_check_module(L, 2);
  bool equal;
  pln_lua_must(L, b, pln_module_equal(x, y, &equal));
  lua_pushboolean(L, equal);
  return 1;
}

static int core_module_hash(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint64_t hash;
  pln_lua_must(L, b, pln_module_hash(pln_lua_check_module(L, 1), &hash));
  lua_pushinteger(L, (lua_Integer)hash);
  return 1;
}

static int core_verify_module(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_status status = pln_module_verify(pln_lua_check_module(L, 1));
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

/* module_nodes(mod) -> the nodes of all functions, nested ones included */
static int core_module_nodes(lua_State *L) {
  pln_lua_state_of(L);
  pln_module *module = pln_lua_check_module(L, 1);
  lua_Integer n = 0;
  for (uint32_t i = 0; i < pln_module_count(module); i++)
    n += pln_graph_size(pln_module_function_at(module, i));
  lua_pushinteger(L, n);
  return 1;
}

static const luaL_Reg methods[] = {
    {"with", module_with},
    {"without", module_without},
    {"with_attrs", module_with_attrs},
    {"with_type", pln_lua_module_with_type},
    {"fix_dim", module_fix_dim},
    {"text", module_text},
    {"fix_shape", module_fix_shape},
    {"dot", pln_lua_module_dot},
    {"json", pln_lua_module_json},
    {"close", module_gc},
    {NULL, NULL},
};
static const luaL_Reg meta[] = {
    {"__gc", module_gc},
    {"__close", module_gc},
    {"__pairs", module_pairs},
    {"__len", module_len},
    {"__eq", module_eq},
    {"__tostring", module_tostring},
    {NULL, NULL},
};
static const luaL_Reg functions[] = {
    {"module", core_module},
    {"module_equal", core_module_equal},
    {"module_hash", core_module_hash},
    {"verify_module", core_verify_module},
    {"module_nodes", core_module_nodes},
    {NULL, NULL},
};

void pln_lua_open_module(lua_State *L) {
  pln_lua_class(L, PLN_LUA_MODULE, methods, meta, module_index);
  pln_lua_functions(L, functions);
}
