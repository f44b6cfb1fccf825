/* cost.h: how much a call computes: multiply-accumulates, and operations on
 * numbers. Used by profiles of runs and by `info --macs`. */

#ifndef PLN_OP_COST_H
#define PLN_OP_COST_H

#include "op/infer/infer.h"

/* The extents that a call's cost depends on. */
typedef struct pln_cost_call {
  pln_engine *engine;
  pln_op op;
  pln_attrs attrs;
  uint32_t n_args;
  const pln_shape *args; /* rank -1: unknown, or omitted */
  pln_shape result;      /* the first one */
} pln_cost_call;

/* *macs: multiply-accumulates of products of matrices, convolutions, attention
 * and recurrent layers, by the definition of the operator, whatever algorithm
 * computes it (TVM: mac_count.cc); 0 for others. *flops: two for each of them;
 * for operators that work element by element or reduce, one for each element of
 * their result or operand. Symbolic extents give symbolic counts; unknown ones
 * PLN_DIM_UNKNOWN. */
pln_status pln_op_cost(const pln_cost_call *call, pln_dim *macs,
                       pln_dim *flops) PLN_CHECKED;
/* The cost of a call of an operator in a graph, from the types of its operands
 * and results. */
pln_status pln_node_cost(const pln_graph *graph, pln_ref node, pln_dim *macs,
                         pln_dim *flops) PLN_CHECKED;

#endif
