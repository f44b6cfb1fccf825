/* value_range.h: intervals that hold the elements of tensors, by abstract
 * interpretation of a graph. For EliminateNaNGuards. */

#ifndef PLN_TRANSFORM_CANONICALIZE_VALUE_RANGE_H
#define PLN_TRANSFORM_CANONICALIZE_VALUE_RANGE_H

#include "ir/graph/graph.h"

/* Every element lies in [lo, hi], and none is NaN or infinite. Nothing is known
 * of a range whose lo is infinite. */
typedef struct pln_value_range {
  double lo, hi;
} pln_value_range;

typedef struct pln_value_ranges {
  const pln_graph *graph;
  pln_value_range *of; /* by node; of a Split, those of its parts */
  uint8_t *wanted;     /* by node: its range is needed */
  size_t bytes_read;   /* of constants */
} pln_value_ranges;

static inline bool pln_range_is_finite(pln_value_range r) {
  return r.lo >= -1.7976931348623157e308 && r.hi <= 1.7976931348623157e308;
}

/* Finds the ranges of the nodes marked in `wanted`, and of what they are
 * computed from, which are marked too. Floating-point operators round as IEEE
 * 754 says; sums, in any order. What a parameter holds is not known, unless it
 * is of integers. Reads at most 64 MiB of constants; others are not known.
 * pln_value_ranges_end frees the arrays, also after a failure. */
pln_status pln_value_ranges_begin(pln_value_ranges *ranges,
                                  const pln_graph *graph) PLN_CHECKED;
void pln_value_ranges_find(pln_value_ranges *ranges);
void pln_value_ranges_end(pln_value_ranges *ranges);

#endif
