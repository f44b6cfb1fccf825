/* apply.h: what follows from types alone; for infer.c and those who infer
 * whole graphs. */

#ifndef PLN_IR_INFER_APPLY_H
#define PLN_IR_INFER_APPLY_H

#include "ir/graph/graph.h"

/* The type that two types must both be; *fits false when there is none. Parts
 * that are not known are taken from the other; dims that differ become `?` when
 * they can be equal. */
pln_status pln_type_unify(pln_engine *engine, pln_type a, pln_type b,
                          pln_type *out, bool *fits) PLN_CHECKED;
/* Which of two types that are unified is what both are: that of a generic
 * function and of one that is less so is the latter's; else `a`. */
pln_type pln_most_specific_type(const pln_engine *engine, pln_type a,
                                pln_type b);
/* PLN_ERR_TYPE for what is no condition of an If. What is not known may be. */
pln_status pln_check_condition(pln_engine *engine, pln_type type) PLN_CHECKED;
/* The type of a call of an operator, n->type, and what is known of its value;
 * `operands` as in pln_infer. */
pln_status pln_infer_op_call(const pln_graph *graph, pln_node *n,
                             pln_type *operands, pln_value *value) PLN_CHECKED;
/* The result of a call whose operand 0 is what is called; 0 while that is not
 * known. PLN_ERR_TYPE when the arguments do not fit; *ret is set still when the
 * function is not generic. */
pln_status pln_infer_apply(pln_engine *engine, const pln_graph *graph,
                           const pln_node *call, pln_type *ret) PLN_CHECKED;
/* The type of what a PatternConstructor fits; left as it is when `module`
 * (which may be NULL) does not define the constructor. */
pln_status pln_infer_pattern(pln_engine *engine, const pln_module *module,
                             const pln_graph *graph, const pln_node *pattern,
                             pln_type *type) PLN_CHECKED;

#endif
