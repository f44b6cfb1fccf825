/* onnx.c: reads and writes ONNX models and values, in files and strings.
 * Failures return nil and a diagnostic. */

#include "lua/binding.h"
#include "onnx/import/default_input.h"
#include "onnx/op_map.h"
#include "onnx/registered.h"

/* Returns nil and the diagnostic, or the module in the box on top. */
static int result(lua_State *L, pln_lua *b, pln_status status) {
  return status == PLN_OK ? 1 : pln_lua_fail(L, b, status);
}

static void clear_onnx_result(pln_lua *b) {
  if (b->depth == 0)
    pln_diag_clear(b->engine);
}

/* onnx_load(path) -> Module, or nil and a diagnostic */
static int onnx_load(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 1);
  int tries = 0;
  pln_status status;
  pln_module **slot = pln_lua_new_module(L);
  clear_onnx_result(b);
  do
    status = pln_onnx_load(b->engine, path, slot);
  while (pln_lua_retry(L, b, status, &tries));
  return result(L, b, status);
}

/* onnx_parse(bytes [, directory]) -> Module, or nil and a diagnostic */
static int onnx_parse(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice bytes;
  bytes.data = luaL_checklstring(L, 1, &bytes.size);
  const char *directory = luaL_optstring(L, 2, NULL);
  int tries = 0;
  pln_status status;
  pln_module **slot = pln_lua_new_module(L);
  clear_onnx_result(b);
  do
    status = pln_onnx_parse(b->engine, bytes, directory, slot);
  while (pln_lua_retry(L, b, status, &tries));
  return result(L, b, status);
}

/* Field value_info: true, false or nil. */
static pln_value_info value_info_field(lua_State *L, int arg) {
  lua_getfield(L, arg, "value_info");
  pln_value_info value = lua_isnil(L, -1)       ? PLN_VALUE_INFO_AUTO
                         : lua_toboolean(L, -1) ? PLN_VALUE_INFO_ALL
                                                : PLN_VALUE_INFO_NONE;
  lua_pop(L, 1);
  return value;
}

/* Reads the options of save and tostring: a table at `arg`, or nil. */
static pln_onnx_save_options save_options(lua_State *L, int arg) {
  static const char *const names[] = {"external_data", "external_threshold",
                                      "embed_data", "opset", "value_info"};
  pln_onnx_save_options options = {0};
  if (lua_isnoneornil(L, arg))
    return options;
  luaL_checktype(L, arg, LUA_TTABLE);
  pln_lua_known_keys(L, arg, "save", names, PLN_COUNT(names));
  options.external_data = pln_lua_bool_field(L, arg, "external_data");
  options.embed_data = pln_lua_bool_field(L, arg, "embed_data");
  lua_Integer least = pln_lua_int_field(L, arg, "external_threshold", 0);
  luaL_argcheck(L, least >= 0, arg, "external_threshold is negative");
  options.external_threshold = (size_t)least;
  options.opset = pln_lua_int_field(L, arg, "opset", 0);
  options.value_info = value_info_field(L, arg);
  return options;
}

/* onnx_save(mod, path [, { external_data, external_threshold, embed_data,
 * opset, value_info }]) -> true, or nil and a diagnostic */
static int onnx_save(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 2);
  pln_onnx_save_options options = save_options(L, 3);
  int tries = 0;
  pln_status status;
  pln_lua_check_module(L, 1);
  clear_onnx_result(b);
  do
    status = pln_onnx_save(pln_lua_check_module(L, 1), path, &options);
  while (pln_lua_retry(L, b, status, &tries));
  lua_pushboolean(L, true);
  return result(L, b, status);
}

/* onnx_tostring(mod [, { opset, value_info }]) -> the model's bytes, or nil and
 * a diagnostic */
static int onnx_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_onnx_save_options options = save_options(L, 2);
  pln_buffer *text = pln_lua_text(L, b);
  const pln_module *module = pln_lua_check_module(L, 1);
  clear_onnx_result(b);
  pln_status status = pln_onnx_write(module, &options, pln_buffer_write, text);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  pln_lua_text_done(L);
  return 1;
}

/* onnx_load_value(path [, type]) -> value, nil, name; or nil and a diagnostic.
 * An empty optional is nil too. */
static int onnx_load_value(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_symbol name;
  int tries = 0;
  pln_status status;
  pln_lua_runtime_values *data = pln_lua_push_runtime_values(L, b, 1);
  clear_onnx_result(b);
  do
    status = pln_onnx_load_value(b->engine, path, type, data->items, &name);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  pln_slice text = pln_symbol_text(b->engine, name);
  pln_lua_push_runtime_value(L, data->items);
  pln_lua_release_runtime_values(data);
  lua_pushnil(L);
  lua_pushlstring(L, text.data, text.size);
  return 3;
}

/* onnx_save_value(value, path [, type [, name]]) -> true, or nil and a
 * diagnostic */
