/* tensor/dtype.h: classes of element types. Names and sizes are in perilune.h
 * (pln_dtype_name, pln_dtype_bits). */

#ifndef PLN_IR_TENSOR_DTYPE_H
#define PLN_IR_TENSOR_DTYPE_H

#include "base/base.h"

/* Returns true for float16 and bfloat16. */
static inline bool pln_dtype_is_half(pln_dtype dtype) {
  return dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16;
}

/* Returns true for the floats that kernels compute with: of 16, 32 and 64
 * bits. */
static inline bool pln_dtype_is_float(pln_dtype dtype) {
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 ||
         pln_dtype_is_half(dtype);
}

#endif
