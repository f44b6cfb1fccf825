/* binomial.c: a quadratic form of two values becomes a product.
 *
 * In functions that came from no ONNX model, for int32, float32 and float64:
 * integers only where the factors are whole numbers.
 *
 *     6 * x * x + 5 * x * y + y * y   =>   (y + x * 3) * (y + x * 2)
 *
 * Semantics: TVM SimplifyBinomial. Which value is x and which is y follows the
 * order in which TVM's matcher tries operands: a pattern that matched stays
 * matched, the operands of + and * are tried in both orders. */

#include <math.h>

#include "ir/tensor/tensor.h"
#include "transform/relay_builder.h"
#include "transform/simplify/rule.h"

/* What is bound while a pattern is matched: the values x and y and the
 * constants in front of x * x, x * y and y * y. */
enum { X, Y, A, B, C, N_SLOTS };

typedef struct binomial_match {
  const pln_graph *g;
  pln_ref slots[N_SLOTS]; /* PLN_NONE: not bound yet */
} binomial_match;

/* A term of the form: coefficient * one * other. */
typedef struct quadratic_term {
  int coefficient, one, other;
} quadratic_term;

static const quadratic_term x_squared = {A, X, X}, x_times_y = {B, X, Y},
                            y_squared = {C, Y, Y};

static bool bind(binomial_match *m, int slot, pln_ref node) {
  if (m->slots[slot] != PLN_NONE)
    return m->slots[slot] == node;
  if (slot >= A && m->g->nodes[node].kind != PLN_CONSTANT)
    return false;
  m->slots[slot] = node;
  return true;
}

/* s * t, in this order first. */
static bool match_two(binomial_match *m, pln_ref node, int s, int t) {
  const binomial_match before = *m;
  if (!pln_is_call(m->g, node, PLN_OP_MUL))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    if (bind(m, s, pln_operand(m->g, node, i)) &&
        bind(m, t, pln_operand(m->g, node, 1 - i)))
      return true;
    *m = before;
  }
  return false;
}

/* s * (t * u) */
static bool match_three(binomial_match *m, pln_ref node, int s, int t, int u) {
  const binomial_match before = *m;
  if (!pln_is_call(m->g, node, PLN_OP_MUL))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    if (bind(m, s, pln_operand(m->g, node, i)) &&
        match_two(m, pln_operand(m->g, node, 1 - i), t, u))
      return true;
    *m = before;
  }
  return false;
}

static bool match_term(binomial_match *m, pln_ref node,
                       const quadratic_term *t) {
  int k = t->coefficient, one = t->one, other = t->other;
  return match_three(m, node, k, one, other) ||
         match_three(m, node, one, k, other) ||
         (one != other && match_three(m, node, other, k, one)) ||
         match_two(m, node, one, other);
}

/* first + second */
static bool match_inner_sum(binomial_match *m, pln_ref node,
                            const quadratic_term *first,
                            const quadratic_term *second) {
  const binomial_match before = *m;
  if (!pln_is_call(m->g, node, PLN_OP_ADD))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    if (match_term(m, pln_operand(m->g, node, i), first) &&
        match_term(m, pln_operand(m->g, node, 1 - i), second))
      return true;
    *m = before;
  }
  return false;
}

static bool match_binomial(binomial_match *m, pln_ref node) {
  const quadratic_term *const orders[3][3] = {
      {&x_times_y, &x_squared, &y_squared},
      {&x_times_y, &y_squared, &x_squared},
      {&x_squared, &y_squared, &x_times_y}};
  const binomial_match before = *m;
  for (uint32_t k = 0; k < 3; k++)
    for (uint32_t i = 0; i < 2; i++) {
      if (match_inner_sum(m, pln_operand(m->g, node, i), orders[k][0],
                          orders[k][1]) &&
          match_term(m, pln_operand(m->g, node, 1 - i), orders[k][2]))
        return true;
      *m = before;
    }
  return false;
}

