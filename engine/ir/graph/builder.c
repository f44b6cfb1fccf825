/* builder.c: the builder, the only code that appends nodes.
 *
 * Used by importers, the rewriter and scripts. During building a node's
 * sequence number is its index and its scope is an entry of `node_scope`;
 * contiguous scopes exist only after layout.c has sealed the graph. Invariants:
 * operands are earlier nodes; nodes are typed unless something is unknown. */

#include "ir/graph/describe.h"
#include "ir/graph/graph.h"
#include "ir/graph/layout/compact.h"
#include "ir/graph/module.h"
#include "ir/registered_op.h"

/* ---------------------------------------------------------------- lifetime */

static pln_status init_builder(pln_builder *b) {
  PLN_TRY(pln_graph_new(b->engine, &b->graph));
  PLN_TRY(pln_mem_grow(b->engine, (void **)&b->open, &b->cap_open, 1,
                       sizeof *b->open));
  pln_scope root;
  PLN_TRY(pln_builder_add_scope(b, PLN_NONE, &root));
  b->open[b->n_open++] = root;
  return PLN_OK;
}

pln_status pln_builder_new(pln_engine *engine, pln_builder **out) {
  pln_builder *b = pln_mem_zeroed(engine, sizeof *b);
  if (!b)
    return pln_nomem(engine);
  b->engine = engine;
  b->in = PLN_NONE;
  pln_status status = init_builder(b);
  if (status != PLN_OK) {
    pln_builder_free(b);
    return status;
  }
  *out = b;
  return PLN_OK;
}

void pln_builder_free(pln_builder *b) {
  if (!b)
    return;
  pln_engine *e = b->engine;
  pln_import_free(b);
  pln_builder_forget_imported_origins(b);
  pln_idmap_free(b->vars);
  pln_idmap_free(b->early);
  pln_graph_release(b->graph);
  pln_mem_free(e, b->node_scope, b->cap_node_scope * sizeof *b->node_scope);
  pln_mem_free(e, b->effects, b->cap_effects);
  pln_mem_free(e, b->open, b->cap_open * sizeof *b->open);
  pln_mem_free(e, b->marks, b->cap_marks * sizeof *b->marks);
  pln_mem_free(e, b->scope_marks, b->cap_scope_marks * sizeof *b->scope_marks);
  pln_mem_free(e, b, sizeof *b);
}

const pln_graph *pln_builder_graph(const pln_builder *builder) {
  return builder->graph;
}

void pln_builder_lenient(pln_builder *b) {
  b->lenient = true;
  b->scoped = true;
}

void pln_builder_origin(pln_builder *b, uint32_t origin) {
  b->origin = origin;
}

void pln_builder_module(pln_builder *b, const pln_module *module) {
  b->module = module;
}

/* NULL when out of memory. */
pln_origins *pln_builder_origins(pln_builder *b) {
  if (!b->graph->origins &&
      pln_origins_new(b->engine, &b->graph->origins) != PLN_OK)
    return NULL;
  return b->graph->origins;
}

/* --------------------------------------------------------------- appending */

static pln_status full(pln_builder *b, const char *what) {
  return pln_diag_error(b->engine, PLN_ERR_LIMIT, NULL,
                        "a graph has at most 2^31 %s", what);
}

/* The number of nodes that all arrays of nodes have room for. */
static uint32_t least_capacity(const pln_builder *b) {
  const pln_graph *g = b->graph;
  const uint32_t capacities[] = {g->cap_values, g->cap_origin,
                                 g->cap_typed_from, b->cap_node_scope};
  uint32_t least = g->cap_nodes;
  for (size_t i = 0; i < PLN_COUNT(capacities); i++)
    if (capacities[i] < least)
      least = capacities[i];
  return least;
}

pln_status pln_builder_reserve(pln_builder *b, size_t nodes, size_t operands,
                               size_t scopes) {
  pln_graph *g = b->graph;
  pln_engine *e = b->engine;
  nodes += g->n_nodes;
  operands += g->n_operands;
  scopes += g->n_scopes;
  if (nodes > INT32_MAX || operands > INT32_MAX || scopes > INT32_MAX)
    return full(b, nodes > INT32_MAX ? "nodes" : "operands");
  PLN_TRY(pln_mem_grow(e, (void **)&g->nodes, &g->cap_nodes, nodes,
                       sizeof *g->nodes));
  PLN_TRY(pln_mem_grow(e, (void **)&g->values, &g->cap_values, nodes,
                       sizeof *g->values));
  PLN_TRY(pln_mem_grow(e, (void **)&g->origin, &g->cap_origin, nodes,
                       sizeof *g->origin));
  PLN_TRY(pln_mem_grow(e, (void **)&g->typed_from, &g->cap_typed_from, nodes,
                       sizeof *g->typed_from));
  PLN_TRY(pln_mem_grow(e, (void **)&b->node_scope, &b->cap_node_scope, nodes,
                       sizeof *b->node_scope));
  PLN_TRY(pln_mem_grow(e, (void **)&g->operands, &g->cap_operands, operands + 1,
                       sizeof *g->operands));
  PLN_TRY(pln_mem_grow(e, (void **)&g->scopes, &g->cap_scopes, scopes,
                       sizeof *g->scopes));
  b->room = least_capacity(b);
  return pln_mem_grow(e, (void **)&b->effects, &b->cap_effects, scopes, 1);
}

pln_scope pln_builder_current_scope(const pln_builder *b) {
  if (b->in != PLN_NONE)
    return b->in;
  return b->scoped ? b->open[b->n_open - 1] : PLN_NONE;
}

