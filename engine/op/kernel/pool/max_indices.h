/* max_indices.h: where max_pool found the greatest elements. */

#ifndef PLN_OP_KERNEL_POOL_MAX_INDICES_H
#define PLN_OP_KERNEL_POOL_MAX_INDICES_H

#include "op/kernel/kernel.h"

/* Makes result 1 of nn.max_pool, with the dims of result 0: indices into the
 * whole operand, of the first one among equals. With storage_order=1 the axes
 * of space are counted the first one fastest. */
pln_status pln_pool_indices(pln_kernel_call *call) PLN_CHECKED;

#endif
