/* small_float.h: conversion of 8-bit and 4-bit floats as ONNX defines them. */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_SMALL_FLOAT_H
#define PLN_OP_KERNEL_ELEMENTWISE_SMALL_FLOAT_H

#include "op/kernel/kernel.h"

/* FLOAT8_E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ, FLOAT8_E8M0FNU, FLOAT4_E2M1FN. */
bool pln_is_small_float(pln_dtype dtype);
/* The number that the bits represent. */
double pln_small_to_double(pln_dtype dtype, uint8_t bits);
/* The bits of the nearest number, ties to even; not for FLOAT8_E8M0FNU.
 * Overflow gives the greatest number if `saturate`, else infinity or NaN.
 * FLOAT4_E2M1FN has neither: it always saturates, and NaN becomes -0, as in
 * ONNX's node tests. */
uint8_t pln_double_to_small(pln_dtype dtype, double value, bool saturate);

/* Rounding of FLOAT8_E8M0FNU: away from zero, towards zero, or to nearest with
 * ties away from zero. */
typedef enum pln_e8m0_round {
  PLN_E8M0_UP,
  PLN_E8M0_DOWN,
  PLN_E8M0_NEAREST
} pln_e8m0_round;
/* The bits of a power of two from 2^-127 to 2^127. Underflow (also zero) and
 * overflow give the end of the range if `saturate`, else NaN. False for
 * negative values, which are undefined. */
bool pln_double_to_e8m0(double value, pln_e8m0_round how, bool saturate,
                        uint8_t *bits);

#endif
