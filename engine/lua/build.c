/* build.c: constructors: from Lua values to nodes.
 *
 * Leaves, calls and tuples are appended where the script is: to the builder of
 * the running rewrite, else of the running pass, else to the floating one.
 * Variables, functions, ifs and lets are always built freely, and are imported
 * where they are used. An operand may be a handle of any graph. */

#include "ir/graph.h"
#include "ir/op_info.h"
#include "lua/binding.h"
#include "lua/mutator.h"

/* ---------------------------------------------------------------- operands */

static pln_ref constant(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype) {
  pln_ref ref;
  pln_tensor *tensor = pln_lua_to_tensor(L, b, arg, dtype);
  pln_lua_must(L, b,
               pln_build_constant(pln_lua_builder(L, b, to), tensor, &ref));
  lua_pop(L, 1);
  return ref;
}

/* A Let is not an expression in a sealed graph: it stands for the rest of its
 * block, which is built again from its lets.  [-0, +0] */
static pln_ref import_let(lua_State *L, pln_lua *b, pln_lua_graph *to,
                          const pln_lua_node *node);

static pln_ref import(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                      pln_lua_node *node) {
  pln_ref ref;
  const pln_graph *from = pln_lua_graph_of(L, node->graph);
  pln_ref at = node->ref;
  if (node->graph->kind == PLN_LUA_SEALED && pln_node_kind(from, at) == PLN_LET)
    return import_let(L, b, to, node);
  if (node->graph->kind != PLN_LUA_SEALED) {
    from = pln_lua_push_rooted(L, b, arg)->graph;
    at = pln_graph_root(from);
    pln_lua_must(L, b,
                 pln_build_import(pln_lua_builder(L, b, to), from, at, &ref));
    lua_pop(L, 1);
    return ref;
  }
  pln_lua_must(L, b,
               pln_build_import(pln_lua_builder(L, b, to), from, at, &ref));
  return ref;
}

