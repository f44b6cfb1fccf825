/* fuse_pattern.h: fusion patterns of operators, for FuseOps. */

#ifndef PLN_TRANSFORM_FUSE_FUSE_PATTERN_H
#define PLN_TRANSFORM_FUSE_FUSE_PATTERN_H

#include "ir/graph/graph.h"

/* How an operator maps elements of operands to elements of the result, easiest
 * to fuse first. Numbers and order are TVM's OpPatternKind. */
typedef enum pln_fuse_pattern {
  PLN_FUSE_ELEMENTWISE = 0,
  PLN_FUSE_BROADCAST = 1,
  PLN_FUSE_INJECTIVE = 2,   /* each element comes from one element */
  PLN_FUSE_REDUCE = 3,      /* a commutative reduction */
  PLN_FUSE_OUT_FUSABLE = 4, /* elementwise operators that follow can join it */
  PLN_FUSE_TUPLE = 7,
  PLN_FUSE_OPAQUE = 8
} pln_fuse_pattern;

static inline bool pln_is_fuse_pattern(int64_t number) {
  return number >= PLN_FUSE_ELEMENTWISE && number <= PLN_FUSE_OPAQUE &&
         (number <= PLN_FUSE_OUT_FUSABLE || number >= PLN_FUSE_TUPLE);
}

/* The fusion properties of an operator. */
typedef struct pln_fuse_trait {
  pln_fuse_pattern pattern;
  bool reshapes; /* keeps its operand's elements in order */
  bool stays;    /* computes nothing: never becomes a function alone */
  bool stops;    /* annotation.stop_fusion: removed after fusion */
} pln_fuse_trait;

pln_fuse_trait pln_fuse_trait_of(const pln_engine *engine, pln_op op);
/* Returns true for a call of an operator with all operands present, none of
 * them a function (the operator must see those directly). */
bool pln_fuse_computes(const pln_graph *graph, const pln_node *node);

#endif
