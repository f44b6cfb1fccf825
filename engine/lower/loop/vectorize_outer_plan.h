/* vectorize_outer_plan.h: which loops around reductions become vectors; for
 * tir.VectorizeOuterLoop. */

#ifndef PLN_LOWER_LOOP_VECTORIZE_OUTER_PLAN_H
#define PLN_LOWER_LOOP_VECTORIZE_OUTER_PLAN_H

#include "lower/lower.h"

typedef struct pln_outer_loop {
  uint32_t lanes;  /* 0: it stays as it is */
  int64_t begin;   /* the round where the vectors begin */
  int64_t vectors; /* how many there are; -1: as many as the extent has */
  bool has_rest;   /* rounds behind them */
} pln_outer_loop;

typedef struct pln_outer_plan {
  const pln_graph *graph;
  pln_outer_loop *loops; /* by node */
  pln_ref *guard_of;     /* by node, a comparison: 1 + the loop in whose vectors
                          * it holds */
  bool any;              /* a loop becomes vectors */
} pln_outer_plan;

/* vector_bytes: of one vector. */
pln_status pln_outer_plan_make(pln_outer_plan *plan, const pln_graph *function,
                               int64_t vector_bytes) PLN_CHECKED;
void pln_outer_plan_free(pln_outer_plan *plan);

#endif
