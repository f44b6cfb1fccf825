/* builder.c: Builder objects: construction scope by scope, as C passes do it.
 * Most scripts build freely instead, with pl.func and the like.
 *
 *     local b = pl.builder()
 *     local scope = b:open()
 *     local x = b:param("x", "Tensor[(2), float32]")
 *     local y = b:run(function() return pl.op.tanh(x) end)
 *     b:finish(scope, y)
 *     local fn = b:seal(b:func(scope))
 *
 * Inside run, constructors append to the builder. Sealing ends it: handles of
 * its nodes become stale. */

#include "ir/graph/graph.h"
#include "lua/binding.h"

#define BUILDER "perilune.Builder"

/* User value 1: the graph's box. */
typedef struct builder_userdata {
  pln_lua_graph *graph;
} builder_userdata;

/* builder() -> Builder */
static int core_builder(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  builder_userdata *slot = pln_lua_userdata(L, BUILDER, sizeof *slot, 1);
  pln_lua_graph *graph = pln_lua_new_graph(L, b, PLN_LUA_SCOPED);
  lua_setiuservalue(L, -2, 1);
  slot->graph = graph;
  return 1;
}

/* The graph of the Builder at 1; raises if it was sealed. */
static pln_lua_graph *check_builder(lua_State *L) {
  builder_userdata *slot = luaL_checkudata(L, 1, BUILDER);
  luaL_argcheck(L, slot->graph && slot->graph->builder, 1,
                "the builder has been sealed");
  pln_lua_set_source_line(L, slot->graph->state, slot->graph->builder);
  return slot->graph;
}

/* The builder of that graph. Called after the other arguments were read,
 * because a finalizer may have sealed it in between. */
static pln_builder *still_open(lua_State *L, const pln_lua_graph *graph) {
  luaL_argcheck(L, graph->builder, 1, "the builder has been sealed");
  return graph->builder;
}

/* Replaces the stack by the handle of a node of the Builder at 1. */
static int push_built_node(lua_State *L, pln_ref ref) {
  lua_getiuservalue(L, 1, 1);
  pln_lua_push_node(L, -1, ref);
  return 1;
}

static pln_scope check_scope(lua_State *L, int arg) {
  lua_Integer scope = luaL_checkinteger(L, arg);
  luaL_argcheck(L, scope >= 0 && scope < UINT32_MAX, arg, "no such scope");
  return (pln_scope)scope;
}

/* ------------------------------------------------------------------ scopes */

/* b:open() -> the number of a new scope inside the innermost open one */
static int builder_open(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_scope scope;
  pln_lua_must(L, b, pln_build_open(check_builder(L)->builder, &scope));
  lua_pushinteger(L, scope);
  return 1;
}

/* b:param(name [, type]) -> a parameter of the innermost open scope */
static int builder_param(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_ref ref;
  pln_symbol name = pln_lua_check_symbol(L, b, 2);
  pln_type type = lua_isnoneornil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_lua_must(L, b,
               pln_build_param(still_open(L, graph), name, type, 0, &ref));
  return push_built_node(L, ref);
}

/* b:finish(scope, result [, attrs]): ends the innermost scope */
static int builder_finish(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_scope scope = check_scope(L, 2);
  lua_settop(L, 4);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4);
  pln_ref result = pln_lua_operand(L, b, graph, 3, PLN_DTYPE_NONE);
  pln_lua_must(L, b, pln_build_end(still_open(L, graph), scope, result, attrs));
  return 0;
}

/* b:at(scope): the next nodes are appended to that scope; nil: to the innermost
 * one again */
static int builder_at(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_scope scope = lua_isnoneornil(L, 2) ? PLN_NONE : check_scope(L, 2);
  pln_lua_must(L, b, pln_build_in(still_open(L, graph), scope));
  return 0;
}

/* ------------------------------------------------------------------ owners */

/* b:func(scope [, ret_type [, attrs]]) -> Function with that ended scope as its
 * body */
static int builder_func(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_scope scope = check_scope(L, 2);
  pln_ref ref;
  lua_settop(L, 4);
  pln_type ret = lua_isnil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4);
  pln_lua_must(
      L, b, pln_build_function(still_open(L, graph), scope, attrs, ret, &ref));
  return push_built_node(L, ref);
}

/* b:if_(cond, then_scope, else_scope [, attrs [, n_results]]) -> If */
static int builder_if(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_scope yes = check_scope(L, 3), no = check_scope(L, 4);
  lua_Integer results = luaL_optinteger(L, 6, 0);
  pln_ref ref;
  luaL_argcheck(L, results >= 0 && results <= UINT16_MAX, 6, "out of range");
  lua_settop(L, 5);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 5);
  pln_ref cond = pln_lua_operand(L, b, graph, 2, PLN_BOOL);
  pln_lua_must(L, b,
               pln_build_if(still_open(L, graph), cond, yes, no, attrs,
                            (uint32_t)results, &ref));
  return push_built_node(L, ref);
}

