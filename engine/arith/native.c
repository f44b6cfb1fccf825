/* arith/native.c: simplifications of one node that are algorithms, not rules:
 * by bounds, remainders and known conditions.
 *
 * Called by rewrite.c, before and after the rules of the table. The operands of
 * the node are simplified. */

#include <float.h>
#include <math.h>

#include "arith/arith.h"

/* --------------------------------------------------------------- comparisons
 */

static pln_term truth(pln_analyzer *a, pln_term like, bool value) {
  return pln_const_like(a, like, value);
}

static pln_term decide_eq(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  int rel = pln_compare_terms(a, n.a, n.b);
  if (rel == PLN_REL_EQ)
    return truth(a, t, true);
  return rel & PLN_REL_EQ ? PLN_NO_TERM : truth(a, t, false);
}

static pln_term decide_lt(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  int rel = pln_compare_terms(a, n.a, n.b);
  if (rel == PLN_REL_LT)
    return truth(a, t, true);
  return rel & PLN_REL_LT ? PLN_NO_TERM : truth(a, t, false);
}

static bool compares_indices(const pln_analyzer *a, pln_term t) {
  return pln_is_index(a, pln_at(a, t)->a);
}

/* One rewriting of x < y or x == y, decided or by a rule. */
static pln_term reduce_positive(pln_analyzer *a, pln_kind kind, pln_term x,
                                pln_term y) {
  pln_term t = pln_fold(a, kind, x, y);
  if (!t || pln_term_kind(a, t) != kind)
    return t;
  pln_term out = pln_rules_apply_to(a, t);
  return out ? out : pln_native_after(a, t);
}

/* x ~= y is not (x == y), unless more is known. */
static pln_term reduce_ne(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (compares_indices(a, t)) {
    int rel = pln_compare_terms(a, n.a, n.b);
    if (!(rel & PLN_REL_EQ))
      return truth(a, t, true);
    if (rel == PLN_REL_EQ)
      return truth(a, t, false);
    if (rel == PLN_REL_GE)
      return pln_fold(a, PLN_PRIM_LT, n.b, n.a);
    if (rel == PLN_REL_LE)
      return pln_fold(a, PLN_PRIM_LT, n.a, n.b);
  }
  pln_term eq = reduce_positive(a, PLN_PRIM_EQ, n.a, n.b);
  if (!eq)
    return PLN_NO_TERM;
  return pln_term_kind(a, eq) == PLN_BROADCAST
             ? pln_term_broadcast(a, pln_fold_not(a, pln_at(a, eq)->a), n.lanes)
             : pln_fold_not(a, eq);
}

/* x <= y is not (y < x), unless more is known. */
static pln_term reduce_le(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term lt = reduce_positive(a, PLN_PRIM_LT, n.b, n.a);
  if (lt && pln_term_kind(a, lt) == PLN_BROADCAST)
    return pln_term_broadcast(a, pln_fold_not(a, pln_at(a, lt)->a), n.lanes);
  if (lt)
    return pln_fold_not(a, lt);
  if (!compares_indices(a, t))
    return PLN_NO_TERM;
  int rel = pln_compare_terms(a, n.a, n.b);
  if (!(rel & PLN_REL_GT))
    return truth(a, t, true);
  if (rel == PLN_REL_GT)
    return truth(a, t, false);
  if (rel == PLN_REL_NE)
    return pln_fold(a, PLN_PRIM_LT, n.a, n.b);
  return rel == PLN_REL_GE ? pln_fold(a, PLN_PRIM_EQ, n.a, n.b) : PLN_NO_TERM;
}

/* ----------------------------------------------------------- min, max, // and
 * %
 */

static pln_term extremum_by_bounds(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  bool least = n.kind == PLN_PRIM_MIN;
  if (!pln_is_index(a, t))
    return PLN_NO_TERM;
  if (n.a == n.b)
    return n.a;
  pln_bound x = pln_bound_of(a, n.a), y = pln_bound_of(a, n.b);
  if (x.max <= y.min)
    return least ? n.a : n.b;
  if (y.max <= x.min)
    return least ? n.b : n.a;
  return PLN_NO_TERM;
}

