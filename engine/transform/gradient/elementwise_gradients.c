/* elementwise_gradients.c: gradients of functions of each element. Called
 * through gradients.def. In the comments x and y are the arguments, z is the
 * result and g its gradient.
 *
 * Semantics: TVM FPrimalGradient. */

#include "transform/gradient/operator_gradient.h"

static pln_ref mul(pln_gradient *g, pln_ref x, pln_ref y) {
  return pln_binary(g, PLN_OP_MUL, x, y);
}
static pln_ref divide(pln_gradient *g, pln_ref x, pln_ref y) {
  return pln_binary(g, PLN_OP_DIV, x, y);
}
static pln_ref sub(pln_gradient *g, pln_ref x, pln_ref y) {
  return pln_binary(g, PLN_OP_SUB, x, y);
}
static pln_ref add(pln_gradient *g, pln_ref x, pln_ref y) {
  return pln_binary(g, PLN_OP_ADD, x, y);
}
static pln_ref neg(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_NEG, x);
}
static pln_ref ones(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_ONES_LIKE, x);
}
static pln_ref zeros(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_ZEROS_LIKE, x);
}
static pln_ref sum_like(pln_gradient *g, pln_ref x, pln_ref like) {
  return pln_binary(g, PLN_OP_COLLAPSE_SUM_LIKE, x, like);
}

/* g / x */
void pln_gradient_log(pln_gradient *g) {
  pln_ref x = g->args[0];
  g->out[0] = divide(g, mul(g, g->grad, ones(g, x)), x);
}

/* g / (log(base) x) */
static void log_to_base(pln_gradient *g, double base) {
  pln_ref x = g->args[0];
  pln_ref log = pln_unary(g, PLN_OP_LOG, pln_scalar_like(g, x, base));
  g->out[0] = divide(g, mul(g, g->grad, ones(g, x)), mul(g, log, x));
}

void pln_gradient_log2(pln_gradient *g) {
  log_to_base(g, 2);
}

void pln_gradient_log10(pln_gradient *g) {
  log_to_base(g, 10);
}

/* g / cos(x)^2 */
void pln_gradient_tan(pln_gradient *g) {
  pln_ref a = pln_unary(g, PLN_OP_COS, g->args[0]);
  pln_ref b = pln_unary(g, PLN_OP_COS, g->args[0]);
  g->out[0] = divide(g, g->grad, mul(g, a, b));
}

/* g (-sin(x)) */
void pln_gradient_cos(pln_gradient *g) {
  pln_ref x = g->args[0];
  pln_ref minus = neg(g, ones(g, x));
  g->out[0] = mul(g, g->grad, mul(g, minus, pln_unary(g, PLN_OP_SIN, x)));
}

static void times(pln_gradient *g, pln_op op) {
  g->out[0] = mul(g, g->grad, pln_unary(g, op, g->args[0]));
}

void pln_gradient_cosh(pln_gradient *g) {
  times(g, PLN_OP_SINH);
}

void pln_gradient_sin(pln_gradient *g) {
  times(g, PLN_OP_COS);
}

void pln_gradient_sinh(pln_gradient *g) {
  times(g, PLN_OP_COSH);
}

void pln_gradient_exp(pln_gradient *g) {
  times(g, PLN_OP_EXP);
}

/* g (-1 / sqrt(1 - x^2)) */
void pln_gradient_acos(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  pln_ref root = pln_unary(g, PLN_OP_SQRT, sub(g, one, mul(g, x, x)));
  g->out[0] = mul(g, g->grad, divide(g, neg(g, one), root));
}

/* g / sqrt(x^2 - 1) */
void pln_gradient_acosh(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  pln_ref root = pln_unary(g, PLN_OP_SQRT, sub(g, mul(g, x, x), one));
  g->out[0] = divide(g, mul(g, g->grad, one), root);
}

/* g / sqrt(1 - x^2) */
void pln_gradient_asin(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  pln_ref root = pln_unary(g, PLN_OP_SQRT, sub(g, one, mul(g, x, x)));
  g->out[0] = divide(g, mul(g, g->grad, one), root);
}

/* g / sqrt(1 + x^2) */
void pln_gradient_asinh(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  pln_ref root = pln_unary(g, PLN_OP_SQRT, add(g, one, mul(g, x, x)));
  g->out[0] = divide(g, mul(g, g->grad, one), root);
}

/* g / (1 + x^2) */
void pln_gradient_atan(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  g->out[0] = divide(g, mul(g, g->grad, one), add(g, one, mul(g, x, x)));
}

/* g / (1 - x^2) */
void pln_gradient_atanh(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  g->out[0] = divide(g, mul(g, g->grad, one), sub(g, one, mul(g, x, x)));
}

/* g 0.5 x^-0.5 */
void pln_gradient_sqrt(pln_gradient *g) {
  pln_ref x = g->args[0], half = pln_scalar_like(g, x, 0.5);
  pln_ref power = pln_binary(g, PLN_OP_POW, x, neg(g, half));
  g->out[0] = mul(g, mul(g, g->grad, half), power);
}

/* g z (1 - z) */
void pln_gradient_sigmoid(pln_gradient *g) {
  pln_ref z = g->orig;
  g->out[0] = mul(g, mul(g, g->grad, z), sub(g, ones(g, z), z));
}

