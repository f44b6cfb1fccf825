/* evaluation_order.h: a graph in the order in which Relay evaluates it. */

#ifndef PLN_IR_GRAPH_EVALUATION_ORDER_H
#define PLN_IR_GRAPH_EVALUATION_ORDER_H

#include "ir/graph/graph.h"

/* A copy of a sealed graph with each value before its first use, operands from
 * left to right. *out is `graph` itself, retained, if it is in that order, or
 * if effects or lets would change places. */
pln_status pln_graph_in_evaluation_order(const pln_graph *graph,
                                         pln_graph **out) PLN_CHECKED;

#endif
