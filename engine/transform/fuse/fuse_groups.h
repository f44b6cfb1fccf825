/* fuse_groups.h: the fusion groups of a function, for FuseOps. */

#ifndef PLN_TRANSFORM_FUSE_FUSE_GROUPS_H
#define PLN_TRANSFORM_FUSE_FUSE_GROUPS_H

#include "ir/analysis/dominators.h"
#include "transform/fuse/fuse_arguments.h"

typedef struct pln_fuse_groups {
  pln_engine *engine;
  const pln_graph *graph;
  uint32_t max_depth;    /* largest number of nodes in a group */
  pln_scope *node_scope; /* by node: its scope */
  uint8_t *closed;       /* by scope: nothing in it is fused */
  uint8_t *pattern;      /* by group head: the pln_fuse_pattern of its group */
  uint8_t *anchored;     /* by node: its group has an OUT_FUSABLE node */
  /* Union-find: a later node of its group; the last is the root. */
  pln_ref *group;
  uint32_t *size;  /* by root: number of nodes in the group */
  uint32_t *first; /* by node: start of its list of uses */
  pln_ref *users;
  uint32_t *stamp; /* by node: the last walk that visited it */
  uint32_t walk;
  pln_ref *stack;
  pln_dominators tree;
  pln_fuse_arguments arguments;
} pln_fuse_groups;

/* Finds groups by the rules of TVM's FuseOps. At level 0 each node is a group.
 * `max_args`: of the function of a group; 0: any number. */
pln_status pln_fuse_groups_find(pln_fuse_groups *groups, const pln_graph *graph,
                                int64_t level, uint32_t max_depth,
                                uint32_t max_args) PLN_CHECKED;
void pln_fuse_groups_free(pln_fuse_groups *groups);
/* The last node of the group, which computes its result. */
pln_ref pln_fuse_group_of(pln_fuse_groups *groups, pln_ref node);

#endif
