/* relay.c: parses and prints Relay text, in files and strings. A failure
 * returns nil and a diagnostic: the first error, with the others as notes. */

#include <string.h>

#include "ir/relay/metadata/object.h"
#include "lower/lower.h"
#include "lua/binding.h"

static size_t begin_relay_diags(pln_lua *b) {
  if (b->depth == 0)
    pln_diag_clear(b->engine);
  return pln_diag_count(b->engine);
}

/* ------------------------------------------------------------ parser options
 */

/* The name of a text, and the module and metadata that it may refer to. */
typedef struct given_values {
  const char *name;
  pln_parse_options given;
} given_values;

/* Replaces an entry of init_meta on top of the stack by the data of a Constant;
 * leaves other values. */
static void read_node_data(lua_State *L, lua_Integer i) {
  if (!pln_lua_test_node(L, -1))
    return;
  lua_getfield(L, -1, "kind");
  if (strcmp(lua_tostring(L, -1), "Constant") != 0)
    pln_lua_error(L, PLN_ERR_TYPE,
                  "init_meta: entry %d of 'relay.Constant' is a %s", (int)i,
                  lua_tostring(L, -1));
  lua_pop(L, 1);
  lua_getfield(L, -1, "data");
  lua_remove(L, -2);
}

/* The tensor of an entry; the table at `kept` keeps it alive. */
static pln_tensor *read_constant(lua_State *L, pln_lua *b, int list, int kept,
                                 lua_Integer i) {
  lua_geti(L, list, i);
  read_node_data(L, i);
  if (lua_isfunction(L, -1) || lua_isnil(L, -1) ||
      (lua_isuserdata(L, -1) && !pln_lua_test_tensor(L, -1)))
    pln_lua_error(L, PLN_ERR_TYPE,
                  "init_meta: entry %d of 'relay.Constant' is not a tensor",
                  (int)i);
  pln_tensor *tensor = pln_lua_to_tensor(L, b, lua_gettop(L), PLN_DTYPE_NONE);
  lua_seti(L, kept, i);
  lua_pop(L, 1);
  return tensor;
}

/* Reads the list on top. Leaves a table and a block of memory that keep its
 * values alive.  [-1, +2] */
static void read_constants(lua_State *L, pln_lua *b, given_values *out) {
  int list = lua_gettop(L);
  lua_Unsigned n = lua_rawlen(L, list);
  if (n > UINT32_MAX / sizeof(pln_tensor *))
    pln_lua_error(L, PLN_ERR_LIMIT, "init_meta: there are too many constants");
  lua_newtable(L);
  pln_tensor **rows = lua_newuserdatauv(L, (size_t)n * sizeof *rows, 0);
  for (lua_Unsigned i = 0; i < n; i++)
    rows[i] = read_constant(L, b, list, list + 1, (lua_Integer)i + 1);
  lua_remove(L, list);
  out->given.n_constants = (uint32_t)n;
  out->given.constants = rows;
}

/* The text of an object in the form of an attribute; the user's list keeps it
 * alive. */
static pln_slice read_object(lua_State *L, int list, pln_slice key,
                             lua_Integer i) {
  pln_object_node node;
  pln_slice text = {NULL, 0};
  size_t at = 0;
  if (lua_geti(L, list, i) == LUA_TSTRING)
    text.data = lua_tolstring(L, -1, &text.size);
  if (!text.data || !pln_object_next(text, &at, &node) ||
      !pln_slice_equal(node.type_key, key))
    pln_lua_error(L, PLN_ERR_TYPE,
                  "init_meta: entry %d of '%s' is not an object of that type",
                  (int)i, key.data);
  lua_pop(L, 1);
  return text;
}

static bool is_constants(lua_State *L, int key) {
  return !strcmp(lua_tostring(L, key), "relay.Constant");
}

/* Checks all entries of the table; counts those that are objects. */
static lua_Unsigned count_objects(lua_State *L, int meta) {
  lua_Unsigned n = 0;
  for (lua_pushnil(L); lua_next(L, meta); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      pln_lua_error(L, PLN_ERR_TYPE,
                    "init_meta: a type key is a string, got a %s",
                    luaL_typename(L, -2));
    if (!lua_istable(L, -1))
      pln_lua_error(L, PLN_ERR_TYPE,
                    "init_meta: the entries of '%s' are a list, got a %s",
                    lua_tostring(L, -2), luaL_typename(L, -1));
    n += is_constants(L, -2) ? 0 : lua_rawlen(L, -1);
  }
  if (n > UINT32_MAX / sizeof(pln_slice))
    pln_lua_error(L, PLN_ERR_LIMIT, "init_meta: there are too many objects");
  return n;
}

