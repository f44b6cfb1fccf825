/* computation.h: which expressions tir.CommonSubexprElimTIR binds to variables,
 * and how often a part of a program computes them. */

#ifndef PLN_LOWER_COMMON_SUBEXPR_COMPUTATION_H
#define PLN_LOWER_COMMON_SUBEXPR_COMPUTATION_H

#include "arith/arith.h"
#include "lower/lower.h"

/* An expression and how often it is computed. */
typedef struct pln_computation {
  pln_term term;
  uint32_t count;
} pln_computation;

/* Computations, each once, in the order in which they were added. */
typedef struct pln_computation_table {
  pln_computation *rows;
  uint32_t n, cap;
  uint32_t *row_of; /* by term: row + 1, if the stamp fits */
  uint32_t *stamp;
  uint32_t cap_row_of, cap_stamp, now;
} pln_computation_table;

pln_status pln_computation_add(pln_analyzer *a, pln_computation_table *table,
                               pln_term term, uint32_t count) PLN_CHECKED;
/* Empties the table. */
void pln_computation_clear(pln_computation_table *table);
void pln_computation_free(pln_engine *engine, pln_computation_table *table);
uint32_t pln_computation_count(const pln_computation_table *table,
                               pln_term term);

/* By term: what is known of it; grows with the analyzer. */
typedef struct pln_computation_kinds {
  uint8_t *kind; /* 0: not known yet */
  uint32_t cap;
} pln_computation_kinds;

/* A pure expression of more than one node without loads and calls, and no ramp
 * or broadcast (TVM's IsEligibleComputation). The answer is kept. */
pln_status pln_is_computation(pln_analyzer *a, pln_computation_kinds *kinds,
                              pln_term term, bool *out) PLN_CHECKED;
/* Adds the largest computations that the expression consists of. Without
 * `whole`, those of its operands. */
pln_status pln_computations_of(pln_analyzer *a, pln_computation_kinds *kinds,
                               pln_term term, bool whole, uint32_t count,
                               pln_computation_table *table) PLN_CHECKED;

#endif
