/* graph.c: the lifetime of graphs, and the public accessors of nodes and
 * scopes.
 *
 * A builder fills a graph and layout.c seals it. From then on it is immutable
 * and shared by reference. */

#include "ir/graph/graph.h"

pln_status pln_graph_new(pln_engine *engine, pln_graph **out) {
  pln_graph *graph = pln_mem_zeroed(engine, sizeof *graph);
  if (!graph)
    return pln_nomem(engine);
  graph->engine = engine;
  graph->refs = 1;
  graph->root = PLN_NONE;
  *out = graph;
  return PLN_OK;
}

pln_graph *pln_graph_retain(const pln_graph *graph) {
  pln_graph *shared = (pln_graph *)(uintptr_t)graph;
  shared->refs++;
  return shared;
}

static void free_arrays(pln_engine *e, pln_graph *g) {
  pln_mem_free(e, g->nodes, g->cap_nodes * sizeof *g->nodes);
  pln_mem_free(e, g->operands, g->cap_operands * sizeof *g->operands);
  pln_mem_free(e, g->scopes, g->cap_scopes * sizeof *g->scopes);
  pln_mem_free(e, g->values, g->cap_values * sizeof *g->values);
  pln_mem_free(e, g->origin, g->cap_origin * sizeof *g->origin);
  pln_mem_free(e, g->typed_from, g->cap_typed_from * sizeof *g->typed_from);
}

void pln_graph_release(pln_graph *graph) {
  if (!graph || --graph->refs > 0)
    return;
  pln_engine *e = graph->engine;
  for (uint32_t i = 0; i < graph->n_tensors; i++)
    pln_tensor_release(graph->tensors[i]);
  pln_origins_release(graph->origins);
  pln_mem_free(e, graph->tensors, graph->cap_tensors * sizeof *graph->tensors);
  if (!graph->parent_graph)
    free_arrays(e, graph);
  pln_mem_free(e, graph, sizeof *graph);
}

pln_engine *pln_graph_engine(const pln_graph *graph) {
  return graph->engine;
}

uint32_t pln_graph_size(const pln_graph *graph) {
  return graph->n_nodes;
}

pln_ref pln_graph_root(const pln_graph *graph) {
  return graph->root;
}

uint32_t pln_graph_n_scopes(const pln_graph *graph) {
  return graph->n_scopes;
}

/* ------------------------------------------------------------------- nodes */

pln_kind pln_node_kind(const pln_graph *graph, pln_ref node) {
  return (pln_kind)graph->nodes[node].kind;
}

pln_type pln_node_type(const pln_graph *graph, pln_ref node) {
  return graph->nodes[node].type;
}

pln_value pln_node_value(const pln_graph *graph, pln_ref node) {
  return graph->values[node];
}

pln_effect pln_node_effects(const pln_graph *graph, pln_ref node) {
  return pln_flags_effect(graph->nodes[node].flags);
}

uint32_t pln_node_n_operands(const pln_graph *graph, pln_ref node) {
  return graph->nodes[node].count;
}

const pln_ref *pln_node_operands(const pln_graph *graph, pln_ref node) {
  return pln_operands(graph, &graph->nodes[node]);
}

pln_op pln_node_op(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return pln_kinds[n->kind].payload == PLN_PAYLOAD_OP ? n->data : 0;
}

pln_attrs pln_node_attrs(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return pln_kinds[n->kind].has_attrs ? n->attrs : 0;
}

uint32_t pln_node_n_results(const pln_graph *graph, pln_ref node) {
  return graph->nodes[node].results;
}

uint32_t pln_node_index(const pln_graph *graph, pln_ref node) {
  return graph->nodes[node].data;
}

static uint64_t bits_of(const pln_graph *graph, pln_ref node, pln_kind kind) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == kind ? ((uint64_t)n->attrs << 32) | n->data : 0;
}

int64_t pln_node_int(const pln_graph *graph, pln_ref node) {
  return (int64_t)bits_of(graph, node, PLN_INT_IMM);
}

