/* max_indices.h: the indices of the maxima that max_pool found. */

#ifndef PLN_OP_KERNEL_POOL_MAX_INDICES_H
#define PLN_OP_KERNEL_POOL_MAX_INDICES_H

#include "op/kernel/kernel.h"

/* Makes result 1 of nn.max_pool, with the dims of result 0: flat indices into
 * the operand, the first one among equal elements. With storage_order=1 the
 * first spatial axis varies fastest. */
pln_status pln_pool_indices(pln_kernel_call *call) PLN_CHECKED;

#endif
