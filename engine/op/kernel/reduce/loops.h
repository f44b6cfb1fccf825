/* loops.h: loops that reduce elements to sums, products and extrema. Used by
 * reduce.c.
 *
 * Elements are float32, float64, int64 or uint64. Accumulators are double for
 * floats and 64-bit integers, which wrap. NaN wins in extrema. The order of a
 * sum depends only on the number of elements. */

#ifndef PLN_OP_KERNEL_REDUCE_LOOPS_H
#define PLN_OP_KERNEL_REDUCE_LOOPS_H

#include "op/kernel/kernel.h"

typedef enum pln_reduce_kind {
  PLN_REDUCE_SUM,
  PLN_REDUCE_ABS,
  PLN_REDUCE_SQUARE,
  PLN_REDUCE_PRODUCT,
  PLN_REDUCE_GREATEST,
  PLN_REDUCE_SMALLEST,
  PLN_N_REDUCE_KINDS
} pln_reduce_kind;

/* An accumulator. */
typedef union pln_reduce_accumulator {
  double number;
  uint64_t bits;
} pln_reduce_accumulator;

/* Reduces `rows` rows of n contiguous elements, `step` elements apart. */
typedef void (*pln_reduce_loop)(const void *x, size_t n, size_t rows,
                                size_t step, pln_reduce_accumulator *all);

typedef struct pln_reduce_loops {
  pln_reduce_loop runs; /* each row into one accumulator */
  pln_reduce_loop rows; /* element j of each row into accumulator j */
  pln_reduce_accumulator start;
} pln_reduce_loops;

/* Short rows of float32, of a multiple of 4 elements, can be summed in float32
 * in the order of ONNX Runtime: in eight lanes, added up by halves. A longer
 * sum would lose digits. */
enum { PLN_SHORT_SUM = 4096 };
static inline bool pln_sum_is_short(size_t n) {
  return n >= 8 && n % 4 == 0 && n <= PLN_SHORT_SUM;
}
/* Adds such a sum of each row to its accumulator. */
void pln_sum_short_runs(const void *x, size_t n, size_t rows, size_t step,
                        pln_reduce_accumulator *all);

/* `dtype` is one of the four. */
const pln_reduce_loops *pln_reduce_find(pln_reduce_kind gather,
                                        pln_dtype dtype);

#endif
