/* approximation.h: float32 functions that vectorise: exponentials, logarithm,
 * error function, the activations built on them, sines. Used by unary.c,
 * activation.c and kernel/norm/softmax.c; float64 uses C's library.
 *
 * There are no branches and no tables, so that a loop over a function is
 * vectorised; an element's result does not depend on its position. The last bit
 * may depend on the machine, because the kernels' files allow fused
 * multiply-add. NaN stays NaN; infinities and signs of zero are as in C's
 * functions; subnormals are neither lost nor flushed. Error bounds in ulp of
 * the exact result: exp, expm1, log, erf, sin and cos below 2, gelu below 8,
 * the others below 4 (spec/c/op/test_approximation.c sweeps them against C's
 * library in double).
 *
 * Method: argument reduction after W. J. Cody and W. Waite ("Software Manual
 * for the Elementary Functions", 1980). Unless it is said otherwise, the
 * coefficients are our own: least squares on 4000 Chebyshev nodes, reweighted
 * until the maximal relative error is level (Lawson), then rounded to float;
 * the error of each polynomial is stated beside it. */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_APPROXIMATION_H
#define PLN_OP_KERNEL_ELEMENTWISE_APPROXIMATION_H

#include <stdint.h>
#include <string.h>

static inline uint32_t pln_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float pln_bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float pln_size(float x) {
  return pln_bits_float(pln_float_bits(x) & 0x7fffffff);
}

/* `size`, not below 0, with the sign of x. */
static inline float pln_signed(float size, float x) {
  return pln_bits_float(pln_float_bits(size) |
                        (pln_float_bits(x) & 0x80000000));
}

/* ------------------------------------------------------------- exponentials */

/* x = n ln 2 + r with |r| <= ln 2 / 2. */
typedef struct pln_reduced {
  int32_t n;
  float r;
} pln_reduced;

/* Added, this leaves the integer part of a small float in the low bits. */
#define PLN_FLOAT_ROUNDER 0x1.8p23f
#define PLN_DOUBLE_ROUNDER 0x1.8p52

/* For x in [-104, 89], or NaN. The first part of ln 2 has 15 bits, so that its
 * product with n is exact. */
static inline pln_reduced pln_reduce_float(float x) {
  float shifted = x * 0x1.715476p+0f + PLN_FLOAT_ROUNDER;
  float n = shifted - PLN_FLOAT_ROUNDER;
  float r = x - n * 0x1.62e4p-1f;
  uint32_t bits = pln_float_bits(shifted) - pln_float_bits(PLN_FLOAT_ROUNDER);
  return (pln_reduced){(int32_t)bits, r - n * 0x1.7f7d1cp-20f};
}

/* The same for an argument in double, which float would have rounded. */
static inline pln_reduced pln_reduce_double(double x) {
  double n = x * 0x1.71547652b82fep+0 + PLN_DOUBLE_ROUNDER - PLN_DOUBLE_ROUNDER;
  float r = (float)(x - n * 0x1.62e42fefa39efp-1);
  float shifted = (float)n + PLN_FLOAT_ROUNDER;
  uint32_t bits = pln_float_bits(shifted) - pln_float_bits(PLN_FLOAT_ROUNDER);
  return (pln_reduced){(int32_t)bits, r};
}

/* exp(r) - 1 for |r| <= ln 2 / 2: relative to exp(r), within 2^-28. */
static inline float pln_exp_core(float r) {
  float p = 1.381456270e-03f;
  p = p * r + 8.368730545e-03f;
  p = p * r + 4.166838899e-02f;
  p = p * r + 1.666652113e-01f;
  p = p * r + 4.999999404e-01f;
  return p * (r * r) + r;
}

/* 2^n for n from -126 to 127. */
static inline float pln_power_of_two(int32_t n) {
  return pln_bits_float(((uint32_t)n + 127) << 23);
}

/* In two steps, because 2^n may overflow or underflow when the result does
 * not. */
static inline float pln_scale(float x, int32_t n) {
  int32_t half = n >> 1;
  return x * pln_power_of_two(half) *
         pln_power_of_two((int32_t)((uint32_t)n - (uint32_t)half));
}

