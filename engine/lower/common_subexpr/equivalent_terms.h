/* equivalent_terms.h: expressions that are equal by arithmetic in one form. */

#ifndef PLN_LOWER_COMMON_SUBEXPR_EQUIVALENT_TERMS_H
#define PLN_LOWER_COMMON_SUBEXPR_EQUIVALENT_TERMS_H

#include "lower/lower.h"

/* *out: the function in which those that are equal to others are simplified. */
pln_status pln_unify_equivalent_terms(const pln_graph *function,
                                      pln_graph **out) PLN_CHECKED;

#endif
