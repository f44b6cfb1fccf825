/* profile.h: how the evaluator fills a profile (perilune.h declares it). */

#ifndef PLN_EVAL_PROFILE_H
#define PLN_EVAL_PROFILE_H

#include "ir/graph/graph.h"

/* A call that was computed. */
typedef struct pln_profiled_call {
  const pln_graph *graph;
  pln_ref node;
  pln_attrs attrs;
  uint32_t n_args, n_results;
  const pln_tensor *const *args; /* NULL elements: omitted */
  pln_tensor *const *results;
} pln_profiled_call;

/* Nanoseconds of a monotonic clock. */
uint64_t pln_profile_clock(void);
/* Appends a row for a call that ran from `begin` to `end`. */
pln_status pln_profile_add(pln_profile *profile, const pln_profiled_call *call,
                           uint64_t begin, uint64_t end) PLN_CHECKED;

#endif
