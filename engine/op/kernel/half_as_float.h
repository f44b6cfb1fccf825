/* half_as_float.h: runs float32 kernels on float16 and bfloat16 by converting
 * operands and results. */

#ifndef PLN_OP_KERNEL_HALF_AS_FLOAT_H
#define PLN_OP_KERNEL_HALF_AS_FLOAT_H

#include "op/kernel/kernel.h"

typedef pln_status (*pln_kernel_fn)(pln_kernel_call *call);

/* Runs `kernel` on the call. If argument 0 is a 16-bit float, the 16-bit
 * arguments are passed as float32, and float32 results are converted back.
 * `like` has one digit per result, the argument whose dtype the result gets:
 * "03" means result 0 like argument 0 and result 1 like argument 3; results
 * past its end stay float32. */
pln_status pln_kernel_through_float(pln_kernel_call *call, const char *like,
                                    pln_kernel_fn kernel) PLN_CHECKED;
/* Converts a 16-bit float tensor to float32, and back. */
pln_status pln_tensor_to_float32(const pln_tensor *half,
                                 pln_tensor **out) PLN_CHECKED;
pln_status pln_tensor_from_float32(const pln_tensor *single, pln_dtype dtype,
                                   pln_tensor **out) PLN_CHECKED;

#endif
