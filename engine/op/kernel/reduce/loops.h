/* loops.h: loops that gather elements into sums, products and extremes.
 * What reduce.c stands on.
 *
 * Elements are float32, float64, int64 or uint64. What is gathered is a double
 * for floats and 64 bits for integers, which wrap around. NaN wins in extremes.
 * The order of a sum depends on the number of elements only. */

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

/* What is gathered so far. */
typedef union pln_reduce_accumulator {
  double number;
  uint64_t bits;
} pln_reduce_accumulator;

/* `rows` rows of n elements that lie side by side, `step` elements from one row
 * to the next. */
typedef void (*pln_reduce_loop)(const void *x, size_t n, size_t rows,
                                size_t step, pln_reduce_accumulator *all);

typedef struct pln_reduce_loops {
  pln_reduce_loop runs; /* a row into one place */
  pln_reduce_loop rows; /* the elements of a row each into its own place */
  pln_reduce_accumulator start;
} pln_reduce_loops;

/* `dtype` is one of the four. */
const pln_reduce_loops *pln_reduce_find(pln_reduce_kind gather,
                                        pln_dtype dtype);

#endif
