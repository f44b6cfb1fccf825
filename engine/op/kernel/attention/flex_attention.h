/* flex_attention.h: the stages of flex_attention, between which its functions
 * are called. The kernel runs them one after the other; for a call with
 * functions the evaluator does. */

#ifndef PLN_OP_KERNEL_ATTENTION_FLEX_ATTENTION_H
#define PLN_OP_KERNEL_ATTENTION_FLEX_ATTENTION_H

#include "op/kernel/kernel.h"

/* The first three arguments of `call` are query, key and value, dense tensors;
 * each stage refuses those that do not fit together. */

/* Query by key, in the dtype of the softmax. */
pln_status pln_flex_attention_scores(pln_kernel_call *call,
                                     pln_tensor **out) PLN_CHECKED;
/* The softmax of the scores along the keys. */
pln_status pln_flex_attention_weights(pln_kernel_call *call,
                                      const pln_tensor *scores,
                                      pln_tensor **out) PLN_CHECKED;
/* Weights by value, in the dtype of the operands. */
pln_status pln_flex_attention_product(pln_kernel_call *call,
                                      const pln_tensor *weights,
                                      pln_tensor **out) PLN_CHECKED;
/* Refuses what the function `name` returned for `given` unless dtype and dims
 * are the same. */
pln_status pln_flex_attention_check(const pln_kernel_call *call,
                                    const char *name, const pln_tensor *given,
                                    const pln_tensor *returned) PLN_CHECKED;

#endif
