/* half_as_float.h: float16 and bfloat16 for kernels that know float32. */

#ifndef PLN_OP_KERNEL_HALF_AS_FLOAT_H
#define PLN_OP_KERNEL_HALF_AS_FLOAT_H

#include "op/kernel/kernel.h"

typedef pln_status (*pln_kernel_fn)(pln_kernel_call *call);

/* Runs `kernel` on the call as it is, or, when argument 0 is a half, with the
 * halves among its arguments as float32. Float32 results then become what the
 * argument is that `like` names, one letter a result: "03" makes result 0 as
 * argument 0 and result 1 as argument 3; results past its end stay. */
pln_status pln_kernel_through_float(pln_kernel_call *call, const char *like,
                                    pln_kernel_fn kernel) PLN_CHECKED;
/* The dtype is float16 or bfloat16. */
static inline bool pln_is_half(pln_dtype dtype) {
  return dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16;
}
/* A new tensor of the same elements: a half as float32, and back. */
pln_status pln_tensor_to_float32(const pln_tensor *half,
                                 pln_tensor **out) PLN_CHECKED;
pln_status pln_tensor_from_float32(const pln_tensor *single, pln_dtype dtype,
                                   pln_tensor **out) PLN_CHECKED;

#endif
