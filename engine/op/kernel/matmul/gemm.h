/* gemm.h: float matrix products, blocked for the caches. Used by matmul, gemm
 * and convolutions.
 *
 * Scratch is bounded by PLN_GEMM_SCRATCH for each worker and allocated once for
 * a run of products. */

#ifndef PLN_OP_KERNEL_MATMUL_GEMM_H
#define PLN_OP_KERNEL_MATMUL_GEMM_H

#include "op/kernel/matmul/tile.h"

/* the most bytes that a run allocates for a worker */
#define PLN_GEMM_SCRATCH ((size_t)3 << 19)

/* c = a * b (m x k by k x n), or c += a * b. Strides count elements: (i, p) of
 * a is at i * a_row + p * a_col, likewise b, one of whose strides is 1; rows of
 * c are contiguous. Without `add`, bias[i] (NULL: 0) is added to row i. c
 * overlaps neither a nor b. */
typedef struct pln_product {
  size_t m, n, k;
  const void *a;
  size_t a_row, a_col;
  const void *b;
  size_t b_row, b_col;
  void *c;
  size_t c_row;
  const void *bias;
  bool add;
} pln_product;

/* The state shared by a run of products of one dtype. */
typedef struct pln_gemm {
  pln_engine *engine;
  const pln_tiles *tiles;
  uint32_t workers;   /* at most so many share a product */
  size_t block_bytes; /* of the scratch of a worker */
  char *block;        /* scratch, aligned within its allocation */
  size_t *steps;
  void *memory;
  size_t bytes;
} pln_gemm;

/* The summands of a product of that extent that are added up before they are
 * added to c. */
size_t pln_gemm_depth(size_t n, size_t k);
/* Allocates scratch for products of up to k x n on the right, of FLOAT32 or
 * FLOAT64. After success, end it exactly once. */
pln_status pln_gemm_begin(pln_engine *engine, pln_dtype dtype, size_t n,
                          size_t k, pln_gemm *out) PLN_CHECKED;
/* The same with a given set of tiles, for tests. */
pln_status pln_gemm_begin_with(pln_engine *engine, const pln_tiles *tiles,
                               size_t n, size_t k, pln_gemm *out) PLN_CHECKED;
void pln_gemm_run(const pln_gemm *gemm, const pln_product *product);
/* The same on worker `worker` alone, for callers that share their products. */
void pln_gemm_run_on(const pln_gemm *gemm, uint32_t worker,
                     const pln_product *product);
/* True if both products of one extent and engine, which differ in the strides
 * of operands only, give the same bits. */
bool pln_gemm_same_bits(const pln_gemm *gemm, const pln_product *x,
                        const pln_product *y);
void pln_gemm_end(pln_gemm *gemm);

#endif
