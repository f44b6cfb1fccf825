/* matmul.h: the shape of a matrix product, for plain and quantised ones. */

#ifndef PLN_OP_INFER_MATMUL_H
#define PLN_OP_INFER_MATMUL_H

#include "op/infer/infer.h"

/* The shape of numpy.matmul of two operands: vectors are rows on the left and
 * columns on the right; leading axes broadcast. */
pln_status pln_infer_product_shape(const pln_infer *call, uint32_t a_arg,
                                   uint32_t b_arg, pln_shape *out) PLN_CHECKED;
/* The same of two shapes of known rank from 1 on, which are changed; `b_arg` is
 * the operand that errors name. */
pln_status pln_infer_multiply_shapes(const pln_infer *call, uint32_t b_arg,
                                     pln_shape *a, pln_shape *b,
                                     pln_shape *out) PLN_CHECKED;
/* The shape of Gemm's product, with its attributes transA and transB. */
pln_status pln_infer_gemm_shape(const pln_infer *call, uint32_t a_arg,
                                uint32_t b_arg, pln_shape *out) PLN_CHECKED;
/* Relay's nn.matmul, whose operands may be transposed (relay/infer/dense.c). */
pln_status pln_infer_matmul_transposed(pln_infer *call) PLN_CHECKED;

#endif
