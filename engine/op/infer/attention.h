/* attention.h: what the inference of attention shares with its kernels. */

#ifndef PLN_OP_INFER_ATTENTION_H
#define PLN_OP_INFER_ATTENTION_H

#include "op/infer/infer.h"

/* The dtype of the scores and weights of flex_attention on operands of `dtype`.
 * given: softmax_precision, 0: omitted. PLN_DTYPE_NONE: it is not allowed. */
pln_dtype pln_flex_attention_precision(pln_dtype dtype, int64_t given);

#endif