static pln_ref import_let(lua_State *L, pln_lua *b, pln_lua_graph *to,
                          const pln_lua_node *node) {
  const pln_graph *g = node->graph->graph;
  pln_lua_graph *free = pln_lua_push_free(L, b);
  pln_builder *builder = free->builder;
  pln_ref var, value, out, let = node->ref;
  uint32_t n = pln_lua_let_chain(node->graph, let, NULL);
  pln_ref *lets = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *lets, 0);
  pln_lua_let_chain(node->graph, let, lets); /* lets, then the result */
  pln_lua_must(L, b, pln_build_import(builder, g, lets[n], &out));
  for (uint32_t i = n; i-- > 0;) {
    const pln_ref *operands = pln_node_operands(g, lets[i]);
    pln_lua_must(L, b, pln_build_import(builder, g, operands[0], &var));
    pln_lua_must(L, b, pln_build_import(builder, g, operands[1], &value));
    pln_lua_must(L, b, pln_build_free_let(builder, var, value, out, &out));
  }
  if (free != to) {
    pln_lua_push_node(L, -2, out);
    out = import(L, b, to, lua_gettop(L), lua_touserdata(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
  return out;
}

/* The image of a node of a graph that is being rewritten, in another graph. */
static pln_ref import_image(lua_State *L, pln_lua *b, pln_lua_graph *to,
                            pln_lua_graph *image, pln_ref ref) {
  pln_lua_kept(L, &pln_lua_key.anchors, image);
  pln_lua_push_node(L, -1, ref);
  ref = import(L, b, to, lua_gettop(L), lua_touserdata(L, -1));
  lua_pop(L, 2);
  return ref;
}

pln_ref pln_lua_operand(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype) {
  pln_ref ref;
  arg = lua_absindex(L, arg);
  switch (lua_type(L, arg)) {
  case LUA_TNIL:
    pln_lua_must(L, b, pln_build_absent(pln_lua_builder(L, b, to), &ref));
    return ref;
  case LUA_TNUMBER:
  case LUA_TBOOLEAN: return constant(L, b, to, arg, dtype);
  case LUA_TTABLE: return constant(L, b, to, arg, PLN_DTYPE_NONE);
  default: break;
  }
  if (pln_lua_test_tensor(L, arg))
    return constant(L, b, to, arg, dtype);
  pln_lua_node *node = pln_lua_check_node(L, arg);
  if (node->graph == to)
    return node->ref;
  pln_lua_graph *image = pln_lua_image(L, b, node, &ref);
  if (!image)
    return import(L, b, to, arg, node);
  if (image == to)
    return ref;
  return import_image(L, b, to, image, ref);
}

pln_dtype pln_lua_dtype_of(lua_State *L, int first, int last) {
  for (int i = first; i <= last; i++) {
    pln_lua_node *node = pln_lua_test_node(L, i);
    if (!node)
      continue;
    const pln_graph *g = pln_lua_graph_of(L, node->graph);
    pln_dtype dtype =
        pln_type_dtype(pln_graph_engine(g), pln_node_type(g, node->ref));
    if (dtype != PLN_DTYPE_NONE)
      return dtype;
  }
  return PLN_DTYPE_NONE;
}

/* Operands from the stack slots first .. last, in scratch memory.
 * [-0, +1] */
static pln_ref *operands(lua_State *L, pln_lua *b, pln_lua_graph *to, int first,
                         int last) {
  pln_dtype dtype = pln_lua_dtype_of(L, first, last);
  size_t n = last >= first ? (size_t)(last - first + 1) : 0;
  pln_ref *refs = lua_newuserdatauv(L, (n + 1) * sizeof *refs, 0);
  for (size_t i = 0; i < n; i++)
    refs[i] = pln_lua_operand(L, b, to, first + (int)i, dtype);
  return refs;
}

/* Operands from the list at `arg`, in scratch memory.  [-0, +1] */
static pln_ref *list_operands(lua_State *L, pln_lua *b, pln_lua_graph *to,
                              int arg, uint32_t *n) {
  luaL_checktype(L, arg, LUA_TTABLE);
  *n = (uint32_t)lua_rawlen(L, arg);
  pln_ref *refs = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *refs, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    refs[i] = pln_lua_operand(L, b, to, -1, PLN_DTYPE_NONE);
    lua_pop(L, 1);
  }
  return refs;
}

/* ---------------------------------------------------------------- op calls */

static bool is_operand_list(lua_State *L, int arg) {
  if (!lua_istable(L, arg) || lua_rawlen(L, arg) == 0)
    return false;
  lua_rawgeti(L, arg, 1);
  bool yes = lua_isuserdata(L, -1);
  lua_pop(L, 1);
  return yes;
}

static bool is_attrs(lua_State *L, int arg) {
  if (lua_istable(L, arg))
    return lua_rawlen(L, arg) == 0;
  return luaL_testudata(L, arg, PLN_LUA_ATTRS) != NULL;
}

/* Takes the attributes off the top and leaves them as number; the reserved key
 * n_results is no attribute.  [-1, +0] */
static pln_attrs take_attrs(lua_State *L, pln_lua *b, const char *schema,
                            uint32_t *n_results) {
  int top = lua_gettop(L), table = top;
  if (lua_istable(L, top) && lua_getfield(L, top, "n_results") != LUA_TNIL) {
    lua_Integer n = luaL_checkinteger(L, -1);
    luaL_argcheck(L, n >= 0 && n <= UINT16_MAX, top, "n_results out of range");
    *n_results = (uint32_t)n;
    lua_newtable(L); /* the same without n_results */
    table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, top);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, table);
    }
    lua_pushnil(L);
    lua_setfield(L, table, "n_results");
  }
  pln_attrs attrs = pln_lua_check_attrs(L, b, table, schema);
  lua_settop(L, top - 1);
  return attrs;
}

