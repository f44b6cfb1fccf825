/* spans.c: compares the source spans of two graphs, which equality ignores.
 *
 * Called by the pass executor for passes whose result includes spans. */

#include "ir/compare/equal.h"

static bool same_span(const pln_source_span *x, const pln_source_span *y) {
  return x->source == y->source && x->row == y->row && x->column == y->column &&
         x->end_row == y->end_row && x->end_column == y->end_column;
}

static bool same_place(const pln_graph *a, const pln_graph *b, pln_ref node) {
  pln_source_span x, y;
  bool printed, also;
  bool has = pln_node_place(a, node, &x, &printed);
  if (has != pln_node_place(b, node, &y, &also))
    return false;
  return !has || (printed == also && same_span(&x, &y));
}

bool pln_graph_same_spans(const pln_graph *a, const pln_graph *b) {
  for (pln_ref i = 0; i < a->n_nodes; i++)
    if (!same_place(a, b, i))
      return false;
  return true;
}
