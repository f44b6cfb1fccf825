/* parallel_branches.h: calls of one operator on the same operand, and the
 * elementwise operators behind each of them, as one; for
 * CombineParallelConv2D, CombineParallelDense and CombineParallelBatchMatmul.
 *
 * A branch is such a call and the calls behind it of which each is the only
 * call that uses the one before. A group has the branches of compatible calls,
 * and one level for each of the calls that are combined. */

#ifndef PLN_TRANSFORM_COMBINE_PARALLEL_BRANCHES_H
#define PLN_TRANSFORM_COMBINE_PARALLEL_BRANCHES_H

#include "transform/relay_builder.h"

/* Limits on the calls behind. */
enum { PLN_BRANCH_MAX_ARGS = 8, PLN_BRANCH_MAX_AXES = 32 };

/* The calls of one level, a call per branch, all of the same operator. */
typedef struct pln_branch_level {
  pln_ref *nodes;
  uint32_t parent; /* the operand from the level before; level 0: the one that
                    * all branches share */
  int32_t axis;    /* of the results, along which they are concatenated */
  struct pln_branch_level *next, *before;
} pln_branch_level;

typedef struct pln_branch_group {
  uint32_t n; /* branches */
  pln_branch_level *first, *last;
  pln_ref lead;   /* the call of the last level that comes first */
  pln_ref *parts; /* the results in the new graph, once they are built */
  bool applied;   /* it replaces the calls of its last level */
} pln_branch_group;

/* The group being built. */
typedef struct pln_branch_build {
  pln_relay_builder r;
  const pln_graph *old;
  const pln_branch_group *group;
  pln_ref *fields; /* room for a node per branch */
} pln_branch_build;

/* What the passes differ in. */
typedef struct pln_branch_kind {
  pln_op op;
  /* The results are stacked along a new axis instead of concatenated. */
  bool stacks;
  /* Calls with equal keys are compatible. *type 0: the call is not combined. */
  pln_status (*key)(const pln_graph *graph, pln_ref call, pln_attrs *attrs,
                    pln_type *type);
  /* The axis of the call's result along which such results are concatenated. */
  int32_t (*axis)(const pln_graph *graph, pln_ref call);
  /* True if the operands `arg` of the calls, of the first branch and of another
   * one, can be combined. */
  bool (*fits)(const pln_graph *graph, const pln_branch_level *level,
               uint32_t arg, uint32_t branch);
  /* Builds the call of level 0, operand `arg` of a later one, and for each
   * branch its part of the combined result. */
  pln_ref (*combine)(pln_branch_build *build);
  pln_ref (*operand)(pln_branch_build *build, const pln_branch_level *level,
                     uint32_t arg);
  void (*take_parts)(pln_branch_build *build, pln_ref combined, pln_ref *parts);
} pln_branch_kind;

/* Body of the passes. Combines groups of `min_num_branches` and more. */
pln_status pln_combine_branches(pln_pass_run *run,
                                const pln_branch_kind *kind) PLN_CHECKED;

/* The extent of a call's operand or result; PLN_DIM_UNKNOWN if it is unknown or
 * there is no such axis. */
pln_dim pln_branch_extent(const pln_graph *graph, pln_ref node, int32_t axis);
/* True if both are tensors of one dtype and rank, and their known extents agree
 * but for those of axis `but` (-1: all agree). */
bool pln_branch_alike(const pln_graph *graph, pln_ref a, pln_ref b,
                      int32_t but);
/* concatenate of operands `arg` of the calls of a level. */
pln_ref pln_branch_concatenate(pln_branch_build *build,
                               const pln_branch_level *level, uint32_t arg,
                               int64_t axis);
/* The sum of the extents of the branches' results along the group's axis. */
int64_t pln_branch_total(const pln_branch_build *build);
/* For each branch its slice of `combined`, given by the first `n_axes` axes. */
void pln_branch_slice(pln_branch_build *build, pln_ref combined,
                      uint32_t n_axes, pln_ref *parts);

#endif
