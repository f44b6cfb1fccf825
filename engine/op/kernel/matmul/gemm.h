/* gemm.h: products of matrices of floats, blocked for the caches. What matmul,
 * gemm and convolutions compute with.
 *
 * Scratch is bounded (PLN_GEMM_SCRATCH) and taken once for a run of products,
 * however many matrices it multiplies. */

#ifndef PLN_OP_KERNEL_MATMUL_GEMM_H
#define PLN_OP_KERNEL_MATMUL_GEMM_H

#include "op/kernel/matmul/tile.h"

/* Bytes that a run takes at most. */
#define PLN_GEMM_SCRATCH ((size_t)3 << 19)

/* c = a * b (m x k by k x n), or c += a * b. Steps count elements: (i, p) of a
 * lies at i * a_row + p * a_col, likewise b, of whose steps one
 * is 1; rows of c are contiguous. Without
 * `add`, bias[i] (NULL: 0) is added to row i. c overlaps nothing. */
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

/* What products of one dtype share while they run, one after the other. */
typedef struct pln_gemm {
  pln_engine *engine;
  const pln_tiles *tiles;
  char *block; /* scratch, aligned within its allocation */
  size_t *steps;
  void *memory;
  size_t bytes;
} pln_gemm;

/* Takes what products of up to k x n on the right need. The dtype is FLOAT32
 * or FLOAT64. Ended exactly once when begun well. */
pln_status pln_gemm_begin(pln_engine *engine, pln_dtype dtype, size_t n,
                          size_t k, pln_gemm *out) PLN_CHECKED;
/* The same with one set of tiles, for tests. */
pln_status pln_gemm_begin_with(pln_engine *engine, const pln_tiles *tiles,
                               size_t n, size_t k, pln_gemm *out) PLN_CHECKED;
void pln_gemm_run(const pln_gemm *gemm, const pln_product *product);
void pln_gemm_end(pln_gemm *gemm);

#endif