static pln_status check_operands(pln_builder *b, uint32_t n,
                                 const pln_ref *operands) {
  for (uint32_t i = 0; i < n; i++)
    if (operands[i] >= b->graph->n_nodes)
      return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                            "operand %u is not a node of this builder", i);
  return PLN_OK;
}

/* Records a Var that is used before it has a type. A let that binds it later
 * leaves its type to InferType, which infers its uses again. */
static pln_status mark_untyped_use(pln_builder *b, pln_ref var) {
  if (!b->early)
    PLN_TRY(pln_idmap_new(b->engine, &b->early));
  return pln_idmap_set(b->early, var, 1);
}

static pln_status mark_untyped_uses(pln_builder *b, uint32_t n,
                                    const pln_ref *operands) {
  const pln_node *nodes = b->graph->nodes;
  for (uint32_t i = 0; i < n; i++)
    if (nodes[operands[i]].kind == PLN_VAR && !nodes[operands[i]].type)
      PLN_TRY(mark_untyped_use(b, operands[i]));
  return PLN_OK;
}

/* Counts an appended node against limit.nodes, and polls now and then. */
static inline pln_status count_built(pln_engine *e) {
  PLN_TRY(pln_poll_round(e, (size_t)e->built));
  if (++e->built <= e->most_built || !e->most_built)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                        "it is still building after %llu nodes, and limit.nodes"
                        " = %llu",
                        (unsigned long long)e->built - 1,
                        (unsigned long long)e->most_nodes);
}

/* True if the arrays have room for a node of that many operands. */
static inline bool has_room(const pln_builder *b, uint32_t n_operands) {
  const pln_graph *g = b->graph;
  return g->n_nodes < b->room &&
         (uint64_t)g->n_operands + n_operands < g->cap_operands;
}

/* Makes room for a node. *operands may point into this graph's array, which
 * may move. */
static pln_status make_room(pln_builder *b, uint32_t n,
                            const pln_ref **operands) {
  const pln_graph *g = b->graph;
  uintptr_t base = (uintptr_t)g->operands, at = (uintptr_t)*operands;
  bool inside = n && at >= base && at < base + g->n_operands * sizeof(pln_ref);
  PLN_TRY(pln_builder_reserve(b, 1, n, 0));
  if (inside)
    *operands = g->operands + (at - base) / sizeof(pln_ref);
  return PLN_OK;
}

pln_status pln_builder_append(pln_builder *b, const pln_node *node, uint32_t n,
                              const pln_ref *operands, pln_ref *out) {
  pln_graph *g = b->graph;
  PLN_TRY(count_built(b->engine));
  PLN_TRY(check_operands(b, n, operands));
  PLN_TRY(mark_untyped_uses(b, n, operands));
  if (!has_room(b, n))
    PLN_TRY(make_room(b, n, &operands));
  pln_ref ref = g->n_nodes++;
  g->nodes[ref] = *node;
  g->nodes[ref].first = g->n_operands;
  g->nodes[ref].count = n;
  pln_ref *to = g->operands + g->n_operands;
  for (uint32_t i = 0; i < n; i++)
    to[i] = operands[i];
  g->n_operands += n;
  g->values[ref] = 0;
  g->typed_from[ref] = PLN_TYPED_NEVER;
  g->origin[ref] = b->origin;
  b->node_scope[ref] = pln_builder_current_scope(b);
  *out = ref;
  return PLN_OK;
}

pln_status pln_builder_copy(pln_builder *b, const pln_graph *from, pln_ref node,
                            const pln_ref *images, pln_ref *out) {
  pln_graph *g = b->graph;
  const pln_node *original = &from->nodes[node];
  uint32_t n = original->count;
  if (!has_room(b, n))
    PLN_TRY(pln_builder_reserve(b, 1, n, 0));
  const pln_ref *operands = from->operands + original->first;
  pln_ref *to = g->operands + g->n_operands, all = 0;
  for (uint32_t i = 0; i < n; i++)
    all |= to[i] = images[operands[i]];
  *out = PLN_NONE;
  if (all & PLN_IMAGE_MAY_DIFFER)
    return PLN_OK;
  PLN_TRY(count_built(b->engine));
  pln_ref ref = g->n_nodes++;
  g->nodes[ref] = *original;
  g->nodes[ref].first = g->n_operands;
  g->n_operands += n;
  g->values[ref] = from->values[node];
  g->typed_from[ref] = from->typed_from[node];
  g->origin[ref] = from->origin[node];
  b->node_scope[ref] = pln_builder_current_scope(b);
  *out = ref;
  return PLN_OK;
}

void pln_builder_drop(pln_builder *b, pln_ref node) {
  pln_graph *g = b->graph;
  if (node + 1 != g->n_nodes) {
    g->nodes[node].flags |= PLN_NODE_DROPPED;
    return;
  }
  g->n_nodes--;
  g->n_operands = g->nodes[node].first;
  if (g->nodes[node].kind == PLN_CONSTANT &&
      g->nodes[node].data + 1 == g->n_tensors)
    pln_tensor_release(g->tensors[--g->n_tensors]);
}

void pln_builder_forget(pln_builder *b, pln_ref constant) {
  pln_node *n = &b->graph->nodes[constant];
  n->flags |= PLN_NODE_DROPPED;
  pln_tensor_release(b->graph->tensors[n->data]);
  b->graph->tensors[n->data] = NULL;
}

pln_status pln_builder_add(pln_builder *b, const pln_node *node, uint32_t n,
                           const pln_ref *operands, pln_ref *out) {
  pln_ref ref;
  PLN_TRY(pln_builder_append(b, node, n, operands, &ref));
  pln_status status = pln_builder_infer(b, ref);
  if (status != PLN_OK) {
    pln_builder_drop(b, ref);
    return status;
  }
  *out = ref;
  return PLN_OK;
}

