/* known_branch.h: branches whose condition is a constant. */

#ifndef PLN_LOWER_KNOWN_BRANCH_H
#define PLN_LOWER_KNOWN_BRANCH_H

#include "lower/stmt_mutator.h"

/* 1 or 0: the present statement is an IfThenElse, and the image of its
 * condition, also inside of likely(), is that constant; else -1. */
int pln_stmt_condition(const pln_stmt_rewrite *s, pln_ref stmt);
/* What is left of an IfThenElse with that condition: the body that runs, or
 * nothing. */
pln_status pln_known_branch(pln_stmt_rewrite *s, int condition,
                            pln_ref *out) PLN_CHECKED;

/* For mutators: skips the body that does not run, and leaves the other one in
 * the place of the statement. */
pln_status pln_enter_known_branch(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  uint32_t k, bool *skip) PLN_CHECKED;
pln_status pln_leave_known_branch(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  pln_ref *node) PLN_CHECKED;

#endif
