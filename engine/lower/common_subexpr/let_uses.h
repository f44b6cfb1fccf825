/* let_uses.h: where a function uses the variables of its LetStmts, so that
 * tir.CommonSubexprElimTIR counts only these expressions behind a LetStmt. */

#ifndef PLN_LOWER_COMMON_SUBEXPR_LET_USES_H
#define PLN_LOWER_COMMON_SUBEXPR_LET_USES_H

#include "lower/common_subexpr/computation.h"

/* An expression of a statement whose innermost variable is that of the LetStmt.
 * The expression that it is in, if any, has a variable further in. */
typedef struct pln_let_use {
  pln_ref var, stmt;
  pln_term term;
  uint32_t count; /* how often the statement computes it; 2: or more often */
  uint32_t size;  /* of the computation that it is in; UINT32_MAX: of none */
  pln_term outer; /* the largest computation that it is in, or 0 */
  uint32_t place; /* in the order of evaluation */
} pln_let_use;

typedef struct pln_let_uses {
  const pln_graph *g;
  pln_analyzer *a;
  pln_computation_kinds *kinds;
  bool has_lets_or_branches; /* else what follows is empty, but for `scope`,
                              * `part` and `term` */
  pln_scope *scope;          /* by node */
  pln_scope *part; /* by scope: the innermost body of a loop, of a branch or
                    * of the function that it is in */
  bool *of_let;    /* by node: a variable of a LetStmt */
  pln_term *term;  /* by node: of an operand of a statement, of a parameter of
                    * a part */
  /* The uses of a variable, sorted by statement; then the largest computation
   * around them is first, then the order is that of evaluation. */
  pln_let_use *rows;
  uint32_t *first; /* by variable: its first row */
  uint32_t n, cap;
  uint8_t *times; /* by term: how often the function has it, at most 2 */
  bool *tested;   /* by term: the condition of a branch has it */
  uint32_t cap_times, cap_tested;
  bool *may_bind; /* by variable: it is the innermost of a computation that the
                   * function has twice */
  struct pln_term_counts *counts; /* by term, while an expression is counted */
  uint32_t cap_counts;
} pln_let_uses;

/* Also finds the innermost variables, of `kinds`. Must be freed in any case. */
pln_status pln_let_uses_find(pln_let_uses *uses, const pln_graph *function,
                             pln_analyzer *analyzer,
                             pln_computation_kinds *kinds) PLN_CHECKED;
void pln_let_uses_free(pln_let_uses *uses);
/* True if conditions of branches have the expression. */
bool pln_let_is_tested(const pln_let_uses *uses, pln_term term);
/* True if a statement in the scope uses the variable. */
bool pln_let_is_used(const pln_let_uses *uses, pln_ref var, pln_scope scope);
/* True if a body of the statement is a part: that of a function, loop, branch
 * or LetStmt. */
bool pln_let_is_part(const pln_graph *g, pln_ref stmt);
/* True if an operand of a statement is an expression that is counted. */
bool pln_is_counted_operand(const pln_graph *g, pln_ref operand);
uint32_t pln_branch_sides(const pln_graph *g, pln_ref branch);

#endif