/* ------------------------------------------------------------------ leaves */

static pln_status check_var(pln_builder *b, pln_ref var) {
  PLN_TRY(check_operands(b, 1, &var));
  if (b->graph->nodes[var].kind == PLN_VAR)
    return PLN_OK;
  pln_status status = pln_diag_error(
      b->engine, PLN_ERR_ARGUMENT, NULL, "only a Var can be bound, not a %s",
      pln_node_kind(b->graph, var) < PLN_N_KINDS
          ? pln_kind_name(pln_node_kind(b->graph, var))
          : "?");
  pln_annotate_node(b->graph, var);
  return status;
}

/* The key of a variable that another program uses with another type. */
uint64_t pln_typed_var(uint32_t var, pln_type type) {
  return UINT64_C(1) << 63 | (uint64_t)type << 32 | var;
}

pln_ref pln_builder_free_var(const pln_builder *b, uint32_t var,
                             pln_type type) {
  pln_ref ref = b->vars ? pln_idmap_get(b->vars, var) - 1 : PLN_NONE;
  if (ref == PLN_NONE)
    return PLN_NONE;
  pln_type known = b->graph->nodes[ref].type;
  return !type || !known || known == type
             ? ref
             : pln_idmap_get(b->vars, pln_typed_var(var, type)) - 1;
}

static pln_status note_var(pln_builder *b, uint64_t key, pln_ref node) {
  if (!b->vars)
    PLN_TRY(pln_idmap_new(b->engine, &b->vars));
  return pln_idmap_set(b->vars, key, node + 1);
}

/* In free building one node represents a variable; a variable with several
 * types has one node per type. */
static pln_status remember_var(pln_builder *b, uint32_t var, pln_ref node) {
  bool first = !b->vars || pln_idmap_get(b->vars, var) == 0;
  pln_type type = b->graph->nodes[node].type;
  return note_var(b, first ? var : pln_typed_var(var, type), node);
}

pln_status pln_builder_find_var(pln_builder *b, uint32_t var, pln_ref *out) {
  const pln_graph *g = b->graph;
  if (b->n_noted > g->n_nodes)
    b->n_noted = g->n_nodes;
  for (; b->n_noted < g->n_nodes; b->n_noted++)
    if (g->nodes[b->n_noted].kind == PLN_VAR)
      PLN_TRY(note_var(b, g->nodes[b->n_noted].data, b->n_noted));
  pln_ref ref = b->vars ? pln_idmap_get(b->vars, var) - 1 : PLN_NONE;
  bool usable = ref < g->n_nodes && g->nodes[ref].kind == PLN_VAR &&
                g->nodes[ref].data == var &&
                !(g->nodes[ref].flags & PLN_NODE_DROPPED) &&
                g->scopes[b->node_scope[ref]].end == PLN_NONE;
  *out = usable ? ref : PLN_NONE;
  return PLN_OK;
}

pln_status pln_build_var(pln_builder *b, pln_symbol name, pln_type type,
                         uint32_t var, pln_ref *out) {
  pln_ref known =
      var && !b->scoped ? pln_builder_free_var(b, var, type) : PLN_NONE;
  if (known != PLN_NONE) {
    *out = known;
    return PLN_OK;
  }
  if (!var)
    var = ++b->engine->n_vars;
  pln_node node = {.kind = PLN_VAR, .data = var, .attrs = name, .type = type};
  pln_ref ref;
  PLN_TRY(pln_builder_append(b, &node, 0, NULL, &ref));
  pln_status status = b->scoped ? PLN_OK : remember_var(b, var, ref);
  if (status != PLN_OK) {
    pln_builder_drop(b, ref);
    return status;
  }
  *out = ref;
  return PLN_OK;
}

pln_status pln_graph_add_tensor(pln_graph *graph, const pln_tensor *tensor,
                                uint32_t *out) {
  PLN_TRY(pln_mem_grow(graph->engine, (void **)&graph->tensors,
                       &graph->cap_tensors, (size_t)graph->n_tensors + 1,
                       sizeof *graph->tensors));
  graph->tensors[graph->n_tensors] = pln_tensor_retain(tensor);
  *out = graph->n_tensors++;
  return PLN_OK;
}

pln_status pln_build_constant(pln_builder *b, const pln_tensor *tensor,
                              pln_ref *out) {
  pln_node node = {.kind = PLN_CONSTANT};
  PLN_TRY(pln_builder_reserve(b, 1, 0, 0));
  PLN_TRY(pln_graph_add_tensor(b->graph, tensor, &node.data));
  return pln_builder_add(b, &node, 0, NULL, out);
}

pln_status pln_build_int64s(pln_builder *b, uint32_t rank, uint32_t n,
                            const int64_t *values, pln_ref *out) {
  int64_t dims[1] = {n};
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_from_bytes(b->engine, PLN_INT64, rank, dims, values,
                                n * sizeof *values, &tensor));
  pln_status status = pln_build_constant(b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

pln_status pln_build_absent(pln_builder *b, pln_ref *out) {
  pln_node node = {.kind = PLN_ABSENT};
  return pln_builder_append(b, &node, 0, NULL, out);
}

pln_status pln_build_global_var(pln_builder *b, pln_symbol name, pln_type type,
                                pln_ref *out) {
  pln_node node = {.kind = PLN_GLOBAL_VAR, .data = name, .type = type};
  pln_effect call_effect = PLN_EFFECT_UNKNOWN;
  uint32_t i = b->module ? pln_module_find(b->module, name) : PLN_NONE;
  if (i != PLN_NONE) {
    const pln_graph *f = pln_module_function_at(b->module, i);
    const pln_node *root = &f->nodes[f->root];
    call_effect = pln_node_call_effect(root);
    if (!type)
      node.type = root->type;
  }
  node.flags = (uint8_t)(call_effect << PLN_NODE_CALL_EFFECT_SHIFT);
  return pln_builder_append(b, &node, 0, NULL, out);
}

pln_status pln_build_op(pln_builder *b, pln_op op, pln_ref *out) {
  if (op == 0 || op > pln_op_count(b->engine))
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "there is no operator with number %u", op);
  pln_node node = {.kind = PLN_OP, .data = op};
  return pln_builder_append(b, &node, 0, NULL, out);
}