/* b:let_block(scope) -> LetBlock */
static int builder_let_block(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_ref ref;
  pln_lua_must(
      L, b, pln_build_let_block(still_open(L, graph), check_scope(L, 2), &ref));
  return push_built_node(L, ref);
}

/* b:let(var, value) -> Let in the innermost open scope */
static int builder_let(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_ref ref;
  luaL_checkany(L, 3);
  pln_ref var = pln_lua_operand(L, b, graph, 2, PLN_DTYPE_NONE);
  pln_ref value = pln_lua_operand(L, b, graph, 3, pln_lua_dtype_of(L, 2, 2));
  pln_lua_must(L, b, pln_build_let(still_open(L, graph), var, value, &ref));
  return push_built_node(L, ref);
}

/* b:loop(min, extent, scope) -> For, a TIR statement */
static int builder_loop(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_scope scope = check_scope(L, 4);
  pln_ref ref;
  pln_ref min = pln_lua_operand(L, b, graph, 2, PLN_DTYPE_NONE);
  pln_ref extent = pln_lua_operand(L, b, graph, 3, PLN_DTYPE_NONE);
  pln_lua_must(L, b,
               pln_build_for(still_open(L, graph), min, extent, scope, &ref));
  return push_built_node(L, ref);
}

/* -------------------------------------------------------------- annotations */

/* b:var(name [, type]) -> Var to be bound by a let of this builder */
static int builder_var(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_ref ref;
  pln_symbol name = pln_lua_check_symbol(L, b, 2);
  pln_type type = lua_isnoneornil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_lua_must(L, b, pln_build_var(still_open(L, graph), name, type, 0, &ref));
  return push_built_node(L, ref);
}

/* b:keep(node): marks a node as an extra root: it stays, used or not, until
 * DeadCodeElimination */
static int builder_keep(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  luaL_checkany(L, 2);
  pln_ref node = pln_lua_operand(L, b, graph, 2, PLN_DTYPE_NONE);
  pln_build_extra_root(still_open(L, graph), node);
  return 0;
}

/* b:name(node, name): a hint for printing and export */
static int builder_name(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  pln_symbol name;
  pln_slice text;
  text.data = luaL_checklstring(L, 3, &text.size);
  pln_ref node = pln_lua_operand(L, b, graph, 2, PLN_DTYPE_NONE);
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &name));
  pln_lua_must(L, b, pln_build_name(still_open(L, graph), node, name));
  return 0;
}

/* ------------------------------------------------------------- run and seal */

static void check_callable(lua_State *L, int arg) {
  if (lua_isfunction(L, arg))
    return;
  luaL_argexpected(L, luaL_getmetafield(L, arg, "__call") != LUA_TNIL, arg,
                   "function");
  lua_pop(L, 1);
}

/* b:run(f, ...) -> the results of f; constructors inside append to the
 * builder */
static int builder_run(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L), *target = b->target;
  check_callable(L, 2);
  lua_getiuservalue(L, 1, 1);
  pln_lua_registry_set(L, &pln_lua_key.anchors, graph);
  b->target = graph;
  int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
  b->target = target;
  pln_lua_forget(L, &pln_lua_key.anchors, graph);
  return status == LUA_OK ? lua_gettop(L) - 1 : lua_error(L);
}

/* b:seal(root) -> the node in a sealed graph; ends the builder */
static int builder_seal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *graph = check_builder(L);
  luaL_checkany(L, 2);
  luaL_argcheck(L, b->target != graph && !still_open(L, graph)->inferring, 1,
                "the builder is running");
  pln_ref root = pln_lua_operand(L, b, graph, 2, PLN_DTYPE_NONE);
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  pln_status status = pln_builder_seal(still_open(L, graph), root, &out->graph);
  pln_lua_end_graph(graph);
  pln_lua_must(L, b, status);
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

static const luaL_Reg methods[] = {
    {"open", builder_open},
    {"param", builder_param},
    {"finish", builder_finish},
    {"at", builder_at},
    {"func", builder_func},
    {"if_", builder_if},
    {"let", builder_let},
    {"let_block", builder_let_block},
    {"loop", builder_loop},
    {"var", builder_var},
    {"keep", builder_keep},
    {"name", builder_name},
    {"run", builder_run},
    {"seal", builder_seal},
    {NULL, NULL},
};
static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg functions[] = {{"builder", core_builder}, {NULL, NULL}};

void pln_lua_open_builder(lua_State *L) {
  pln_lua_class(L, BUILDER, methods, none, NULL);
  pln_lua_functions(L, functions);
}
