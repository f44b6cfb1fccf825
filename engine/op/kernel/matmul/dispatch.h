/* dispatch.h: batched matrix products for any dtype: chooses blocked float or
 * plain integer loops. Used by the kernels of products. */

#ifndef PLN_OP_KERNEL_MATMUL_DISPATCH_H
#define PLN_OP_KERNEL_MATMUL_DISPATCH_H

#include "op/kernel/matmul/gemm.h"

typedef struct pln_matmul_dispatch {
  pln_gemm gemm;
  /* for integers */
  void (*plain)(const pln_engine *engine, const pln_product *product);
  const pln_engine *engine;
} pln_matmul_dispatch;

/* Integers of 8 to 64 bits, float32, float64. */
bool pln_matmul_supports(pln_dtype dtype);
/* Allocates scratch for products of up to k x n on the right; refuses other
 * dtypes. After success, end it exactly once. */
pln_status pln_matmul_dispatch_begin(const pln_kernel_call *call,
                                     pln_dtype dtype, size_t n, size_t k,
                                     pln_matmul_dispatch *out) PLN_CHECKED;
/* Computes one product, without bias and `add`. Integers wrap and may have any
 * strides. */
void pln_matmul_dispatch_run(const pln_matmul_dispatch *by,
                             const pln_product *product);
void pln_matmul_dispatch_end(pln_matmul_dispatch *by);

/* c[i * c_step] = a[i * a_step] * b[i * b_step], all of one dtype; floats of a
 * and b may be unaligned. */
void pln_multiply_elementwise(pln_dtype dtype, size_t n, const void *a,
                              size_t a_step, const void *b, size_t b_step,
                              void *c, size_t c_step);

#endif
