/* eval.c: pl.eval: functions run on tensors, numbers and tables.
 *
 * A sequence is a table of tensors (or of such tables) where a parameter's type
 * asks for one; what is left out is nil. Data in the making belong to a box, so
 * that an error in between releases them. */

#include "lua/binding.h"

#define DATA "perilune.Data"

typedef struct data_box {
  pln_engine *engine;
  uint32_t count;
  pln_datum items[];
} data_box;

static void release(data_box *box) {
  for (uint32_t i = 0; i < box->count; i++)
    pln_datum_release(box->engine, &box->items[i]);
  box->count = 0;
}

static int data_gc(lua_State *L) {
  release(lua_touserdata(L, 1));
  return 0;
}

/* `n` data that are not computed.  [-0, +1] */
static data_box *push_data(lua_State *L, pln_lua *b, uint32_t n) {
  data_box *box = pln_lua_box(L, DATA, sizeof *box + n * sizeof *box->items, 0);
  box->engine = b->engine;
  box->count = n;
  return box;
}

/* ---------------------------------------------------------------- arguments */

/* The type that parameter `i` of a function asks for; 0: any. */
static pln_type param_type(const pln_engine *engine, const pln_graph *g,
                           uint32_t i) {
  pln_type type = pln_node_type(g, pln_graph_root(g));
  if (pln_type_kind_of(engine, type) != PLN_TYPE_FUNC ||
      i + 1 >= pln_type_n_parts(engine, type))
    return 0;
  type = pln_type_part(engine, type, i);
  if (pln_type_kind_of(engine, type) == PLN_TYPE_OPTIONAL)
    type = pln_type_part(engine, type, 0);
  return type;
}

/* A table whose first element is a Tensor is a sequence too where the type says
 * nothing. */
static bool is_sequence(lua_State *L, pln_lua *b, int arg, pln_type type) {
  if (type)
    return pln_type_kind_of(b->engine, type) == PLN_TYPE_SEQUENCE;
  if (!lua_istable(L, arg))
    return false;
  lua_rawgeti(L, arg, 1);
  bool tensors = pln_lua_test_tensor(L, -1) != NULL;
  lua_pop(L, 1);
  return tensors;
}

/* The value at `arg` as a tensor.  [-0, +0] */
static void read_tensor(lua_State *L, pln_lua *b, int arg, pln_type type,
                        pln_datum *out) {
  int top = lua_gettop(L);
  pln_dtype dtype = pln_type_dtype(b->engine, type);
  *out = pln_datum_tensor(pln_lua_to_tensor(L, b, arg, dtype));
  lua_settop(L, top);
}

/* A sequence of tensors.  [-0, +0] */
static void read_sequence(lua_State *L, pln_lua *b, int arg, pln_type type,
                          pln_datum *out) {
  luaL_checktype(L, arg, LUA_TTABLE);
  pln_type element = type ? pln_type_part(b->engine, type, 0) : 0;
  uint32_t n = (uint32_t)lua_rawlen(L, arg);
  data_box *items = push_data(L, b, n);
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    read_tensor(L, b, lua_gettop(L), element, &items->items[i]);
    lua_pop(L, 1);
  }
  pln_lua_must(L, b, pln_datum_sequence(b->engine, n, items->items, out));
  release(items);
  lua_pop(L, 1);
}

static void read_datum(lua_State *L, pln_lua *b, int arg, pln_type type,
                       pln_datum *out) {
  if (lua_isnil(L, arg))
    *out = pln_datum_tensor(NULL);
  else if (is_sequence(L, b, arg, type))
    read_sequence(L, b, arg, type, out);
  else
    read_tensor(L, b, arg, type, out);
}

/* ------------------------------------------------------------------ results */

static void push_datum(lua_State *L, const pln_datum *datum) {
  uint32_t n = pln_datum_count(datum);
  luaL_checkstack(L, 8, "data too deep");
  if (datum->kind == PLN_DATUM_TENSOR) {
    pln_lua_push_tensor(L, datum->of.tensor);
    return;
  }
  if (datum->kind != PLN_DATUM_SEQUENCE && datum->kind != PLN_DATUM_TUPLE) {
    lua_pushnil(L);
    return;
  }
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    const pln_datum *item = pln_datum_item(datum, i);
    if (item->kind != PLN_DATUM_TENSOR)
      luaL_error(L, "a sequence of sequences has no form in Lua");
    pln_lua_push_tensor(L, item->of.tensor);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* The number of results of a function or expression; 0: not a tuple. */
static uint32_t tuple_size(const pln_engine *engine, const pln_graph *g) {
  pln_type type = pln_node_type(g, pln_graph_root(g));
  if (pln_type_kind_of(engine, type) == PLN_TYPE_FUNC)
    type = pln_type_part(engine, type, pln_type_n_parts(engine, type) - 1);
  if (pln_type_kind_of(engine, type) != PLN_TYPE_TUPLE)
    return 0;
  return pln_type_n_parts(engine, type);
}

/* --------------------------------------------------------------------- calls
 */

/* Pushes the graph to run: of a handle, or of the module's main.  [-0, +1] */
static const pln_graph *push_callee(lua_State *L, pln_lua *b, int arg,
                                    pln_module **module) {
  *module = pln_lua_test_module(L, arg);
  if (!*module)
    return pln_lua_push_rooted(L, b, arg)->graph;
  pln_symbol main_name;
  pln_lua_must(L, b,
               pln_symbol_intern(b->engine, pln_text("main"), &main_name));
  uint32_t i = pln_module_find(*module, main_name);
  if (i == PLN_NONE)
    luaL_argerror(L, arg, "the module has no function 'main'");
  return pln_lua_push_graph(L, b, pln_module_function(*module, i))->graph;
}

/* Runs the callee at `arg` on the arguments behind it. */
static int eval(lua_State *L, pln_lua *b, pln_module *context, int arg) {
  pln_module *module;
  int n = lua_gettop(L) - arg;
  luaL_checkstack(L, 16, NULL);
  const pln_graph *graph = push_callee(L, b, arg, &module);
  data_box *args = push_data(L, b, (uint32_t)n);
  for (int i = 0; i < n; i++)
    read_datum(L, b, arg + 1 + i, param_type(b->engine, graph, (uint32_t)i),
               &args->items[i]);
  uint32_t k = tuple_size(b->engine, graph), count = k ? k : 1;
  data_box *results = push_data(L, b, count);
  pln_lua_must(L, b,
               pln_eval_data(module ? module : context, graph, (uint32_t)n,
                             args->items, count, results->items));
  luaL_checkstack(L, (int)count + 16, "too many results");
  for (uint32_t i = 0; i < count; i++)
    push_datum(L, &results->items[i]);
  release(args); /* before the collector finds them */
  release(results);
  return (int)count;
}

/* eval(fn | mod, args...) -> results: runs a function, the module's main, or
 * an expression without free variables. An argument is a tensor, a number, a
 * nested table, a table of tensors for a sequence, or nil. */
static int core_eval(lua_State *L) {
  return eval(L, pln_lua_here(L), NULL, 1);
}

/* eval_in(mod, fn, args...): GlobalVars are looked up in `mod` */
static int core_eval_in(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  return eval(L, b, pln_lua_check_module(L, 1), 2);
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", data_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"eval", core_eval}, {"eval_in", core_eval_in}, {NULL, NULL}};

void pln_lua_open_eval(lua_State *L) {
  pln_lua_class(L, DATA, none, meta, NULL);
  pln_lua_functions(L, functions);
}
