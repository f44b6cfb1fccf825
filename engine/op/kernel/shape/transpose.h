/* transpose.h: the order of axes that a transpose gives. Used by the evaluator
 * for kernels that read operands by an order of axes. */

#ifndef PLN_OP_KERNEL_SHAPE_TRANSPOSE_H
#define PLN_OP_KERNEL_SHAPE_TRANSPOSE_H

#include "op/kernel/kernel.h"

/* axes: room for PLN_MAX_RANK; axis i of the result is axis axes[i] of the
 * operand. False if the attributes give no permutation of `rank` axes. */
bool pln_transpose_order(const pln_engine *engine, pln_attrs attrs,
                         uint32_t rank, uint32_t *axes);

#endif
