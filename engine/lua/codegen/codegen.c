/* codegen.c: C sources of PrimFuncs, compiling and calling them, for
 * lua/perilune/codegen.
 *
 * A Code box owns a source, an Artifact box what a compiler made, a Library box
 * its functions; it keeps the other two alive. */

#include "codegen/codegen.h"
#include "lua/binding.h"
#include "pass/pass.h"

#define CODE "perilune.Code"
#define ARTIFACT "perilune.Artifact"
#define LIBRARY "perilune.Library"

static int code_gc(lua_State *L) {
  pln_c_code **code = lua_touserdata(L, 1);
  pln_c_code_free(*code);
  *code = NULL;
  return 0;
}

static int artifact_gc(lua_State *L) {
  pln_cc_result_free(lua_touserdata(L, 1));
  return 0;
}

static int library_gc(lua_State *L) {
  pln_c_library **library = lua_touserdata(L, 1);
  pln_c_library_free(*library);
  *library = NULL;
  return 0;
}

static void *new_box(lua_State *L, const char *class, size_t size,
                     int uservalues) {
  void *box = lua_newuserdatauv(L, size, uservalues);
  memset(box, 0, size);
  luaL_setmetatable(L, class);
  return box;
}

static const pln_c_code *check_code(lua_State *L, int arg) {
  pln_c_code **code = luaL_checkudata(L, arg, CODE);
  return *code;
}

/* ------------------------------------------------------------------ writing */

static pln_c_options read_options(lua_State *L, int arg) {
  return (pln_c_options){
      .vector_bytes = (uint32_t)pln_lua_int_field(L, arg, "vector_bytes", 0),
      .threads = (uint32_t)pln_lua_int_field(L, arg, "threads", 0),
      .asserts = pln_lua_bool_field(L, arg, "asserts"),
      .stack_bytes = (uint32_t)pln_lua_int_field(L, arg, "stack_bytes", 0),
      .text = pln_lua_string_field(L, arg, "text", NULL),
      .n_declared = (uint32_t)pln_lua_int_field(L, arg, "n_declared", 0)};
}

/* c_write(names, functions, options) -> Code */
static int core_c_write(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 3);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  uint32_t n = (uint32_t)lua_rawlen(L, 1);
  pln_c_options options = read_options(L, 3);
  const pln_graph **graphs = lua_newuserdatauv(L, (n + 1) * sizeof *graphs, 0);
  pln_symbol *names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
  lua_createtable(L, (int)n, 0); /* keeps the graphs */
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    names[i] = pln_lua_check_symbol(L, b, lua_gettop(L));
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    graphs[i] = pln_lua_push_rooted(L, b, lua_gettop(L))->graph;
    lua_rawseti(L, 6, (lua_Integer)i + 1);
    lua_settop(L, 6);
  }
  pln_c_code **code = new_box(L, CODE, sizeof *code, 0);
  pln_lua_must(L, b, pln_c_write(b->engine, n, graphs, names, &options, code));
  return 1;
}

static int core_c_source(lua_State *L) {
  pln_slice text = pln_c_code_source(check_code(L, 1));
  lua_pushlstring(L, text.data, text.size);
  return 1;
}

static int core_c_header(lua_State *L) {
  pln_slice text = pln_c_code_header(check_code(L, 1));
  lua_pushlstring(L, text.data, text.size);
  return 1;
}

static void push_symbol_field(lua_State *L, pln_lua *b, pln_symbol symbol,
                              const char *name) {
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, text.data, text.size);
  lua_setfield(L, -2, name);
}

static void push_param(lua_State *L, pln_lua *b, const pln_c_param *p) {
  lua_createtable(L, 0, 6);
  push_symbol_field(L, b, p->name, "name");
  lua_pushstring(L, pln_dtype_name(p->dtype));
  lua_setfield(L, -2, "dtype");
  lua_pushinteger(L, p->lanes);
  lua_setfield(L, -2, "lanes");
  lua_pushboolean(L, p->is_buffer);
  lua_setfield(L, -2, "is_buffer");
  lua_pushboolean(L, p->is_written);
  lua_setfield(L, -2, "is_written");
  lua_pushinteger(L, p->rank);
  lua_setfield(L, -2, "rank");
}

