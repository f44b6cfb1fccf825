/* loops.h: loops that gather elements into sums, products and extremes.
 * What reduce.c stands on.
 *
 * Elements are float32, float64, int64 or uint64. What is gathered is a double
 * for floats and 64 bits for integers, which wrap around. NaN wins in extremes.
 * The order of a sum depends on the number of elements only. */

#ifndef PLN_OP_KERNEL_REDUCE_LOOPS_H
#define PLN_OP_KERNEL_REDUCE_LOOPS_H

#include "op/kernel/kernel.h"

typedef enum pln_gather {
  PLN_GATHER_SUM,
  PLN_GATHER_ABS,
  PLN_GATHER_SQUARE,
  PLN_GATHER_PRODUCT,
  PLN_GATHER_GREATEST,
  PLN_GATHER_SMALLEST,
  PLN_N_GATHERS
} pln_gather;

/* What is gathered so far. */
typedef union pln_gathered {
  double number;
  uint64_t bits;
} pln_gathered;

/* `rows` rows of n elements that lie side by side, `step` elements from one row
 * to the next. */
typedef void (*pln_gather_loop)(const void *x, size_t n, size_t rows,
                                size_t step, pln_gathered *all);

typedef struct pln_gather_loops {
  pln_gather_loop runs; /* a row into one place */
  pln_gather_loop rows; /* the elements of a row each into its own place */
  pln_gathered start;
} pln_gather_loops;

/* `dtype` is one of the four. */
const pln_gather_loops *pln_gather_find(pln_gather gather, pln_dtype dtype);

#endif
