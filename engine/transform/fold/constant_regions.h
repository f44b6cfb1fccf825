/* constant_regions.h: which computations of constants may be folded as a whole.
 *
 * A region is a call and the calls that only it needs, all of which depend on
 * constants only. What the calls in between compute is dropped again, so the
 * budget is asked about the result of the region and the constants that die
 * with all of it, where a single call would have to pay for what follows it:
 *
 *     %0 = subtract(w, mean(w)); divide(%0, sqrt(mean(multiply(%0, %0)))) */

#ifndef PLN_TRANSFORM_FOLD_CONSTANT_REGIONS_H
#define PLN_TRANSFORM_FOLD_CONSTANT_REGIONS_H

#include "eval/eval.h"

/* Returns true for a call that is not evaluated, whatever its operands are. */
typedef bool pln_constant_region_test(const void *ud, const pln_node *call);

typedef struct pln_constant_regions {
  pln_engine *engine;
  const pln_graph *graph;
  pln_ref *last; /* by node: the last call of its region; PLN_NONE: none */
  pln_scope *scope_of; /* by node */
  size_t *freed;       /* by last call: bytes of the constants that die */
  uint8_t *flags;      /* by node */
  pln_constant_region_test *is_never_folded;
  const void *ud; /* for it */
} pln_constant_regions;

/* Finds the regions of a sealed graph, in linear time; pln_constant_regions_end
 * releases them, also after an error. */
pln_status pln_constant_regions_begin(pln_constant_regions *regions,
                                      const pln_graph *graph,
                                      pln_constant_region_test *is_never_folded,
                                      const void *ud) PLN_CHECKED;
void pln_constant_regions_end(pln_constant_regions *regions);
/* Returns true if the call's region may be folded. */
bool pln_constant_regions_allow(const pln_constant_regions *regions,
                                pln_ref node);

#endif