/* Replaces lists of operands among the arguments by their elements. */
static void spread(lua_State *L, int first) {
  for (int i = first; i <= lua_gettop(L); i++) {
    if (!is_operand_list(L, i))
      continue;
    lua_Integer n = (lua_Integer)lua_rawlen(L, i);
    luaL_checkstack(L, n < 1000000 ? (int)n + 8 : 1000000, "too many operands");
    lua_pushvalue(L, i);
    lua_remove(L, i);
    int list = lua_gettop(L), after = list - i;
    for (lua_Integer k = 1; k <= n; k++)
      lua_rawgeti(L, list, k);
    for (int k = 0; k < after; k++) { /* the arguments behind the list */
      lua_pushvalue(L, i);
      lua_remove(L, i);
    }
    lua_remove(L, i); /* the list itself */
    i += (int)n - 1;
  }
}

/* op(args... [, attrs]) -> the call's node */
static int op_call(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_op op = pln_lua_check_op(L, b, 1);
  const pln_op_info *row = pln_op_row(b->engine, op);
  bool opaque = row->traits & PLN_TRAIT_OPAQUE;
  pln_attrs attrs = 0;
  uint32_t n_results = 0;
  pln_ref ref;
  if (lua_gettop(L) > 1 && is_attrs(L, -1))
    attrs = take_attrs(L, b, opaque ? NULL : row->attrs, &n_results);
  while (lua_gettop(L) > 1 && lua_isnil(L, -1))
    lua_pop(L, 1);
  spread(L, 2);
  int last = lua_gettop(L);
  luaL_checkstack(L, 16, NULL);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref *args = operands(L, b, to, 2, last);
  pln_lua_must(L, b,
               pln_build_call(pln_lua_builder(L, b, to), op, attrs, n_results,
                              (uint32_t)(last - 1), args, &ref));
  pln_lua_push_node(L, last + 1, ref);
  return 1;
}

/* ------------------------------------------------------------------ leaves */

