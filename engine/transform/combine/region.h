/* region.h: parallel computations that can be done as one. For region.c,
 * region_axis.c, region_numbers.c, region_build.c and combine_parallel_ops.c.
 *
 * A tuple is a row of k isomorphic nodes, one per member, whose results can be
 * concatenated along `axis`: the concatenation is the same operator, applied to
 * the concatenated operands. A region is a list of tuples, operands first, that
 * begins with a seed: products of one operand, or fields of one Split. */

#ifndef PLN_TRANSFORM_COMBINE_REGION_H
#define PLN_TRANSFORM_COMBINE_REGION_H

#include "eval/eval.h"
#include "ir/analysis/users.h"
#include "ir/rewrite/rewrite.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

/* Limits on members and tuples of a region, and on the users of a node that are
 * looked at. */
enum { PLN_MAX_MEMBERS = 16, PLN_MAX_TUPLES = 64, PLN_MAX_USERS = 64 };

typedef struct pln_combine_tuple {
  pln_ref nodes[PLN_MAX_MEMBERS]; /* of the old graph */
  int64_t sizes[PLN_MAX_MEMBERS]; /* extents along `axis` */
  uint32_t axis;                  /* of the result */
  uint32_t lead;                  /* the member that comes first */
  uint32_t n_differ; /* transposes whose permutation is not the lead's */
  bool used_outside; /* a node is used by others than the region */
  pln_ref parts[PLN_MAX_MEMBERS]; /* what replaces the nodes; or PLN_NONE */
} pln_combine_tuple;

typedef struct pln_region {
  uint32_t k; /* number of members */
  uint32_t n;
  uint32_t base; /* its tuples have the numbers from base + 1 on */
  pln_combine_tuple tuples[PLN_MAX_TUPLES];
  pln_ref split;  /* the seed is fields of this call; PLN_NONE: products */
  uint32_t first; /* the first of these fields */
  bool is_whole;  /* they are all fields */
  /* While it is built. */
  bool refused;
  pln_ref parts; /* the new Split of which the seed is a field */
  pln_ref combined[PLN_MAX_TUPLES];
  struct pln_region *next;
} pln_region;

/* The old graph, with the users of its nodes. */
typedef struct pln_combine {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  uint32_t *tuple_of;     /* by node: the number of its tuple, or 0 */
  pln_region **region_of; /* by node, for tuples and seeds that are applied */
  pln_region *regions;    /* those that are applied */
  uint32_t n_tuples;
  int64_t combined;
} pln_combine;

/* 1 + the tuple of the region that the node belongs to, or 0. */
static inline uint32_t pln_region_tuple(const pln_combine *c,
                                        const pln_region *r, pln_ref node) {
  uint32_t number = c->tuple_of[node];
  return number > r->base && number <= r->base + r->n ? number - r->base : 0;
}

/* Adds the tuples that follow from those of the region. */
void pln_region_grow(pln_combine *c, pln_region *r);
/* How many nodes the region saves; at most 0: it does not pay. */
int64_t pln_region_gain(const pln_combine *c, pln_region *r);

/* How the operands of a tuple's nodes correspond. */
typedef enum pln_operand_class {
  PLN_OPERAND_MISMATCH,
  PLN_OPERAND_TUPLE,  /* nodes of one tuple of the region, in order */
  PLN_OPERAND_SHARED, /* the same node, or equal constants */
  PLN_OPERAND_WEIGHTS /* constants of the same rank */
} pln_operand_class;
pln_operand_class pln_region_operand(const pln_combine *c, const pln_region *r,
                                     const pln_combine_tuple *t, uint32_t i);
/* The tuple that the nodes' operands `i` are. */
const pln_combine_tuple *pln_region_operand_tuple(const pln_combine *c,
                                                  const pln_region *r,
                                                  const pln_combine_tuple *t,
                                                  uint32_t i);

/* region_axis.c: sets t->axis, t->sizes and t->n_differ, from the operands;
 * false if the concatenated results are not the operator applied to the
 * concatenated operands. */
bool pln_region_find_axis(const pln_combine *c, const pln_region *r,
                          pln_combine_tuple *t);
/* Sets t->sizes to the extents along t->axis; false if one is not known. */
bool pln_region_read_sizes(const pln_combine *c, const pln_region *r,
                           pln_combine_tuple *t);
/* The permutation of a transpose; false if the attribute is no permutation. */
bool pln_transpose_axes(const pln_graph *graph, pln_ref node, int64_t *axes);

/* region_numbers.c: returns true if operand `i` of each member is a number,
 * which broadcasts; they may differ. */
bool pln_region_has_numbers(const pln_combine *c, const pln_region *r,
                            const pln_combine_tuple *t, uint32_t i);
/* Builds the operand that has all of them along the tuple's axis. */
pln_status pln_region_join_numbers(const pln_combine *c, const pln_region *r,
                                   pln_rewrite *rw, pln_builder *b,
                                   const pln_combine_tuple *t, uint32_t i,
                                   pln_ref *out) PLN_CHECKED;

/* region_build.c: the mutator that builds the regions. `ud` is the
 * pln_combine. */
pln_status pln_region_visit(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) PLN_CHECKED;

#endif
