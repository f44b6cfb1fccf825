/* run.c: pl.tir.run: runs PrimFuncs with the interpreter of loops.
 *
 * Functions of the host are Lua functions in a table, which lies in the
 * registry while the program is made and run. */

#include "lua/binding.h"
#include "pass/pass.h"

#define PROGRAM "perilune.LoopProgram"

static int program_gc(lua_State *L) {
  pln_loop_program **program = lua_touserdata(L, 1);
  pln_loop_program_free(*program);
  *program = NULL;
  return 0;
}

/* ----------------------------------------------------------------- externs */

typedef struct extern_call {
  pln_lua *state;
  pln_slice name;
  uint32_t n;
  const pln_loop_scalar *args;
  pln_loop_scalar *result; /* NULL: asks whether there is such a function */
  bool known;
} extern_call;

static bool is_float(pln_dtype dtype) {
  return !strncmp(pln_dtype_name(dtype), "float", 5) || dtype == PLN_BFLOAT16;
}

/* Pushes the function of that name.  [-0, +1] */
static void push_extern(lua_State *L, const extern_call *call) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, call->state);
  lua_pushlstring(L, call->name.data, call->name.size);
  lua_rawget(L, -2);
}

static int find_extern(lua_State *L) {
  extern_call *call = lua_touserdata(L, 1);
  push_extern(L, call);
  call->known = lua_isfunction(L, -1);
  return 0;
}

static int run_extern(lua_State *L) {
  extern_call *call = lua_touserdata(L, 1);
  push_extern(L, call);
  luaL_checkstack(L, (int)call->n + 4, NULL);
  for (uint32_t i = 0; i < call->n; i++)
    if (is_float(call->args[i].dtype))
      lua_pushnumber(L, call->args[i].of.number);
    else if (call->args[i].dtype == PLN_BOOL)
      lua_pushboolean(L, call->args[i].of.integer != 0);
    else
      lua_pushinteger(L, call->args[i].of.integer);
  lua_call(L, (int)call->n, 1);
  if (call->result->dtype == PLN_DTYPE_NONE)
    return 0;
  if (is_float(call->result->dtype))
    call->result->of.number = luaL_checknumber(L, -1);
  else if (lua_isboolean(L, -1))
    call->result->of.integer = lua_toboolean(L, -1);
  else
    call->result->of.integer = luaL_checkinteger(L, -1);
  return 0;
}

static bool knows_extern(void *ud, pln_slice name) {
  extern_call call = {.state = ud, .name = name};
  return pln_lua_protect(ud, find_extern, &call) == PLN_OK && call.known;
}

static pln_status call_extern(void *ud, pln_slice name, uint32_t n,
                              const pln_loop_scalar *args,
                              pln_loop_scalar *result) {
  extern_call call = {ud, name, n, args, result, false};
  return pln_lua_protect(ud, run_extern, &call);
}

/* -------------------------------------------------------------------- runs */

static pln_status make_limited(const pln_graph *graph,
                               const pln_loop_options *options,
                               pln_loop_program **out) {
  size_t mark = pln_diag_count(graph->engine);
  pln_guard outer;
  PLN_TRY(pln_guard_begin_current(graph->engine, &outer));
  return pln_guard_end(graph->engine, &outer, mark,
                       pln_loop_program_new(graph, options, out));
}

static pln_status run_limited(pln_engine *e, const pln_loop_program *program,
                              const pln_loop_options *options, uint32_t n,
                              const pln_runtime_value *args,
                              const pln_tensor **given, pln_tensor **results) {
  size_t mark = pln_diag_count(e);
  pln_guard outer;
  for (uint32_t i = 0; i < n; i++)
    given[i] = args[i].of.tensor;
  PLN_TRY(pln_guard_begin_current(e, &outer));
  return pln_guard_end(
      e, &outer, mark,
      pln_loop_run_program(program, options, n, given, results));
}

/* Runs the function with the externs at the top, which it pops. */
static pln_status with_externs(lua_State *L, pln_lua *b, const pln_graph *graph,
                               const pln_loop_options *options,
                               pln_loop_program **program) {
  lua_rawsetp(L, LUA_REGISTRYINDEX, b);
  return make_limited(graph, options, program);
}

static pln_loop_options read_options(lua_State *L, pln_lua *b, int arg) {
  pln_loop_options options = {
      .knows = knows_extern, .call = call_extern, .call_ud = b};
  lua_getfield(L, arg, "zero_memory");
  options.zero_memory = lua_toboolean(L, -1);
  lua_pop(L, 1);
  lua_getfield(L, arg, "externs");
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
  }
  return options;
}

static void read_arguments(lua_State *L, pln_lua *b, int list,
                           const pln_loop_program *program,
                           pln_lua_runtime_values *args) {
  for (uint32_t i = 0; i < args->count; i++) {
    pln_dtype dtype = i < pln_loop_n_params(program)
                          ? pln_loop_param_dtype(program, i)
                          : PLN_DTYPE_NONE;
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    pln_tensor *tensor = pln_lua_to_tensor(L, b, lua_gettop(L), dtype);
    args->items[i] = pln_runtime_value_tensor(tensor);
    lua_settop(L, -3);
  }
}

/* loop_run(fn, args, options) -> { tensor, ... }: options.zero_memory,
 * options.externs */
static int core_loop_run(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 3);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  uint32_t n = (uint32_t)lua_rawlen(L, 2);
  const pln_graph *graph = pln_lua_push_rooted(L, b, 1)->graph;
  pln_loop_program **program = lua_newuserdatauv(L, sizeof *program, 0);
  *program = NULL;
  luaL_setmetatable(L, PROGRAM);
  pln_loop_options options = read_options(L, b, 3);
  lua_pushvalue(L, -1);
  pln_lua_must(L, b, with_externs(L, b, graph, &options, program));
  pln_lua_runtime_values *args = pln_lua_push_runtime_values(L, b, n);
  read_arguments(L, b, 2, *program, args);
  pln_lua_runtime_values *out =
      pln_lua_push_runtime_values(L, b, pln_loop_n_results(*program));
  const pln_tensor **given = lua_newuserdatauv(L, (n + 1) * sizeof *given, 0);
  pln_tensor **results =
      lua_newuserdatauv(L, (out->count + 1) * sizeof *results, 0);
  lua_pushvalue(L, 6); /* the externs: another run may have set its own */
  lua_rawsetp(L, LUA_REGISTRYINDEX, b);
  pln_lua_must(L, b,
               run_limited(b->engine, *program, &options, n, args->items, given,
                           results));
  for (uint32_t i = 0; i < out->count; i++)
    out->items[i] = (pln_runtime_value){.kind = PLN_RUNTIME_TENSOR,
                                        .of.tensor = results[i]};
  lua_createtable(L, (int)out->count, 0);
  for (uint32_t i = 0; i < out->count; i++) {
    pln_lua_push_runtime_value(L, &out->items[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  pln_lua_release_runtime_values(args);
  pln_lua_release_runtime_values(out);
  return 1;
}

void pln_lua_open_tir_run(lua_State *L) {
  static const luaL_Reg functions[] = {{"loop_run", core_loop_run},
                                       {NULL, NULL}};
  luaL_newmetatable(L, PROGRAM);
  lua_pushcfunction(L, program_gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  pln_lua_functions(L, functions);
}