/* Leaves on the stack what keeps the memory and the constants alive. */
static void read_meta(lua_State *L, pln_lua *b, int meta, given_values *out) {
  lua_Unsigned n = count_objects(L, meta);
  pln_slice *rows = lua_newuserdatauv(L, (size_t)n * sizeof *rows, 0);
  for (lua_pushnil(L); lua_next(L, meta); lua_pop(L, 1)) {
    pln_slice key;
    key.data = lua_tolstring(L, -2, &key.size);
    lua_Unsigned count = is_constants(L, -2) ? 0 : lua_rawlen(L, -1);
    for (lua_Unsigned i = 0; i < count; i++)
      rows[out->given.n_objects++] =
          read_object(L, lua_gettop(L), key, (lua_Integer)i + 1);
  }
  out->given.objects = rows;
  if (lua_getfield(L, meta, "relay.Constant") != LUA_TNIL)
    read_constants(L, b, out);
}

/* Reads one option; leaves its value on the stack. */
static void read_option(lua_State *L, pln_lua *b, const char *name,
                        given_values *out) {
  bool is_name = !strcmp(name, "name"), is_meta = !strcmp(name, "init_meta");
  out->given.module =
      is_name || is_meta ? out->given.module : pln_lua_test_module(L, -1);
  if (is_name && lua_isstring(L, -1))
    out->name = lua_tostring(L, -1);
  else if (is_meta && lua_istable(L, -1))
    read_meta(L, b, lua_gettop(L), out);
  else if (is_name || is_meta || !out->given.module)
    pln_lua_error(L, PLN_ERR_TYPE, "option '%s' is a %s, got a %s", name,
                  is_name   ? "string"
                  : is_meta ? "table"
                            : "module",
                  luaL_typename(L, -1));
}

/* Reads a name, or a table { name, init_module, init_meta }. Leaves values on
 * the stack that keep the result alive. */
static void read_given(lua_State *L, pln_lua *b, int arg, given_values *out) {
  static const char *const names[] = {"name", "init_module", "init_meta"};
  *out = (given_values){.name = NULL};
  if (!lua_istable(L, arg)) {
    out->name = luaL_optstring(L, arg, NULL);
    return;
  }
  pln_lua_known_keys(L, arg, "reading text", names, PLN_COUNT(names));
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (lua_getfield(L, arg, names[i]) != LUA_TNIL)
      read_option(L, b, names[i], out);
}

/* --------------------------------------------------------------- printing */

static const char *const text_options[] = {"constants", "hash_references",
                                           "limit", "metadata", "verbose_expr"};

/* Pushes an option; returns false if it is nil. */
static bool get_option(lua_State *L, int arg, const char *name, int type) {
  int found = lua_getfield(L, arg, name);
  if (found != LUA_TNIL && found != type)
    pln_lua_error(L, PLN_ERR_TYPE, "option '%s' is a %s, got a %s", name,
                  lua_typename(L, type), luaL_typename(L, -1));
  return found != LUA_TNIL;
}

static bool get_flag(lua_State *L, int arg, const char *name, bool otherwise) {
  bool given = get_option(L, arg, name, LUA_TBOOLEAN);
  bool yes = given ? lua_toboolean(L, -1) : otherwise;
  lua_pop(L, 1);
  return yes;
}

static uint8_t get_constants(lua_State *L, int arg) {
  static const char *const names[] = {"complete", "embedded", "brief"};
  char hint[128];
  uint8_t how = 0;
  if (get_option(L, arg, "constants", LUA_TSTRING)) {
    const char *name = lua_tostring(L, -1);
    while (how < PLN_COUNT(names) && strcmp(name, names[how]) != 0)
      how++;
    pln_suggest(name, PLN_COUNT(names), names, hint, sizeof hint);
    if (how == PLN_COUNT(names))
      pln_lua_error(L, PLN_ERR_ARGUMENT,
                    "option 'constants' is complete, embedded or brief, "
                    "not '%s'%s",
                    name, hint);
  }
  lua_pop(L, 1);
  return how;
}

static size_t get_limit(lua_State *L, int arg) {
  lua_Integer limit = 0;
  if (get_option(L, arg, "limit", LUA_TNUMBER)) {
    int whole;
    limit = lua_tointegerx(L, -1, &whole);
    if (!whole || limit < 0)
      pln_lua_error(L, PLN_ERR_ARGUMENT,
                    "option 'limit' is a number of bytes, got %s",
                    luaL_tolstring(L, -1, NULL));
  }
  lua_pop(L, 1);
  return (size_t)limit;
}

