/* eval.c: pl.eval: runs functions on tensors, numbers and tables; pl.seed: the
 * seed of random operators. */

#include "lua/binding.h"
#include "pass/pass.h"

/* ---------------------------------------------------------------- arguments */

/* The type of parameter `i` of a function; 0: any. */
static pln_type param_type(const pln_engine *engine, const pln_graph *g,
                           uint32_t i) {
  pln_type type = pln_node_type(g, pln_graph_root(g));
  if (pln_type_get_kind(engine, type) != PLN_TYPE_FUNC ||
      i + 1 >= pln_type_n_parts(engine, type))
    return 0;
  type = pln_type_part_at(engine, type, i);
  if (pln_type_get_kind(engine, type) == PLN_TYPE_OPTIONAL)
    type = pln_type_part_at(engine, type, 0);
  return type;
}

/* ------------------------------------------------------------------ results */

/* The number of results: the fields of a tuple, else one. */
static uint32_t count_results(const pln_engine *engine, const pln_graph *g) {
  pln_type type = pln_node_type(g, pln_graph_root(g));
  if (pln_type_get_kind(engine, type) == PLN_TYPE_FUNC)
    type = pln_type_part_at(engine, type, pln_type_n_parts(engine, type) - 1);
  if (pln_type_get_kind(engine, type) != PLN_TYPE_TUPLE)
    return 1;
  return pln_type_n_parts(engine, type);
}

/* --------------------------------------------------------------------- calls
 */

/* Pushes the graph to run: that of a handle, or the module's main.  [-0, +1] */
static const pln_graph *push_callee(lua_State *L, pln_lua *b, int arg,
                                    const pln_module *module) {
  if (!module)
    return pln_lua_push_rooted(L, b, arg)->graph;
  pln_symbol main_name;
  pln_lua_must(L, b,
               pln_symbol_intern(b->engine, pln_text("main"), &main_name));
  uint32_t i = pln_module_find(module, main_name);
  if (i == PLN_NONE)
    luaL_argerror(L, arg, "the module has no function 'main'");
  return pln_lua_push_graph(L, b, pln_module_function_at(module, i))->graph;
}

/* The pool of memory that the first evaluation gives an engine: it takes the
 * intermediate tensors of most models, and their results. */
enum { USUAL_POOL = 256 << 20 };

/* Runs a function within the limits of the current context. */
static pln_status eval_limited(pln_lua *b, const pln_module *module,
                               const pln_graph *graph,
                               pln_lua_runtime_values *args,
                               pln_lua_runtime_values *results) {
  pln_engine *e = graph->engine;
  size_t mark = pln_diag_count(e);
  pln_guard outer;
  PLN_TRY(pln_guard_begin_current(e, &outer));
  if (!b->pool_is_set)
    pln_engine_set_pool(e, USUAL_POOL);
  b->pool_is_set = true;
  pln_status status = pln_eval_run(module, graph, args->count, args->items,
                                   results->count, results->items);
  return pln_guard_end(e, &outer, mark, status);
}

/* Runs the callee at `arg` on the arguments after it. If the callee is not a
 * module, GlobalVars are looked up in the module at `arg` - 1, if there is
 * one. */
static int eval(lua_State *L, pln_lua *b, int arg) {
  int n = lua_gettop(L) - arg;
  bool is_module = luaL_testudata(L, arg, PLN_LUA_MODULE) != NULL;
  luaL_checkstack(L, 16, NULL);
  const pln_module *module = is_module ? pln_lua_pin_module(L, arg)
                             : arg > 1 ? pln_lua_pin_module(L, arg - 1)
                                       : NULL;
  const pln_graph *graph = push_callee(L, b, arg, is_module ? module : NULL);
  pln_lua_runtime_values *args = pln_lua_push_runtime_values(L, b, (uint32_t)n);
  for (int i = 0; i < n; i++)
    pln_lua_read_runtime_value(L, b, arg + 1 + i,
                               param_type(b->engine, graph, (uint32_t)i),
                               &args->items[i]);
  uint32_t count = count_results(b->engine, graph);
  pln_lua_runtime_values *results = pln_lua_push_runtime_values(L, b, count);
  pln_lua_must(L, b, eval_limited(b, module, graph, args, results));
  luaL_checkstack(L, (int)count + 16, "too many results");
  for (uint32_t i = 0; i < count; i++)
    pln_lua_push_runtime_value(L, &results->items[i]);
  pln_lua_release_runtime_values(args); /* now, not when they are collected */
  pln_lua_release_runtime_values(results);
  return (int)count;
}

/* eval(fn | mod, args...) -> results: runs a function, the module's main, or
 * an expression without free variables. An argument is a tensor, a number, a
 * nested table, a table of tensors for a sequence, or nil. */
static int core_eval(lua_State *L) {
  return eval(L, pln_lua_state_of(L), 1);
}

/* eval_in(mod, fn, args...): GlobalVars are looked up in `mod` */
static int core_eval_in(lua_State *L) {
  pln_lua_check_module(L, 1);
  return eval(L, pln_lua_state_of(L), 2);
}

/* seed([n]) -> the seed of random operators */
static int core_seed(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  if (!lua_isnoneornil(L, 1))
    pln_engine_set_seed(b->engine, (uint64_t)luaL_checkinteger(L, 1));
  lua_pushinteger(L, (lua_Integer)pln_engine_seed(b->engine));
  return 1;
}

/* limited(f, ...) -> the results of f, run within the limits of the current
 * context on time and memory */
static int core_limited(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_engine *e = b->engine;
  pln_guard outer;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  pln_lua_must(L, b, pln_guard_begin_current(e, &outer));
  size_t mark = pln_diag_count(e);
  int failed = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  pln_status status = failed ? PLN_ERR_CALLBACK : PLN_OK;
  pln_status reported = pln_guard_end(e, &outer, mark, status);
  if (reported != status)
    pln_lua_must(L, b, reported);
  return failed ? lua_error(L) : lua_gettop(L);
}

static const luaL_Reg functions[] = {{"eval", core_eval},
                                     {"eval_in", core_eval_in},
                                     {"limited", core_limited},
                                     {"seed", core_seed},
                                     {NULL, NULL}};

void pln_lua_open_eval(lua_State *L) {
  pln_lua_functions(L, functions);
}