/* The same for n from -190 to 63, in fewer operations. */
static inline float pln_scale_down(float x, int32_t n) {
  return x * pln_power_of_two(n + 64) * 0x1p-64f;
}

/* Arguments outside this range give 0 or infinity. */
static inline float pln_exp_bounded(float x) {
  x = x > 89 ? 89 : x;
  return x < -104 ? -104 : x;
}

/* exp(r) for |r| <= ln 2 / 2. These coefficients, and the reduction above, are
 * those of ONNX Runtime: scores of networks that are nearly certain differ in
 * their last bit or not at all, and what is sorted by them must not depend on
 * it. With fused multiply-add the bits are the same. */
static inline float pln_exp_reduced(float r) {
  float p = 0x1.694p-10f;
  p = p * r + 0x1.125edcp-7f;
  p = p * r + 0x1.555b5ap-5f;
  p = p * r + 0x1.55545p-3f;
  p = p * r + 0x1.fffff6p-2f;
  p = p * r + 1;
  return p * r + 1;
}

static inline float pln_exp_float(float x) {
  pln_reduced a = pln_reduce_float(pln_exp_bounded(x));
  return pln_scale(pln_exp_reduced(a.r), a.n);
}

/* The same bits as pln_exp_float for x up to 40, or NaN. */
static inline float pln_exp_negative(float x) {
  pln_reduced a = pln_reduce_float(x < -104 ? -104 : x);
  return pln_scale_down(pln_exp_reduced(a.r), a.n);
}

/* exp(x) = m 2^n, for arguments in double. The factors are kept apart, so that
 * a product with an exponential below all normal floats keeps its digits. Below
 * -120 m is 0. */
typedef struct pln_power {
  float m;
  int32_t n;
} pln_power;

static inline pln_power pln_exp_parts(double x) {
  double bounded = x > 89 ? 89 : x < -120 ? -120 : x;
  pln_reduced a = pln_reduce_double(bounded);
  return (pln_power){x < -120 ? 0 : 1 + pln_exp_core(a.r), a.n};
}

/* For x <= 0 or NaN. */
static inline float pln_expm1_negative(float x) {
  float bounded = x < -20 ? -20 : x;
  pln_reduced a = pln_reduce_float(bounded);
  float scale = pln_power_of_two(a.n);
  float y = scale * pln_exp_core(a.r) + (scale - 1);
  return x == 0 ? x : y;
}

/* ---------------------------------------------------------------- logarithm */

/* (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to sqrt(2):
 * relative to log(1 + f), within 2^-30. */
static inline float pln_log_core(float f) {
  float p = 6.746491790e-02f;
  p = p * f + -1.167561561e-01f;
  p = p * f + 1.188821122e-01f;
  p = p * f + -1.240559742e-01f;
  p = p * f + 1.421954632e-01f;
  p = p * f + -1.666799486e-01f;
  p = p * f + 2.000211924e-01f;
  p = p * f + -2.500000894e-01f;
  return p * f + 3.333331347e-01f;
}

static inline float pln_log_float(float x) {
  uint32_t root_half = 0x3f3504f3;
  float normal = x < 0x1p-126f ? x * 0x1p23f : x;
  uint32_t bits = pln_float_bits(normal) - root_half;
  int32_t n = (int32_t)bits >> 23;
  float f = pln_bits_float((bits & 0x7fffff) + root_half) - 1;
  float e = (float)(n - (x < 0x1p-126f ? 23 : 0));
  float square = f * f;
  float low = square * f * pln_log_core(f) - e * 0x1.bd0106p-13f;
  float y = e * 0x1.63p-1f + (f + (low - 0.5f * square));
  y = x == 0 ? pln_bits_float(0xff800000) : y;
  y = x > 3.40282347e+38f ? x : y;
  return x < 0 || x != x ? pln_bits_float(0x7fc00000) : y;
}

/* log(1 + x) for x from 0 to 1, or NaN: 2 atanh(x / (2 + x)), relative to it
 * within 2^-33. */
static inline float pln_log1p_unit(float x) {
  float s = x / (2 + x), u = s * s;
  float p = 1.215047613e-01f;
  p = p * u + 1.071382612e-01f;
  p = p * u + 1.430844218e-01f;
  p = p * u + 1.999943852e-01f;
  p = p * u + 3.333333731e-01f;
  return 2 * (s + s * u * p);
}

