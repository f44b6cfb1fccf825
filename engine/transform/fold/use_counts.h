/* use_counts.h: how often the nodes of a graph are used while it is rewritten;
 * for passes that ask which constants die with a node. */

#ifndef PLN_TRANSFORM_FOLD_USE_COUNTS_H
#define PLN_TRANSFORM_FOLD_USE_COUNTS_H

#include "ir/graph/graph.h"

/* Occurrences as operand and as result of a scope. */
typedef struct pln_use_counts {
  pln_engine *engine;
  const pln_graph *graph; /* the old one */
  uint32_t *old;          /* a node of the old graph */
  uint32_t n, cap;
  uint32_t *now; /* a node of the new graph; n of them, those above have 0 */
} pln_use_counts;

/* Counts the old graph's; nothing is known of a new one yet. */
pln_status pln_use_counts_begin(pln_use_counts *uses,
                                const pln_graph *old) PLN_CHECKED;
void pln_use_counts_end(pln_use_counts *uses);
/* All users of `old` now use `node`. To be told of each node in turn. */
pln_status pln_use_counts_replace(pln_use_counts *uses, pln_ref old,
                                  pln_ref node) PLN_CHECKED;
/* `node` of `graph`, the new one, is counted as a user of its operands (by 1),
 * or goes and is no user any more (by -1). */
pln_status pln_use_counts_change(pln_use_counts *uses, const pln_graph *graph,
                                 pln_ref node, int by) PLN_CHECKED;
/* Makes uses->now cover `node`. */
pln_status pln_use_counts_cover(pln_use_counts *uses, pln_ref node) PLN_CHECKED;

#endif
