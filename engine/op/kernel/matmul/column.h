/* column.h: products of a float32 matrix and a vector. Used by gemm.c. */

#ifndef PLN_OP_KERNEL_MATMUL_COLUMN_H
#define PLN_OP_KERNEL_MATMUL_COLUMN_H

#include <stddef.h>

/* c[i * c_step] += the dot product of x, of k elements, and row i of a, which
 * begins at a + i * a_row, for i < m. Operands may be unaligned. The order of a
 * sum depends on whether i is below m - m % 4. */
void pln_column_add(size_t m, size_t k, const void *a, size_t a_row,
                    const void *x, float *c, size_t c_step);

#endif