/* --------------------------------------------------------- hyperbolic, logit
 */

/* y / (2 - y) with y = 1 - exp(-2 |x|). */
static inline float pln_tanh_float(float x) {
  float size = pln_size(x);
  pln_reduced a = pln_reduce_float(-2 * (size > 10 ? 10 : size));
  float scale = pln_power_of_two(a.n);
  float y = (1 - scale) - scale * pln_exp_core(a.r);
  return pln_signed(y / (2 - y), x);
}

/* 1 / (1 + exp(-x)). exp is only taken of negative numbers, so that it cannot
 * overflow. */
static inline float pln_sigmoid_float(float x) {
  float falling = pln_exp_negative(-pln_size(x));
  return (x < 0 ? falling : 1) / (1 + falling);
}

/* x / (1 + exp(-y)). */
static inline float pln_gated(float x, double y) {
  pln_power e = pln_exp_parts(y < 0 ? y : -y);
  float below = 1 + pln_scale(e.m, e.n);
  return y < 0 ? pln_scale(x * e.m / below, e.n) : x / below;
}

static inline float pln_silu_float(float x, double alpha) {
  return pln_gated(x, (double)x * alpha);
}

static inline float pln_softplus_float(float x) {
  float tail = pln_log1p_unit(pln_exp_negative(-pln_size(x)));
  return x > 0 ? x + tail : tail;
}

/* x tanh(log(1 + e)) with e = exp(x) is x e (e + 2) / (e (e + 2) + 2). */
static inline float pln_mish_float(float x) {
  pln_power a = pln_exp_parts(x > 40 ? 40 : (double)x);
  float e = pln_scale(a.m, a.n);
  return pln_scale(x * (a.m * ((e + 2) / (e * (e + 2) + 2))), a.n);
}

/* --------------------------------------------------------------------- erf */

/* x + x P(x^2) up to 0.92 (within 2^-26), beyond it 1 - exp(Q(|x|)), where Q is
 * log(erfc) (within 2^-34 of erf). */
static inline float pln_erf_float(float x) {
  float size = pln_size(x);
  float u = x * x;
  float p = -5.999396672e-04f;
  p = p * u + 4.994828254e-03f;
  p = p * u + -2.676771767e-02f;
  p = p * u + 1.128184572e-01f;
  p = p * u + -3.761249781e-01f;
  p = p * u + 1.283791512e-01f;
  float near = size + size * p, a = size > 4 ? 4 : size;
  float q = -2.082890387e-05f;
  q = q * a + 4.313966783e-04f;
  q = q * a + -4.156269133e-03f;
  q = q * a + 2.508065104e-02f;
  q = q * a + -1.082204357e-01f;
  q = q * a + -6.334007978e-01f;
  q = q * a + -1.129488468e+00f;
  q = q * a + 1.692089281e-04f;
  float far = 1 - pln_exp_negative(q);
  return pln_signed(size < 0.92f ? near : far, x);
}

/* exp(t^2) erfc(t) / 2 for t from 0 to 10.5: that (1 + 2 t) is a polynomial of
 * (t - 2) / (t + 2), within 2^-26. */
static inline float pln_half_erfcx(float t) {
  float q = (t - 2) / (t + 2);
  float p = -3.961158218e-04f;
  p = p * q + -1.222351566e-03f;
  p = p * q + 1.312579843e-03f;
  p = p * q + 8.625367656e-03f;
  p = p * q + -8.060892113e-03f;
  p = p * q + -5.420262367e-02f;
  p = p * q + 1.640556604e-01f;
  p = p * q + -1.660315692e-01f;
  p = p * q + -9.276399761e-02f;
  p = p * q + 1.276978374e+00f;
  return 0.5f * p / (1 + 2 * t);
}

/* exp(-x^2 / 2) for x in [0, 14.8], where float would round the square: the
 * square of the high half of x is exact, and the rest is small. */
static inline pln_power pln_exp_half_square(float x) {
  float high = pln_bits_float(pln_float_bits(x) & 0xfffff000), low = x - high;
  pln_reduced a = pln_reduce_float(-0.5f * high * high);
  float rest = -0.5f * low * (x + high);
  return (pln_power){1 + pln_exp_core(a.r + rest), a.n};
}