/* var(name [, type]) -> Var of a new identity */
static int core_var(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_lua_must(L, b,
               pln_build_var(pln_lua_builder(L, b, to), name, type, 0, &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* constant(value [, dtype]) -> Constant of a tensor, number or table */
static int core_constant(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  luaL_checkany(L, 1);
  pln_dtype dtype = pln_lua_check_dtype(L, 2, PLN_DTYPE_NONE);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  int graph = lua_gettop(L);
  pln_lua_push_node(L, graph, constant(L, b, to, 1, dtype));
  return 1;
}

/* absent() -> the operand that ONNX leaves out */
static int core_absent(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_lua_must(L, b, pln_build_absent(pln_lua_builder(L, b, to), &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* global_var(name [, type]) -> GlobalVar */
static int core_global_var(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_lua_must(
      L, b, pln_build_global_var(pln_lua_builder(L, b, to), name, type, &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* op_value(op) -> Op as a node, to be passed to functions */
static int core_op_value(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_op op = pln_lua_check_op(L, b, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_lua_must(L, b, pln_build_op(pln_lua_builder(L, b, to), op, &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* ------------------------------------------------------------- expressions */

/* tuple(list) -> Tuple */
static int core_tuple(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n;
  lua_settop(L, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref *fields = list_operands(L, b, to, 1, &n);
  pln_lua_must(L, b,
               pln_build_tuple(pln_lua_builder(L, b, to), n, fields, &ref));
  pln_lua_push_node(L, 2, ref);
  return 1;
}

/* get(tuple, index) -> TupleGetItem; the index counts from 0, as in Relay */
static int core_get(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  lua_Integer index = luaL_checkinteger(L, 2);
  luaL_argcheck(L, index >= 0 && index <= UINT16_MAX, 2, "index out of range");
  lua_settop(L, 2);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref tuple = pln_lua_operand(L, b, to, 1, PLN_DTYPE_NONE);
  pln_lua_must(
      L, b,
      pln_build_get(pln_lua_builder(L, b, to), tuple, (uint32_t)index, &ref));
  pln_lua_push_node(L, 3, ref);
  return 1;
}

/* apply(callee, args [, attrs [, n_results]]) -> Call of an expression */
static int core_apply(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n;
  lua_Integer results = luaL_optinteger(L, 4, 0);
  luaL_argcheck(L, results >= 0 && results <= UINT16_MAX, 4, "out of range");
  lua_settop(L, 3);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 3, NULL);
  lua_settop(L, 3);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref callee = pln_lua_operand(L, b, to, 1, PLN_DTYPE_NONE);
  pln_ref *args = list_operands(L, b, to, 2, &n);
  pln_lua_must(L, b,
               pln_build_apply(pln_lua_builder(L, b, to), callee, attrs,
                               (uint32_t)results, n, args, &ref));
  pln_lua_push_node(L, 4, ref);
  return 1;
}

typedef pln_status (*build_1)(pln_builder *b, pln_ref x, pln_ref *out);
typedef pln_status (*build_2)(pln_builder *b, pln_ref x, pln_ref y,
                              pln_ref *out);

static int build_unary(lua_State *L, build_1 build) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  luaL_checkany(L, 1);
  lua_settop(L, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref x = pln_lua_operand(L, b, to, 1, PLN_DTYPE_NONE);
  pln_lua_must(L, b, build(pln_lua_builder(L, b, to), x, &ref));
  pln_lua_push_node(L, 2, ref);
  return 1;
}

static int build_binary(lua_State *L, build_2 build) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  luaL_checkany(L, 2);
  lua_settop(L, 2);
  pln_dtype dtype = pln_lua_dtype_of(L, 1, 2);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref x = pln_lua_operand(L, b, to, 1, dtype);
  pln_ref y = pln_lua_operand(L, b, to, 2, dtype);
  pln_lua_must(L, b, build(pln_lua_builder(L, b, to), x, y, &ref));
  pln_lua_push_node(L, 3, ref);
  return 1;
}

/* ref_create(value), ref_read(ref), ref_write(ref, value) */
static int core_ref_create(lua_State *L) {
  return build_unary(L, pln_build_ref_create);
}

static int core_ref_read(lua_State *L) {
  return build_unary(L, pln_build_ref_read);
}

static int core_ref_write(lua_State *L) {
  return build_binary(L, pln_build_ref_write);
}

/* --------------------------------------------------------------- free use */

/* Types from the list at `arg` (nil: none), in scratch memory.  [-0, +1] */
static pln_type *list_types(lua_State *L, pln_lua *b, int arg, uint32_t *n) {
  if (!lua_isnil(L, arg))
    luaL_checktype(L, arg, LUA_TTABLE);
  *n = lua_isnil(L, arg) ? 0 : (uint32_t)lua_rawlen(L, arg);
  pln_type *types = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *types, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    types[i] = pln_lua_check_type(L, b, lua_gettop(L));
    lua_pop(L, 1);
  }
  return types;
}

/* func(params, body [, ret_type [, attrs [, type_params]]]) -> Function */
static int core_func(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n, n_vars;
  luaL_checkany(L, 2);
  lua_settop(L, 5);
  pln_type ret = lua_isnil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_type *vars = list_types(L, b, 5, &n_vars);
  lua_replace(L, 5);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4, NULL);
  lua_settop(L, 5);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_ref *params = list_operands(L, b, to, 1, &n);
  pln_ref body = pln_lua_operand(L, b, to, 2, PLN_DTYPE_NONE);
  pln_lua_must(L, b,
               pln_build_bind(pln_lua_builder(L, b, to), n, params, body, attrs,
                              ret, &ref));
  if (n_vars > 0)
    pln_lua_must(
        L, b, pln_build_generic(pln_lua_builder(L, b, to), ref, n_vars, vars));
  pln_lua_push_node(L, 6, ref);
  return 1;
}

/* if_(cond, then_value, else_value) -> If */
static int core_if(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  pln_dtype dtype = pln_lua_dtype_of(L, 2, 3);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_ref cond = pln_lua_operand(L, b, to, 1, PLN_BOOL);
  pln_ref yes = pln_lua_operand(L, b, to, 2, dtype);
  pln_ref no = pln_lua_operand(L, b, to, 3, dtype);
  pln_lua_must(
      L, b, pln_build_free_if(pln_lua_builder(L, b, to), cond, yes, no, &ref));
  pln_lua_push_node(L, 4, ref);
  return 1;
}

/* let(var, value, body) -> an expression: the block of that Let */
static int core_let(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_ref var = pln_lua_operand(L, b, to, 1, PLN_DTYPE_NONE);
  pln_dtype dtype = pln_lua_dtype_of(L, 1, 1);
  pln_ref value = pln_lua_operand(L, b, to, 2, dtype);
  pln_ref body = pln_lua_operand(L, b, to, 3, PLN_DTYPE_NONE);
  pln_lua_must(
      L, b,
      pln_build_free_let(pln_lua_builder(L, b, to), var, value, body, &ref));
  pln_lua_push_node(L, 4, ref);
  return 1;
}

/* ---------------------------------------------------------------- patterns */

/* constructor(name [, type]) -> Constructor */
static int core_constructor(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_lua_must(
      L, b, pln_build_constructor(pln_lua_builder(L, b, to), name, type, &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* pattern_wildcard() -> PatternWildcard */
static int core_pattern_wildcard(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_lua_must(L, b,
               pln_build_pattern_wildcard(pln_lua_builder(L, b, to), &ref));
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* pattern_var(var) -> PatternVar */
static int core_pattern_var(lua_State *L) {
  return build_unary(L, pln_build_pattern_var);
}

/* pattern_constructor(name, patterns) -> PatternConstructor */
static int core_pattern_constructor(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n;
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  lua_settop(L, 2);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref *patterns = list_operands(L, b, to, 2, &n);
  pln_lua_must(L, b,
               pln_build_pattern_constructor(pln_lua_builder(L, b, to), name, n,
                                             patterns, &ref));
  pln_lua_push_node(L, 3, ref);
  return 1;
}

/* pattern_tuple(patterns) -> PatternTuple */
static int core_pattern_tuple(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n;
  lua_settop(L, 1);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  pln_ref *patterns = list_operands(L, b, to, 1, &n);
  pln_lua_must(
      L, b,
      pln_build_pattern_tuple(pln_lua_builder(L, b, to), n, patterns, &ref));
  pln_lua_push_node(L, 2, ref);
  return 1;
}

/* match(data, patterns, bodies, complete) -> Match */
static int core_match(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_ref ref;
  uint32_t n, n_bodies;
  lua_settop(L, 4);
  bool complete = lua_toboolean(L, 4);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  pln_ref data = pln_lua_operand(L, b, to, 1, PLN_DTYPE_NONE);
  pln_ref *patterns = list_operands(L, b, to, 2, &n);
  pln_ref *bodies = list_operands(L, b, to, 3, &n_bodies);
  luaL_argcheck(L, n == n_bodies, 3, "one body a pattern expected");
  pln_lua_must(L, b,
               pln_build_free_match(pln_lua_builder(L, b, to), data, complete,
                                    n, patterns, bodies, &ref));
  pln_lua_push_node(L, 5, ref);
  return 1;
}

static const luaL_Reg functions[] = {
    {"call", op_call},
    {"var", core_var},
    {"constant", core_constant},
    {"absent", core_absent},
    {"global_var", core_global_var},
    {"op_value", core_op_value},
    {"tuple", core_tuple},
    {"get", core_get},
    {"apply", core_apply},
    {"ref_create", core_ref_create},
    {"ref_read", core_ref_read},
    {"ref_write", core_ref_write},
    {"func", core_func},
    {"if_", core_if},
    {"let", core_let},
    {"constructor", core_constructor},
    {"pattern_wildcard", core_pattern_wildcard},
    {"pattern_var", core_pattern_var},
    {"pattern_constructor", core_pattern_constructor},
    {"pattern_tuple", core_pattern_tuple},
    {"match", core_match},
    {NULL, NULL},
};

void pln_lua_open_build(lua_State *L) {
  pln_lua_functions(L, functions);
}
