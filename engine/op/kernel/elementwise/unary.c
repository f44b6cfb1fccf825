/* unary.c: unary arithmetic and functions. Called through ops.def.
 *
 * Integers wrap: the least integer is its own absolute value and negation.
 * Float functions are those of C's math library; the common float32 ones are
 * those of approximation.h, within its error bounds. */

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/elementwise/elementwise.h"

/* ----------------------------------------------------------------- integers */

#define INT_NEG(T, x) ((T)(0 - (uint64_t)(x)))
#define INT_ABS(T, x) ((x) < 0 ? INT_NEG(T, x) : (x))
#define SAME(T, x) (x)
#define INT_SIGN(T, x) (((x) > 0) - ((x) < 0))
#define INT_NONZERO(T, x) ((x) != 0)
#define INVERT(T, x) (~(x))
#define NEG_LOOP(D, T) PLN_UNARY_LOOP(neg, D, T, T, INT_NEG)
#define ABS_LOOP(D, T) PLN_UNARY_LOOP(abs, D, T, T, INT_ABS)
#define ABS_SAME(D, T) PLN_UNARY_LOOP(abs, D, T, T, SAME)
#define SIGN_LOOP(D, T) PLN_UNARY_LOOP(sign, D, T, T, INT_SIGN)
#define SIGN_UNSIGNED(D, T) PLN_UNARY_LOOP(sign, D, T, T, INT_NONZERO)
#define INVERT_LOOP(D, T) PLN_UNARY_LOOP(invert, D, T, T, INVERT)
PLN_SIGNED_TYPES(NEG_LOOP)
PLN_SIGNED_TYPES(ABS_LOOP)
PLN_UNSIGNED_TYPES(ABS_SAME)
PLN_SIGNED_TYPES(SIGN_LOOP)
PLN_UNSIGNED_TYPES(SIGN_UNSIGNED)
PLN_INT_TYPES(INVERT_LOOP)

/* ------------------------------------------------------------------- floats */

#define FLOAT_NEG(T, x) (-(x))
#define FLOAT_SIGN(T, x) ((x) != (x) ? (x) : (T)(((x) > 0) - ((x) < 0)))
#define FLOAT_INVERSE(T, x) (1 / (x))
#define FLOAT_PAIR(name, f32, f64)                 \
  PLN_UNARY_LOOP(name, FLOAT32, float, float, f32) \
  PLN_UNARY_LOOP(name, FLOAT64, double, double, f64)
FLOAT_PAIR(neg, FLOAT_NEG, FLOAT_NEG)
FLOAT_PAIR(sign, FLOAT_SIGN, FLOAT_SIGN)
FLOAT_PAIR(reciprocal, FLOAT_INVERSE, FLOAT_INVERSE)

/* float32 functions from approximation.h; all others are C's. */
#define EXP_SINGLE(T, x) pln_exp_float(x)
#define LOG_SINGLE(T, x) pln_log_float(x)
#define ERF_SINGLE(T, x) pln_erf_float(x)
#define TANH_SINGLE(T, x) pln_tanh_float(x)
#define ATAN_SINGLE(T, x) pln_atan_float(x)

/* A function of C's math library, in both precisions. */
#define C_FUNCTION(name, function)           \
  static float name##_of_float(float x) {    \
    return function##f(x);                   \
  }                                          \
  static double name##_of_double(double x) { \
    return function(x);                      \
  }
C_FUNCTION(abs, fabs)
C_FUNCTION(ceil, ceil)
C_FUNCTION(floor, floor)
C_FUNCTION(trunc, trunc)
C_FUNCTION(round_even, nearbyint)
C_FUNCTION(round_away, round)
C_FUNCTION(sqrt, sqrt)
static double exp_of_double(double x) {
  return exp(x);
}
static double log_of_double(double x) {
  return log(x);
}
static double erf_of_double(double x) {
  return erf(x);
}
static double sin_of_double(double x) {
  return sin(x);
}
static double cos_of_double(double x) {
  return cos(x);
}
C_FUNCTION(log2, log2)
C_FUNCTION(log10, log10)
C_FUNCTION(tan, tan)
C_FUNCTION(asin, asin)
C_FUNCTION(acos, acos)
static double atan_of_double(double x) {
  return atan(x);
}
C_FUNCTION(sinh, sinh)
C_FUNCTION(cosh, cosh)
static double tanh_of_double(double x) {
  return tanh(x);
}
C_FUNCTION(asinh, asinh)
C_FUNCTION(acosh, acosh)
C_FUNCTION(atanh, atanh)

#define OF_abs(T, x) abs_of_##T(x)
#define OF_ceil(T, x) ceil_of_##T(x)
#define OF_floor(T, x) floor_of_##T(x)
#define OF_trunc(T, x) trunc_of_##T(x)
#define OF_round_even(T, x) round_even_of_##T(x)
#define OF_round_away(T, x) round_away_of_##T(x)
#define OF_sqrt(T, x) sqrt_of_##T(x)
#define OF_exp(T, x) exp_of_##T(x)
#define OF_log(T, x) log_of_##T(x)
#define OF_log2(T, x) log2_of_##T(x)
#define OF_log10(T, x) log10_of_##T(x)
#define OF_erf(T, x) erf_of_##T(x)
#define OF_sin(T, x) sin_of_##T(x)
#define OF_cos(T, x) cos_of_##T(x)
#define OF_tan(T, x) tan_of_##T(x)
#define OF_asin(T, x) asin_of_##T(x)
#define OF_acos(T, x) acos_of_##T(x)
#define OF_atan(T, x) atan_of_##T(x)
#define OF_sinh(T, x) sinh_of_##T(x)
#define OF_cosh(T, x) cosh_of_##T(x)
#define OF_tanh(T, x) tanh_of_##T(x)
#define OF_asinh(T, x) asinh_of_##T(x)
#define OF_acosh(T, x) acosh_of_##T(x)
#define OF_atanh(T, x) atanh_of_##T(x)