pln_print_options pln_lua_text_options(lua_State *L, int arg) {
  pln_print_options options = {.limit = 0};
  if (lua_isnoneornil(L, arg))
    return options;
  if (!lua_istable(L, arg))
    pln_lua_error(L, PLN_ERR_TYPE, "text: a table of options expected, got %s",
                  luaL_typename(L, arg));
  pln_lua_known_keys(L, arg, "text", text_options, PLN_COUNT(text_options));
  options.limit = get_limit(L, arg);
  options.constants = get_constants(L, arg);
  options.no_metadata = !get_flag(L, arg, "metadata", true);
  options.hash_references = get_flag(L, arg, "hash_references", false);
  options.declared = get_flag(L, arg, "verbose_expr", false);
  return options;
}

/* ---------------------------------------------------------------- reading */

/* A module that was read, with the regions that its blocks do not say. */
static pln_status completed(pln_status status, pln_module **slot) {
  if (status == PLN_OK && (status = pln_complete_script(*slot)) != PLN_OK) {
    pln_module_release(*slot);
    *slot = NULL;
  }
  return status;
}

/* parse(text [, name or options]) -> Module, or nil and a diagnostic */
static int text_parse(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  given_values in;
  text.data = luaL_checklstring(L, 1, &text.size);
  read_given(L, b, 2, &in);
  int tries = 0;
  pln_status status;
  pln_module **slot = pln_lua_new_module(L);
  size_t mark = begin_relay_diags(b);
  do
    status = completed(
        pln_parse_module(b->engine, text, in.name, &in.given, slot), slot);
  while (pln_lua_retry(L, b, status, &tries));
  return status == PLN_OK ? 1 : pln_lua_fail_first(L, b, mark, status);
}

/* parse_expr(text [, name or options]) -> Node, or nil and a diagnostic */
static int text_parse_expr(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  given_values in;
  text.data = luaL_checklstring(L, 1, &text.size);
  read_given(L, b, 2, &in);
  int tries = 0;
  pln_status status;
  pln_lua_graph *slot = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  size_t mark = begin_relay_diags(b);
  do
    status = pln_parse_expr(b->engine, text, in.name, &in.given, &slot->graph);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  pln_lua_push_node(L, lua_gettop(L), pln_graph_root(slot->graph));
  return 1;
}

/* script_parse(text [, name]) -> Module, or nil and a diagnostic */
static int script_parse(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  text.data = luaL_checklstring(L, 1, &text.size);
  const char *name = luaL_optstring(L, 2, NULL);
  int tries = 0;
  pln_status status;
  pln_module **slot = pln_lua_new_module(L);
  size_t mark = begin_relay_diags(b);
  do
    status = completed(pln_parse_script(b->engine, text, name, slot), slot);
  while (pln_lua_retry(L, b, status, &tries));
  return status == PLN_OK ? 1 : pln_lua_fail_first(L, b, mark, status);
}

/* script_parse_expr(text [, name]) -> Node, or nil and a diagnostic */
static int script_parse_expr(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice text;
  text.data = luaL_checklstring(L, 1, &text.size);
  const char *name = luaL_optstring(L, 2, NULL);
  int tries = 0;
  pln_status status;
  pln_lua_graph *slot = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  size_t mark = begin_relay_diags(b);
  do
    status = pln_parse_script_expr(b->engine, text, name, &slot->graph);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  pln_lua_push_node(L, lua_gettop(L), pln_graph_root(slot->graph));
  return 1;
}

/* load(path) -> Module, or nil and a diagnostic */
static int text_load(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 1);
  int tries = 0;
  pln_status status;
  pln_module **slot = pln_lua_new_module(L);
  size_t mark = begin_relay_diags(b);
  do
    status = completed(pln_parse_file(b->engine, path, slot), slot);
  while (pln_lua_retry(L, b, status, &tries));
  return status == PLN_OK ? 1 : pln_lua_fail_first(L, b, mark, status);
}

/* save(mod, path) -> true, or nil and a diagnostic */
static int text_save(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 2);
  int tries = 0;
  pln_status status;
  size_t mark = begin_relay_diags(b);
  do
    status = pln_print_file(pln_lua_check_module(L, 1), path);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  lua_pushboolean(L, true);
  return 1;
}

static const luaL_Reg functions[] = {{"text_parse", text_parse},
                                     {"text_parse_expr", text_parse_expr},
                                     {"script_parse", script_parse},
                                     {"script_parse_expr", script_parse_expr},
                                     {"text_load", text_load},
                                     {"text_save", text_save},
                                     {NULL, NULL}};

void pln_lua_open_relay(lua_State *L) {
  pln_lua_functions(L, functions);
}