pln_status pln_build_constructor(pln_builder *b, pln_symbol name, pln_type type,
                                 pln_ref *out) {
  pln_node node = {.kind = PLN_CONSTRUCTOR, .data = name, .type = type};
  uint32_t index;
  uint32_t of = b->module && !type
                    ? pln_module_find_constructor(b->module, name, &index)
                    : PLN_NONE;
  if (of != PLN_NONE)
    PLN_TRY(pln_module_constructor_type(b->module, of, index, &node.type));
  return pln_builder_append(b, &node, 0, NULL, out);
}

/* ---------------------------------------------------------------- patterns */

pln_status pln_build_pattern_wildcard(pln_builder *b, pln_ref *out) {
  pln_node node = {.kind = PLN_PATTERN_WILDCARD};
  return pln_builder_add(b, &node, 0, NULL, out);
}

pln_status pln_build_pattern_var(pln_builder *b, pln_ref var, pln_ref *out) {
  PLN_TRY(check_var(b, var));
  pln_node node = {.kind = PLN_PATTERN_VAR};
  return pln_builder_add(b, &node, 1, &var, out);
}

static pln_status check_patterns(pln_builder *b, uint32_t n,
                                 const pln_ref *patterns) {
  PLN_TRY(check_operands(b, n, patterns));
  for (uint32_t i = 0; i < n; i++) {
    uint8_t kind = b->graph->nodes[patterns[i]].kind;
    if (pln_kinds[kind].kind_class == PLN_CLASS_PATTERN && kind != PLN_CLAUSE)
      continue;
    pln_status status = pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                                       "a pattern is expected, not a %s",
                                       pln_kind_name((pln_kind)kind));
    pln_annotate_node(b->graph, patterns[i]);
    return status;
  }
  return PLN_OK;
}

pln_status pln_build_pattern_constructor(pln_builder *b, pln_symbol constructor,
                                         uint32_t n, const pln_ref *patterns,
                                         pln_ref *out) {
  PLN_TRY(check_patterns(b, n, patterns));
  pln_node node = {.kind = PLN_PATTERN_CONSTRUCTOR, .data = constructor};
  return pln_builder_add(b, &node, n, patterns, out);
}

pln_status pln_build_pattern_tuple(pln_builder *b, uint32_t n,
                                   const pln_ref *patterns, pln_ref *out) {
  PLN_TRY(check_patterns(b, n, patterns));
  pln_node node = {.kind = PLN_PATTERN_TUPLE};
  return pln_builder_add(b, &node, n, patterns, out);
}

pln_status pln_build_clause(pln_builder *b, pln_ref pattern, pln_ref *out) {
  PLN_TRY(check_patterns(b, 1, &pattern));
  pln_node node = {.kind = PLN_CLAUSE};
  return pln_builder_add(b, &node, 1, &pattern, out);
}

/* ------------------------------------------------------------- expressions */

pln_status pln_build_tuple(pln_builder *b, uint32_t n, const pln_ref *fields,
                           pln_ref *out) {
  pln_node node = {.kind = PLN_TUPLE};
  return pln_builder_add(b, &node, n, fields, out);
}

pln_status pln_build_tuple_get_item(pln_builder *b, pln_ref tuple,
                                    uint32_t index, pln_ref *out) {
  pln_node node = {.kind = PLN_TUPLE_GET_ITEM, .data = index};
  return pln_builder_add(b, &node, 1, &tuple, out);
}

static pln_status check_results(pln_builder *b, uint32_t n_results) {
  if (n_results <= UINT16_MAX)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_LIMIT, NULL,
                        "a call has at most 65,535 results, not %u", n_results);
}

/* The name of the next attribute of the operator that is a function, from
 * *schema on, which moves behind it; empty when there is none. */
static pln_slice function_attribute(const char **schema) {
  const char *kind = *schema ? strstr(*schema, ":function") : NULL;
  const char *name = kind;
  while (name && name > *schema && name[-1] != ' ')
    name--;
  *schema = kind ? kind + 1 : NULL;
  return (pln_slice){name, kind ? (size_t)(kind - name) : 0};
}

/* True if an attribute says what operand `i` is. */
static bool is_named(const pln_builder *b, pln_attrs attrs, uint32_t i) {
  uint32_t n = pln_attrs_count(b->engine, attrs);
  for (uint32_t k = 0; k < n; k++) {
    const pln_attr *a = pln_attrs_at(b->engine, attrs, k);
    if (a->kind == PLN_ATTR_GRAPH && a->v.i == (int64_t)i)
      return true;
  }
  return false;
}

/* Gives operand `i` to the next function attribute that is not set. */
static pln_status name_function(pln_builder *b, uint32_t i, const char **schema,
                                pln_attrs *attrs) {
  pln_attr entry = {.kind = PLN_ATTR_GRAPH, .v.i = i};
  pln_slice name;
  do {
    name = function_attribute(schema);
    if (name.size == 0)
      return PLN_OK;
    PLN_TRY(pln_symbol_intern(b->engine, name, &entry.name));
  } while (pln_attrs_find(b->engine, *attrs,
                          pln_symbol_text(b->engine, entry.name).data));
  return pln_attrs_with(b->engine, *attrs, &entry, attrs);
}

