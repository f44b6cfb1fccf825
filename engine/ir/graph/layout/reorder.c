/* reorder.c: copies a sealed graph with its nodes in another order.
 *
 * Called by passes whose replacement of a node needs operands that stand behind
 * it. Sealing does the work: every scope lays its own nodes out in the order
 * that is given.
 *
 *     %0 = f(%x); %1 = g(%y); h(%0, %1), order 1 0 2
 *       =>   %0 = g(%y); %1 = f(%x); h(%1, %0) */

#include "ir/graph/layout/layout.h"

pln_status pln_graph_reorder(const pln_graph *graph, const pln_ref *order,
                             pln_graph **out) {
  pln_layout l;
  pln_graph *g = NULL;
  pln_status status = pln_layout_begin(&l, graph, graph->root);
  if (status != PLN_OK)
    return status;
  l.n = graph->n_nodes;
  memcpy(l.order, order, l.n * sizeof *l.order);
  pln_graph_node_scopes(graph, l.node_scope);
  for (pln_scope s = 0; s < graph->n_scopes; s++)
    l.result[s] = graph->scopes[s].result;
  status = pln_layout_place(&l);
  if (status == PLN_OK)
    status = pln_layout_emit(&l, &g);
  pln_layout_end(&l);
  return status == PLN_OK ? pln_layout_verified(status, g, out) : status;
}
