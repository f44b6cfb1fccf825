/* activation.c: activation functions with exponentials. Called through ops.def;
 * those of straight pieces are in piecewise.c.
 *
 * float32 functions are those of approximation.h, which gives their error
 * bounds. NaN gives NaN. */

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/elementwise/elementwise.h"

/* exp is only applied to negative numbers, so it cannot overflow. */
static double sigmoid(double x) {
  double e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double gelu(double x) {
  return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double gelu_tanh(double x) {
  return 0.5 * x *
         (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double silu(double x, double alpha) {
  return x * sigmoid(alpha * x);
}

static double mish(double x) {
  return x * tanh(softplus(x));
}

static double elu(double x, double alpha) {
  return x < 0 ? alpha * expm1(x) : x;
}

static double selu(double x, double alpha, double gamma) {
  return x > 0 ? gamma * x : gamma * alpha * expm1(x);
}

static double celu(double x, double alpha) {
  return x < 0 ? alpha * expm1(x / alpha) : x;
}

#define SIGMOID_SINGLE(T, x) pln_sigmoid_float(x)
#define SIGMOID(T, x) sigmoid(x)
PLN_UNARY_LOOP(sigmoid, FLOAT32, float, float, SIGMOID_SINGLE)
PLN_UNARY_LOOP(sigmoid, FLOAT64, double, double, SIGMOID)
#define SOFTPLUS_SINGLE(T, x) pln_softplus_float(x)
#define GELU_SINGLE(T, x) pln_gelu_float(x)
#define GELU_TANH_SINGLE(T, x) pln_gelu_tanh_float(x)
#define MISH_SINGLE(T, x) pln_mish_float(x)
#define SILU_SINGLE(T, x) pln_silu_float(x, params->p)
#define ELU_SINGLE(T, x) ((x) < 0 ? p * pln_expm1_negative(x) : (x))
#define SELU_SINGLE(T, x) \
  (q * ((x) > 0 ? (x) : p * pln_expm1_negative((x) > 0 ? 0 : (x))))
#define SOFTPLUS(T, x) softplus(x)
#define GELU(T, x) gelu(x)
#define GELU_TANH(T, x) gelu_tanh(x)
#define MISH(T, x) mish(x)
#define SILU(T, x) silu(x, p)
#define ELU(T, x) elu(x, p)
#define SELU(T, x) selu(x, p, q)
#define CELU(T, x) celu((double)(x), (double)p)
#define LOOPS_OF(name, f32, f64)                   \
  PLN_UNARY_LOOP(name, FLOAT32, float, float, f32) \
  PLN_UNARY_LOOP(name, FLOAT64, double, double, f64)
LOOPS_OF(softplus, SOFTPLUS_SINGLE, SOFTPLUS)
LOOPS_OF(gelu, GELU_SINGLE, GELU)
LOOPS_OF(gelu_tanh, GELU_TANH_SINGLE, GELU_TANH)
LOOPS_OF(mish, MISH_SINGLE, MISH)
LOOPS_OF(silu, SILU_SINGLE, SILU)
LOOPS_OF(elu, ELU_SINGLE, ELU)
LOOPS_OF(selu, SELU_SINGLE, SELU)
LOOPS_OF(celu, CELU, CELU)

/* ------------------------------------------------------------------ kernels */

PLN_UNARY_KERNEL(sigmoid, PLN_FLOAT_LOOPS(sigmoid))
PLN_UNARY_KERNEL(mish, PLN_FLOAT_LOOPS(mish))
PLN_UNARY_KERNEL(softplus, PLN_FLOAT_LOOPS(softplus))
PLN_PARAMETRIC_KERNEL(elu, elu, "alpha", 1, "", 0)
PLN_PARAMETRIC_KERNEL(celu, celu, "alpha", 1, "", 0)
PLN_PARAMETRIC_KERNEL(silu, silu, "alpha", 1, "", 0)
PLN_PARAMETRIC_KERNEL(selu, selu, "alpha", 1.67326319217681884765625, "gamma",
                      1.05070102214813232421875)

pln_status pln_kernel_gelu(pln_kernel_call *call) {
  static const pln_unary_loops exact = {.of = {PLN_FLOAT_LOOPS(gelu)}};
  static const pln_unary_loops rough = {.of = {PLN_FLOAT_LOOPS(gelu_tanh)}};
  bool fast = pln_kernel_string_is(call, "approximate", "none", "tanh");
  return pln_unary_run(call, fast ? &rough : &exact, NULL);
}
