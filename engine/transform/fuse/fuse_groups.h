/* fuse_groups.h: which nodes of a function are fused with which; for the files
 * of FuseOps. */

#ifndef PLN_TRANSFORM_FUSE_FUSE_GROUPS_H
#define PLN_TRANSFORM_FUSE_FUSE_GROUPS_H

#include "ir/analysis/dominators.h"
#include "transform/fuse/fuse_pattern.h"

typedef struct pln_fuse_groups {
  pln_engine *engine;
  const pln_graph *graph;
  uint32_t max_depth;    /* nodes in a group */
  pln_scope *node_scope; /* a node: its scope */
  uint8_t *closed;       /* a scope: nothing in it is fused again */
  uint8_t *pattern;      /* a node: pln_fuse_pattern, of the group it heads */
  uint8_t *anchored;     /* a node: its group has an OUT_FUSABLE one */
  pln_ref *group;  /* a node: a later one of its group, in the end the last */
  uint32_t *size;  /* a node: how many its group has */
  uint32_t *first; /* a node: where its uses begin */
  pln_ref *users;
  uint32_t *stamp; /* a node: the last walk that saw it */
  uint32_t walk;
  pln_ref *stack;
  pln_dominators tree;
} pln_fuse_groups;

/* Groups by the rules of TVM's FuseOps; at level 0 each node is alone. */
pln_status pln_fuse_groups_find(pln_fuse_groups *groups, const pln_graph *graph,
                                int64_t level, uint32_t max_depth) PLN_CHECKED;
void pln_fuse_groups_free(pln_fuse_groups *groups);
/* The last node of the group: what it computes. */
pln_ref pln_fuse_group_of(pln_fuse_groups *groups, pln_ref node);

#endif
