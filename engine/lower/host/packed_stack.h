/* packed_stack.h: calls of packed functions as TVM's runtime takes them:
 * values, type codes, tensors and shapes on stacks. For tir.LowerTVMBuiltin. */

#ifndef PLN_LOWER_HOST_PACKED_STACK_H
#define PLN_LOWER_HOST_PACKED_STACK_H

#include "arith/arith.h"
#include "lower/host/arg_binder.h"

/* How much of each stack is in use; `shapes` counts from -1, which is unused.
 */
typedef struct pln_stack_sizes {
  int32_t values, arrays, shapes;
} pln_stack_sizes;

/* The stacks of a function or of the body of a parallel loop. */
typedef struct pln_packed_stacks {
  pln_ref value, array;         /* Vars */
  pln_ref code, shape;          /* Buffers */
  pln_stack_sizes most, inside; /* at most; in the present statement */
} pln_packed_stacks;

typedef struct pln_builtin_lowering {
  const pln_graph *g;
  pln_ref device_type, device_id; /* images, or PLN_NONE */
  pln_ref *saved;                 /* by AttrStmt: what they were before */
  pln_packed_stacks *stacks;      /* by scope that has its own */
  pln_scope *stacks_of;           /* by scope: the scope that has them */
  pln_scope now;                  /* whose stacks are used */
  uint32_t *first_prepared;       /* by statement */
  pln_ref *prepared; /* statements in front of those that are open */
  uint32_t n_prepared, cap_prepared;
} pln_builtin_lowering;

/* Finds out how large stacks are. pln_packed_stack_end, on failure too. */
pln_status pln_packed_stack_begin(pln_builtin_lowering *x) PLN_CHECKED;
void pln_packed_stack_end(pln_builtin_lowering *x);
/* To be called before a statement, by enter_body, by leave_body, after the
 * statement, and for each expression. */
pln_status pln_packed_stack_enter_stmt(void *ud, pln_stmt_rewrite *s,
                                       pln_ref stmt, pln_ref *node) PLN_CHECKED;
pln_status pln_packed_stack_enter(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref stmt) PLN_CHECKED;
pln_status pln_packed_stack_leave(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *body) PLN_CHECKED;
pln_status pln_packed_stack_leave_stmt(pln_builtin_lowering *x,
                                       pln_stmt_rewrite *s, pln_ref stmt,
                                       pln_ref *node) PLN_CHECKED;
pln_status pln_packed_stack_lower(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref old, pln_ref *node) PLN_CHECKED;

#endif
