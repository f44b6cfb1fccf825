/* parallel_order.h: which groups of parallel branches can be combined, and the
 * order of nodes in which they can; for parallel_branches.c. */

#ifndef PLN_TRANSFORM_COMBINE_PARALLEL_ORDER_H
#define PLN_TRANSFORM_COMBINE_PARALLEL_ORDER_H

#include "transform/combine/parallel_branches.h"

typedef struct pln_group_parts {
  uint32_t n_groups;
  pln_branch_group *groups; /* numbers from 1 on */
  uint32_t *group_of;       /* by node: the group that replaces it, or 0 */
  uint32_t *branch_of;      /* by such a node: its branch */
} pln_group_parts;

/* Fills group_of, branch_of (zeroed before) and the leads of the groups that
 * are `applied`, and clears that mark of those that cannot be: whose calls
 * another group replaces, or whose operands depend on their own results.
 * *reordered is set if operands of a group stand behind its lead: a copy of the
 * graph in which they do not. */
pln_status pln_parallel_order(const pln_graph *graph,
                              const pln_scope *node_scope,
                              pln_group_parts *parts,
                              pln_graph **reordered) PLN_CHECKED;

#endif
