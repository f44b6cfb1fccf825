/* infer/try_parameter_types.c: infers a function under other parameter types
 * without building a new one. Used to search for sizes that a model accepts.
 *
 * Nothing is computed: inference with numbers in place of symbols decides
 * whether windows, reshapes and products are valid. Invariants: the function is
 * unchanged, and no diagnostic is left behind. A node that is ill-typed
 * already, as files may contain, is ignored. */

#include "ir/graph/graph.h"
#include "ir/infer/apply.h"

#include <stdio.h>

typedef struct signature_trial {
  const pln_graph *graph; /* the function */
  pln_graph *copy;        /* the copy that is inferred */
  pln_builder builder;
  bool full; /* no parameter is empty */
  pln_signature_result *out;
} signature_trial;

/* ------------------------------------------------------------------ emptiness
 */

static bool is_empty(const pln_engine *e, pln_type type) {
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR)
    return false;
  int32_t rank = pln_type_rank(e, type);
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] == 0)
      return true;
  return false;
}

static void note_empty(signature_trial *t, pln_ref node) {
  const pln_engine *e = t->graph->engine;
  if (t->full && t->out->empty == PLN_NONE &&
      is_empty(e, t->copy->nodes[node].type) &&
      !is_empty(e, t->graph->nodes[node].type))
    t->out->empty = node;
}

/* Whether every result is empty. */
static bool results_empty(const signature_trial *t) {
  const pln_engine *e = t->graph->engine;
  const pln_node *root = &t->copy->nodes[t->copy->root];
  if (root->kind != PLN_FUNCTION)
    return false;
  pln_type type = t->copy->nodes[t->copy->scopes[root->data].result].type;
  if (pln_type_get_kind(e, type) != PLN_TYPE_TUPLE)
    return is_empty(e, type);
  uint32_t n = pln_type_n_parts(e, type);
  for (uint32_t i = 0; i < n; i++)
    if (!is_empty(e, pln_type_part_at(e, type, i)))
      return false;
  return n > 0;
}

/* -------------------------------------------------------------------- failure
 */

/* Errors that do not depend on the types. */
static bool ends_trial(pln_status status) {
  return status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT ||
         status == PLN_ERR_INTERRUPTED;
}

/* True if the node is ill-typed in the unchanged function too. */
static pln_status fails_anyway(signature_trial *t, pln_ref node, bool *out) {
  pln_engine *e = t->graph->engine;
  pln_node n = t->graph->nodes[node];
  pln_value value = 0;
  *out = false;
  if (n.kind != PLN_CALL)
    return PLN_OK;
  size_t mark = pln_diag_count(e);
  pln_type type;
  pln_status status = n.data ? pln_infer_op_call(t->graph, &n, NULL, &value)
                             : pln_infer_apply(e, t->graph, &n, &type);
  *out = status != PLN_OK;
  if (ends_trial(status))
    return status;
  pln_diag_drop(e, mark);
  return PLN_OK;
}

static void add_number(pln_signature_result *out, int64_t number) {
  if (number < 1 || number > PLN_MAX_TRIALS ||
      out->n_numbers == PLN_COUNT(out->numbers))
    return;
  for (uint32_t i = 0; i < out->n_numbers; i++)
    if (out->numbers[i] == number)
      return;
  out->numbers[out->n_numbers++] = number;
}

static void add_numbers(pln_signature_result *out, uint32_t n,
                        const pln_dim *dims) {
  for (uint32_t i = 0; i < n; i++)
    if (PLN_DIM_IS_CONST(dims[i]))
      add_number(out, dims[i]);
}

static void add_attr(pln_signature_result *out, const pln_attr *attr) {
  if (attr->kind == PLN_ATTR_INT)
    add_number(out, attr->v.i);
  for (uint32_t i = 0; attr->kind == PLN_ATTR_INTS && i < attr->count; i++)
    add_number(out, attr->v.ints[i]);
}

/* Collects the numbers among the node's operands, from which valid sizes may be
 * derived; operands that do not depend on parameters come first. */
static void gather_numbers(signature_trial *t, pln_ref node) {
  pln_engine *e = t->graph->engine;
  const pln_node *n = &t->copy->nodes[node];
  const pln_ref *args = pln_operands(t->copy, n);
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < n->count; i++) {
      pln_type type = t->copy->nodes[args[i]].type;
      pln_value value = t->copy->values[args[i]];
      bool changed = type != t->graph->nodes[args[i]].type;
      int32_t rank = pln_type_rank(e, type);
      if (changed != (pass == 1))
        continue;
      if (rank > 0)
        add_numbers(t->out, (uint32_t)rank, pln_type_dims(e, type));
      add_numbers(t->out, pln_value_count(e, value),
                  pln_value_elements(e, value));
    }
  for (uint32_t i = 0; i < pln_attrs_count(e, n->attrs); i++)
    add_attr(t->out, pln_attrs_at(e, n->attrs, i));
}

/* The parameters that the node depends on. A node in a nested scope may depend
 * on all of them. */
