/* plan.h: what of a graph must be computed, and how long it is needed. */

#ifndef PLN_EVAL_PLAN_H
#define PLN_EVAL_PLAN_H

#include "eval/eval.h"

/* A node that other scopes or a scope's end need is kept to the end. */
#define PLN_PLAN_PINNED UINT32_MAX

typedef struct pln_plan {
  const pln_graph *graph;
  uint32_t *uses;   /* a node: by needed nodes of its own scope, or PINNED */
  uint8_t *needed;  /* a node */
  uint8_t *escapes; /* a Function: others than an operator hold its closure */
  pln_scope *node_scope; /* a node: its innermost scope */
  /* A call of a function has slots for the nodes of its body but for those of
   * functions in it, which have their own. */
  uint32_t *slot;         /* a node: its slot */
  uint32_t *slot_uses;    /* of the nodes of one body after the other: uses */
  uint32_t *first_slot;   /* a function's scope, or 0: the first in slot_uses */
  uint32_t *n_slots;      /* such a scope */
  pln_scope *first_child; /* a scope: PLN_NONE without */
  pln_scope *next_child;  /* a scope: the next of the same parent */
} pln_plan;

/* Of a sealed graph whose root is wanted. Linear. */
pln_status pln_plan_new(const pln_graph *graph, pln_plan **out) PLN_CHECKED;
void pln_plan_free(pln_plan *plan);

#endif
