/* half.c: float16 and bfloat16; see half.h. For kernels and for printing. */

#include "base/half.h"

#include <string.h>

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Drops the low `n` bits, 1 to 31, and rounds to the nearest, ties to even. */
static uint32_t round_off(uint32_t bits, uint32_t n) {
  uint32_t half = (1u << (n - 1)) - 1 + ((bits >> n) & 1);
  return (bits + half) >> n;
}

float pln_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f)
    return bits_float(sign | 0x7f800000 | fraction << 13);
  if (exponent)
    return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
  float small = (float)fraction * 0x1p-24f; /* exact */
  return sign ? -small : small;
}

uint16_t pln_float_to_half(float value) {
  uint32_t bits = float_bits(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) /* keeps the high bits, and is quiet */
    return (uint16_t)(sign | 0x7e00 | ((rest >> 13) & 0x1ff));
  if (rest >= 0x477ff000) /* halfway from 65504 to 65536, and above */
    return (uint16_t)(sign | 0x7c00);
  if (rest >= 0x38800000) /* 2^-14: normal */
    return (uint16_t)(sign | round_off(rest - (112u << 23), 13));
  if (rest < 0x33000000) /* below half of the least subnormal */
    return (uint16_t)sign;
  uint32_t fraction = (rest & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | round_off(fraction, 126 - (rest >> 23)));
}

float pln_bfloat_to_float(uint16_t bits) {
  return bits_float((uint32_t)bits << 16);
}

uint16_t pln_float_to_bfloat(float value) {
  uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)round_off(bits, 16);
}