/* A caller of loop(n, go, x, body) need not say which operand is the body. Of
 * several functions an omitted one stands for an attribute too. */
static pln_status name_functions(pln_builder *b, pln_op op, uint32_t n,
                                 const pln_ref *args, pln_attrs *attrs) {
  const pln_op_info *row = pln_op_row(b->engine, op);
  const char *schema = row->attrs;
  for (uint32_t i = pln_op_n_values(row, n); i < n && schema; i++) {
    if (args[i] >= b->graph->n_nodes)
      continue;
    uint8_t kind = b->graph->nodes[args[i]].kind;
    if (kind == PLN_ABSENT)
      function_attribute(&schema);
    else if (kind == PLN_FUNCTION && !is_named(b, *attrs, i))
      PLN_TRY(name_function(b, i, &schema, attrs));
  }
  return PLN_OK;
}

pln_status pln_build_call(pln_builder *b, pln_op op, pln_attrs attrs,
                          uint32_t n_results, uint32_t n, const pln_ref *args,
                          pln_ref *out) {
  if (op == 0 || op > pln_op_count(b->engine))
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "there is no operator with number %u", op);
  const pln_registered_op *registered = pln_op_row(b->engine, op)->registered;
  PLN_TRY(check_results(b, n_results));
  PLN_TRY(name_functions(b, op, n, args, &attrs));
  if (registered)
    PLN_TRY(pln_registered_normal(b->engine, registered, attrs, &attrs));
  pln_node node = {.kind = PLN_CALL,
                   .results = (uint16_t)n_results,
                   .data = op,
                   .attrs = attrs};
  return pln_builder_add(b, &node, n, args, out);
}

pln_status pln_build_apply(pln_builder *b, pln_ref callee, pln_attrs attrs,
                           uint32_t n_results, uint32_t n, const pln_ref *args,
                           pln_ref *out) {
  PLN_TRY(check_results(b, n_results));
  PLN_TRY(check_operands(b, 1, &callee));
  if (b->graph->nodes[callee].kind == PLN_OP)
    return pln_build_call(b, b->graph->nodes[callee].data, attrs, n_results, n,
                          args, out);
  size_t size = ((size_t)n + 1) * sizeof(pln_ref);
  pln_ref few[16], *all = few;
  if (size > sizeof few && !(all = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  all[0] = callee;
  if (n)
    memcpy(all + 1, args, n * sizeof *args);
  pln_node node = {
      .kind = PLN_CALL, .results = (uint16_t)n_results, .attrs = attrs};
  pln_status status = pln_builder_add(b, &node, n + 1, all, out);
  if (all != few)
    pln_mem_free(b->engine, all, size);
  return status;
}

pln_status pln_build_ref_create(pln_builder *b, pln_ref value, pln_ref *out) {
  pln_node node = {.kind = PLN_REF_CREATE};
  return pln_builder_add(b, &node, 1, &value, out);
}

pln_status pln_build_ref_read(pln_builder *b, pln_ref ref, pln_ref *out) {
  pln_node node = {.kind = PLN_REF_READ};
  return pln_builder_add(b, &node, 1, &ref, out);
}

pln_status pln_build_ref_write(pln_builder *b, pln_ref ref, pln_ref value,
                               pln_ref *out) {
  pln_node node = {.kind = PLN_REF_WRITE};
  return pln_builder_add(b, &node, 2, (pln_ref[]){ref, value}, out);
}

/* ------------------------------------------------------------------ scopes */

pln_status pln_builder_add_scope(pln_builder *b, pln_scope parent,
                                 pln_scope *out) {
  PLN_TRY(pln_builder_reserve(b, 0, 0, 1));
  pln_graph *g = b->graph;
  g->scopes[g->n_scopes] = (pln_scope_row){.begin = g->n_nodes,
                                           .end = PLN_NONE,
                                           .owner = PLN_NONE,
                                           .parent = parent,
                                           .next = PLN_NONE,
                                           .result = PLN_NONE};
  b->effects[g->n_scopes] = PLN_EFFECT_NONE;
  *out = g->n_scopes++;
  return PLN_OK;
}

pln_status pln_build_open(pln_builder *b, pln_scope *out) {
  if (!b->scoped && b->graph->n_nodes)
    return pln_diag_error(
        b->engine, PLN_ERR_ARGUMENT, NULL,
        "this builder has free expressions; open scopes in a new builder");
  PLN_TRY(pln_mem_grow(b->engine, (void **)&b->open, &b->cap_open,
                       (size_t)b->n_open + 1, sizeof *b->open));
  PLN_TRY(pln_builder_add_scope(b, b->open[b->n_open - 1], out));
  b->scoped = true;
  b->in = PLN_NONE;
  b->open[b->n_open++] = *out;
  return PLN_OK;
}

pln_status pln_build_param(pln_builder *b, pln_symbol name, pln_type type,
                           uint32_t var, pln_ref *out) {
  pln_scope_row *row = &b->graph->scopes[b->open[b->n_open - 1]];
  if (b->n_open < 2 || row->begin + row->n_params != b->graph->n_nodes)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "parameters must come first in their scope");
  if (!var)
    var = ++b->engine->n_vars;
  pln_node node = {.kind = PLN_VAR,
                   .flags = PLN_NODE_PARAM,
                   .data = var,
                   .attrs = name,
                   .type = type};
  PLN_TRY(pln_builder_append(b, &node, 0, NULL, out));
  row->n_params++;
  return PLN_OK;
}

pln_status pln_build_end(pln_builder *b, pln_scope scope, pln_ref result,
                         pln_attrs attrs) {
  if (b->n_open < 2 || b->open[b->n_open - 1] != scope)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "only the innermost open scope can be ended");
  PLN_TRY(check_operands(b, 1, &result));
  pln_scope_row *row = &b->graph->scopes[scope];
  row->result = result;
  row->attrs = attrs;
  row->end = b->graph->n_nodes;
  b->n_open--;
  b->in = PLN_NONE;
  return PLN_OK;
}

