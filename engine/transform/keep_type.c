/* keep_type.c: what is known of a node's type stays known when another node
 * takes its place. Called by passes that forward or rebuild nodes. */

#include "transform/transform.h"

pln_status pln_keep_type(pln_rewrite *rw, pln_ref node, pln_type type) {
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[node];
  pln_type met;
  bool conflict;
  if (n->type == type || !type || n->kind == PLN_VAR)
    return PLN_OK;
  PLN_TRY(pln_type_meet(pln_rewrite_graph(rw)->engine, n->type, type, &met,
                        &conflict));
  if (conflict || met == n->type)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[node].type = met;
  return PLN_OK;
}

/* A node that is a result itself keeps the type it was declared with: dims
 * that another result knows better are no reason to declare it anew. */
pln_status pln_keep_rank(pln_rewrite *rw, pln_ref node, pln_type type) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_type own = g->nodes[node].type;
  if (pln_type_kind_of(g->engine, own) == PLN_TYPE_TENSOR &&
      pln_type_rank(g->engine, own) >= 0 && pln_type_dtype(g->engine, own))
    return PLN_OK;
  return pln_keep_type(rw, node, type);
}
