/* node.c: reading nodes from scripts: fields by name and index, the nodes of a
 * function in evaluation order, Relay text.
 *
 * Fields of operands and scopes come from ir/graph/kinds.def; the others are
 * the enum below. The table of methods also maps field names to these numbers,
 * so that one lookup resolves a key. */

#include "ir/graph/graph.h"
#include "ir/tir/tir.h"
#include "lua/binding.h"
#include "lua/graph/mutator.h"

enum {
  FIELD_KIND = 1,
  FIELD_TYPE,
  FIELD_OP,
  FIELD_ATTRS,
  FIELD_SCOPE_ATTRS,
  FIELD_NAME,
  FIELD_DATA,
  FIELD_INDEX,
  FIELD_PARAMS,
  FIELD_RET_TYPE,
  FIELD_CALLEE,
  FIELD_RESULTS,
  FIELD_KNOWN,
  FIELD_EFFECT,
  FIELD_TYPE_PARAMS,
  FIELD_CLAUSES,
  FIELD_COMPLETE,
  FIELD_RHS,
  FIELD_CONSTRUCTOR,
  FIELD_TYPE_ARGS,
  FIELD_SPAN,
  /* Fields by kind, from ir/graph/kinds.def: an operand, all operands from one
   * on, or a scope. */
  FIELD_OPERAND = 100,
  FIELD_REST = 200,
  FIELD_SCOPE = 300
};

static const struct {
  const char *name;
  int field;
} common_fields[] = {
    {"kind", FIELD_KIND},
    {"type", FIELD_TYPE},
    {"op", FIELD_OP},
    {"attrs", FIELD_ATTRS},
    {"scope_attrs", FIELD_SCOPE_ATTRS},
    {"name", FIELD_NAME},
    {"data", FIELD_DATA},
    {"index", FIELD_INDEX},
    {"params", FIELD_PARAMS},
    {"ret_type", FIELD_RET_TYPE},
    {"callee", FIELD_CALLEE},
    {"n_results", FIELD_RESULTS},
    {"known", FIELD_KNOWN},
    {"effect", FIELD_EFFECT},
    {"type_params", FIELD_TYPE_PARAMS},
    {"clauses", FIELD_CLAUSES},
    {"complete", FIELD_COMPLETE},
    {"rhs", FIELD_RHS},
    {"constructor", FIELD_CONSTRUCTOR},
    {"type_args", FIELD_TYPE_ARGS},
    {"span", FIELD_SPAN},
};

static const char *const effects[] = {"none", "reads", "writes", "unknown"};

/* ------------------------------------------------------------------ fields */

static bool is_applied(const pln_graph *g, pln_ref ref) {
  return pln_node_kind(g, ref) == PLN_CALL && pln_node_op(g, ref) == 0;
}

/* The operands without the parameters: a floating owner of scopes has its
 * parameters as its last operands. */
static uint32_t own_operands(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return g->sealed || !pln_owns(n) ? n->count : pln_own_operands(g, n);
}

/* Pushes operands [first, n); without the callee if an expression is applied.
 * The operand array may move while handles are made, so it is read again each
 * time. */
static int push_rest(lua_State *L, const pln_lua_node *node, const pln_graph *g,
                     uint32_t first, uint32_t n, int graph) {
  first += is_applied(g, node->ref);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = first; i < n; i++) {
    pln_lua_push_node(L, graph, pln_node_operands(g, node->ref)[i]);
    lua_rawseti(L, -2, (lua_Integer)(i - first) + 1);
  }
  return 1;
}

/* Parameters are the first nodes of a sealed scope, and operands in a floating
 * one. */