typedef struct scaled {
  pln_term x, y; /* x * c1 + y; y may be none */
  int64_t c1;
} scaled;

static bool match_scaled(const pln_analyzer *a, pln_term t, scaled *out) {
  const pln_term_node *n = pln_at(a, t);
  if (n->kind == PLN_PRIM_MUL && pln_is_const(a, n->b)) {
    *out = (scaled){n->a, PLN_NO_TERM, pln_const(a, n->b)};
    return true;
  }
  if (n->kind != PLN_PRIM_ADD)
    return false;
  const pln_term_node *p = pln_at(a, n->a), *q = pln_at(a, n->b);
  if (p->kind == PLN_PRIM_MUL && pln_is_const(a, p->b)) {
    *out = (scaled){p->a, n->b, pln_const(a, p->b)};
    return true;
  }
  if (q->kind == PLN_PRIM_MUL && pln_is_const(a, q->b)) {
    *out = (scaled){q->a, n->a, pln_const(a, q->b)};
    return true;
  }
  return false;
}

static pln_term fold_const(pln_analyzer *a, pln_kind kind, pln_term x,
                           int64_t c) {
  return pln_fold(a, kind, x, pln_const_like(a, x, c));
}

static pln_term nested(pln_analyzer *a, pln_term t) {
  if (a->depth >= 5)
    return t;
  a->depth++;
  pln_term out = pln_rewrite_term(a, t);
  a->depth--;
  return out;
}

/* (x * c1 + y) // c2: what remains of both operands modulo c2 is one
 * quotient. */
static pln_term without_residue(pln_analyzer *a, const scaled *s, int64_t c2,
                                pln_term y_div) {
  pln_term residue = pln_mul_const(a, s->x, pln_floor_mod(s->c1, c2));
  if (s->y)
    residue = pln_add(a, residue, fold_const(a, PLN_PRIM_FLOORMOD, s->y, c2));
  pln_bound b = pln_bound_of(a, fold_const(a, PLN_PRIM_FLOORDIV, residue, c2));
  if (b.min != b.max || b.min >= PLN_INF || b.min <= -PLN_INF)
    return PLN_NO_TERM;
  pln_term whole = pln_mul_const(a, s->x, pln_floor_div(s->c1, c2));
  return pln_add(a, whole,
                 y_div ? pln_add_const(a, y_div, b.min)
                       : pln_const_like(a, whole, b.min));
}

static pln_term divide_scaled(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  scaled s;
  if (!pln_is_const(a, n.b) || !match_scaled(a, n.a, &s))
    return PLN_NO_TERM;
  int64_t c2 = pln_const(a, n.b);
  if (c2 == 0 || c2 == -1 || c2 == INT64_MIN)
    return PLN_NO_TERM;
  pln_term y_div = PLN_NO_TERM;
  if (s.y) {
    y_div = nested(a, fold_const(a, PLN_PRIM_FLOORDIV, s.y, c2));
    if (pln_is_value(a, y_div, 0))
      y_div = PLN_NO_TERM;
  }
  pln_term out = without_residue(a, &s, c2, y_div);
  if (out || s.c1 <= 0 || c2 <= 0 || c2 % s.c1 != 0 || s.c1 == 1)
    return out;
  if (s.y && !pln_proves_lt(a, fold_const(a, PLN_PRIM_FLOORMOD, s.y, c2), s.c1))
    return PLN_NO_TERM;
  out = fold_const(a, PLN_PRIM_FLOORDIV, s.x, c2 / s.c1);
  return y_div ? pln_add(a, out, y_div) : out;
}

/* A quotient that has one value only. */
static pln_term quotient_by_bounds(pln_analyzer *a, pln_term t) {
  if (!pln_is_index(a, t))
    return PLN_NO_TERM;
  pln_bound b = pln_bound_of(a, t);
  bool one = b.min == b.max && b.min < PLN_INF && b.min > -PLN_INF;
  return one && pln_holds_int((pln_dtype)pln_at(a, t)->dtype, b.min)
             ? pln_const_like(a, t, b.min)
             : PLN_NO_TERM;
}