/* --------------------------------------------------------------- the factors
 */

/* scale * (x + p * y) * (x + q * y) */
typedef struct binomial_factors {
  pln_ref x, y;
  double scale, p, q;
} binomial_factors;

/* The value of a coefficient, which multiplies without broadcasting; 1 if there
 * is none. */
static bool read_coefficient(const pln_graph *g, pln_ref constant,
                             double *out) {
  *out = 1;
  if (constant == PLN_NONE)
    return true;
  return pln_type_rank(g->engine, g->nodes[constant].type) == 0 &&
         pln_tensor_number(pln_node_tensor(g, constant), 0, out);
}

static bool is_whole_int32(double value) {
  return value == floor(value) && fabs(value) <= INT32_MAX;
}

static bool find_factors(const binomial_match *m, pln_dtype dtype,
                         binomial_factors *f) {
  double a, b, c;
  *f = (binomial_factors){.x = m->slots[X], .y = m->slots[Y]};
  if (!read_coefficient(m->g, m->slots[A], &a) ||
      !read_coefficient(m->g, m->slots[B], &b) ||
      !read_coefficient(m->g, m->slots[C], &c))
    return false;
  if (c == 1 && a > 1) {
    *f = (binomial_factors){.x = f->y, .y = f->x};
    c = a;
    a = 1;
  }
  double discriminant = b * b - 4 * a * c;
  if (!(discriminant >= 0) || a == 0)
    return false;
  f->scale = a;
  f->p = (b + sqrt(discriminant)) / (2 * a);
  f->q = discriminant < 1e-4 ? f->p : (b - sqrt(discriminant)) / (2 * a);
  if (dtype == PLN_INT32)
    return is_whole_int32(f->p) && is_whole_int32(f->q) &&
           a * f->p * f->q == c && a * (f->p + f->q) == b;
  return isfinite(f->p) && isfinite(f->q);
}

static pln_ref times(pln_relay_builder *r, pln_dtype dtype, pln_ref x,
                     double factor) {
  return factor == 1 ? x
                     : pln_relay_call(r, PLN_OP_MUL, 2, x,
                                      pln_relay_scalar(r, dtype, factor));
}

static pln_ref build_sum(pln_relay_builder *r, pln_dtype dtype,
                         const binomial_factors *f, double factor) {
  return pln_relay_call(r, PLN_OP_ADD, 2, f->x, times(r, dtype, f->y, factor));
}

static pln_ref build_product(pln_relay_builder *r, pln_dtype dtype,
                             const binomial_factors *f) {
  pln_ref first = build_sum(r, dtype, f, f->p);
  pln_ref second = f->p == f->q ? first : build_sum(r, dtype, f, f->q);
  pln_ref product = pln_relay_call(r, PLN_OP_MUL, 2, first, second);
  if (f->scale == 1)
    return product;
  return pln_relay_call(r, PLN_OP_MUL, 2, pln_relay_scalar(r, dtype, f->scale),
                        product);
}

pln_status pln_simplify_binomial(pln_rewrite_context *ctx, pln_ref *out) {
  binomial_match m = {.g = ctx->call.graph};
  pln_dtype dtype = pln_type_dtype(ctx->engine, ctx->type);
  binomial_factors f;
  pln_relay_builder r;
  for (int i = 0; i < N_SLOTS; i++)
    m.slots[i] = PLN_NONE;
  if ((dtype != PLN_INT32 && dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64) ||
      pln_function_is_onnx(pln_rewrite_old(ctx->rw)) ||
      !match_binomial(&m, ctx->node) || !find_factors(&m, dtype, &f))
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, ctx->rw));
  pln_ref product = build_product(&r, dtype, &f);
  if (r.status == PLN_ERR_TYPE)
    return PLN_OK;
  PLN_TRY(pln_relay_status(&r));
  *out = product;
  return pln_keep_type(ctx->rw, product, ctx->type);
}
