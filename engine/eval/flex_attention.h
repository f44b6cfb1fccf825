/* flex_attention.h: a call of flex_attention with functions: the stages between
 * their calls. The evaluator runs the functions. */

#ifndef PLN_EVAL_FLEX_ATTENTION_H
#define PLN_EVAL_FLEX_ATTENTION_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"
#include "op/op.h"

typedef struct pln_flex_attention pln_flex_attention;

/* True if the call has operands behind query, key and value. */
bool pln_flex_attention_calls(const pln_node *call);

/* State for a call whose operands are in `args`, which is taken. attrs: the
 * node's, with references resolved. */
pln_status pln_flex_attention_new(pln_engine *engine, pln_attrs attrs,
                                  pln_ref_cell *args,
                                  pln_flex_attention **out) PLN_CHECKED;
/* Consumes the result of the function called last, which the caller has stored
 * in *pln_flex_attention_result, and computes up to the next call: *callee with
 * the arguments *args, owned by the caller. *args is NULL: the stages have
 * ended. */
pln_status pln_flex_attention_next(pln_flex_attention *f,
                                   const pln_runtime_value **callee,
                                   pln_ref_cell **args) PLN_CHECKED;
/* Where the caller stores the result of a function. */
pln_runtime_value *pln_flex_attention_result(pln_flex_attention *f);
/* The result of the call, after the last stage; it is moved out. */
pln_runtime_value pln_flex_attention_finish(pln_flex_attention *f);
void pln_flex_attention_free(pln_flex_attention *f);

#endif
