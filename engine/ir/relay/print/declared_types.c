/* declared_types.c: finds nodes whose types the text must write, because
 * inference cannot derive them: a file declared more than is inferred.
 *
 * Called by plan.c for graphs with such nodes. Each node is inferred again from
 * its operands; nothing is changed or reported. */

#include "ir/infer/apply.h"
#include "ir/relay/print/plan.h"

static bool field_again(const pln_graph *g, pln_node *n) {
  pln_type tuple = g->nodes[g->operands[n->first]].type;
  if (pln_type_get_kind(g->engine, tuple) != PLN_TYPE_TUPLE ||
      n->data >= pln_type_n_parts(g->engine, tuple))
    return false;
  n->type = pln_type_part_at(g->engine, tuple, n->data);
  return true;
}

static pln_status branches_again(const pln_graph *g, pln_node *n) {
  pln_ref a = g->scopes[n->data].result;
  pln_ref b = g->scopes[g->scopes[n->data].next].result;
  bool conflict;
  return pln_type_join(g->engine, g->nodes[a].type, g->nodes[b].type, &n->type,
                       &conflict);
}

/* Calls of what nobody here knows say their type in a comment, which is
 * read. */
static pln_status call_again(const pln_graph *g, pln_node *n, bool *can) {
  pln_value value;
  if (!n->data)
    return pln_infer_apply(g->engine, g, n, &n->type);
  *can = !(pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_OPAQUE);
  return *can ? pln_infer_op_call(g, n, NULL, &value) : PLN_OK;
}

/* What follows from operands and branches. */
static pln_status infer_again(const pln_graph *g, pln_node *n, bool *can) {
  *can = true;
  if (n->kind == PLN_CALL)
    return call_again(g, n, can);
  if (n->kind == PLN_IF)
    return branches_again(g, n);
  *can = n->kind == PLN_TUPLE_GET_ITEM && field_again(g, n);
  return PLN_OK;
}

pln_status pln_text_needs_type(const pln_graph *graph, pln_ref node,
                               bool *out) {
  pln_engine *e = graph->engine;
  pln_node again = graph->nodes[node];
  pln_type type = again.type;
  size_t mark = pln_diag_count(e);
  uint64_t inferences = e->n_inferences;
  bool can;
  *out = false;
  if (!type || graph->typed_from[node] == PLN_TYPED_REFUSED)
    return PLN_OK;
  pln_status status = infer_again(graph, &again, &can);
  e->n_inferences = inferences;
  if (status == PLN_ERR_NOMEM)
    return status;
  pln_diag_drop(e, mark);
  *out = can && (status != PLN_OK || again.type != type);
  return PLN_OK;
}