/* c_functions(code) -> { { name, c_name, params = { ... } }, ... } */
static int core_c_functions(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_c_code *code = check_code(L, 1);
  uint32_t n = pln_c_code_n_functions(code);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    const pln_c_function *fn = pln_c_code_function(code, i);
    lua_createtable(L, 0, 3);
    push_symbol_field(L, b, fn->name, "name");
    push_symbol_field(L, b, fn->c_name, "c_name");
    lua_createtable(L, (int)fn->n_params, 0);
    for (uint32_t k = 0; k < fn->n_params; k++) {
      push_param(L, b, &fn->params[k]);
      lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "params");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int core_c_native_vector_bytes(lua_State *L) {
  lua_pushinteger(L, pln_c_native_vector_bytes());
  return 1;
}

/* c_vector_registers(bytes) -> number of vectors */
static int core_c_vector_registers(lua_State *L) {
  lua_Integer bytes = luaL_checkinteger(L, 1);
  luaL_argcheck(L, bytes > 0 && bytes <= 64, 1, "16, 32 or 64 expected");
  lua_pushinteger(L, pln_c_vector_registers((uint32_t)bytes));
  return 1;
}

/* ---------------------------------------------------------------- compiling */

/* The flags in options.flags, in scratch memory left on the stack. */
static void read_flags(lua_State *L, int arg, pln_cc_options *options) {
  lua_getfield(L, arg, "flags");
  if (!lua_istable(L, -1))
    return;
  options->flags = pln_lua_check_names(L, lua_gettop(L), &options->n_flags);
  options->flags_given = true;
}

static void push_artifact_fields(lua_State *L, const pln_cc_result *result) {
  lua_createtable(L, 0, 5);
  lua_pushstring(L, result->path);
  lua_setfield(L, -2, "path");
  lua_pushstring(L, result->command);
  lua_setfield(L, -2, "command");
  lua_pushstring(L, result->version);
  lua_setfield(L, -2, "version");
  lua_pushboolean(L, result->cached);
  lua_setfield(L, -2, "cached");
}

static pln_cc_options read_cc_options(lua_State *L, int arg) {
  pln_cc_options options = {
      .cc = pln_lua_string_field(L, arg, "cc", NULL),
      .seconds = pln_lua_number_field(L, arg, "compile_seconds"),
      .memory = (uint64_t)pln_lua_int_field(L, arg, "compile_memory", 0),
      .cache = pln_lua_string_field(L, arg, "cache", NULL)};
  read_flags(L, arg, &options);
  return options;
}

static const char *known_version(lua_State *L, int arg) {
  return pln_lua_string_field(L, arg, "version", NULL);
}

/* Leaves the table of an artifact below its box. */
static void push_artifact(lua_State *L, const pln_cc_result *result) {
  push_artifact_fields(L, result);
  lua_insert(L, -2);
  lua_setfield(L, -2, "box");
}

/* The limits of the current context hold for the compiler too. */
static pln_status compile_limited(pln_engine *e, const pln_c_code *code,
                                  pln_c_artifact kind,
                                  const pln_cc_options *options,
                                  const char *version, pln_cc_result *result) {
  size_t mark = pln_diag_count(e);
  pln_guard outer;
  PLN_TRY(pln_guard_begin_current(e, &outer));
  return pln_guard_end(e, &outer, mark,
                       pln_cc_compile_by(e, pln_c_code_source(code),
                                         pln_c_code_uses_threads(code), kind,
                                         options, version, result));
}

/* c_compile(code, "so"|"o", options) -> { path, command, version, cached, box
 * }: options.version is that of the compiler, if it is known. */
static int core_c_compile(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  static const char *const kinds[] = {"o", "so", NULL};
  lua_settop(L, 3);
  const pln_c_code *code = check_code(L, 1);
  pln_c_artifact kind = (pln_c_artifact)luaL_checkoption(L, 2, "so", kinds);
  luaL_checktype(L, 3, LUA_TTABLE);
  pln_cc_options options = read_cc_options(L, 3);
  pln_cc_result *result = new_box(L, ARTIFACT, sizeof *result, 0);
  pln_lua_must(L, b,
               compile_limited(b->engine, code, kind, &options,
                               known_version(L, 3), result));
  push_artifact(L, result);
  return 1;
}

static pln_status link_limited(pln_engine *e, uint32_t n,
                               const char *const *objects,
                               const pln_cc_options *options,
                               const char *version, pln_cc_result *result) {
  size_t mark = pln_diag_count(e);
  pln_guard outer;
  PLN_TRY(pln_guard_begin_current(e, &outer));
  return pln_guard_end(e, &outer, mark,
                       pln_cc_link_by(e, n, objects, options, version, result));
}

/* c_link(paths of objects, options) -> { path, command, version, cached, box }
 */
static int core_c_link(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  lua_settop(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *const *objects = pln_lua_check_names(L, 1, &n);
  pln_cc_options options = read_cc_options(L, 2);
  pln_cc_result *result = new_box(L, ARTIFACT, sizeof *result, 0);
  pln_lua_must(L, b,
               link_limited(b->engine, n, objects, &options,
                            known_version(L, 2), result));
  push_artifact(L, result);
  return 1;
}

/* ------------------------------------------------------------------ calling */

/* c_library(code, artifact) -> Library */
static int core_c_library(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 2);
  const pln_c_code *code = check_code(L, 1);
  lua_getfield(L, 2, "box");
  const pln_cc_result *result = luaL_checkudata(L, -1, ARTIFACT);
  pln_c_library **library = new_box(L, LIBRARY, sizeof *library, 2);
  pln_lua_must(L, b, pln_c_library_new(b->engine, code, result->path, library));
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, 3);
  lua_setiuservalue(L, -2, 2);
  return 1;
}

