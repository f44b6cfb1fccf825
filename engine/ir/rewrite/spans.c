/* spans.c: a copy of a graph whose nodes have other spans.
 *
 * Called by passes that say where a node stands in a text or in an order.
 * A node keeps the rest of its origin, which is the parent of its new row. */

#include "ir/rewrite/spans.h"

#include "ir/provenance/origin.h"

typedef struct span_setter {
  pln_graph *copy;
  pln_symbol source;
  bool printed;
  pln_span_of span_of;
  void *ud;
} span_setter;

static pln_status set_span(const span_setter *x, pln_ref ref) {
  pln_graph *copy = x->copy;
  pln_origin row = {.parent = copy->origin[ref], .place_printed = x->printed};
  if (!x->span_of(x->ud, ref, &row.place))
    return PLN_OK;
  row.place.source = x->source;
  return pln_origins_add(copy->origins, &row, &copy->origin[ref]);
}

static pln_status set_spans(const span_setter *x) {
  if (!x->copy->origins)
    PLN_TRY(pln_origins_new(x->copy->engine, &x->copy->origins));
  for (pln_ref ref = 0; ref < x->copy->n_nodes; ref++) {
    PLN_TRY(pln_poll_round(x->copy->engine, ref));
    PLN_TRY(set_span(x, ref));
  }
  return PLN_OK;
}

pln_status pln_graph_annotate_spans(const pln_graph *graph, pln_symbol source,
                                    bool printed, pln_span_of span_of, void *ud,
                                    pln_graph **out) {
  span_setter x = {
      .source = source, .printed = printed, .span_of = span_of, .ud = ud};
  PLN_TRY(pln_graph_copy(graph, &x.copy));
  pln_status status = set_spans(&x);
  if (status == PLN_OK)
    *out = x.copy;
  else
    pln_graph_release(x.copy);
  return status;
}