double pln_node_float(const pln_graph *graph, pln_ref node) {
  uint64_t bits = bits_of(graph, node, PLN_FLOAT_IMM);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

const pln_tensor *pln_node_tensor(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_CONSTANT ? graph->tensors[n->data] : NULL;
}

uint32_t pln_node_var(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_VAR ? n->data : 0;
}

pln_symbol pln_node_symbol(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  if (n->kind == PLN_VAR)
    return n->attrs;
  pln_payload payload = pln_kinds[n->kind].payload;
  return payload == PLN_PAYLOAD_SYMBOL || payload == PLN_PAYLOAD_HINT ? n->data
                                                                      : 0;
}

bool pln_node_place(const pln_graph *graph, pln_ref node, pln_source_span *out,
                    bool *printed) {
  uint32_t row = graph->origins
                     ? pln_origins_place(graph->origins, graph->origin[node])
                     : 0;
  if (row == 0)
    return false;
  *out = pln_origins_row(graph->origins, row)->place;
  if (printed)
    *printed = pln_origins_row(graph->origins, row)->place_printed;
  return true;
}

uint32_t pln_node_n_scopes(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  int32_t fixed = pln_kinds[n->kind].scopes;
  if (fixed >= 0)
    return (uint32_t)fixed;
  uint32_t count = 0;
  for (pln_scope s = n->data; s != PLN_NONE; s = graph->scopes[s].next)
    count++;
  return count;
}

pln_scope pln_node_scope(const pln_graph *graph, pln_ref node, uint32_t index) {
  pln_scope scope = graph->nodes[node].data;
  while (index-- > 0)
    scope = graph->scopes[scope].next;
  return scope;
}

/* ------------------------------------------------------------------ scopes */

pln_ref pln_scope_begin(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].begin;
}

pln_ref pln_scope_end(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].end;
}

pln_ref pln_scope_owner(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].owner;
}

pln_scope pln_scope_parent(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].parent;
}

pln_ref pln_scope_result(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].result;
}

uint32_t pln_scope_n_params(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].n_params;
}

pln_attrs pln_scope_attrs(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].attrs;
}

pln_type pln_scope_type_params(const pln_graph *graph, pln_scope scope) {
  return graph->scopes[scope].type_params;
}

void pln_graph_bind_effect(pln_graph *g, const pln_node *let) {
  pln_node *var = &g->nodes[g->operands[let->first]];
  const pln_node *value = &g->nodes[g->operands[let->first + 1]];
  uint8_t bound = 0;
  if (value->kind == PLN_FUNCTION)
    bound = PLN_NODE_BOUND | (value->flags & PLN_NODE_CALL_EFFECT);
  var->flags &= (uint8_t) ~(PLN_NODE_BOUND | PLN_NODE_CALL_EFFECT);
  var->flags |= bound;
}

void pln_graph_call_effect(const pln_graph *g, pln_node *call) {
  if (!pln_has_callee(call))
    return;
  const pln_node *callee = &g->nodes[g->operands[call->first]];
  if (callee->kind == PLN_FUNCTION || callee->flags & PLN_NODE_BOUND)
    call->flags = (uint8_t)((call->flags & ~PLN_NODE_EFFECT) |
                            pln_node_call_effect(callee));
}

void pln_graph_node_scopes(const pln_graph *graph, pln_scope *node_scope) {
  pln_scope_cursor cursor = {.graph = graph};
  for (pln_ref ref = 0; ref < graph->n_nodes; ref++)
    node_scope[ref] = pln_scope_cursor_at(&cursor, ref);
}

/* Galloping search. */
pln_scope pln_graph_scope_from(const pln_graph *graph, pln_scope scope,
                               pln_ref node) {
  const pln_scope_row *rows = graph->scopes;
  uint32_t step = 1, low = scope;
  while (low < graph->n_scopes && rows[low].begin < node) {
    scope = low + 1;
    low += step;
    step += step;
  }
  uint32_t high = low < graph->n_scopes ? low : graph->n_scopes;
  while (scope < high) {
    uint32_t middle = scope + (high - scope) / 2;
    if (rows[middle].begin < node)
      scope = middle + 1;
    else
      high = middle;
  }
  return scope;
}