/* x % c where x is base modulo a multiple of c, or already in range. */
static pln_term remainder_by_analysis(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  bool floor = n.kind == PLN_PRIM_FLOORMOD;
  if (!pln_is_index(a, t) || !pln_is_const(a, n.b) || pln_const(a, n.b) <= 0)
    return PLN_NO_TERM;
  int64_t c = pln_const(a, n.b);
  pln_bound b = pln_bound_of(a, n.a);
  if (floor && b.min >= 0 && b.max < c)
    return n.a;
  pln_modular m = pln_modular_of(a, n.a);
  if (m.coeff % c == 0 && (floor || pln_proves_ge(a, n.a, 0)))
    return pln_const_like(a, t, pln_floor_mod(m.base, c));
  return PLN_NO_TERM;
}

static pln_term float_quotient(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  int exponent;
  const pln_term_node *y = pln_at(a, n.b);
  if (y->kind != PLN_FLOAT_IMM || y->u.number == 0)
    return PLN_NO_TERM;
  /* Exact for powers of two only. */
  if (fabs(frexp(y->u.number, &exponent)) != 0.5)
    return PLN_NO_TERM;
  return pln_mul(a, n.a,
                 pln_term_float(a, (pln_dtype)y->dtype, 1 / y->u.number));
}

/* ------------------------------------------------------------------- vectors
 */

/* ramp(x, c1) by the vector of c2, where all lanes have one quotient. */
static pln_term divide_ramp(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term_node p = *pln_at(a, n.a), q = *pln_at(a, n.b);
  bool floor = n.kind == PLN_PRIM_FLOORDIV || n.kind == PLN_PRIM_FLOORMOD;
  bool quotient = n.kind == PLN_PRIM_FLOORDIV || n.kind == PLN_PRIM_DIV;
  if (p.kind != PLN_RAMP || q.kind != PLN_BROADCAST || !pln_is_const(a, p.b) ||
      !pln_is_const(a, q.a))
    return PLN_NO_TERM;
  int64_t c1 = pln_const(a, p.b), c2 = pln_const(a, q.a), last;
  if (c2 <= 0 || !pln_mul_fits(n.lanes - 1, c1, &last) ||
      (!floor && !pln_proves_ge(a, p.a, 0)))
    return PLN_NO_TERM;
  pln_modular m = pln_modular_of(a, p.a);
  if (!pln_add_fits(m.base, last, &last) || (!floor && last < 0))
    return PLN_NO_TERM;
  bool one = pln_floor_div(m.base, c2) == pln_floor_div(last, c2);
  bool whole = m.coeff % c2 == 0;
  bool inside =
      floor && m.coeff > 0 && c2 % m.coeff == 0 && last >= 0 && last < m.coeff;
  if (quotient)
    return one && (whole || inside)
               ? pln_term_broadcast(a, pln_fold(a, (pln_kind)n.kind, p.a, q.a),
                                    n.lanes)
               : PLN_NO_TERM;
  if (one && !whole && inside)
    return pln_term_ramp(a, pln_fold(a, (pln_kind)n.kind, p.a, q.a), p.b,
                         n.lanes);
  if (!whole)
    return PLN_NO_TERM;
  pln_term base = pln_const_like(a, p.a, pln_floor_mod(m.base, c2));
  pln_term ramp = pln_term_ramp(a, base, p.b, n.lanes);
  return one ? ramp : pln_term_binary(a, (pln_kind)n.kind, ramp, n.b);
}

/* --------------------------------------------------------------------- calls
 */

static bool is_call(const pln_analyzer *a, pln_term t, const char *name) {
  const pln_term_node *n = pln_at(a, t);
  return n->kind == PLN_PRIM_CALL && (uint32_t)n->u.data != 0 &&
         strcmp(pln_builtin_name((uint32_t)n->u.data), name) == 0;
}

