/* test_approximation.c: the functions of op/kernel/elementwise/approximation.h
 * against C's library in double: every 997th float, and the special ones. */

#include "check.h"

#include <math.h>

#include "op/kernel/elementwise/approximation.h"

/* The distance from `exact` in units of the last place of a float there. */
static double ulps(float got, double exact) {
  float rounded = (float)exact;
  if (isnan(exact) || isnan(got))
    return isnan(exact) && isnan(got) ? 0 : INFINITY;
  if (isinf(rounded) || isinf(got))
    return rounded == got || fabs(exact) > 0x1.fffffep127 ? 0 : INFINITY;
  if (exact == 0)
    return got == 0 && !signbit(got) == !signbit(exact) ? 0 : INFINITY;
  int exponent;
  frexp(exact, &exponent);
  double unit = ldexp(1, exponent < -125 ? -149 : exponent - 24);
  return fabs((double)got - exact) / unit;
}

typedef float (*single)(float);
typedef double (*exact)(double);

static void sweep(single f, exact g, uint32_t step, double limit) {
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {
    float x = pln_bits_float((uint32_t)bits);
    double error = ulps(f(x), g((double)x));
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  printf("# at most %.2f ulp, at %a\n", worst, (double)at);
  CHECK(worst < limit);
}

static void corners(single f, exact g, double limit) {
  static const float list[] = {
      0,          -0.0f,       INFINITY,    -INFINITY, NAN,        0x1p-149f,
      -0x1p-149f, 0x1p-126f,   1,           -1,        88.72283f,  88.72284f,
      -87.336f,   -103.97208f, -103.97209f, 3.4e38f,   -3.4e38f,   0.625f,
      0.92f,      9.01f,       -14.2f,      -13.9f,    1.4142135f, 0.70710677f};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    double error = ulps(f(list[i]), g((double)list[i]));
    if (!CHECK(error < limit))
      printf("# %a: %a, not %a\n", (double)list[i], (double)f(list[i]),
             g((double)list[i]));
  }
}

static double exact_sigmoid(double x) {
  return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double exact_silu(double x) {
  return x * exact_sigmoid(1.702 * x);
}
static float silu(float x) {
  return pln_silu_float(x, 1.702);
}
static double exact_softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double exact_mish(double x) {
  return x * tanh(exact_softplus(x));
}
static double exact_gelu(double x) {
  return x * 0.5 * erfc(-x * 0.70710678118654752440);
}
static double exact_gelu_tanh(double x) {
  double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return x * exact_sigmoid(2 * u);
}
/* Beyond PLN_QUADRANT_MAX the kernels take C's functions. */
static float near_sin(float x) {
  return fabsf(x) <= PLN_QUADRANT_MAX ? pln_sin_float(x) : 0;
}
static double exact_near_sin(double x) {
  return fabs(x) <= (double)PLN_QUADRANT_MAX ? sin(x) : 0;
}
static float near_cos(float x) {
  return fabsf(x) <= PLN_QUADRANT_MAX ? pln_cos_float(x) : 0;
}
static double exact_near_cos(double x) {
  return fabs(x) <= (double)PLN_QUADRANT_MAX ? cos(x) : 0;
}
static double exact_expm1(double x) {
  return x > 0 ? x : expm1(x);
}
static float negative_expm1(float x) {
  return x > 0 ? x : pln_expm1_negative(x);
}

#define FUNCTION(name, f, g, limit) \
  static void name(void) {          \
    sweep(f, g, 997, limit);        \
    corners(f, g, limit);           \
  }
FUNCTION(exp_is_close, pln_exp_float, exp, 2)
FUNCTION(expm1_is_close, negative_expm1, exact_expm1, 2)
FUNCTION(log_is_close, pln_log_float, log, 2)
FUNCTION(tanh_is_close, pln_tanh_float, tanh, 4)
FUNCTION(sigmoid_is_close, pln_sigmoid_float, exact_sigmoid, 4)
FUNCTION(erf_is_close, pln_erf_float, erf, 2)
FUNCTION(softplus_is_close, pln_softplus_float, exact_softplus, 4)
FUNCTION(silu_is_close, silu, exact_silu, 4)
FUNCTION(mish_is_close, pln_mish_float, exact_mish, 4)
FUNCTION(gelu_is_close, pln_gelu_float, exact_gelu, 8)
FUNCTION(gelu_tanh_is_close, pln_gelu_tanh_float, exact_gelu_tanh, 4)
FUNCTION(sin_is_close, near_sin, exact_near_sin, 2)
FUNCTION(cos_is_close, near_cos, exact_near_cos, 2)
FUNCTION(atan_is_close, pln_atan_float, atan, 4)

static const check_test tests[] = {
    {"exp", exp_is_close},
    {"expm1 below zero", expm1_is_close},
    {"log", log_is_close},
    {"tanh", tanh_is_close},
    {"sigmoid", sigmoid_is_close},
    {"erf", erf_is_close},
    {"softplus", softplus_is_close},
    {"silu", silu_is_close},
    {"mish", mish_is_close},
    {"gelu", gelu_is_close},
    {"gelu by tanh", gelu_tanh_is_close},
    {"sin", sin_is_close},
    {"cos", cos_is_close},
    {"atan", atan_is_close},
};
CHECK_MAIN(tests)
