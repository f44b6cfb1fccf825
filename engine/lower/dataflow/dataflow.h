/* dataflow.h: what a PrimFunc's buffers hold where its statements stand, and
 * which stores are overwritten before anything reads them; for tir.Simplify,
 * tir.RemoveNoOp and tir.ReduceBranchingThroughOvercompute.
 *
 * The old graph is analysed as it is, before a pass rewrites it. Buffers with
 * different pointers do not overlap, and iterations of parallel loops do not
 * depend on each other, as in TVM. */

#ifndef PLN_LOWER_DATAFLOW_DATAFLOW_H
#define PLN_LOWER_DATAFLOW_DATAFLOW_H

#include "arith/arith.h"

typedef struct pln_buffer_flow {
  pln_analyzer *a; /* of the terms below, over variables of the old graph */
  const pln_graph *g;
  pln_term *value_of; /* by BufferLoad: its value, or PLN_NO_TERM */
  bool *overwritten;  /* by BufferStore: it is overwritten, and not read */
  bool *redundant;    /* by BufferStore: it stores what is there */
  int8_t *decided;    /* by IfThenElse: its condition, 1 or 0; -1: not known */
  int8_t *general;    /* by IfThenElse: the branch that may run in place of the
                       * other one too; -1: none */
} pln_buffer_flow;

/* Finds what the buffers hold. With `removing`, stores that are overwritten
 * count as removed, and `overwritten` and `redundant` are found. `extensions`
 * of the analyzer: PLN_ARITH_*. In linear time: of each buffer the last few
 * facts are known, and of each loop the first few dozen accesses. */
pln_status pln_buffer_flow_find(const pln_graph *function, uint32_t extensions,
                                bool removing,
                                pln_buffer_flow *out) PLN_CHECKED;
/* Finds `general`: branches that, where their condition does not hold, do what
 * the other branch does, and besides store what is there, or what is
 * overwritten before anything reads it. Without `dataflow` nothing is known of
 * buffers. Branches of a few hundred nodes are looked at. */
pln_status pln_buffer_flow_find_general(const pln_graph *function,
                                        bool dataflow,
                                        pln_buffer_flow *out) PLN_CHECKED;
void pln_buffer_flow_free(pln_buffer_flow *flow);

#endif