void pln_builder_scope_origin(pln_builder *b, pln_scope scope,
                              uint32_t origin) {
  b->graph->scopes[scope].origin = origin;
}

pln_status pln_build_in(pln_builder *b, pln_scope scope) {
  if (scope == PLN_NONE) {
    b->in = PLN_NONE;
    return PLN_OK;
  }
  for (uint32_t i = b->n_open; i-- > 0;)
    if (b->open[i] == scope) {
      b->in = scope;
      return PLN_OK;
    }
  return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                        "scope %u is not open", scope);
}

/* Appends an owner; its scopes are ended and have no owner yet. */
static pln_status add_owner(pln_builder *b, pln_node *node, uint32_t n,
                            const pln_ref *operands, uint32_t k,
                            const pln_scope *scopes, pln_ref *out) {
  pln_graph *g = b->graph;
  for (uint32_t i = 0; i < k; i++)
    if (scopes[i] == 0 || scopes[i] >= g->n_scopes ||
        g->scopes[scopes[i]].result == PLN_NONE ||
        g->scopes[scopes[i]].owner != PLN_NONE)
      return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                            "scope %u is not ended, or has an owner already",
                            scopes[i]);
  for (uint32_t i = 0; i < k; i++)
    g->scopes[scopes[i]].next = i + 1 < k ? scopes[i + 1] : PLN_NONE;
  node->data = k > 0 ? scopes[0] : PLN_NONE;
  PLN_TRY(pln_builder_add(b, node, n, operands, out));
  for (uint32_t i = 0; i < k; i++)
    g->scopes[scopes[i]].owner = *out;
  return PLN_OK;
}

pln_status pln_build_function(pln_builder *b, pln_scope body, pln_attrs attrs,
                              pln_type ret, pln_ref *out) {
  pln_node node = {.kind = PLN_FUNCTION, .attrs = attrs, .type = ret};
  return add_owner(b, &node, 0, NULL, 1, &body, out);
}

pln_status pln_build_if(pln_builder *b, pln_ref cond, pln_scope then_branch,
                        pln_scope else_branch, pln_attrs attrs,
                        uint32_t n_results, pln_ref *out) {
  PLN_TRY(check_results(b, n_results));
  pln_node node = {
      .kind = PLN_IF, .results = (uint16_t)n_results, .attrs = attrs};
  pln_scope branches[] = {then_branch, else_branch};
  return add_owner(b, &node, 1, &cond, 2, branches, out);
}

static pln_status match_attrs(pln_builder *b, bool complete, pln_attrs *out) {
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = complete};
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("complete"), &entry.name));
  return pln_attrs_make(b->engine, 1, &entry, out);
}

/* The first node after an arm's parameters and pattern. */
static pln_status check_arm(pln_builder *b, pln_scope arm) {
  const pln_graph *g = b->graph;
  if (arm < g->n_scopes)
    for (pln_ref ref = g->scopes[arm].begin; ref < g->scopes[arm].end; ref++)
      if (g->nodes[ref].kind == PLN_CLAUSE && b->node_scope[ref] == arm)
        return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                        "scope %u is not an arm: it has no Clause", arm);
}

pln_status pln_build_match(pln_builder *b, pln_ref data, bool complete,
                           uint32_t n, const pln_scope *arms, pln_ref *out) {
  pln_node node = {.kind = PLN_MATCH};
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(check_arm(b, arms[i]));
  PLN_TRY(match_attrs(b, complete, &node.attrs));
  return add_owner(b, &node, 1, &data, n, arms, out);
}

pln_status pln_build_generic(pln_builder *b, pln_ref function, uint32_t n,
                             const pln_type *vars) {
  PLN_TRY(check_operands(b, 1, &function));
  pln_node *node = &b->graph->nodes[function];
  for (uint32_t i = 0; i < n; i++)
    if (pln_type_get_kind(b->engine, vars[i]) != PLN_TYPE_VAR)
      return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                            "type parameter %u is not a type variable", i + 1);
  if (node->kind != PLN_FUNCTION)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "only a Function has type parameters");
  pln_type *params = &b->graph->scopes[node->data].type_params;
  *params = 0;
  if (n > 0)
    PLN_TRY(pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, n, vars, params));
  PLN_TRY(pln_type_generic(b->engine, node->type, *params, &node->type));
  pln_type_digest_record(b->graph, function);
  return PLN_OK;
}

pln_status pln_build_let_block(pln_builder *b, pln_scope body, pln_ref *out) {
  pln_node node = {.kind = PLN_LET_BLOCK};
  return add_owner(b, &node, 0, NULL, 1, &body, out);
}

static bool is_used_early(const pln_builder *b, pln_ref var) {
  return b->early && pln_idmap_get(b->early, var);
}

/* A variable without a type takes the value's type, unless it was used already.
 * Uses inside the value are checked at the end: infer/check_uses.c. */
static void type_var(pln_builder *b, pln_ref var, pln_ref value) {
  const pln_node *nodes = b->graph->nodes;
  if (!nodes[var].type &&
      (nodes[value].kind == PLN_FUNCTION || !is_used_early(b, var)))
    b->graph->nodes[var].type = nodes[value].type;
}

