/* loop/renew.c: a copy of a program of the loop level that defines variables
 * of its own: each one that it binds is another (TVM's RenewDefs).
 *
 * Called by whoever uses one body twice. What is free stays what it is. The
 * copy is made in a builder, where the bound variables get their new numbers
 * before it is sealed. */

#include "ir/loop/loop.h"

typedef struct renewal {
  pln_engine *engine;
  pln_idmap *fresh; /* a bound variable: its new number */
} renewal;

static pln_status note_bound(void *ud, const pln_graph *g, pln_ref var) {
  renewal *r = ud;
  return pln_idmap_set(r->fresh, g->nodes[var].data, ++r->engine->n_vars);
}

static pln_status copy_renewed(const renewal *r, pln_builder *b,
                               const pln_graph *g, pln_graph **out) {
  pln_ref root;
  PLN_TRY(pln_build_import(b, g, g->root, &root));
  for (pln_ref ref = 0; ref < b->graph->n_nodes; ref++) {
    pln_node *n = &b->graph->nodes[ref];
    uint32_t fresh = n->kind == PLN_VAR ? pln_idmap_get(r->fresh, n->data) : 0;
    if (fresh)
      n->data = fresh;
  }
  return pln_builder_seal(b, root, out);
}

pln_status pln_graph_renew_defs(const pln_graph *graph, pln_graph **out) {
  renewal r = {.engine = graph->engine};
  pln_builder *b = NULL;
  *out = NULL;
  if (!graph->sealed || !pln_is_loop_level(&graph->nodes[graph->root]))
    return pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                          "a PrimFunc or a statement defines variables anew");
  PLN_TRY(pln_idmap_new(graph->engine, &r.fresh));
  pln_status status =
      pln_graph_vars(graph, graph->root, PLN_VARS_BOUND, note_bound, &r);
  if (status == PLN_OK)
    status = pln_builder_new(graph->engine, &b);
  if (status == PLN_OK)
    status = copy_renewed(&r, b, graph, out);
  pln_builder_free(b);
  pln_idmap_free(r.fresh);
  return status;
}
