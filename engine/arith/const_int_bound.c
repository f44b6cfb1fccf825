/* arith/const_int_bound.c: intervals of integers in which an expression lies.
 *
 * Called by the simplifiers and for users. Bounds are int64 numbers or
 * infinities; what overflows becomes infinite. What constraints say of a term
 * is met with what its operands say. */

#include "arith/arith.h"

static const pln_bound EVERYTHING = {-PLN_INF, PLN_INF};

pln_bound pln_bound_all(pln_dtype dtype) {
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  bool is_signed = pln_is_signed(dtype);
  if (!pln_is_int_dtype(dtype) && dtype != PLN_BOOL)
    return EVERYTHING;
  uint32_t digits = bits - is_signed;
  int64_t most = digits >= 63 ? PLN_INF : ((int64_t)1 << digits) - 1;
  int64_t least = !is_signed ? 0 : digits >= 63 ? -PLN_INF : -most - 1;
  return (pln_bound){least, most};
}

pln_bound pln_bound_meet(pln_bound x, pln_bound y) {
  return (pln_bound){x.min > y.min ? x.min : y.min,
                     x.max < y.max ? x.max : y.max};
}

static pln_bound join(pln_bound x, pln_bound y) {
  return (pln_bound){x.min < y.min ? x.min : y.min,
                     x.max > y.max ? x.max : y.max};
}

/* -------------------------------------------------- arithmetic of infinities
 */

static bool finite(int64_t x) {
  return x < PLN_INF && x > -PLN_INF;
}

static int64_t signed_inf(bool negative) {
  return negative ? -PLN_INF : PLN_INF;
}

static int64_t clamp(int64_t x) {
  return x < -PLN_INF ? -PLN_INF : x;
}

static int64_t inf_add(int64_t x, int64_t y) {
  int64_t sum;
  if (!finite(x))
    return x;
  if (!finite(y))
    return y;
  return pln_add_fits(x, y, &sum) ? clamp(sum) : signed_inf(x < 0);
}

static int64_t inf_mul(int64_t x, int64_t y) {
  int64_t product;
  if (x == 0 || y == 0)
    return 0;
  if (!finite(x) || !finite(y) || !pln_mul_fits(x, y, &product))
    return signed_inf((x < 0) != (y < 0));
  return clamp(product);
}

/* y is not 0. A finite number by infinity: 0, or -1 when it is rounded
 * down. */
static int64_t inf_div(int64_t x, int64_t y, bool floor) {
  if (!finite(x))
    return signed_inf((x < 0) != (y < 0));
  if (!finite(y))
    return floor && x != 0 && (x < 0) != (y < 0) ? -1 : 0;
  return floor ? pln_floor_div(x, y) : x / y;
}

pln_bound pln_bound_add(pln_bound x, pln_bound y) {
  return (pln_bound){inf_add(x.min, y.min), inf_add(x.max, y.max)};
}

static pln_bound negative(pln_bound x) {
  return (pln_bound){-x.max, -x.min};
}

static pln_bound of_corners(int64_t p, int64_t q, int64_t r, int64_t s) {
  int64_t low = p < q ? p : q, high = p < q ? q : p;
  low = r < low ? r : low;
  high = r > high ? r : high;
  return (pln_bound){s < low ? s : low, s > high ? s : high};
}

pln_bound pln_bound_mul(pln_bound x, pln_bound y) {
  return of_corners(inf_mul(x.min, y.min), inf_mul(x.min, y.max),
                    inf_mul(x.max, y.min), inf_mul(x.max, y.max));
}

static pln_bound divide(pln_bound x, pln_bound y, bool floor) {
  return of_corners(inf_div(x.min, y.min, floor), inf_div(x.min, y.max, floor),
                    inf_div(x.max, y.min, floor), inf_div(x.max, y.max, floor));
}

/* The divisor is not 0: each side of 0 for itself. */
static pln_bound quotient(pln_bound x, pln_bound y, bool floor) {
  bool below = y.min<0, above = y.max> 0;
  if (x.min > x.max || y.min > y.max)
    return EVERYTHING;
  if (!below && !above)
    return EVERYTHING;
  if (!below)
    return divide(x, (pln_bound){y.min > 1 ? y.min : 1, y.max}, floor);
  if (!above)
    return divide(x, (pln_bound){y.min, y.max < -1 ? y.max : -1}, floor);
  return join(divide(x, (pln_bound){1, y.max}, floor),
              divide(x, (pln_bound){y.min, -1}, floor));
}

static pln_bound trunc_remainder(pln_bound x, pln_bound y) {
  int64_t most = inf_add(y.max, -1);
  if (y.min <= 0) {
    int64_t size = y.max > -y.min ? y.max : -y.min;
    most = inf_add(size, -1);
    return (pln_bound){x.min >= 0 ? 0 : -most, x.max <= 0 ? 0 : most};
  }
  if (x.min > -y.min && x.max < y.min)
    return x;
  if (x.min >= 0)
    return (pln_bound){0, x.max < most ? x.max : most};
  int64_t high = x.max > 0 ? x.max : 0;
  return (pln_bound){x.min > -most ? x.min : -most, high < most ? high : most};
}