static void read_arguments(lua_State *L, pln_lua *b, int list,
                           const pln_c_function *fn,
                           pln_lua_runtime_values *args) {
  for (uint32_t i = 0; i < args->count; i++) {
    pln_dtype dtype = i < fn->n_params ? fn->params[i].dtype : PLN_DTYPE_NONE;
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    pln_tensor *tensor = pln_lua_to_tensor(L, b, lua_gettop(L), dtype);
    args->items[i] = pln_runtime_value_tensor(tensor);
    lua_settop(L, -3);
  }
}

static uint32_t count_buffers(const pln_c_function *fn) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < fn->n_params; i++)
    n += fn->params[i].is_buffer;
  return n;
}

static void push_results(lua_State *L, pln_lua_runtime_values *out,
                         pln_tensor **results) {
  for (uint32_t i = 0; i < out->count; i++)
    out->items[i] = (pln_runtime_value){.kind = PLN_RUNTIME_TENSOR,
                                        .of.tensor = results[i]};
  lua_createtable(L, (int)out->count, 0);
  for (uint32_t i = 0; i < out->count; i++) {
    pln_lua_push_runtime_value(L, &out->items[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* A call of a compiled function under the limits of the current context. */
typedef struct limited_call {
  pln_c_library *library;
  uint32_t index, n;
  pln_c_run_options options;
  double least, seconds;
  const pln_tensor **given;
  pln_tensor **results;
} limited_call;

static pln_status call_limited(pln_engine *e, limited_call *c) {
  size_t mark = pln_diag_count(e);
  pln_guard outer;
  PLN_TRY(pln_guard_begin_current(e, &outer));
  return pln_guard_end(e, &outer, mark,
                       pln_c_library_call(c->library, c->index, &c->options,
                                          c->n, c->given, c->results, c->least,
                                          &c->seconds));
}

/* c_default_flags() -> { flag, ... }: a new list of the compiler's flags where
 * none are given. */
static int core_c_default_flags(lua_State *L) {
  const char *const *flags = pln_cc_default_flags();
  lua_newtable(L);
  for (lua_Integer i = 0; flags[i]; i++) {
    lua_pushstring(L, flags[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* c_call(library, code, index, args, options) -> { tensor, ... }, seconds:
 * options.in_process, options.seconds, options.least, options.evict */
static int core_c_call(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 5);
  pln_c_library **library = luaL_checkudata(L, 1, LIBRARY);
  const pln_c_code *code = check_code(L, 2);
  uint32_t index = (uint32_t)luaL_checkinteger(L, 3) - 1;
  luaL_checktype(L, 4, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TTABLE);
  if (index >= pln_c_code_n_functions(code))
    return luaL_argerror(L, 3, "there is no such function");
  const pln_c_function *fn = pln_c_code_function(code, index);
  limited_call call = {
      .library = *library,
      .index = index,
      .n = (uint32_t)lua_rawlen(L, 4),
      .options = {.in_process = pln_lua_bool_field(L, 5, "in_process"),
                  .seconds = pln_lua_number_field(L, 5, "seconds"),
                  .evict = (size_t)pln_lua_number_field(L, 5, "evict")},
      .least = pln_lua_number_field(L, 5, "least")};
  pln_lua_runtime_values *args = pln_lua_push_runtime_values(L, b, call.n);
  read_arguments(L, b, 4, fn, args);
  pln_lua_runtime_values *out =
      pln_lua_push_runtime_values(L, b, count_buffers(fn));
  call.given = lua_newuserdatauv(L, (call.n + 1) * sizeof *call.given, 0);
  call.results =
      lua_newuserdatauv(L, (out->count + 1) * sizeof *call.results, 0);
  for (uint32_t i = 0; i < call.n; i++)
    call.given[i] = args->items[i].of.tensor;
  pln_lua_must(L, b, call_limited(b->engine, &call));
  push_results(L, out, call.results);
  lua_pushnumber(L, call.seconds);
  pln_lua_release_runtime_values(args);
  pln_lua_release_runtime_values(out);
  return 2;
}

static void make_class(lua_State *L, const char *name, lua_CFunction gc) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
}

void pln_lua_open_codegen(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"c_write", core_c_write},
      {"c_source", core_c_source},
      {"c_header", core_c_header},
      {"c_functions", core_c_functions},
      {"c_native_vector_bytes", core_c_native_vector_bytes},
      {"c_vector_registers", core_c_vector_registers},
      {"c_default_flags", core_c_default_flags},
      {"c_compile", core_c_compile},
      {"c_link", core_c_link},
      {"c_library", core_c_library},
      {"c_call", core_c_call},
      {NULL, NULL}};
  make_class(L, CODE, code_gc);
  make_class(L, ARTIFACT, artifact_gc);
  make_class(L, LIBRARY, library_gc);
  pln_lua_functions(L, functions);
}
