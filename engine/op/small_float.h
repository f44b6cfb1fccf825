/* small_float.h: floats of 8 and 4 bits as ONNX defines them. */

#ifndef PLN_OP_SMALL_FLOAT_H
#define PLN_OP_SMALL_FLOAT_H

#include "op/kernel.h"

/* FLOAT8_E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ and FLOAT4_E2M1FN. */
bool pln_is_small_float(pln_dtype dtype);
/* The number that the bits stand for. */
double pln_small_to_double(pln_dtype dtype, uint8_t bits);
/* The nearest number's bits, ties to even. What is too great becomes the
 * greatest number when `saturate`, else an infinity or NaN. False when the
 * dtype has no NaN to say so. */
bool pln_double_to_small(pln_dtype dtype, double value, bool saturate,
                         uint8_t *bits);

#endif
