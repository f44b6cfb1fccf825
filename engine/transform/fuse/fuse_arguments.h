/* fuse_arguments.h: limits the number of arguments that the function of a
 * fusion group has; for fuse_groups.c. */

#ifndef PLN_TRANSFORM_FUSE_FUSE_ARGUMENTS_H
#define PLN_TRANSFORM_FUSE_FUSE_ARGUMENTS_H

#include "transform/fuse/fuse_pattern.h"

struct pln_fuse_groups;

/* A node that is fused into its post-dominator later, when `at` is visited. */
typedef struct pln_postponed_fusion {
  pln_ref source;
  uint32_t next; /* + 1; 0: none */
} pln_postponed_fusion;

typedef struct pln_fuse_arguments {
  uint32_t most;   /* 0: no limit; the other fields are then unused */
  uint32_t *count; /* by node: variables that its group takes; a root's for all
                    * of its members */
  uint32_t *seen;  /* by node: the last count that visited its group */
  uint32_t walk;
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
  pln_ref postpone; /* while a node is looked at: the user at which its fusion
                     * is decided, or PLN_NONE */
  uint32_t *first;  /* by node: the first fusion that waits for it, + 1 */
  pln_postponed_fusion *fusions;
  uint32_t n_fusions, cap_fusions;
} pln_fuse_arguments;

pln_status pln_fuse_arguments_begin(struct pln_fuse_groups *f,
                                    uint32_t most) PLN_CHECKED;
void pln_fuse_arguments_end(struct pln_fuse_groups *f);
/* *out: the function of a user of `node` would have more arguments than the
 * limit. May set `postpone`. */
pln_status pln_fuse_arguments_exceed(struct pln_fuse_groups *f, pln_ref node,
                                     bool *out) PLN_CHECKED;
/* *out: the function of `node` has as many as the limit allows, or fewer. */
pln_status pln_fuse_arguments_fit(struct pln_fuse_groups *f, pln_ref node,
                                  bool *out) PLN_CHECKED;
/* Lets the fusion of `source` wait for the node `postpone`. */
pln_status pln_fuse_arguments_postpone(struct pln_fuse_groups *f,
                                       pln_ref source) PLN_CHECKED;

#endif
