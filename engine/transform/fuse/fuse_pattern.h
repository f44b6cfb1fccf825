/* fuse_pattern.h: how operators can be fused; for the files of FuseOps. */

#ifndef PLN_TRANSFORM_FUSE_FUSE_PATTERN_H
#define PLN_TRANSFORM_FUSE_FUSE_PATTERN_H

#include "ir/graph/graph.h"

/* What an operator does with the elements of its operands, from what is fused
 * most easily; the numbers and their order are TVM's (OpPatternKind). */
typedef enum pln_fuse_pattern {
  PLN_FUSE_ELEMENTWISE = 0,
  PLN_FUSE_BROADCAST = 1,
  PLN_FUSE_INJECTIVE = 2,   /* an element comes from one element */
  PLN_FUSE_REDUCE = 3,      /* a commutative reduction */
  PLN_FUSE_OUT_FUSABLE = 4, /* what follows element by element joins it */
  PLN_FUSE_TUPLE = 7,
  PLN_FUSE_OPAQUE = 8
} pln_fuse_pattern;

/* What FuseOps must know of an operator. */
typedef struct pln_fuse_trait {
  pln_fuse_pattern pattern;
  bool reshapes; /* gives its operand's elements in their order */
  bool stays;    /* computes nothing: is not made a function of its own */
  bool stops;    /* annotation.stop_fusion: goes when fusion is done */
} pln_fuse_trait;

pln_fuse_trait pln_fuse_trait_of(const pln_engine *engine, pln_op op);
/* A call that a kernel can compute: of an operator, with all its operands, none
 * of them a function, which the operator must have in sight. */
bool pln_fuse_computes(const pln_graph *graph, const pln_node *node);

#endif
