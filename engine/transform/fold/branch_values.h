/* branch_values.h: what the condition of an If says of the values that its
 * branches use. For FoldConstant. */

#ifndef PLN_TRANSFORM_FOLD_BRANCH_VALUES_H
#define PLN_TRANSFORM_FOLD_BRANCH_VALUES_H

#include "transform/transform.h"

/* Facts that one condition may give. */
enum { PLN_BRANCH_FACTS = 16 };

/* In a branch the node of the old graph is the constant of the new graph. */
typedef struct pln_branch_fact {
  pln_ref node, constant;
} pln_branch_fact;

/* A node that has another image until a scope ends. */
typedef struct pln_branch_binding {
  pln_scope scope;
  pln_ref node, image;
} pln_branch_binding;

/* Of one sweep over a function; without Ifs all tables are NULL. */
typedef struct pln_branch_values {
  const pln_graph *old;
  pln_ref *let_values; /* by Var: what a let binds it to, or PLN_NONE */
  uint32_t *first;     /* by node, and one more: its first row of `users` */
  pln_ref *users;      /* in ascending order; of a scope's result its owner */
  pln_branch_binding *bound;
  uint32_t n_bound, cap_bound;
} pln_branch_values;

pln_status pln_branch_values_begin(pln_branch_values *values,
                                   const pln_graph *old) PLN_CHECKED;
void pln_branch_values_end(pln_branch_values *values);
/* The facts that hold in a scope of the old graph, which is about to be swept:
 * of nodes that it uses and that have no constant image. Their constants are
 * built before the scope. */
pln_status pln_branch_values_find(const pln_branch_values *values,
                                  pln_rewrite *rw, pln_scope scope,
                                  pln_branch_fact *facts,
                                  uint32_t *n) PLN_CHECKED;
/* Makes the constant the node's image until `leave` of that scope. */
pln_status pln_branch_values_bind(pln_branch_values *values, pln_rewrite *rw,
                                  pln_scope scope,
                                  const pln_branch_fact *fact) PLN_CHECKED;
void pln_branch_values_leave(pln_branch_values *values, pln_rewrite *rw,
                             pln_scope scope);

#endif