static pln_status find_params(signature_trial *t, pln_ref node, uint32_t n,
                              bool *params) {
  const pln_graph *g = t->graph;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  uint8_t *needed = pln_mem_zeroed(g->engine, g->n_nodes);
  if (!needed)
    return pln_nomem(g->engine);
  bool nested = t->builder.node_scope[node] != g->nodes[g->root].data;
  needed[node] = 1;
  for (pln_ref i = node + 1; i-- > row->begin + n;) {
    if (!needed[i])
      continue;
    nested |= pln_owns(&g->nodes[i]);
    const pln_ref *args = pln_operands(g, &g->nodes[i]);
    for (uint32_t k = 0; k < g->nodes[i].count; k++)
      needed[args[k]] = 1;
  }
  for (uint32_t i = 0; i < n; i++)
    params[i] = nested || needed[row->begin + i];
  pln_mem_free(g->engine, needed, g->n_nodes);
  return PLN_OK;
}

/* ---------------------------------------------------------------------- typing
 */

static void keep_message(signature_trial *t, size_t mark) {
  const pln_engine *e = t->graph->engine;
  const char *text = mark < pln_diag_count(e) ? pln_diag_at(e, mark)->message
                                              : "it does not fit";
  snprintf(t->out->message, sizeof t->out->message, "%s", text);
}

/* Infers one node; sets t->out->failed when it is ill-typed. */
static pln_status type_node(signature_trial *t, pln_ref node) {
  pln_engine *e = t->graph->engine;
  pln_node *n = &t->copy->nodes[node];
  pln_type old = n->type;
  if (pln_kinds[n->kind].operands == 0 && pln_kinds[n->kind].scopes == 0)
    return PLN_OK;
  if (n->kind == PLN_FUNCTION)
    n->type = 0; /* the declared type contains symbols */
  size_t mark = pln_diag_count(e);
  pln_status status = pln_builder_infer(&t->builder, node);
  if (status == PLN_OK) {
    if (!n->type)
      n->type = old;
    note_empty(t, node);
    return PLN_OK;
  }
  bool anyway;
  if (ends_trial(status))
    return status;
  PLN_TRY(fails_anyway(t, node, &anyway));
  if (!anyway) {
    t->out->failed = node;
    keep_message(t, mark);
  }
  pln_diag_drop(e, mark);
  n->type = old;
  t->copy->values[node] = 0;
  return PLN_OK;
}

static pln_status type_nodes(signature_trial *t, uint32_t n,
                             const pln_type *types, bool *params) {
  const pln_graph *g = t->graph;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  t->full = true;
  for (uint32_t i = 0; i < n; i++) {
    t->copy->nodes[row->begin + i].type = types[i];
    t->copy->values[row->begin + i] = 0;
    t->full &= !is_empty(g->engine, types[i]);
  }
  for (pln_ref i = row->begin + n; i < g->n_nodes; i++) {
    if (i % 1024 == 0)
      PLN_TRY(pln_poll(g->engine));
    PLN_TRY(type_node(t, i));
    t->out->n_typed++;
    if (t->out->failed != PLN_NONE) {
      gather_numbers(t, i);
      return find_params(t, i, n, params);
    }
  }
  t->out->results_empty = results_empty(t);
  if (t->out->empty == PLN_NONE)
    return PLN_OK;
  gather_numbers(t, t->out->empty);
  return find_params(t, t->out->empty, n, params);
}

static pln_status try_on_copy(signature_trial *t, uint32_t n,
                              const pln_type *types, bool *params) {
  pln_engine *e = t->graph->engine;
  size_t nodes = t->graph->n_nodes, scopes = t->graph->n_scopes;
  pln_scope *node_scope = pln_mem_new(e, nodes * sizeof *node_scope);
  uint8_t *effects = pln_mem_zeroed(e, scopes);
  t->builder.node_scope = node_scope;
  t->builder.effects = effects;
  pln_status status = node_scope && effects ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK) {
    pln_graph_node_scopes(t->copy, node_scope);
    status = type_nodes(t, n, types, params);
  }
  pln_mem_free(e, node_scope, node_scope ? nodes * sizeof *node_scope : 0);
  pln_mem_free(e, effects, effects ? scopes : 0);
  return status;
}

pln_status pln_graph_infer_signature(const pln_graph *function,
                                     const pln_module *module, uint32_t n,
                                     const pln_type *types,
                                     pln_signature_result *out, bool *params) {
  pln_engine *e = function->engine;
  const pln_node *root = &function->nodes[function->root];
  *out = (pln_signature_result){.failed = PLN_NONE, .empty = PLN_NONE};
  if (root->kind != PLN_FUNCTION || function->scopes[root->data].n_params != n)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "a function of %u parameters is expected", n);
  for (uint32_t i = 0; i < n; i++)
    params[i] = false;
  signature_trial t = {.graph = function, .out = out};
  PLN_TRY(pln_graph_copy(function, &t.copy));
  t.builder = (pln_builder){.engine = e,
                            .graph = t.copy,
                            .in = PLN_NONE,
                            .scoped = true,
                            .module = module};
  pln_status status = try_on_copy(&t, n, types, params);
  pln_graph_release(t.copy);
  return status;
}
