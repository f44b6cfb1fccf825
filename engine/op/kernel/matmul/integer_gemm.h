/* integer_gemm.h: matrix products of bytes, summed in int32. Used by the
 * kernels of quantized products. */

#ifndef PLN_OP_KERNEL_MATMUL_INTEGER_GEMM_H
#define PLN_OP_KERNEL_MATMUL_INTEGER_GEMM_H

#include "op/kernel/kernel.h"

/* c = (a - zero of its row) * (b - zero of its column), m x k by k x n, all
 * dense. Zero points are bytes; their stride is 1, or 0 to repeat the first
 * one. Sums wrap. */
typedef struct pln_integer_product {
  size_t m, n, k;
  const void *a, *b;
  bool a_signed, b_signed; /* int8 if true, else uint8 */
  const int16_t *a_zero, *b_zero;
  size_t a_zero_step, b_zero_step;
  int32_t *c;
} pln_integer_product;

/* A set of tiles for a family of processors. */
typedef struct pln_integer_tiles {
  uint32_t rows, width; /* of a tile */
  /* c (`rows` x `width`, rows c_row apart) = or (with `add`) += a * b. The rows
   * of a have 2 * pairs elements, a_row apart; b is stored as pairs of rows
   * whose elements alternate. */
  void (*tile)(const int16_t *a, size_t a_row, const int16_t *b, size_t pairs,
               uint32_t *c, size_t c_row, bool add);
} pln_integer_tiles;

/* The sets that this processor can run, best first; NULL past the last. */
const pln_integer_tiles *pln_integer_tiles_at(uint32_t index);
/* Computes a product; scratch is bounded. */
pln_status pln_integer_multiply(pln_engine *engine,
                                const pln_integer_product *p) PLN_CHECKED;
/* The same with a given set of tiles for any extents, for tests. */
pln_status pln_integer_multiply_with(pln_engine *engine,
                                     const pln_integer_tiles *tiles,
                                     const pln_integer_product *p) PLN_CHECKED;

#endif
