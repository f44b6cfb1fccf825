/* dispatch.h: products of matrices of any number, one after the other: floats
 * blocked (gemm.h), integers in plain loops. For the kernels of products. */

#ifndef PLN_OP_KERNEL_MATMUL_DISPATCH_H
#define PLN_OP_KERNEL_MATMUL_DISPATCH_H

#include "op/kernel/matmul/gemm.h"

typedef struct pln_matmul_dispatch {
  pln_gemm gemm;
  /* Of integers. */
  void (*plain)(const pln_engine *engine, const pln_product *product);
  const pln_engine *engine;
} pln_matmul_dispatch;

/* Integers of 8 to 64 bits, float32, float64. */
bool pln_matmul_supports(pln_dtype dtype);
/* Takes what products of up to k x n on the right need; other dtypes are
 * refused. Ended exactly once when begun well. */
pln_status pln_matmul_dispatch_begin(const pln_kernel_call *call,
                                     pln_dtype dtype, size_t n, size_t k,
                                     pln_matmul_dispatch *out) PLN_CHECKED;
/* Without bias and `add`. Integers wrap around; of theirs any steps will do. */
void pln_matmul_dispatch_run(const pln_matmul_dispatch *by,
                             const pln_product *product);
void pln_matmul_dispatch_end(pln_matmul_dispatch *by);

/* c[i * c_step] = a[i * a_step] * b[i * b_step], of the same dtypes; floats of
 * a and b may lie anywhere. */
void pln_multiply_elementwise(pln_dtype dtype, size_t n, const void *a,
                              size_t a_step, const void *b, size_t b_step,
                              void *c, size_t c_step);

#endif
