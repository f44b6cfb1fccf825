/* small_float.h: floats of 8 and 4 bits as ONNX defines them. */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_SMALL_FLOAT_H
#define PLN_OP_KERNEL_ELEMENTWISE_SMALL_FLOAT_H

#include "op/kernel/kernel.h"

/* FLOAT8_E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ, FLOAT8_E8M0FNU, FLOAT4_E2M1FN. */
bool pln_is_small_float(pln_dtype dtype);
/* The number that the bits stand for. */
double pln_small_to_double(pln_dtype dtype, uint8_t bits);
/* The nearest number's bits, ties to even; not for FLOAT8_E8M0FNU. What is too
 * great becomes the greatest number when `saturate`, else an infinity or NaN.
 * FLOAT4_E2M1FN has neither: it always saturates, and a NaN becomes -0, as the
 * node tests of ONNX have it. */
uint8_t pln_double_to_small(pln_dtype dtype, double value, bool saturate);

/* How FLOAT8_E8M0FNU rounds: away from zero, towards it, or to the nearest with
 * ties away from zero. */
typedef enum pln_e8m0_round {
  PLN_E8M0_UP,
  PLN_E8M0_DOWN,
  PLN_E8M0_NEAREST
} pln_e8m0_round;
/* The bits of a power of two, from 2^-127 to 2^127. What is too small or too
 * great becomes the last one when `saturate`, else NaN; zero is too small.
 * False for what is negative: nothing is defined for it. */
bool pln_double_to_e8m0(double value, pln_e8m0_round how, bool saturate,
                        uint8_t *bits);

#endif
