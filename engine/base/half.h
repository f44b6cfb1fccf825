/* half.h: float16 and bfloat16 as bits, to float and back (IEEE 754-2008;
 * rounded to the nearest, ties to even; a NaN stays one). */

#ifndef PLN_BASE_HALF_H
#define PLN_BASE_HALF_H

#include <stdint.h>

float pln_half_to_float(uint16_t half);
uint16_t pln_float_to_half(float value);
float pln_bfloat_to_float(uint16_t bits);
uint16_t pln_float_to_bfloat(float value);

#endif
