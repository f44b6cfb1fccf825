/* plan.h: the plan of an evaluation: which nodes are needed, and for how
 * long. */

#ifndef PLN_EVAL_PLAN_H
#define PLN_EVAL_PLAN_H

#include "eval/eval.h"

/* The value is kept to the end: other scopes, or a scope's result, use it. */
#define PLN_PLAN_PINNED UINT32_MAX

typedef struct pln_plan {
  const pln_graph *graph;
  uint32_t *uses;        /* per node: uses by needed nodes of its own scope, or
                          * PINNED */
  uint8_t *needed;       /* per node */
  uint8_t *moved;        /* per node: its elements are needed in its own order;
                          * 0: a transpose that only kernels use which read
                          * operands by an order of axes */
  uint8_t *escapes;      /* per Function: its closure is used by more than
                          * calls of the bodies of loops */
  pln_scope *node_scope; /* per node: its innermost scope */
  /* An activation has a slot for each node of a function's body. Nodes of
   * nested functions have slots in their own activations. */
  uint32_t *slot;         /* per node: its slot */
  uint32_t *slot_uses;    /* use counts in slot order, one body after the
                           * other */
  uint32_t *first_slot;   /* per function's scope, or 0: its first entry in
                           * slot_uses */
  uint32_t *n_slots;      /* per function's scope */
  pln_scope *first_child; /* per scope: PLN_NONE if it has none */
  pln_scope *next_child;  /* per scope: the next child of its parent */
} pln_plan;

/* Plans a sealed graph whose root is wanted. Linear time. */
pln_status pln_plan_new(const pln_graph *graph, pln_plan **out) PLN_CHECKED;
void pln_plan_free(pln_plan *plan);

#endif
