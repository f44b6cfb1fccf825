/* spans.h: a graph with other spans of its nodes. */

#ifndef PLN_IR_REWRITE_SPANS_H
#define PLN_IR_REWRITE_SPANS_H

#include "ir/graph/graph.h"

/* The span of a node; row and column are set where it returns true, else the
 * node keeps its own. */
typedef bool (*pln_span_of)(void *ud, pln_ref node, pln_source_span *span);

/* A copy of the graph with these spans in `source`. `printed`: the printer
 * writes them. */
pln_status pln_graph_annotate_spans(const pln_graph *graph, pln_symbol source,
                                    bool printed, pln_span_of span_of, void *ud,
                                    pln_graph **out) PLN_CHECKED;

#endif