static pln_term shift(pln_analyzer *a, pln_term t, bool left) {
  pln_term_node n = *pln_at(a, t);
  int64_t x, y, out;
  if (n.n != 2 || !pln_is_const(a, n.a) || !pln_is_const(a, n.b))
    return PLN_NO_TERM;
  x = pln_const(a, n.a);
  y = pln_const(a, n.b);
  if (y < 0 || y > 62)
    return PLN_NO_TERM;
  if (left && !pln_mul_fits(x, (int64_t)1 << y, &out))
    return PLN_NO_TERM;
  if (!left)
    out = pln_floor_div(x, (int64_t)1 << y);
  return pln_holds_int((pln_dtype)n.dtype, out) ? pln_const_like(a, t, out)
                                                : PLN_NO_TERM;
}

static bool is_number(const pln_analyzer *a, pln_term t) {
  return pln_term_kind(a, t) == PLN_INT_IMM ||
         pln_term_kind(a, t) == PLN_FLOAT_IMM;
}

enum { MERGED_SIZE = 64 };

/* if p then (if q then x else c) else c, for short q: a chain of conditions is
 * not to be rotated at each step. */
static pln_term merge_conditions(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (!is_call(a, n.b, "if_then_else"))
    return PLN_NO_TERM;
  pln_term_node inner = *pln_at(a, n.b);
  if (inner.n != 3 || inner.c != n.c || !is_number(a, n.c) ||
      pln_at(a, inner.a)->size > MERGED_SIZE)
    return PLN_NO_TERM;
  pln_term operands[3] = {pln_fold(a, PLN_PRIM_AND, n.a, inner.a), inner.b,
                          n.c};
  return pln_term_with(a, t, operands);
}

/* ceil of a number, and of its binary logarithm. */
static pln_term reduce_ceil(pln_analyzer *a, pln_term t) {
  pln_dtype dtype = (pln_dtype)pln_at(a, t)->dtype;
  pln_term arg = pln_at(a, t)->a;
  bool logarithm = is_call(a, arg, "log2") && pln_at(a, arg)->n == 1;
  if (logarithm)
    arg = pln_at(a, arg)->a;
  const pln_term_node *n = pln_at(a, arg);
  if (n->kind != PLN_FLOAT_IMM || n->lanes > 1)
    return PLN_NO_TERM;
  double value = n->u.number;
  if (logarithm && !(value > 0 && value <= DBL_MAX))
    return PLN_NO_TERM;
  return pln_term_float(a, dtype, ceil(logarithm ? log2(value) : value));
}

/* The number of zero bits above the highest one that is set. */
static pln_term leading_zeros(pln_analyzer *a, pln_term t) {
  pln_term x = pln_at(a, t)->a;
  if (!pln_is_const(a, x))
    return PLN_NO_TERM;
  uint32_t bits = pln_dtype_bits((pln_dtype)pln_at(a, x)->dtype), n = 0;
  while (n < bits && !((uint64_t)pln_const(a, x) >> (bits - 1 - n) & 1))
    n++;
  return pln_const_like(a, t, n);
}

static pln_term reduce_call(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (n.n == 1 && n.lanes == 1 && is_call(a, t, "ceil"))
    return reduce_ceil(a, t);
  if (n.n == 1 && n.lanes == 1 && is_call(a, t, "clz"))
    return leading_zeros(a, t);
  if (is_call(a, t, "likely") && n.n == 1) {
    int known = pln_known_condition(a, n.a);
    if (known >= 0)
      return pln_const_like(a, n.a, known);
    return is_number(a, n.a) ? n.a : PLN_NO_TERM;
  }
  if (is_call(a, t, "shift_left") || is_call(a, t, "shift_right"))
    return shift(a, t, is_call(a, t, "shift_left"));
  if (is_call(a, t, "if_then_else") && n.n == 3) {
    if (pln_is_const(a, n.a))
      return pln_const(a, n.a) ? n.b : n.c;
    return merge_conditions(a, t);
  }
  return PLN_NO_TERM;
}

