/* use_counts.h: use counts of nodes, kept up to date during a rewrite. A pass
 * asks them which constants die with a node. */

#ifndef PLN_IR_REWRITE_USE_COUNTS_H
#define PLN_IR_REWRITE_USE_COUNTS_H

#include "ir/graph/graph.h"

/* A use is an occurrence as an operand or as the result of a scope. */
typedef struct pln_use_counts {
  pln_engine *engine;
  const pln_graph *graph; /* the old graph */
  uint32_t *old;          /* by node of the old graph */
  uint32_t n, cap;
  uint32_t *now; /* by node of the new graph; nodes from n on have 0 */
} pln_use_counts;

/* Counts the uses in the old graph. */
pln_status pln_use_counts_begin(pln_use_counts *uses,
                                const pln_graph *old) PLN_CHECKED;
void pln_use_counts_end(pln_use_counts *uses);
/* Moves the uses of `old` to `node`. Must be called for every node in order. */
PLN_CHECKED static inline pln_status
pln_use_counts_replace(pln_use_counts *uses, pln_ref old, pln_ref node);
/* Adds (+1) or removes (-1) the uses that `node` of the new graph makes of its
 * operands. */
pln_status pln_use_counts_change(pln_use_counts *uses, const pln_graph *graph,
                                 pln_ref node, int by) PLN_CHECKED;
pln_status pln_use_counts_grow(pln_use_counts *uses, pln_ref node) PLN_CHECKED;
/* Extends uses->now to cover `node`. */
PLN_CHECKED static inline pln_status pln_use_counts_cover(pln_use_counts *uses,
                                                          pln_ref node) {
  return node < uses->n ? PLN_OK : pln_use_counts_grow(uses, node);
}
static inline pln_status pln_use_counts_replace(pln_use_counts *uses,
                                                pln_ref old, pln_ref node) {
  PLN_TRY(pln_use_counts_cover(uses, node));
  uses->now[node] += uses->old[old];
  return PLN_OK;
}

#endif