pln_status pln_build_let(pln_builder *b, pln_ref var, pln_ref value,
                         pln_ref *out) {
  PLN_TRY(check_var(b, var));
  PLN_TRY(check_operands(b, 1, &value));
  type_var(b, var, value);
  pln_node node = {.kind = PLN_LET};
  return pln_builder_add(b, &node, 2, (pln_ref[]){var, value}, out);
}

/* ---------------------------------------------------------------- free use */

static pln_status check_free(pln_builder *b) {
  if (!b->scoped)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                        "free expressions need a builder without scopes");
}

/* A scope to be filled by the layout: only its result is known. */
static pln_status free_scope(pln_builder *b, pln_ref result, pln_scope *out) {
  PLN_TRY(check_operands(b, 1, &result));
  PLN_TRY(mark_untyped_uses(b, 1, &result));
  PLN_TRY(pln_builder_add_scope(b, PLN_NONE, out));
  pln_scope_row *row = &b->graph->scopes[*out];
  row->begin = row->end = PLN_NONE;
  row->result = result;
  b->effects[*out] = PLN_EFFECT_UNKNOWN;
  return PLN_OK;
}

pln_status pln_build_bind(pln_builder *b, uint32_t n, const pln_ref *params,
                          pln_ref body, pln_attrs attrs, pln_type ret,
                          pln_ref *out) {
  PLN_TRY(check_free(b));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(check_var(b, params[i]));
  pln_scope scope;
  PLN_TRY(free_scope(b, body, &scope));
  b->graph->scopes[scope].n_params = n;
  pln_node node = {.kind = PLN_FUNCTION, .attrs = attrs, .type = ret};
  return add_owner(b, &node, n, params, 1, &scope, out);
}

pln_status pln_build_floating_if(pln_builder *b, pln_ref cond,
                                 pln_ref then_value, pln_ref else_value,
                                 pln_ref *out) {
  PLN_TRY(check_free(b));
  pln_scope branches[2];
  PLN_TRY(free_scope(b, then_value, &branches[0]));
  PLN_TRY(free_scope(b, else_value, &branches[1]));
  pln_node node = {.kind = PLN_IF};
  return add_owner(b, &node, 1, &cond, 2, branches, out);
}

/* The Let's node_scope is its block's scope, where the layout finds it. */
pln_status pln_build_floating_let(pln_builder *b, pln_ref var, pln_ref value,
                                  pln_ref body, pln_ref *out) {
  PLN_TRY(check_free(b));
  PLN_TRY(check_var(b, var));
  PLN_TRY(check_operands(b, 1, &value));
  type_var(b, var, value);
  pln_scope scope;
  PLN_TRY(free_scope(b, body, &scope));
  pln_node let = {.kind = PLN_LET};
  pln_ref ref;
  PLN_TRY(pln_builder_add(b, &let, 2, (pln_ref[]){var, value}, &ref));
  b->node_scope[ref] = scope;
  b->graph->scopes[scope].begin = ref;
  b->graph->scopes[scope].end = ref + 1;
  pln_node block = {.kind = PLN_LET_BLOCK};
  return add_owner(b, &block, 0, NULL, 1, &scope, out);
}

bool pln_can_be_kept(pln_kind kind) {
  return kind == PLN_CONSTANT || kind == PLN_CALL || kind == PLN_TUPLE ||
         kind == PLN_TUPLE_GET_ITEM || kind == PLN_FUNCTION || kind == PLN_IF ||
         kind == PLN_MATCH || kind == PLN_LET_BLOCK || kind == PLN_REF_CREATE ||
         kind == PLN_REF_READ || kind == PLN_REF_WRITE;
}

/* Like a Let, the node belongs to its block's scope. */
pln_status pln_build_floating_extra_root(pln_builder *b, pln_ref value,
                                         pln_ref body, pln_ref *out) {
  PLN_TRY(check_free(b));
  PLN_TRY(check_operands(b, 1, &value));
  pln_kind kind = (pln_kind)b->graph->nodes[value].kind;
  if (!pln_can_be_kept(kind))
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL, "a %s cannot be kept",
                          pln_kind_name(kind));
  if (b->node_scope[value] != PLN_NONE)
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                          "this %s is kept already", pln_kind_name(kind));
  pln_scope scope;
  PLN_TRY(free_scope(b, body, &scope));
  pln_build_extra_root(b, value);
  b->node_scope[value] = scope;
  b->graph->scopes[scope].begin = value;
  b->graph->scopes[scope].end = value + 1;
  pln_node block = {.kind = PLN_LET_BLOCK};
  return add_owner(b, &block, 0, NULL, 1, &scope, out);
}

/* A floating arm: a scope with known result and Clause; its parameters are
 * found through the pattern. */
static pln_status free_arm(pln_builder *b, pln_ref pattern, pln_ref body,
                           pln_scope *out) {
  pln_ref clause;
  PLN_TRY(free_scope(b, body, out));
  PLN_TRY(pln_build_clause(b, pattern, &clause));
  b->node_scope[clause] = *out;
  b->graph->scopes[*out].begin = clause;
  b->graph->scopes[*out].end = clause + 1;
  return PLN_OK;
}

