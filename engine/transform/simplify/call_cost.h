/* call_cost.h: the costs of calls that functions of operators tell. For
 * equality_saturation.c. */

#ifndef PLN_TRANSFORM_SIMPLIFY_CALL_COST_H
#define PLN_TRANSFORM_SIMPLIFY_CALL_COST_H

#include "ir/graph/graph.h"

/* A pln_ecost_fn: asks the function of the attribute `perilune.call_cost` of
 * the operator. PLN_ERR_ARGUMENT if it has none. */
pln_status pln_call_cost(void *ud, const pln_graph *graph, pln_ref node,
                         uint64_t constants, double *out) PLN_CHECKED;

#endif