static pln_bound floor_remainder(pln_bound x, pln_bound y) {
  int64_t most = inf_add(y.max, -1);
  if (y.min > 0) {
    if (x.min >= 0 && x.max < y.min)
      return x;
    return (pln_bound){0, x.min >= 0 && x.max < most ? x.max : most};
  }
  int64_t least = inf_add(y.min, 1);
  return (pln_bound){least < 0 ? least : 0, y.max > 0 ? most : 0};
}

/* A remainder of a constant divisor is congruent to what is divided, modulo
 * the greatest common divisor of the two. */
static pln_bound with_modular(pln_analyzer *a, pln_term t, pln_bound bound) {
  const pln_term_node *n = pln_at(a, t);
  pln_bound divisor = a->facts[n->b].bound;
  if (divisor.min != divisor.max || divisor.min <= 1 || !finite(divisor.min))
    return bound;
  int64_t c = divisor.min;
  pln_modular m = pln_modular_of(a, n->a);
  int64_t gcd = pln_gcd(m.coeff, c);
  if (gcd <= 1 || bound.min > bound.max)
    return bound;
  int64_t base = pln_floor_mod(m.base, gcd);
  pln_bound tight = {base, c - gcd + base};
  if (n->kind == PLN_PRIM_MOD && bound.min < 0)
    tight.min = base > 0 ? base - c : gcd - c;
  return pln_bound_meet(bound, tight);
}

/* ------------------------------------------------------------------- terms */

static pln_bound known_of(const pln_analyzer *a, pln_term t) {
  return a->facts[t].bound;
}

static pln_bound of_bitwise_and(pln_bound x, pln_bound y, pln_dtype dtype) {
  int64_t least = x.max < y.max ? x.max : y.max;
  if (x.min >= 0 && y.min >= 0)
    return (pln_bound){0, least};
  if (y.min >= 0)
    return (pln_bound){0, y.max};
  return x.min >= 0 ? (pln_bound){0, x.max} : pln_bound_all(dtype);
}

/* x << y: the greatest and least of x * 2^y, as far as the dtype has them. */
static pln_bound of_shift_left(pln_bound x, pln_bound y, pln_dtype dtype) {
  if (y.min < 0 || y.max >= 62)
    return pln_bound_all(dtype);
  pln_bound factor = {(int64_t)1 << y.min, (int64_t)1 << y.max};
  pln_bound all = pln_bound_all(dtype);
  pln_bound met = pln_bound_meet(pln_bound_mul(x, factor), all);
  return met.min > met.max ? all : met;
}

static pln_bound of_shift_right(pln_bound x, pln_bound y, pln_dtype dtype) {
  if (y.min < 0 || y.max >= 62)
    return pln_bound_all(dtype);
  pln_bound divisor = {(int64_t)1 << y.min, (int64_t)1 << y.max};
  return quotient(x, divisor, true);
}

static bool is_call(const pln_analyzer *a, pln_term t, const char *name) {
  const pln_term_node *n = pln_at(a, t);
  return n->kind == PLN_PRIM_CALL && (uint32_t)n->u.data != 0 &&
         strcmp(pln_builtin_name((uint32_t)n->u.data), name) == 0;
}

static pln_bound of_call(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_dtype dtype = (pln_dtype)n->dtype;
  if (n->n == 2) {
    pln_bound x = known_of(a, n->a), y = known_of(a, n->b);
    if (is_call(a, t, "bitwise_and"))
      return of_bitwise_and(x, y, dtype);
    if (is_call(a, t, "shift_left"))
      return of_shift_left(x, y, dtype);
    if (is_call(a, t, "shift_right"))
      return of_shift_right(x, y, dtype);
  }
  if (n->n == 3 && is_call(a, t, "if_then_else"))
    return join(known_of(a, n->b), known_of(a, n->c));
  if (n->n == 1 && is_call(a, t, "likely"))
    return known_of(a, n->a);
  return pln_bound_all(dtype);
}

/* The least k with 2^k >= x, for x > 0. */
static int64_t ceil_log2(int64_t x) {
  int64_t k = 0;
  while (k < 62 && ((int64_t)1 << k) < x)
    k++;
  return k;
}

/* The number x of int(ceil(log2(x))), which is how TVM writes the logarithm of
 * an integer; PLN_NO_TERM: the Cast is another one. */
static pln_term ceil_log2_argument(const pln_analyzer *a, pln_term cast) {
  pln_term up = pln_at(a, cast)->a;
  if (!pln_is_integer(a, cast) || !is_call(a, up, "ceil"))
    return PLN_NO_TERM;
  pln_term logarithm = pln_at(a, up)->a;
  return is_call(a, logarithm, "log2") ? pln_at(a, logarithm)->a : PLN_NO_TERM;
}

