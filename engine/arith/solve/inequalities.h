/* arith/inequalities.h: what the solutions of linear inequalities share. */

#ifndef PLN_ARITH_INEQUALITIES_H
#define PLN_ARITH_INEQUALITIES_H

#include "arith/arith.h"

/* The range of a variable, or NULL. */
const pln_term_range *pln_find_range(uint32_t n, const pln_term_range *ranges,
                                     pln_term var);
/* Enters min <= var < min + extent; the mark to leave both. */
uint32_t pln_enter_range(pln_analyzer *a, pln_term_range r);
/* Whether a system can be solved for the term: it is an integer. */
pln_status pln_check_unknown(pln_analyzer *a, pln_term var) PLN_CHECKED;
/* Conditions, different variables, ranges; clears the analyzer's status. */
pln_status pln_check_system(pln_analyzer *a, uint32_t m,
                            const pln_term *relations, uint32_t n,
                            const pln_term *vars, uint32_t n_ranges,
                            const pln_term_range *ranges) PLN_CHECKED;

#endif
