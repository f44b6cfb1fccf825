/* vars.c: variables of expressions and types, and substitution of variables,
 * for scripts. */

#include "ir/graph/graph.h"
#include "lua/binding.h"

static const char *const sets[] = {"all", "bound", "free", NULL};

/* Variable numbers collected by a callback of the engine, which cannot
 * raise. */
typedef struct number_list {
  pln_engine *engine;
  uint32_t *items;
  uint32_t n, capacity;
} number_list;

static pln_status add_number(number_list *list, uint32_t item) {
  PLN_TRY(pln_mem_grow(list->engine, (void **)&list->items, &list->capacity,
                       (size_t)list->n + 1, sizeof *list->items));
  list->items[list->n++] = item;
  return PLN_OK;
}

static pln_status add_node(void *ud, const pln_graph *g, pln_ref node) {
  (void)g;
  return add_number(ud, node);
}

static pln_status add_type(void *ud, pln_engine *e, pln_type type) {
  (void)e;
  return add_number(ud, type);
}

#define NUMBERS "perilune.Numbers"

static int numbers_gc(lua_State *L) {
  number_list *list = lua_touserdata(L, 1);
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  if (b->engine)
    pln_mem_free(b->engine, list->items, list->capacity * sizeof(uint32_t));
  list->items = NULL;
  return 0;
}

static number_list *push_numbers(lua_State *L, pln_lua *b) {
  number_list *list = pln_lua_userdata(L, NUMBERS, sizeof *list, 0);
  list->engine = b->engine;
  return list;
}

/* ------------------------------------------------------------------- lists */

/* Pushes a variable of a sealed copy. For a floating expression it is the
 * handle in the floating builder, which the script knows.  [-0, +1] */
static void push_var(lua_State *L, const pln_lua_node *node, int arg, int graph,
                     pln_ref var) {
  const pln_lua_graph *slot = node->graph, *walked = lua_touserdata(L, graph);
  const pln_builder *builder = slot->builder;
  const pln_graph *g = walked->graph;
  pln_ref known = builder ? pln_builder_free_var(builder, pln_node_var(g, var),
                                                 pln_node_type(g, var))
                          : PLN_NONE;
  if (known == PLN_NONE) {
    pln_lua_push_node(L, graph, var);
    return;
  }
  lua_getiuservalue(L, arg, 1);
  pln_lua_push_node(L, -1, known);
  lua_remove(L, -2);
}

/* vars(node, "all" | "bound" | "free") -> list of Vars */
static int core_vars(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_lua_node *node = pln_lua_check_node(L, 1);
  pln_var_set which = (pln_var_set)luaL_checkoption(L, 2, NULL, sets);
  pln_ref ref;
  lua_settop(L, 2);
  const pln_lua_graph *graph = pln_lua_push_sealed_graph_of(L, b, 1, &ref);
  int at = lua_gettop(L);
  number_list *list = push_numbers(L, b);
  pln_lua_must(L, b, pln_graph_vars(graph->graph, ref, which, add_node, list));
  lua_createtable(L, (int)list->n, 0);
  for (uint32_t i = 0; i < list->n; i++) {
    push_var(L, node, 1, at, list->items[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* type_vars(node | Type, "all" | "bound" | "free") -> list of Types */
static int core_type_vars(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_var_set which = (pln_var_set)luaL_checkoption(L, 2, NULL, sets);
  lua_settop(L, 2);
  number_list *list = push_numbers(L, b);
  pln_ref ref;
  if (luaL_testudata(L, 1, PLN_LUA_NODE)) {
    const pln_graph *g = pln_lua_push_sealed_graph_of(L, b, 1, &ref)->graph;
    pln_lua_must(L, b, pln_graph_type_vars(g, ref, which, add_type, list));
  } else {
    pln_type type = pln_lua_check_type(L, b, 1);
    pln_lua_must(L, b, pln_type_vars(b->engine, type, which, add_type, list));
  }
  lua_createtable(L, (int)list->n, 0);
  for (uint32_t i = 0; i < list->n; i++) {
    pln_lua_push_type(L, b, list->items[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* ------------------------------------------------------------------ binding */

/* Stack slots of bind. */
enum { PROGRAM_ARG = 1, VARS, VALUES, BOXES };

/* Pops the variable on top and the value below it; keeps the value's box alive.
 * [-2, +0] */
static pln_binding take_binding(lua_State *L, pln_lua *b, lua_Integer i) {
  const pln_lua_node *var = pln_lua_check_node(L, -1);
  const pln_graph *g = pln_lua_graph_of(L, var->graph);
  pln_binding out = {.var = pln_node_var(g, var->ref)};
  if (out.var == 0)
    luaL_error(L, "only a Var can be bound, not a %s",
               pln_kind_name(pln_node_kind(g, var->ref)));
  pln_dtype dtype = pln_type_dtype(b->engine, pln_node_type(g, var->ref));
  int value = lua_gettop(L) - 1;
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_ref ref = pln_lua_operand(L, b, to, value, dtype);
  pln_lua_push_node(L, -1, ref);
  const pln_lua_graph *slot = pln_lua_push_rooted(L, b, lua_gettop(L));
  out.graph = slot->graph;
  out.node = pln_graph_root(slot->graph);
  lua_rawseti(L, BOXES, i);
  lua_settop(L, value - 1);
  return out;
}

/* bind(node, vars, values) -> the node with the Vars replaced by the values, or
 * itself */
static int core_bind(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_check_node(L, PROGRAM_ARG);
  luaL_checktype(L, VARS, LUA_TTABLE);
  luaL_checktype(L, VALUES, LUA_TTABLE);
  lua_settop(L, VALUES);
  lua_newtable(L);
  uint32_t n = (uint32_t)lua_rawlen(L, VARS);
  pln_binding *bindings =
      lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *bindings, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_rawgeti(L, VALUES, (lua_Integer)i + 1);
    lua_rawgeti(L, VARS, (lua_Integer)i + 1);
    bindings[i] = take_binding(L, b, (lua_Integer)i + 1);
  }
  const pln_graph *old = pln_lua_push_rooted(L, b, PROGRAM_ARG)->graph;
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  pln_lua_must(L, b, pln_graph_bind(old, n, bindings, &out->graph));
  if (out->graph == old) {
    lua_pushvalue(L, PROGRAM_ARG);
    return 1;
  }
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

/* renew_defs(node) -> the node alpha-renamed: the variables that it binds are
 * new */
static int core_renew_defs(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 1);
  const pln_graph *old = pln_lua_push_rooted(L, b, 1)->graph;
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  pln_lua_must(L, b, pln_graph_alpha_rename(old, &out->graph));
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", numbers_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"vars", core_vars},
                                     {"type_vars", core_type_vars},
                                     {"bind", core_bind},
                                     {"renew_defs", core_renew_defs},
                                     {NULL, NULL}};

void pln_lua_open_vars(lua_State *L) {
  pln_lua_class(L, NUMBERS, none, meta, NULL);
  pln_lua_functions(L, functions);
}
