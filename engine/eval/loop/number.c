/* number.c: the rarer arithmetic of the loop interpreter: conversions between
 * dtypes, bits, fixed-point products, and C's functions of floats by name.
 *
 * Called by execute.c. Nothing here fails: each function is defined for every
 * operand. */

#include "eval/loop/number.h"

#include <math.h>

#include "eval/loop/program.h"
#include "ir/tir/tir.h"
#include "op/kernel/elementwise/small_float.h"

static uint32_t bits_of(pln_dtype dtype) {
  return pln_dtype_bits(dtype);
}

int64_t pln_loop_wrap(pln_dtype dtype, uint64_t value) {
  uint32_t bits = bits_of(dtype);
  if (dtype == PLN_BOOL)
    return value != 0;
  if (bits == 0 || bits >= 64)
    return (int64_t)value;
  value &= (UINT64_C(1) << bits) - 1;
  uint64_t sign = pln_is_signed(dtype) ? UINT64_C(1) << (bits - 1) : 0;
  return (int64_t)((value ^ sign) - sign);
}

float pln_loop_round(pln_dtype dtype, float value) {
  if (dtype == PLN_FLOAT16)
    return pln_half_to_float(pln_float_to_half(value));
  if (dtype == PLN_BFLOAT16)
    return pln_bfloat_to_float(pln_float_to_bfloat(value));
  return (float)pln_small_to_double(dtype,
                                    pln_double_to_small(dtype, value, true));
}

static int64_t truncate_or(double value, double least, double end,
                           int64_t otherwise) {
  return value > least - 1 && value < end ? (int64_t)value : otherwise;
}

int64_t pln_loop_float_to_int(pln_dtype to, double value) {
  if (to == PLN_UINT64 && value >= 0x1p63)
    return value < 0x1p64 ? (int64_t)(uint64_t)value : 0;
  if (to == PLN_UINT64 || to == PLN_INT64 || to == PLN_UINT32 ||
      bits_of(to) < 8) {
    bool fits = value >= -0x1p63 && value < 0x1p63;
    return pln_loop_wrap(to, (uint64_t)(fits ? (int64_t)value : INT64_MIN));
  }
  return pln_loop_wrap(
      to, (uint64_t)truncate_or(value, -0x1p31, 0x1p31, INT32_MIN));
}

static uint64_t masked(pln_dtype dtype, int64_t value) {
  uint32_t bits = bits_of(dtype);
  return bits >= 64 ? (uint64_t)value
                    : (uint64_t)value & ((UINT64_C(1) << bits) - 1);
}

int64_t pln_loop_popcount(pln_dtype dtype, int64_t value) {
  return __builtin_popcountll(masked(dtype, value));
}

/* The width for 0, as the machine's instruction gives it. */
int64_t pln_loop_clz(pln_dtype dtype, int64_t value) {
  uint64_t bits = masked(dtype, value);
  int64_t width = bits_of(dtype);
  return bits ? __builtin_clzll(bits) - (64 - width) : width;
}

int64_t pln_loop_unpack(pln_dtype dtype, uint64_t bits) {
  pln_loop_cell cell = {0};
  switch ((int)dtype) {
  case PLN_FLOAT32: {
    uint32_t low = (uint32_t)bits;
    memcpy(&cell.f, &low, sizeof low);
    break;
  }
  case PLN_FLOAT64: cell.i = (int64_t)bits; break;
  case PLN_FLOAT16: cell.f = pln_half_to_float((uint16_t)bits); break;
  case PLN_BFLOAT16: cell.f = pln_bfloat_to_float((uint16_t)bits); break;
  default:
    if (pln_is_small_float(dtype))
      cell.f = (float)pln_small_to_double(dtype, (uint8_t)bits);
    else
      cell.i = pln_loop_wrap(dtype, bits);
  }
  return cell.i;
}

