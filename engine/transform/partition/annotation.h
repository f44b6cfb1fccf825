/* annotation.h: annotation.compiler_begin and annotation.compiler_end, which
 * say for which compiler a call is: each operand comes through a begin, each
 * result leaves through an end. */

#ifndef PLN_TRANSFORM_PARTITION_ANNOTATION_H
#define PLN_TRANSFORM_PARTITION_ANNOTATION_H

#include "ir/graph/graph.h"

typedef struct pln_annotation_ops {
  pln_engine *engine;
  pln_op begin, end;
  pln_symbol compiler; /* the name of their attribute */
  pln_symbol fallback; /* "default": no other compiler */
} pln_annotation_ops;

pln_status pln_annotation_ops_find(pln_engine *engine,
                                   pln_annotation_ops *out) PLN_CHECKED;
static inline bool pln_is_call_of_op(const pln_node *n, pln_op op) {
  return n->kind == PLN_CALL && n->data == op;
}
static inline bool pln_is_annotation(const pln_annotation_ops *ops,
                                     const pln_node *n) {
  return pln_is_call_of_op(n, ops->begin) || pln_is_call_of_op(n, ops->end);
}
/* The compiler of an annotation, as a symbol. */
pln_status pln_annotation_compiler(const pln_annotation_ops *ops,
                                   const pln_node *annotation,
                                   pln_symbol *out) PLN_CHECKED;
/* Appends an annotation around `value`; `op` is begin or end. */
pln_status pln_annotate(const pln_annotation_ops *ops, pln_builder *b,
                        pln_op op, pln_symbol compiler, pln_ref value,
                        pln_ref *out) PLN_CHECKED;

#endif