static int onnx_save_value(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const char *path = luaL_checkstring(L, 2);
  pln_type type = lua_isnoneornil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_slice name = {"", 0};
  if (!lua_isnoneornil(L, 4))
    name.data = luaL_checklstring(L, 4, &name.size);
  pln_type part = pln_type_get_kind(b->engine, type) == PLN_TYPE_OPTIONAL
                      ? pln_type_part_at(b->engine, type, 0)
                      : type;
  pln_lua_runtime_values *data = pln_lua_push_runtime_values(L, b, 1);
  pln_lua_read_runtime_value(L, b, 1, part, data->items);
  clear_onnx_result(b);
  pln_status status =
      pln_onnx_save_value(b->engine, data->items, type, name, path);
  pln_lua_release_runtime_values(data);
  lua_pushboolean(L, true);
  return result(L, b, status);
}

/* onnx_default(mod, input) -> Tensor, the default of an input; nil if it has
 * none; nil and a diagnostic on failure */
static int onnx_default(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice input;
  pln_lua_check_module(L, 1);
  input.data = luaL_checklstring(L, 2, &input.size);
  pln_tensor **slot = pln_lua_new_tensor(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  clear_onnx_result(b);
  pln_status status = pln_onnx_input_default(module, input, slot);
  if (status == PLN_OK && !*slot)
    lua_pushnil(L);
  return result(L, b, status);
}

/* [engine, pln_input_defaults] -> { name = Tensor } */
static int push_defaults(lua_State *L) {
  const pln_engine *engine = lua_touserdata(L, 1);
  const pln_input_defaults *defaults = lua_touserdata(L, 2);
  lua_createtable(L, 0, (int)defaults->n);
  for (uint32_t i = 0; i < defaults->n; i++) {
    pln_slice name = pln_symbol_text(engine, defaults->items[i].input);
    lua_pushlstring(L, name.data, name.size);
    pln_lua_push_tensor(L, defaults->items[i].value);
    lua_rawset(L, -3);
  }
  return 1;
}

/* onnx_defaults(mod) -> { name = Tensor }, the defaults of all inputs that have
 * one; nil and a diagnostic on failure */
static int onnx_defaults(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_input_defaults defaults = {0};
  luaL_checkstack(L, 4, NULL);
  clear_onnx_result(b);
  pln_status status = pln_find_input_defaults(module, &defaults);
  lua_pushcfunction(L, push_defaults);
  lua_pushlightuserdata(L, b->engine);
  lua_pushlightuserdata(L, &defaults);
  int failure = lua_pcall(L, 2, 1, 0);
  pln_free_input_defaults(b->engine, &defaults);
  if (failure != LUA_OK)
    return lua_error(L);
  return result(L, b, status);
}

/* Appends a row to the list on top. */
static void add_onnx_operator(lua_State *L, const pln_lua *b,
                              const char *domain, const char *type,
                              int32_t since, pln_op op) {
  lua_createtable(L, 4, 0);
  lua_pushstring(L, domain);
  lua_rawseti(L, -2, 1);
  lua_pushstring(L, type);
  lua_rawseti(L, -2, 2);
  lua_pushinteger(L, since);
  lua_rawseti(L, -2, 3);
  lua_pushstring(L, pln_op_name(b->engine, op).data);
  lua_rawseti(L, -2, 4);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* onnx_operators() -> { { domain, type, since, name of the core operator }, ...
 * } */
static int onnx_operators(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_onnx_op *row;
  lua_newtable(L);
  for (size_t i = 0; (row = pln_onnx_op_row(i)) != NULL; i++)
    add_onnx_operator(L, b, row->domain[0] ? row->domain : "ai.onnx", row->type,
                      row->since, row->op);
  for (pln_op op = 1; op <= pln_op_count(b->engine); op++) {
    const pln_operator_onnx *node = pln_onnx_registered_node(b->engine, op);
    if (node)
      add_onnx_operator(L, b, node->domain, node->op_type, node->since_version,
                        op);
  }
  return 1;
}

/* onnx_opsets() -> the oldest and the newest supported opset */
static int onnx_opsets(lua_State *L) {
  int32_t oldest, newest;
  pln_onnx_opset_range(&oldest, &newest);
  lua_pushinteger(L, oldest);
  lua_pushinteger(L, newest);
  return 2;
}

static const luaL_Reg functions[] = {
    {"onnx_operators", onnx_operators},
    {"onnx_opsets", onnx_opsets},
    {"onnx_save_value", onnx_save_value},
    {"onnx_default", onnx_default},
    {"onnx_defaults", onnx_defaults},
    {"onnx_load_value", onnx_load_value},
    {"onnx_load", onnx_load},
    {"onnx_parse", onnx_parse},
    {"onnx_save", onnx_save},
    {"onnx_tostring", onnx_tostring},
    {NULL, NULL},
};

void pln_lua_open_onnx(lua_State *L) {
  pln_lua_functions(L, functions);
  pln_lua_open_count(L);
}