uint64_t pln_loop_pack(pln_dtype dtype, int64_t value) {
  pln_loop_cell cell = {.i = value};
  switch ((int)dtype) {
  case PLN_FLOAT32: {
    uint32_t low;
    memcpy(&low, &cell.f, sizeof low);
    return low;
  }
  case PLN_FLOAT64: return (uint64_t)value;
  case PLN_FLOAT16: return pln_float_to_half(cell.f);
  case PLN_BFLOAT16: return pln_float_to_bfloat(cell.f);
  default:
    return pln_is_small_float(dtype) ? pln_double_to_small(dtype, cell.f, true)
                                     : masked(dtype, value);
  }
}

int64_t pln_loop_reinterpret(uint32_t pair, int64_t cell) {
  return pln_loop_unpack((pln_dtype)(pair % 64),
                         pln_loop_pack((pln_dtype)(pair / 64), cell));
}

__extension__ typedef __int128 wide;

int64_t pln_loop_q_multiply_shift(int64_t x, int64_t y, int64_t q, int64_t s) {
  int64_t left = s > 0 ? s : 0, right = q - (s < 0 ? s : 0);
  if (left > 31 || right < 0 || right > 62)
    return 0;
  wide product = ((wide)x << left) * y;
  if (right > 0)
    product += (wide)1 << (right - 1);
  return pln_wrap32((uint64_t)(product >> right));
}

/* ---------------------------------------------------------------- functions */

static float exp10_single(float x) {
  return powf(10.0f, x);
}
static double exp10_twice(double x) {
  return pow(10.0, x);
}
static float sigmoid_single(float x) {
  return 1.0f / (1.0f + expf(-x));
}
static double sigmoid_twice(double x) {
  return 1.0 / (1.0 + exp(-x));
}
static float rsqrt_single(float x) {
  return 1.0f / sqrtf(x);
}
static double rsqrt_twice(double x) {
  return 1.0 / sqrt(x);
}

#define C_FUNCTION(name) \
  { #name, name##f, name }
const pln_loop_function pln_loop_functions[] = {
    C_FUNCTION(exp),
    C_FUNCTION(exp2),
    C_FUNCTION(erf),
    C_FUNCTION(tanh),
    C_FUNCTION(sqrt),
    C_FUNCTION(log),
    C_FUNCTION(log2),
    C_FUNCTION(log1p),
    C_FUNCTION(log10),
    C_FUNCTION(tan),
    C_FUNCTION(cos),
    C_FUNCTION(cosh),
    C_FUNCTION(sin),
    C_FUNCTION(sinh),
    C_FUNCTION(asin),
    C_FUNCTION(acos),
    C_FUNCTION(atan),
    C_FUNCTION(acosh),
    C_FUNCTION(asinh),
    C_FUNCTION(atanh),
    C_FUNCTION(floor),
    C_FUNCTION(ceil),
    C_FUNCTION(round),
    C_FUNCTION(nearbyint),
    C_FUNCTION(trunc),
    C_FUNCTION(fabs),
    {"exp10", exp10_single, exp10_twice},
    {"sigmoid", sigmoid_single, sigmoid_twice},
    {"rsqrt", rsqrt_single, rsqrt_twice},
    {NULL, NULL, NULL}};
const pln_loop_function2 pln_loop_functions2[] = {
    C_FUNCTION(atan2),    C_FUNCTION(nextafter), C_FUNCTION(hypot),
    C_FUNCTION(copysign), C_FUNCTION(pow),       C_FUNCTION(fmod),
    {NULL, NULL, NULL}};

int32_t pln_loop_find_function(pln_slice name) {
  for (int32_t i = 0; pln_loop_functions[i].name; i++)
    if (pln_slice_is(name, pln_loop_functions[i].name))
      return i;
  return -1;
}

int32_t pln_loop_find_function2(pln_slice name) {
  for (int32_t i = 0; pln_loop_functions2[i].name; i++)
    if (pln_slice_is(name, pln_loop_functions2[i].name))
      return i;
  return -1;
}
