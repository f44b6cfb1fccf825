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
  uint32_t within; /* the size of the largest computation that it was found in;
                    * UINT32_MAX: of none */
  pln_term outer;  /* what it must be found in, too, if both sides of a branch
                    * compute it; 0: nothing. Part of what rows are told by. */
} pln_computation;

/* Computations, each once, in the order in which they were added. As large as
 * what is in it, because there is one for each open branch. */
typedef struct pln_computation_table {
  pln_computation *rows;
  uint32_t n, cap;
  uint32_t *slots; /* a hash table of rows + 1; n_slots is a power of two */
  uint32_t n_slots;
  uint32_t *heap; /* rows that pln_computation_next did not give yet */
  uint32_t n_heap, cap_heap, n_queued;
} pln_computation_table;

pln_status pln_computation_add(pln_analyzer *a, pln_computation_table *table,
                               pln_computation row) PLN_CHECKED;
/* The largest computation that was not given yet, of equally large ones that in
 * the largest one, of these the first; false if there is none. Rows may be
 * added meanwhile. */
pln_status pln_computation_next(pln_analyzer *a, pln_computation_table *table,
                                pln_computation *out, bool *found) PLN_CHECKED;
void pln_computation_free(pln_engine *engine, pln_computation_table *table);
uint32_t pln_computation_count(const pln_computation_table *table,
                               const pln_computation *row);

/* Where a function has an expression, from the first to the last place; last 0:
 * nowhere. The place of a statement is before what it contains. */
typedef struct pln_places {
  pln_ref first, last;
} pln_places;
pln_places pln_places_join(pln_places a, pln_places b);

/* By term: what is known of it; grows with the analyzer. */
typedef struct pln_computation_kinds {
  pln_term_marks known;
  uint8_t *kind;
  uint32_t *times;    /* zero, except while parts are counted */
  pln_ref *innermost; /* the innermost variable of a part in it, or 0 */
  pln_places *places; /* without the conditions of branches */
  uint32_t cap, cap_times, cap_innermost, cap_places;
  pln_ref only; /* only what has this innermost variable counts; 0: all */
} pln_computation_kinds;
pln_status pln_kinds_grow(pln_analyzer *a,
                          pln_computation_kinds *kinds) PLN_CHECKED;
/* A present form is where the expression is. */
void pln_kinds_note_form(pln_computation_kinds *kinds, pln_term t,
                         pln_term form);
static inline pln_ref pln_innermost_var(const pln_computation_kinds *kinds,
                                        pln_term t) {
  return t < kinds->cap_innermost ? kinds->innermost[t] : 0;
}
/* Its operands are no expressions of the statement. */
bool pln_term_is_closed(const pln_analyzer *a, pln_term t);
void pln_computation_kinds_free(pln_analyzer *a, pln_computation_kinds *kinds);

/* A pure expression of more than one node without loads and calls, and no ramp
 * or broadcast (TVM's IsEligibleComputation). The answer is kept. */
pln_status pln_is_computation(pln_analyzer *a, pln_computation_kinds *kinds,
                              pln_term term, bool *out) PLN_CHECKED;
/* Adds the largest computations that row.term, computed row.count times,
 * consists of. Without `whole`, those of its operands. */
pln_status pln_computations_of(pln_analyzer *a, pln_computation_kinds *kinds,
                               pln_computation row, bool whole,
                               pln_computation_table *table) PLN_CHECKED;

#endif