/* ------------------------------------------------------------------ kernels */

#define ROW(name, D) [PLN_##D] = name##_##D
#define SIGNED(name) \
  ROW(name, INT8), ROW(name, INT16), ROW(name, INT32), ROW(name, INT64)
#define UNSIGNED(name) \
  ROW(name, UINT8), ROW(name, UINT16), ROW(name, UINT32), ROW(name, UINT64)
#define FLOATS(name) ROW(name, FLOAT32), ROW(name, FLOAT64)

#define UNARY_KERNEL(name, ...)                                 \
  pln_status pln_kernel_##name(pln_kernel_call *call) {         \
    static const pln_unary_loops loops = {.of = {__VA_ARGS__}}; \
    return pln_unary_run(call, &loops, NULL);                   \
  }
#define FLOAT_KERNEL(name)               \
  FLOAT_PAIR(name, OF_##name, OF_##name) \
  UNARY_KERNEL(name, FLOATS(name))

/* Arguments beyond PLN_QUADRANT_MAX, infinities and NaN use C's function. */
#define PERIODIC_LOOP(name)                                                   \
  PLN_MULTIVERSION_AVX512 static void name##_near(float *restrict to,         \
                                                  const float *x, size_t n) { \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = pln_##name##_float(x[i]);                                       \
  }                                                                           \
  static bool name##_FLOAT32(void *out, const void *in, size_t n,             \
                             const pln_params *params) {                      \
    float near[PERIODIC_BLOCK], *to = out;                                    \
    const float *x = in;                                                      \
    (void)params;                                                             \
    for (size_t at = 0; at < n; at += PERIODIC_BLOCK) {                       \
      size_t k = n - at < PERIODIC_BLOCK ? n - at : PERIODIC_BLOCK;           \
      name##_near(near, x + at, k);                                           \
      bool good = all_near(x + at, k);                                        \
      for (size_t i = 0; i < k && !good; i++)                                 \
        if (!(pln_size(x[at + i]) <= PLN_QUADRANT_MAX))                       \
          near[i] = name##f(x[at + i]);                                       \
      memcpy(to + at, near, k * sizeof *near);                                \
    }                                                                         \
    return true;                                                              \
  }
#define PERIODIC_KERNEL(name)                              \
  PERIODIC_LOOP(name)                                      \
  PLN_UNARY_LOOP(name, FLOAT64, double, double, OF_##name) \
  UNARY_KERNEL(name, FLOATS(name))

enum { PERIODIC_BLOCK = 512 };
PLN_MULTIVERSION static bool all_near(const float *x, size_t n) {
  uint32_t far = 0;
  for (size_t i = 0; i < n; i++)
    far |= !(pln_size(x[i]) <= PLN_QUADRANT_MAX);
  return !far;
}

FLOAT_PAIR(abs, OF_abs, OF_abs)
UNARY_KERNEL(abs, SIGNED(abs), UNSIGNED(abs), FLOATS(abs))
UNARY_KERNEL(negative, SIGNED(neg), FLOATS(neg))
UNARY_KERNEL(sign, SIGNED(sign), UNSIGNED(sign), FLOATS(sign))
UNARY_KERNEL(bitwise_not, SIGNED(invert), UNSIGNED(invert))
UNARY_KERNEL(reciprocal, FLOATS(reciprocal))
FLOAT_KERNEL(ceil)
FLOAT_KERNEL(floor)
FLOAT_KERNEL(trunc)
FLOAT_PAIR(round_even, OF_round_even, OF_round_even)
FLOAT_PAIR(round_away, OF_round_away, OF_round_away)
/* Halves go to the even integer in ONNX, away from zero in Relay. */
pln_status pln_kernel_round(pln_kernel_call *call) {
  static const pln_unary_loops even = {.of = {FLOATS(round_even)}},
                               away = {.of = {FLOATS(round_away)}};
  bool relay = pln_kernel_int(call, "relay", 0) != 0;
  return pln_unary_run(call, relay ? &away : &even, NULL);
}
FLOAT_KERNEL(sqrt)
FLOAT_PAIR(exp, EXP_SINGLE, OF_exp)
UNARY_KERNEL(exp, FLOATS(exp))
FLOAT_PAIR(log, LOG_SINGLE, OF_log)
UNARY_KERNEL(log, FLOATS(log))
FLOAT_PAIR(erf, ERF_SINGLE, OF_erf)
UNARY_KERNEL(erf, FLOATS(erf))
FLOAT_KERNEL(log2)
FLOAT_KERNEL(log10)
PERIODIC_KERNEL(sin)
PERIODIC_KERNEL(cos)
FLOAT_KERNEL(tan)
FLOAT_KERNEL(asin)
FLOAT_KERNEL(acos)
FLOAT_PAIR(atan, ATAN_SINGLE, OF_atan)
UNARY_KERNEL(atan, FLOATS(atan))
FLOAT_KERNEL(sinh)
FLOAT_KERNEL(cosh)
FLOAT_PAIR(tanh, TANH_SINGLE, OF_tanh)
UNARY_KERNEL(tanh, FLOATS(tanh))
FLOAT_KERNEL(asinh)
FLOAT_KERNEL(acosh)
FLOAT_KERNEL(atanh)