static int push_params(lua_State *L, const pln_lua_node *node,
                       const pln_graph *g, int graph) {
  if (pln_node_n_scopes(g, node->ref) == 0)
    return 0;
  if (node->graph->kind != PLN_LUA_SEALED &&
      pln_node_n_operands(g, node->ref) > 0)
    return push_rest(L, node, g, own_operands(g, node->ref),
                     pln_node_n_operands(g, node->ref), graph);
  pln_scope scope = pln_node_scope(g, node->ref, 0);
  uint32_t n = pln_scope_n_params(g, scope);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_node(L, graph, pln_scope_begin(g, scope) + i);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int push_name(lua_State *L, pln_lua *b, const pln_graph *g,
                     pln_ref ref) {
  pln_symbol symbol = pln_node_symbol(g, ref);
  if (symbol == 0)
    return 0;
  pln_slice text = pln_symbol_text(b->engine, symbol);
  lua_pushlstring(L, text.data, text.size);
  return 1;
}

/* Pushes the known integers of a symbolic value: a list of dims, or one
 * number. */
static int push_known(lua_State *L, pln_lua *b, pln_value value) {
  if (value == 0)
    return 0;
  uint32_t n = pln_value_count(b->engine, value);
  const pln_dim *dims = pln_value_elements(b->engine, value);
  if (pln_value_rank(b->engine, value) == 0) {
    pln_lua_push_dim(L, b, dims[0]);
    return 1;
  }
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_dim(L, b, dims[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* The declared or inferred return type: the last part of a function type. */
static int push_ret_type(lua_State *L, pln_lua *b, const pln_graph *g,
                         pln_ref ref) {
  pln_type type = pln_node_type(g, ref);
  if (pln_type_get_kind(b->engine, type) != PLN_TYPE_FUNC)
    return 0;
  uint32_t n = pln_type_n_parts(b->engine, type);
  pln_lua_push_type(L, b, pln_type_part_at(b->engine, type, n - 1));
  return 1;
}

/* Pushes the fields of a tuple type as a list; type 0 gives an empty list. */
static int push_tuple_types(lua_State *L, pln_lua *b, pln_type tuple) {
  uint32_t n = tuple ? pln_type_n_parts(b->engine, tuple) : 0;
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_type(L, b, pln_type_part_at(b->engine, tuple, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Pushes the type variables of a Function, in order, or an empty list. */
static int push_type_params(lua_State *L, pln_lua *b, const pln_graph *g,
                            pln_ref ref) {
  if (pln_node_kind(g, ref) != PLN_FUNCTION)
    return 0;
  pln_scope scope = pln_node_scope(g, ref, 0);
  return push_tuple_types(L, b, pln_scope_type_params(g, scope));
}

/* The type arguments of a Call; unknown ones are incomplete types. */
static int push_type_args(lua_State *L, pln_lua *b, const pln_graph *g,
                          pln_ref ref) {
  pln_type args;
  if (pln_node_kind(g, ref) != PLN_CALL)
    return 0;
  pln_lua_must(L, b, pln_call_type_args(g, ref, &args));
  return push_tuple_types(L, b, args);
}

/* The Clause of an arm, which comes after its parameters and its pattern. */
static pln_ref clause_of(const pln_graph *g, pln_scope arm) {
  pln_ref end = pln_scope_end(g, arm);
  for (pln_ref i = pln_scope_begin(g, arm); i < end; i++)
    if (pln_node_kind(g, i) == PLN_CLAUSE)
      return i;
  return PLN_NONE;
}

static int push_clauses(lua_State *L, const pln_graph *g, pln_ref ref,
                        int graph) {
  if (pln_node_kind(g, ref) != PLN_MATCH)
    return 0;
  lua_newtable(L);
  lua_Integer n = 0;
  for (pln_scope s = g->nodes[ref].data; s != PLN_NONE; s = g->scopes[s].next) {
    pln_ref clause = clause_of(g, s);
    if (clause == PLN_NONE)
      continue;
    pln_lua_push_node(L, graph, clause);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* Whether the arms of a Match cover every value. */
static int push_complete(lua_State *L, pln_lua *b, const pln_graph *g,
                         pln_ref ref) {
  if (pln_node_kind(g, ref) != PLN_MATCH)
    return 0;
  const pln_attr *complete =
      pln_attrs_find(b->engine, pln_node_attrs(g, ref), "complete");
  lua_pushboolean(L, complete && complete->v.i != 0);
  return 1;
}

/* The result of an arm. */
static int push_rhs(lua_State *L, const pln_lua_node *node, const pln_graph *g,
                    int graph) {
  pln_lua_graph *slot = node->graph;
  if (pln_node_kind(g, node->ref) != PLN_CLAUSE)
    return 0;
  pln_scope arm = pln_lua_scope_of(slot, g, node->ref);
  if (!pln_lua_block_ended(slot, g, arm))
    return 0;
  pln_lua_push_node(L, graph, pln_lua_block_value(slot, g, arm, node->ref + 1));
  return 1;
}

/* A floating let is a block of its own: field accesses go to the block's
 * Let. */
static pln_lua_node seen_as(const pln_lua_node *node, const pln_graph *g) {
  pln_lua_node seen = *node;
  if (node->graph->kind == PLN_LUA_SEALED ||
      pln_node_kind(g, node->ref) != PLN_LET_BLOCK)
    return seen;
  pln_ref let = pln_scope_begin(g, pln_node_scope(g, node->ref, 0));
  if (let < pln_graph_size(g) && pln_node_kind(g, let) == PLN_LET)
    seen.ref = let;
  return seen;
}

static pln_kind node_kind_of(const pln_lua_node *node, const pln_graph *g) {
  return pln_node_kind(g, seen_as(node, g).ref);
}

/* The type of a Let is that of its block's result. */
static pln_type type_of(const pln_lua_node *node, const pln_graph *g) {
  pln_ref ref = node->ref;
  if (node->graph->kind == PLN_LUA_SEALED && pln_node_kind(g, ref) == PLN_LET)
    ref = pln_scope_result(g, pln_lua_scope_of(node->graph, g, ref));
  return pln_node_type(g, ref);
}

/* Pushes a field common to all kinds; 0 if this node does not have it. */
static int push_common(lua_State *L, pln_lua *b, pln_lua_node *node,
                       const pln_graph *g, int field, int graph) {
  pln_ref ref = node->ref;
  switch (field) {
  case FIELD_KIND:
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.kinds);
    lua_rawgeti(L, -1, (int)node_kind_of(node, g) + 1);
    return 1;
  case FIELD_TYPE: pln_lua_push_type(L, b, type_of(node, g)); return 1;
  case FIELD_OP:
    if (pln_node_op(g, ref) == 0)
      return 0;
    pln_lua_push_op(L, b, pln_node_op(g, ref));
    return 1;
  case FIELD_ATTRS: pln_lua_push_attrs(L, b, pln_node_attrs(g, ref)); return 1;
  case FIELD_SCOPE_ATTRS:
    if (pln_node_n_scopes(g, ref) == 0)
      return 0;
    pln_lua_push_attrs(L, b, pln_scope_attrs(g, pln_node_scope(g, ref, 0)));
    return 1;
  case FIELD_NAME: return push_name(L, b, g, ref);
  case FIELD_DATA:
    if (!pln_node_tensor(g, ref))
      return 0;
    pln_lua_push_tensor(L, pln_node_tensor(g, ref));
    return 1;
  case FIELD_INDEX:
    if (pln_node_kind(g, ref) != PLN_TUPLE_GET_ITEM)
      return 0;
    lua_pushinteger(L, pln_node_index(g, ref));
    return 1;
  case FIELD_PARAMS: return push_params(L, node, g, graph);
  case FIELD_RET_TYPE: return push_ret_type(L, b, g, ref);
  case FIELD_CALLEE:
    if (!is_applied(g, ref))
      return 0;
    pln_lua_push_node(L, graph, pln_node_operands(g, ref)[0]);
    return 1;
  case FIELD_RESULTS: lua_pushinteger(L, pln_node_n_results(g, ref)); return 1;
  case FIELD_KNOWN: return push_known(L, b, pln_node_value(g, ref));
  case FIELD_EFFECT:
    lua_pushstring(L, effects[pln_node_effects(g, ref)]);
    return 1;
  case FIELD_TYPE_PARAMS: return push_type_params(L, b, g, ref);
  case FIELD_TYPE_ARGS: return push_type_args(L, b, g, ref);
  case FIELD_SPAN: return pln_lua_push_span(L, g, ref);
  case FIELD_CLAUSES: return push_clauses(L, g, ref, graph);
  case FIELD_COMPLETE: return push_complete(L, b, g, ref);
  case FIELD_RHS: return push_rhs(L, node, g, graph);
  case FIELD_CONSTRUCTOR:
    return pln_node_kind(g, ref) == PLN_PATTERN_CONSTRUCTOR
               ? push_name(L, b, g, ref)
               : 0;
  }
  return 0;
}

/* Pushes a field from the row of the node's kind; 0 if the node has fewer
 * operands. */
static int push_own(lua_State *L, pln_lua_node *node, const pln_graph *g,
                    int field, int graph) {
  pln_ref ref = node->ref;
  uint32_t i = (uint32_t)(field % 100);
  if (field >= FIELD_SCOPE) {
    if (i >= pln_node_n_scopes(g, ref))
      return 0;
    pln_scope scope = pln_node_scope(g, ref, i);
    pln_lua_push_node(L, graph, pln_lua_block_value(node->graph, g, scope, 0));
    return 1;
  }
  if (field >= FIELD_REST)
    return push_rest(L, node, g, i, own_operands(g, ref), graph);
  if (i >= own_operands(g, ref))
    return 0;
  pln_lua_push_node(L, graph, pln_node_operands(g, ref)[i]);
  return 1;
}

/* The body of a Let: the next Let of its scope, else the scope's result. */
static int push_let_body(lua_State *L, pln_lua_node *node, const pln_graph *g,
                         int graph) {
  pln_lua_graph *slot = node->graph;
  pln_scope scope = pln_lua_scope_of(slot, g, node->ref);
  if (!pln_lua_block_ended(slot, g, scope))
    return 0;
  pln_ref body = pln_lua_block_value(slot, g, scope, node->ref + 1);
  pln_lua_push_node(L, graph, body);
  return 1;
}

/* Pushes the kind's own field named by the key at 2; 0 if there is none. */
static int push_field(lua_State *L, pln_lua_node *here, const pln_graph *g,
                      int graph) {
  pln_lua_node seen = seen_as(here, g), *node = &seen;
  pln_kind kind = pln_node_kind(g, node->ref);
  int loop = pln_lua_tir_field(L, node, g, graph);
  if (loop)
    return loop;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.kinds);
  lua_rawgeti(L, -1, -(lua_Integer)kind - 1);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) == LUA_TNUMBER)
    return push_own(L, node, g, (int)lua_tointeger(L, -1), graph);
  if (kind == PLN_LET && lua_type(L, 2) == LUA_TSTRING &&
      !strcmp(lua_tostring(L, 2), "body"))
    return push_let_body(L, node, g, graph);
  return 0;
}

/* Without the parameters of a floating Function, which are operands. */
static lua_Integer n_operands(const pln_graph *g, pln_ref ref) {
  return pln_node_kind(g, ref) == PLN_FUNCTION ? 0
                                               : pln_node_n_operands(g, ref);
}

/* node[key]: a field, a method, or the operand number `key` */
static int node_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_node *node = lua_touserdata(L, 1);
  if (!node || !lua_getmetatable(L, 1) ||
      !lua_rawequal(L, -1, lua_upvalueindex(3)))
    return luaL_typeerror(L, 1, PLN_LUA_NODE);
  lua_pushvalue(L, 2);
  int found = lua_rawget(L, lua_upvalueindex(2));
  if (found == LUA_TFUNCTION)
    return 1;
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  lua_getiuservalue(L, 1, 1);
  int graph = lua_gettop(L);
  if (found == LUA_TNUMBER) {
    int n = push_common(L, b, node, g, (int)lua_tointeger(L, -2), graph);
    return n ? n : push_field(L, node, g, graph);
  }
  if (!lua_isinteger(L, 2))
    return push_field(L, node, g, graph);
  lua_Integer i = lua_tointeger(L, 2);
  if (i < 1 || i > n_operands(g, node->ref))
    return 0;
  pln_lua_push_node(L, graph, pln_node_operands(g, node->ref)[i - 1]);
  return 1;
}

/* ------------------------------------------------------------ metamethods */

/* #node: the number of operands */
static int node_len(lua_State *L) {
  pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  lua_pushinteger(L, n_operands(g, node->ref));
  return 1;
}

/* a == b for handles of two graphs: true if both are the same Var */
static int node_eq(lua_State *L) {
  pln_lua_node *x = luaL_testudata(L, 1, PLN_LUA_NODE);
  pln_lua_node *y = luaL_testudata(L, 2, PLN_LUA_NODE);
  bool same = false;
  if (x && y) {
    const pln_graph *gx = pln_lua_graph_of(L, x->graph);
    const pln_graph *gy = pln_lua_graph_of(L, y->graph);
    same = pln_node_kind(gx, x->ref) == PLN_VAR &&
           pln_node_kind(gy, y->ref) == PLN_VAR &&
           pln_node_var(gx, x->ref) == pln_node_var(gy, y->ref);
  }
  lua_pushboolean(L, same);
  return 1;
}

static int push_node_text(lua_State *L, const pln_print_options *options) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = node->graph->graph;
  pln_ref ref = node->ref;
  if (node->graph->kind != PLN_LUA_SEALED) {
    g = pln_lua_push_rooted(L, b, 1)->graph;
    ref = pln_graph_root(g);
  }
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_print_node(g, ref, options, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* tostring(node): its text, the metadata section included, brief as that of a
 * module: without the elements of large constants */
static int node_tostring(lua_State *L) {
  pln_print_options options = {.constants = PLN_CONSTANTS_BRIEF};
  return push_node_text(L, &options);
}

/* node:text([options]) -> its complete text, constants included */
static int node_text(lua_State *L) {
  pln_print_options options = pln_lua_text_options(L, 2);
  return push_node_text(L, &options);
}

/* ----------------------------------------------------------------- methods */

typedef struct node_range {
  pln_ref next, end;
} node_range;

/* The iterator. Upvalues: 2 the range, 3 the graph's box. */
static int next_node(lua_State *L) {
  node_range *range = lua_touserdata(L, lua_upvalueindex(2));
  if (range->next >= range->end)
    return 0;
  pln_lua_push_node(L, lua_upvalueindex(3), range->next++);
  return 1;
}

/* fn:nodes() -> iterator over the nodes inside an owner of scopes, in
 * evaluation order, parameters first */
static int node_nodes(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_node *node = pln_lua_check_node(L, 1);
  const pln_graph *g = node->graph->graph;
  pln_ref ref = node->ref;
  if (node->graph->kind == PLN_LUA_SEALED) {
    lua_getiuservalue(L, 1, 1);
  } else {
    g = pln_lua_push_rooted(L, b, 1)->graph;
    ref = pln_graph_root(g);
  }
  luaL_argcheck(L, pln_node_n_scopes(g, ref) > 0, 1,
                "a node that owns scopes expected, such as a Function");
  int graph = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  node_range *range = lua_newuserdatauv(L, sizeof *range, 0);
  *range = (node_range){pln_scope_begin(g, pln_node_scope(g, ref, 0)), ref};
  lua_pushvalue(L, graph);
  lua_pushcclosure(L, next_node, 3);
  return 1;
}

/* seal(node) -> the same node in a sealed graph of its own, the form that
 * modules, passes and the printer take */
static int node_seal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *slot = pln_lua_push_rooted(L, b, 1);
  pln_lua_push_node(L, -1, pln_graph_root(slot->graph));
  return 1;
}

/* verify(node): raises if the graph of a sealed node is invalid */
static int node_verify(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_graph *slot = pln_lua_push_rooted(L, b, 1);
  pln_status status = pln_graph_verify(slot->graph);
  if (status != PLN_OK)
    return pln_lua_fail(L, b, status);
  lua_pushboolean(L, true);
  return 1;
}

/* node_equal(a, b, map_free_vars) -> boolean */
static int node_equal(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  bool equal, map = lua_toboolean(L, 3);
  pln_graph *x = pln_lua_push_rooted(L, b, 1)->graph;
  pln_graph *y = pln_lua_push_rooted(L, b, 2)->graph;
  pln_lua_must(
      L, b,
      pln_graph_equal(x, pln_graph_root(x), y, pln_graph_root(y), map, &equal));
  lua_pushboolean(L, equal);
  return 1;
}

/* node_hash(node, map_free_vars) -> integer */
static int node_hash(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint64_t hash;
  bool map = lua_toboolean(L, 2);
  pln_graph *x = pln_lua_push_rooted(L, b, 1)->graph;
  pln_lua_must(L, b, pln_graph_hash(x, pln_graph_root(x), map, &hash));
  lua_pushinteger(L, (lua_Integer)hash);
  return 1;
}

/* ------------------------------------------------------------------- tables */

/* Pushes the names in a row of ir/graph/kinds.def ("cond then else"), numbered.
 * [-0, +1] */
static void push_row(lua_State *L, const pln_kind_info *row) {
  const char *p = row->fields, *star = strchr(p, '*');
  int operand = 0, scope = 0;
  lua_newtable(L);
  while (*p) {
    size_t n = strcspn(p, " *");
    bool rest = p[n] == '*';
    int field = rest ? FIELD_REST + operand
                : operand < row->operands || p < star
                    ? FIELD_OPERAND + operand++
                    : FIELD_SCOPE + scope++;
    lua_pushlstring(L, p, n);
    lua_pushinteger(L, field);
    lua_rawset(L, -3);
    p += n + rest;
    p += strspn(p, " ");
  }
}

static void fill_kinds(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.kinds);
  for (int kind = 0; kind < PLN_N_KINDS; kind++) {
    lua_pushstring(L, pln_kind_name((pln_kind)kind));
    lua_rawseti(L, -2, kind + 1);
    push_row(L, &pln_kinds[kind]);
    lua_rawseti(L, -2, -kind - 1);
  }
  lua_pop(L, 1);
}

/* kinds() -> { {name, class, fields, attrs, doc}, ... }: the rows of
 * ir/graph/kinds.def
 */
static int core_kinds(lua_State *L) {
  static const char *const classes[] = {"expr", "pattern", "prim", "stmt"};
  lua_createtable(L, PLN_N_KINDS, 0);
  for (int kind = 0; kind < PLN_N_KINDS; kind++) {
    const pln_kind_info *row = &pln_kinds[kind];
    lua_createtable(L, 0, 6);
    lua_pushboolean(L, row->has_attrs);
    lua_setfield(L, -2, "attrs");
    lua_pushboolean(L, row->payload == PLN_PAYLOAD_SCOPE);
    lua_setfield(L, -2, "scopes");
    lua_pushstring(L, row->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, classes[row->kind_class]);
    lua_setfield(L, -2, "class");
    lua_pushstring(L, row->fields);
    lua_setfield(L, -2, "fields");
    lua_pushstring(L, row->doc);
    lua_setfield(L, -2, "doc");
    lua_rawseti(L, -2, kind + 1);
  }
  return 1;
}

static const luaL_Reg methods[] = {{"nodes", node_nodes},
                                   {"text", node_text},
                                   {"dot", pln_lua_node_dot},
                                   {"json", pln_lua_node_json},
                                   {"history", pln_lua_node_history},
                                   {NULL, NULL}};
static const luaL_Reg meta[] = {{"__len", node_len},
                                {"__eq", node_eq},
                                {"__tostring", node_tostring},
                                {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"seal", node_seal},      {"verify_node", node_verify},
    {"kinds", core_kinds},    {"node_equal", node_equal},
    {"node_hash", node_hash}, {NULL, NULL},
};

void pln_lua_open_node(lua_State *L) {
  fill_kinds(L);
  pln_lua_class(L, PLN_LUA_NODE, methods, meta, node_index);
  luaL_getmetatable(L, PLN_LUA_NODE);
  lua_getfield(L, -1, "__index");
  lua_getupvalue(L, -1, 2);
  for (size_t i = 0; i < PLN_COUNT(common_fields); i++) {
    lua_pushinteger(L, common_fields[i].field);
    lua_setfield(L, -2, common_fields[i].name);
  }
  lua_pop(L, 3);
  pln_lua_functions(L, functions);
}
