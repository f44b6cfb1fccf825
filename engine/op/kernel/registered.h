/* registered.h: the kernel of registered operators. */

#ifndef PLN_OP_KERNEL_REGISTERED_H
#define PLN_OP_KERNEL_REGISTERED_H

#include "op/kernel/kernel.h"

/* pln_op_info.kernel of registered operators with a function that computes. */
pln_status pln_kernel_registered(pln_kernel_call *call);

#endif
