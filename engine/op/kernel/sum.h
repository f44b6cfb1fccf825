/* sum.h: sums over contiguous floats, for means and norms. */

#ifndef PLN_OP_KERNEL_SUM_H
#define PLN_OP_KERNEL_SUM_H

#include <stddef.h>

/* The sum of n elements; of |x|; of (x - centre)^2. Sixteen partial sums are
 * added up in double every 1,024 elements. */
double pln_sum_float(const float *x, size_t n);
double pln_sum_double(const double *x, size_t n);
double pln_sum_abs_float(const float *x, size_t n);
double pln_sum_abs_double(const double *x, size_t n);
double pln_sum_square_float(const float *x, size_t n, float centre);
double pln_sum_square_double(const double *x, size_t n, double centre);

#endif