/* The scope of a node, of which `last` is the last one that begins at it or
 * before. Up from `last` there may be many scopes that have ended, and back
 * from the node many nodes of its own scope: it goes both ways at once, and the
 * shorter one ends it. Behind scopes that have ended is their owner. */
static pln_scope enclosing_scope(const pln_graph *graph, pln_scope last,
                                 pln_ref node) {
  const pln_scope_row *rows = graph->scopes;
  pln_scope scope = last;
  for (pln_ref at = node; rows[scope].end <= node; at--) {
    if (pln_owns(&graph->nodes[at]))
      return rows[graph->nodes[at].data].parent;
    scope = rows[scope].parent;
  }
  return scope;
}

/* Looks for the last row that begins before the node. */
pln_scope pln_graph_scope_of(const pln_graph *graph, pln_ref node) {
  const pln_scope_row *rows = graph->scopes;
  pln_scope low = 0, high = graph->n_scopes;
  while (high - low > 1) {
    pln_scope middle = low + (high - low) / 2;
    if (rows[middle].begin <= node)
      low = middle;
    else
      high = middle;
  }
  return enclosing_scope(graph, low, node);
}

pln_ref pln_arm_pattern(const pln_graph *graph, pln_scope arm) {
  const pln_scope_row *row = &graph->scopes[arm];
  for (pln_ref i = row->begin; i < row->end; i++)
    if (graph->nodes[i].kind == PLN_CLAUSE)
      return pln_operand(graph, i, 0);
  return PLN_NONE;
}

/* ----------------------------------------------------------------- copying */

static pln_status copy_array(pln_engine *e, const void *from, size_t n,
                             size_t item, void *to, uint32_t *capacity) {
  if (n == 0)
    return PLN_OK;
  void *block = pln_mem_new(e, n * item);
  if (!block)
    return pln_nomem(e);
  memcpy(block, from, n * item);
  memcpy(to, &block, sizeof block);
  *capacity = (uint32_t)n;
  return PLN_OK;
}

#define COPY(array, n, cap) \
  PLN_TRY(copy_array(g->engine, g->array, n, sizeof *g->array, &h->array, cap))

static pln_status copy_into(const pln_graph *g, pln_graph *h) {
  COPY(nodes, g->n_nodes, &h->cap_nodes);
  PLN_TRY(pln_mem_grow(g->engine, (void **)&h->operands, &h->cap_operands,
                       g->n_operands + (size_t)1, sizeof *h->operands));
  if (g->n_operands)
    memcpy(h->operands, g->operands, g->n_operands * sizeof *h->operands);
  COPY(scopes, g->n_scopes, &h->cap_scopes);
  COPY(values, g->n_nodes, &h->cap_values);
  COPY(origin, g->n_nodes, &h->cap_origin);
  COPY(typed_from, g->n_nodes, &h->cap_typed_from);
  COPY(tensors, g->n_tensors, &h->cap_tensors);
  for (; h->n_tensors < g->n_tensors; h->n_tensors++)
    pln_tensor_retain(h->tensors[h->n_tensors]);
  h->n_nodes = g->n_nodes;
  h->n_operands = g->n_operands;
  h->n_scopes = g->n_scopes;
  h->root = g->root;
  h->sealed = g->sealed;
  h->origins = g->origins ? pln_origins_retain(g->origins) : NULL;
  return PLN_OK;
}

pln_status pln_graph_copy(const pln_graph *graph, pln_graph **out) {
  pln_graph *copy = NULL;
  PLN_TRY(pln_graph_new(graph->engine, &copy));
  pln_status status = copy_into(graph, copy);
  if (status == PLN_OK)
    *out = copy;
  else
    pln_graph_release(copy);
  return status;
}

bool pln_function_is_onnx(const pln_graph *function) {
  const pln_node *root = &function->nodes[function->root];
  return pln_owns(root) &&
         pln_attrs_find(function->engine, function->scopes[root->data].attrs,
                        "output_names");
}