/* A let of a number or a variable is replaced by its body. */
static pln_term reduce_let(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (!is_number(a, n.b) && pln_term_kind(a, n.b) != PLN_VAR)
    return PLN_NO_TERM;
  return pln_term_substitute(a, n.c, 1, &n.a, &n.b);
}

/* ------------------------------------------------------------------ dispatch
 */

pln_term pln_native_before(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term out = PLN_NO_TERM;
  switch (n.kind) {
  case PLN_PRIM_GT: return pln_fold(a, PLN_PRIM_LT, n.b, n.a);
  case PLN_PRIM_GE: return pln_fold(a, PLN_PRIM_LE, n.b, n.a);
  case PLN_PRIM_LE: return reduce_le(a, t);
  case PLN_PRIM_NE: return reduce_ne(a, t);
  case PLN_PRIM_EQ: return compares_indices(a, t) ? decide_eq(a, t) : out;
  case PLN_PRIM_LT: return compares_indices(a, t) ? decide_lt(a, t) : out;
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX: return extremum_by_bounds(a, t);
  case PLN_PRIM_FLOORDIV: return pln_is_index(a, t) ? divide_scaled(a, t) : out;
  case PLN_PRIM_DIV:
    return pln_is_index(a, t) || n.lanes > 1 ? out : float_quotient(a, t);
  case PLN_PRIM_CALL: return reduce_call(a, t);
  case PLN_PRIM_LET: return reduce_let(a, t);
  default: return out;
  }
}

/* x + c1 < y + c2, with one positive constant or none. */
static pln_term merge_offsets(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_offset p = pln_split_offset(a, n.a), q = pln_split_offset(a, n.b);
  int64_t diff;
  if ((p.c == 0 && q.c == 0) || !pln_sub_fits(q.c, p.c, &diff) ||
      diff == INT64_MIN)
    return PLN_NO_TERM;
  if (diff == 0)
    return pln_fold(a, PLN_PRIM_LT, p.base, q.base);
  if (diff == 1)
    return pln_fold(a, PLN_PRIM_LE, p.base, q.base);
  if (diff < 0 && q.c != 0)
    return pln_fold(a, PLN_PRIM_LT, pln_add_const(a, p.base, -diff), q.base);
  if (diff > 0 && p.c != 0)
    return pln_fold(a, PLN_PRIM_LT, p.base, pln_add_const(a, q.base, diff));
  return PLN_NO_TERM;
}

/* Both sides are multiples of a number. */
static pln_term divide_sides(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_modular p = pln_modular_of(a, n.a), q = pln_modular_of(a, n.b);
  int64_t c = pln_gcd(pln_gcd(p.coeff, p.base), pln_gcd(q.coeff, q.base));
  if (c <= 1 || c == PLN_INF)
    return PLN_NO_TERM;
  pln_term x = nested(a, fold_const(a, PLN_PRIM_FLOORDIV, n.a, c));
  pln_term y = nested(a, fold_const(a, PLN_PRIM_FLOORDIV, n.b, c));
  if (!x || !y || pln_at(a, x)->size > pln_at(a, n.a)->size ||
      pln_at(a, y)->size > pln_at(a, n.b)->size)
    return PLN_NO_TERM;
  return pln_fold(a, PLN_PRIM_LT, x, y);
}

pln_term pln_native_after(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term out = PLN_NO_TERM;
  switch (n.kind) {
  case PLN_PRIM_LT:
    if (!compares_indices(a, t))
      return out;
    out = merge_offsets(a, t);
    return out ? out : divide_sides(a, t);
  case PLN_PRIM_DIV:
  case PLN_PRIM_FLOORDIV:
    return n.lanes > 1 ? divide_ramp(a, t) : quotient_by_bounds(a, t);
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORMOD:
    return n.lanes > 1 ? divide_ramp(a, t) : remainder_by_analysis(a, t);
  default: return out;
  }
}