/* x times the normal distribution function. For negative x it is computed
 * directly and not as a difference, so that nothing cancels. */
static inline float pln_gelu_float(float x) {
  float size = pln_size(x);
  float bounded = size > 14.8f ? 14.8f : size;
  pln_power e = pln_exp_half_square(bounded);
  float tail = pln_half_erfcx(bounded * 0.707106781f) * e.m;
  tail = size > 14.8f ? 0 : tail;
  float below = pln_scale(x * tail, e.n);
  return x < 0 ? below : x * (1 - pln_scale(tail, e.n));
}

/* 0.5 x (1 + tanh(u)) is x / (1 + exp(-2 u)). */
static inline float pln_gelu_tanh_float(float x) {
  double wide = (double)x;
  double cube = 0.044715 * wide * wide * wide;
  return pln_gated(x, 1.59576912160573071176 * (wide + cube));
}

/* ------------------------------------------------------------- trigonometric
 */

/* Beyond this, subtracting quarter turns is not exact. */
#define PLN_QUADRANT_MAX 0x1p20f

/* x = n pi / 2 + r with |r| <= pi / 4, for |x| up to PLN_QUADRANT_MAX; only the
 * low bits of n matter. The first part of pi / 2 has 33 bits, so that its
 * product with n is exact. */
static inline pln_reduced pln_reduce_to_quadrant(float x) {
  double wide = (double)x;
  double n =
      wide * 0x1.45f306dc9c883p-1 + PLN_DOUBLE_ROUNDER - PLN_DOUBLE_ROUNDER;
  double r = wide - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34;
  float shifted = (float)n + PLN_FLOAT_ROUNDER;
  uint32_t bits = pln_float_bits(shifted) - pln_float_bits(PLN_FLOAT_ROUNDER);
  return (pln_reduced){(int32_t)bits, (float)r};
}

/* For |r| <= pi / 4: within 2^-26. */
static inline float pln_sin_core(float r) {
  float u = r * r;
  float p = -1.951525046e-04f;
  p = p * u + 8.332160302e-03f;
  p = p * u + -1.666665524e-01f;
  return r + r * (u * p);
}

/* Within 2^-32. */
static inline float pln_cos_core(float r) {
  float u = r * r;
  float p = 2.443312042e-05f;
  p = p * u + -1.388731645e-03f;
  p = p * u + 4.166664556e-02f;
  return 1 - 0.5f * u + u * u * p;
}

/* The sine of n quarter turns plus r. */
static inline float pln_sin_of_quadrant(int32_t n, float r) {
  float y = n & 1 ? pln_cos_core(r) : pln_sin_core(r);
  return n & 2 ? -y : y;
}

/* Both for |x| up to PLN_QUADRANT_MAX. */
static inline float pln_sin_float(float x) {
  pln_reduced a = pln_reduce_to_quadrant(x);
  float y = pln_sin_of_quadrant(a.n, a.r);
  return x == 0 ? x : y;
}

static inline float pln_cos_float(float x) {
  pln_reduced a = pln_reduce_to_quadrant(x);
  return pln_sin_of_quadrant((int32_t)((uint32_t)a.n + 1), a.r);
}

/* Of z up to tan(pi / 8) by z + z^3 P(z^2), within 2^-28; of what is greater by
 * pi / 4 + atan((x - 1) / (x + 1)), of what is beyond tan(3 pi / 8) by
 * pi / 2 - atan(1 / x). */
static inline float pln_atan_float(float x) {
  float size = pln_size(x);
  int middle = size > 0.41421356f, high = size > 2.4142135f;
  float above = high ? -1 : middle ? size - 1 : size;
  float below = high ? size : middle ? size + 1 : 1;
  float offset = high ? 1.57079637f : middle ? 0.785398185f : 0;
  float rest = high ? -4.37113883e-08f : middle ? -2.18556941e-08f : 0;
  float z = above / below, u = z * z;
  float p = -6.077990308e-02f;
  p = p * u + 1.059372649e-01f;
  p = p * u + -1.424352229e-01f;
  p = p * u + 1.999847144e-01f;
  p = p * u + -3.333331645e-01f;
  return pln_signed(offset + (rest + (z + z * (u * p))), x);
}

#endif
