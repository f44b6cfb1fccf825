/* let_uses.h: which statements use the variable of a LetStmt, so that
 * tir.CommonSubexprElimTIR looks only at these again behind the LetStmt. */

#ifndef PLN_LOWER_COMMON_SUBEXPR_LET_USES_H
#define PLN_LOWER_COMMON_SUBEXPR_LET_USES_H

#include "lower/lower.h"

typedef struct pln_let_uses {
  const pln_graph *g;
  pln_scope *scope; /* by node */
  pln_scope *part;  /* by scope: the innermost body of a loop, of a branch or
                     * of the function that it is in */
  uint32_t *first;  /* by variable of a LetStmt: its first use */
  pln_ref *stmts;   /* by variable, in order: statements that use it, without
                     * IfThenElse */
  uint32_t n, cap;
  pln_ref *vars; /* the variable of each use, while they are collected */
  uint32_t cap_vars;
  uint32_t *seen; /* by node: 1 + the last statement that uses it */
  bool *of_let;   /* by node: a variable of a LetStmt */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} pln_let_uses;

/* Must be freed in any case. */
pln_status pln_let_uses_find(pln_let_uses *uses,
                             const pln_graph *function) PLN_CHECKED;
void pln_let_uses_free(pln_let_uses *uses);
/* True if a statement in the scope uses the variable. */
bool pln_let_is_used(const pln_let_uses *uses, pln_ref var, pln_scope scope);
uint32_t pln_branch_sides(const pln_graph *g, pln_ref branch);

#endif