/* g (1 - z^2) */
void pln_gradient_tanh(pln_gradient *g) {
  pln_ref z = g->orig;
  g->out[0] = mul(g, g->grad, sub(g, ones(g, z), mul(g, z, z)));
}

/* x < 0 ? 0 : g */
void pln_gradient_relu(pln_gradient *g) {
  pln_ref x = g->args[0], zero = zeros(g, x);
  pln_ref below = pln_binary(g, PLN_OP_LESS, x, zero);
  g->out[0] = pln_relay_call(&g->r, PLN_OP_WHERE, 3, below, zero,
                             mul(g, ones(g, x), g->grad));
}

/* x < 0 ? -g : g */
void pln_gradient_abs(pln_gradient *g) {
  pln_ref x = g->args[0], one = ones(g, x);
  pln_ref below = pln_binary(g, PLN_OP_LESS, x, zeros(g, x));
  pln_ref minus = mul(g, neg(g, one), g->grad);
  g->out[0] = pln_relay_call(&g->r, PLN_OP_WHERE, 3, below, minus,
                             mul(g, one, g->grad));
}

/* 2 / sqrt(pi) exp(-x^2) g */
void pln_gradient_erf(pln_gradient *g) {
  pln_ref x = g->args[0];
  pln_ref factor = pln_scalar_like(g, x, 1.1283791670955126);
  pln_ref bell = pln_unary(g, PLN_OP_EXP, mul(g, neg(g, x), x));
  g->out[0] = mul(g, mul(g, factor, bell), g->grad);
}

static pln_ref bound(pln_gradient *g, const char *name) {
  pln_ref x = g->args[0];
  pln_ref value = pln_scalar_like(g, x, pln_gradient_float(g, name, 0));
  return pln_binary(g, PLN_OP_BROADCAST_TO_LIKE, value, x);
}

/* g where x is between the bounds. TVM rounds these to integers. */
void pln_gradient_clip(pln_gradient *g) {
  pln_ref x = g->args[0], zero = zeros(g, x);
  pln_ref low = bound(g, "a_min"), high = bound(g, "a_max");
  pln_ref below = pln_binary(g, PLN_OP_LESS, x, low);
  pln_ref above = pln_binary(g, PLN_OP_LESS, high, x);
  pln_ref inner = pln_relay_call(&g->r, PLN_OP_WHERE, 3, above, zero,
                                 mul(g, ones(g, x), g->grad));
  g->out[0] = pln_relay_call(&g->r, PLN_OP_WHERE, 3, below, zero, inner);
}

void pln_gradient_negative(pln_gradient *g) {
  g->out[0] = neg(g, g->grad);
}

void pln_gradient_copy(pln_gradient *g) {
  g->out[0] = g->grad;
}

void pln_gradient_add(pln_gradient *g) {
  g->out[0] = sum_like(g, g->grad, g->args[0]);
  g->out[1] = sum_like(g, g->grad, g->args[1]);
}

void pln_gradient_subtract(pln_gradient *g) {
  g->out[0] = sum_like(g, g->grad, g->args[0]);
  g->out[1] = sum_like(g, neg(g, g->grad), g->args[1]);
}

void pln_gradient_multiply(pln_gradient *g) {
  pln_ref x = g->args[0], y = g->args[1];
  g->out[0] = sum_like(g, mul(g, g->grad, y), x);
  g->out[1] = sum_like(g, mul(g, g->grad, x), y);
}

/* g / y, and -(g z / y) */
void pln_gradient_divide(pln_gradient *g) {
  pln_ref x = g->args[0], y = g->args[1];
  pln_ref quotient = divide(g, mul(g, g->grad, g->orig), y);
  g->out[0] = sum_like(g, divide(g, g->grad, y), x);
  g->out[1] = sum_like(g, neg(g, quotient), y);
}

void pln_gradient_where(pln_gradient *g) {
  pln_ref c = g->args[0], zero = zeros(g, g->grad);
  pln_ref x = pln_relay_call(&g->r, PLN_OP_WHERE, 3, c, g->grad, zero);
  pln_ref y = pln_relay_call(&g->r, PLN_OP_WHERE, 3, c, zero, g->grad);
  g->out[0] = zeros(g, c);
  g->out[1] = sum_like(g, x, g->args[1]);
  g->out[2] = sum_like(g, y, g->args[2]);
}

void pln_gradient_cast(pln_gradient *g) {
  g->out[0] = pln_binary(g, PLN_OP_CAST_LIKE, g->grad, g->args[0]);
}

void pln_gradient_cast_like(pln_gradient *g) {
  pln_gradient_cast(g);
  g->out[1] = zeros(g, g->args[1]);
}

void pln_gradient_nothing(pln_gradient *g) {
  (void)g;
}

void pln_gradient_zeros(pln_gradient *g) {
  for (uint32_t i = 0; i < g->n; i++)
    g->out[i] = zeros(g, g->args[i]);
}

void pln_gradient_zeros_like(pln_gradient *g) {
  g->out[0] = g->orig;
}

void pln_gradient_collapse_sum(pln_gradient *g) {
  g->out[0] = pln_binary(g, PLN_OP_BROADCAST_TO_LIKE, g->grad, g->args[0]);
  if (g->n > 1)
    g->out[1] = zeros(g, g->args[1]);
}