pln_status pln_build_floating_match(pln_builder *b, pln_ref data, bool complete,
                                    uint32_t n, const pln_ref *patterns,
                                    const pln_ref *bodies, pln_ref *out) {
  PLN_TRY(check_free(b));
  pln_scope few[16], *arms = few;
  size_t size = n * sizeof *arms;
  if (size > sizeof few && !(arms = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = free_arm(b, patterns[i], bodies[i], &arms[i]);
  if (status == PLN_OK)
    status = pln_build_match(b, data, complete, n, arms, out);
  if (arms != few)
    pln_mem_free(b->engine, arms, size);
  return status;
}

/* ------------------------------------------------------------- annotations */

void pln_build_extra_root(pln_builder *b, pln_ref node) {
  b->graph->nodes[node].flags |= PLN_NODE_KEEP;
}

pln_status pln_build_name(pln_builder *b, pln_ref node, pln_symbol name) {
  PLN_TRY(check_operands(b, 1, &node));
  pln_origins *origins = pln_builder_origins(b);
  if (!origins)
    return PLN_ERR_NOMEM;
  pln_origin row = {.name = name, .parent = b->graph->origin[node]};
  return pln_origins_add(origins, &row, &b->graph->origin[node]);
}

pln_status pln_build_span(pln_builder *b, pln_ref node,
                          const pln_source_span *place, bool printed) {
  PLN_TRY(check_operands(b, 1, &node));
  pln_origins *origins = pln_builder_origins(b);
  if (!origins)
    return PLN_ERR_NOMEM;
  pln_origin row = {.parent = b->graph->origin[node],
                    .place = *place,
                    .place_printed = printed};
  return pln_origins_add(origins, &row, &b->graph->origin[node]);
}

pln_status pln_builder_attr_order(pln_builder *b, pln_ref node,
                                  pln_attrs order) {
  pln_origins *origins = pln_builder_origins(b);
  if (!origins)
    return PLN_ERR_NOMEM;
  pln_origin row = {.parent = b->graph->origin[node], .attr_order = order};
  return pln_origins_add(origins, &row, &b->graph->origin[node]);
}

pln_status pln_build_attr_order(pln_builder *b, pln_ref node, uint32_t n,
                                const pln_symbol *names) {
  PLN_TRY(check_operands(b, 1, &node));
  pln_attrs order;
  pln_attr *items = pln_mem_zeroed(b->engine, n * sizeof *items);
  if (n > 0 && !items)
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < n; i++)
    items[i].name = names[i];
  pln_status status = pln_attrs_list(b->engine, n, items, &order);
  if (status == PLN_OK)
    status = pln_builder_attr_order(b, node, order);
  pln_mem_free(b->engine, items, n * sizeof *items);
  return status;
}

static pln_status conflict(pln_builder *b, pln_type declared,
                           pln_type inferred) {
  pln_description x, y;
  pln_diag_warn(
      b->engine, NULL,
      "the declared type %s contradicts the inferred type %s, which is used",
      pln_describe_type(b->engine, declared, &x),
      pln_describe_type(b->engine, inferred, &y));
  return PLN_OK;
}

/* Marks that the graph, and graphs rewritten from it, have declared types that
 * inference cannot derive. */
static pln_status set_declared(pln_builder *b, pln_ref node, pln_type type) {
  pln_type *old = &b->graph->nodes[node].type;
  if (*old == type)
    return PLN_OK;
  pln_origins *origins = pln_builder_origins(b);
  if (!origins)
    return PLN_ERR_NOMEM;
  origins->declares = true;
  *old = type;
  if (b->graph->typed_from[node] >= PLN_TYPED_FIRST)
    pln_type_digest_record(b->graph, node);
  return PLN_OK;
}

pln_status pln_builder_declare(pln_builder *b, pln_ref node,
                               pln_type declared) {
  pln_type type = b->graph->nodes[node].type, met;
  bool clash;
  if (b->graph->typed_from[node] == PLN_TYPED_REFUSED)
    return PLN_OK;
  PLN_TRY(pln_type_meet(b->engine, type, declared, &met, &clash));
  return clash ? conflict(b, declared, type) : set_declared(b, node, met);
}

static pln_status with_part(pln_engine *e, pln_type tuple, uint32_t index,
                            pln_type part, pln_type *out) {
  uint32_t k = pln_type_n_parts(e, tuple);
  pln_type *parts = pln_mem_new(e, k * sizeof *parts);
  if (!parts)
    return pln_nomem(e);
  for (uint32_t i = 0; i < k; i++)
    parts[i] = i == index ? part : pln_type_part_at(e, tuple, i);
  pln_status status = pln_type_make(e, PLN_TYPE_TUPLE, 0, k, parts, out);
  pln_mem_free(e, parts, k * sizeof *parts);
  return status;
}

pln_status pln_builder_declare_result(pln_builder *b, pln_ref node,
                                      uint32_t index, pln_type declared) {
  pln_engine *e = b->engine;
  pln_type type = b->graph->nodes[node].type, part, met;
  bool clash;
  if (index >= pln_type_n_parts(e, type) ||
      b->graph->typed_from[node] == PLN_TYPED_REFUSED)
    return PLN_OK;
  part = pln_type_part_at(e, type, index);
  PLN_TRY(pln_type_meet(e, part, declared, &met, &clash));
  if (clash)
    return conflict(b, declared, part);
  PLN_TRY(with_part(e, type, index, met, &type));
  return set_declared(b, node, type);
}

pln_status pln_builder_seal(pln_builder *builder, pln_ref root,
                            pln_graph **out) {
  PLN_TRY(check_operands(builder, 1, &root));
  if (builder->inferring)
    return pln_diag_error(builder->engine, PLN_ERR_ARGUMENT, NULL,
                          "a builder cannot be sealed by the function that "
                          "types one of its calls");
  pln_stoppable_begin(builder->engine);
  pln_status status = builder->scoped ? pln_layout_scoped(builder, root, out)
                                      : pln_layout_free(builder, root, out);
  return pln_work_done(builder->engine, status);
}