static pln_bound of_cast(const pln_analyzer *a, pln_term t, pln_bound all) {
  pln_term argument = ceil_log2_argument(a, t);
  pln_bound x = known_of(a, argument ? argument : pln_at(a, t)->a);
  if (argument && (x.min < 1 || x.max > ((int64_t)1 << 52)))
    return all;
  if (argument)
    x = (pln_bound){ceil_log2(x.min), ceil_log2(x.max)};
  pln_bound met = pln_bound_meet(x, all);
  return met.min > met.max ? all : met;
}

static pln_bound of_var(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_bound all = pln_bound_all((pln_dtype)n->dtype);
  const pln_var_fact *fact = pln_var_fact_of(a, t, false);
  if (fact && fact->bounded)
    return fact->bound;
  if (n->count)
    all.min = 0;
  return all;
}

static pln_bound of_ramp(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_bound steps = {n->lanes - 1, n->lanes - 1};
  pln_bound last =
      pln_bound_add(known_of(a, n->a), pln_bound_mul(known_of(a, n->b), steps));
  return join(known_of(a, n->a), last);
}

static pln_bound of_binary(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_bound x = known_of(a, n->a), y = known_of(a, n->b);
  switch (n->kind) {
  case PLN_PRIM_ADD: return pln_bound_add(x, y);
  case PLN_PRIM_SUB: return pln_bound_add(x, negative(y));
  case PLN_PRIM_MUL: return pln_bound_mul(x, y);
  case PLN_PRIM_DIV: return quotient(x, y, false);
  case PLN_PRIM_FLOORDIV: return quotient(x, y, true);
  case PLN_PRIM_MOD: return with_modular(a, t, trunc_remainder(x, y));
  case PLN_PRIM_FLOORMOD: return with_modular(a, t, floor_remainder(x, y));
  case PLN_PRIM_MIN:
    return (pln_bound){x.min < y.min ? x.min : y.min,
                       x.max < y.max ? x.max : y.max};
  default:
    return (pln_bound){x.min > y.min ? x.min : y.min,
                       x.max > y.max ? x.max : y.max};
  }
}

/* The body with the value in the place of the variable. */
static pln_bound of_let(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (a->depth >= 6)
    return known_of(a, n.c);
  a->depth++;
  pln_bound out = pln_bound_of(a, pln_term_substitute(a, n.c, 1, &n.a, &n.b));
  a->depth--;
  return out;
}

static pln_bound compute(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_bound all = pln_bound_all((pln_dtype)n->dtype);
  switch (n->kind) {
  case PLN_INT_IMM: return (pln_bound){clamp(n->u.value), clamp(n->u.value)};
  case PLN_VAR: return of_var(a, t);
  case PLN_PRIM_CAST: return of_cast(a, t, all);
  case PLN_SELECT: return join(known_of(a, n->b), known_of(a, n->c));
  case PLN_RAMP: return of_ramp(a, t);
  case PLN_BROADCAST: return known_of(a, n->a);
  case PLN_PRIM_LET: return of_let(a, t);
  case PLN_PRIM_CALL: return of_call(a, t);
  default: break;
  }
  if (n->kind >= PLN_PRIM_ADD && n->kind <= PLN_PRIM_MAX &&
      pln_is_integer(a, t))
    return of_binary(a, t);
  return all;
}

static pln_bound with_constraints(const pln_analyzer *a, pln_term t,
                                  pln_bound bound) {
  uint32_t limit = a->facts[t].limit;
  return limit ? pln_bound_meet(bound, a->known[limit - 1].bound) : bound;
}

static bool has_bound(const pln_analyzer *a, pln_term t) {
  return a->facts[t].bound_at == a->epoch;
}

static void set_bound(pln_analyzer *a, pln_term t) {
  pln_bound bound = with_constraints(a, t, compute(a, t));
  a->facts[t].bound = bound;
  a->facts[t].bound_at = a->epoch;
}

static bool operands_have_bounds(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if (n->n > 3)
    return false;
  return (n->n < 1 || has_bound(a, n->a)) && (n->n < 2 || has_bound(a, n->b)) &&
         (n->n < 3 || has_bound(a, n->c));
}

pln_bound pln_bound_of(pln_analyzer *a, pln_term t) {
  pln_term_list order;
  if (!t)
    return EVERYTHING;
  if (has_bound(a, t))
    return a->facts[t].bound;
  if (operands_have_bounds(a, t)) {
    set_bound(a, t);
    return a->facts[t].bound;
  }
  if (!pln_term_order(a, t, has_bound, &order))
    return EVERYTHING;
  for (uint32_t i = 0; i < order.n; i++)
    if (!has_bound(a, order.items[i]))
      set_bound(a, order.items[i]);
  pln_term_list_free(a, &order);
  return a->facts[t].bound;
}
