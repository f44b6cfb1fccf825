/* apply.h: inference from types alone; for infer.c and inference of whole
 * graphs. */

#ifndef PLN_IR_INFER_APPLY_H
#define PLN_IR_INFER_APPLY_H

#include "ir/graph/graph.h"

/* Unifies two types; *fits false when they contradict each other. Unknown parts
 * are taken from the other type; dims that differ but may be equal become
 * `?`. */
pln_status pln_type_unify(pln_engine *engine, pln_type a, pln_type b,
                          pln_type *out, bool *fits) PLN_CHECKED;
/* The more specific of two unified types: of a generic function type and a less
 * generic one, the latter; else `a`. */
pln_type pln_most_specific_type(const pln_engine *engine, pln_type a,
                                pln_type b);
/* PLN_ERR_TYPE when the type cannot be the condition of an If; an unknown type
 * can. */
pln_status pln_check_condition(pln_engine *engine, pln_type type) PLN_CHECKED;
/* Infers a call of an operator: n->type and the symbolic value; `operands` as
 * in pln_infer. */
pln_status pln_infer_op_call(const pln_graph *graph, pln_node *n,
                             pln_type *operands, pln_value *value) PLN_CHECKED;
/* The result type of a call whose callee is operand 0; 0 while unknown.
 * PLN_ERR_TYPE when the arguments do not match; *ret is still set when the
 * function is not generic. */
pln_status pln_infer_apply(pln_engine *engine, const pln_graph *graph,
                           const pln_node *call, pln_type *ret) PLN_CHECKED;
/* The type of the values that a PatternConstructor matches; unchanged when
 * `module` (may be NULL) does not define the constructor. */
pln_status pln_infer_pattern(pln_engine *engine, const pln_module *module,
                             const pln_graph *graph, const pln_node *pattern,
                             pln_type *type) PLN_CHECKED;

#endif
