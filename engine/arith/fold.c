/* arith/fold.c: constant folding of terms when they are made, as TVM's
 * operators on PrimExprs do it.
 *
 * Called by everything that builds terms. What does not fit in the dtype is not
 * folded, nor is a division by zero. */

#include "arith/arith.h"

int64_t pln_gcd(int64_t x, int64_t y) {
  uint64_t a = x < 0 ? UINT64_C(0) - (uint64_t)x : (uint64_t)x;
  uint64_t b = y < 0 ? UINT64_C(0) - (uint64_t)y : (uint64_t)y;
  while (b) {
    uint64_t r = a % b;
    a = b;
    b = r;
  }
  return a > INT64_MAX ? INT64_MAX : (int64_t)a;
}

/* The value of a number of any dtype, or of each lane of a vector of one. */
static bool number_of(const pln_analyzer *a, pln_term t, double *out) {
  const pln_term_node *n = pln_at(a, t);
  if (n->kind == PLN_BROADCAST)
    n = pln_at(a, n->a);
  *out = 0;
  if (n->kind == PLN_FLOAT_IMM)
    *out = n->u.number;
  else if (n->kind == PLN_INT_IMM)
    *out = (double)n->u.value;
  return n->kind == PLN_FLOAT_IMM || n->kind == PLN_INT_IMM;
}

static bool is_number(const pln_analyzer *a, pln_term t, double value) {
  double x;
  return number_of(a, t, &x) && x == value;
}

static bool int_arithmetic(pln_kind kind, int64_t x, int64_t y, int64_t *out) {
  switch (kind) {
  case PLN_PRIM_ADD: return pln_add_fits(x, y, out);
  case PLN_PRIM_SUB: return pln_sub_fits(x, y, out);
  case PLN_PRIM_MUL: return pln_mul_fits(x, y, out);
  case PLN_PRIM_MIN: *out = x < y ? x : y; return true;
  case PLN_PRIM_MAX: *out = x > y ? x : y; return true;
  default: break;
  }
  if (y == 0 || (y == -1 && x == INT64_MIN))
    return false;
  switch (kind) {
  case PLN_PRIM_DIV: *out = x / y; return true;
  case PLN_PRIM_MOD: *out = x % y; return true;
  case PLN_PRIM_FLOORDIV: *out = pln_floor_div(x, y); return true;
  case PLN_PRIM_FLOORMOD: *out = pln_floor_mod(x, y); return true;
  default: return false;
  }
}

/* -1: no comparison or logical operator. */
static int int_condition(pln_kind kind, int64_t x, int64_t y) {
  switch (kind) {
  case PLN_PRIM_EQ: return x == y;
  case PLN_PRIM_NE: return x != y;
  case PLN_PRIM_LT: return x < y;
  case PLN_PRIM_LE: return x <= y;
  case PLN_PRIM_GT: return x > y;
  case PLN_PRIM_GE: return x >= y;
  default: return -1;
  }
}

/* PLN_NO_TERM: the result does not fit. */
static pln_term fold_ints(pln_analyzer *a, pln_kind kind, pln_term x,
                          pln_term y) {
  const pln_term_node *m = pln_at(a, x);
  int64_t p = m->u.value, q = pln_const(a, y), value;
  int condition = int_condition(kind, p, q);
  pln_dtype dtype = (pln_dtype)m->dtype;
  if (condition >= 0)
    return pln_term_bool(a, condition);
  if (!int_arithmetic(kind, p, q, &value) || !pln_holds_int(dtype, value))
    return PLN_NO_TERM;
  return pln_term_int(a, dtype, 1, value);
}

static pln_term fold_floats(pln_analyzer *a, pln_kind kind, pln_term x,
                            pln_term y) {
  double p = pln_at(a, x)->u.number, q = pln_at(a, y)->u.number;
  pln_dtype dtype = (pln_dtype)pln_at(a, x)->dtype;
  switch (kind) {
  case PLN_PRIM_ADD: return pln_term_float(a, dtype, p + q);
  case PLN_PRIM_SUB: return pln_term_float(a, dtype, p - q);
  case PLN_PRIM_MUL: return pln_term_float(a, dtype, p * q);
  case PLN_PRIM_DIV:
    return q == 0 ? PLN_NO_TERM : pln_term_float(a, dtype, p / q);
  case PLN_PRIM_MIN: return p < q ? x : y;
  case PLN_PRIM_MAX: return p > q ? x : y;
  case PLN_PRIM_EQ: return pln_term_bool(a, p == q);
  case PLN_PRIM_NE: return pln_term_bool(a, p != q);
  case PLN_PRIM_LT: return pln_term_bool(a, p < q);
  case PLN_PRIM_LE: return pln_term_bool(a, p <= q);
  case PLN_PRIM_GT: return pln_term_bool(a, p > q);
  case PLN_PRIM_GE: return pln_term_bool(a, p >= q);
  default: return PLN_NO_TERM;
  }
}

/* x * 0 of a floating-point x may be NaN; TVM folds it nevertheless, we do
 * not. */
static pln_term fold_neutral(pln_analyzer *a, pln_kind kind, pln_term x,
                             pln_term y) {
  bool integer = pln_is_integer(a, x);
  switch (kind) {
  case PLN_PRIM_ADD:
    return is_number(a, y, 0) ? x : is_number(a, x, 0) ? y : PLN_NO_TERM;
  case PLN_PRIM_SUB: return is_number(a, y, 0) ? x : PLN_NO_TERM;
  case PLN_PRIM_MUL:
    if (is_number(a, y, 1) || (integer && is_number(a, x, 0)))
      return x;
    return is_number(a, x, 1) || (integer && is_number(a, y, 0)) ? y
                                                                 : PLN_NO_TERM;
  case PLN_PRIM_DIV:
  case PLN_PRIM_FLOORDIV:
    return is_number(a, y, 1) || (integer && is_number(a, x, 0)) ? x
                                                                 : PLN_NO_TERM;
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORMOD:
    if (is_number(a, x, 0))
      return x;
    return is_number(a, y, 1) && integer ? pln_const_like(a, x, 0)
                                         : PLN_NO_TERM;
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX: return x == y ? x : PLN_NO_TERM;
  case PLN_PRIM_AND:
    return pln_is_value(a, x, 1) || pln_is_value(a, y, 0)   ? y
           : pln_is_value(a, y, 1) || pln_is_value(a, x, 0) ? x
                                                            : PLN_NO_TERM;
  case PLN_PRIM_OR:
    return pln_is_value(a, x, 0) || pln_is_value(a, y, 1)   ? y
           : pln_is_value(a, y, 0) || pln_is_value(a, x, 1) ? x
                                                            : PLN_NO_TERM;
  default: return PLN_NO_TERM;
  }
}

/* Of the integers, only 0 and 1 are neutral to an operator. */
static bool may_be_neutral(const pln_term_node *n) {
  if (n->kind == PLN_INT_IMM)
    return n->u.value == 0 || n->u.value == 1;
  return n->kind == PLN_FLOAT_IMM || n->kind == PLN_BROADCAST;
}

/* PLN_NO_TERM: the operator stays. */
static pln_term fold_numbers(pln_analyzer *a, pln_kind kind, pln_term x,
                             pln_term y) {
  const pln_term_node *m = pln_at(a, x), *n = pln_at(a, y);
  pln_kind p = (pln_kind)m->kind, q = (pln_kind)n->kind;
  bool logical = kind == PLN_PRIM_AND || kind == PLN_PRIM_OR;
  if (p == PLN_INT_IMM && q == PLN_INT_IMM && !logical)
    return fold_ints(a, kind, x, y);
  if (p == PLN_FLOAT_IMM && q == PLN_FLOAT_IMM)
    return fold_floats(a, kind, x, y);
  if (m->lanes != n->lanes ||
      (!may_be_neutral(m) && !may_be_neutral(n) && x != y))
    return PLN_NO_TERM;
  return fold_neutral(a, kind, x, y);
}

/* The same; most operators stay: those of no numbers, or of one that is not
 * neutral. */
static inline pln_term fold_operands(pln_analyzer *a, pln_kind kind, pln_term x,
                                     pln_term y) {
  const pln_term_node *m = pln_at(a, x), *n = pln_at(a, y);
  bool numbers = m->kind == PLN_INT_IMM && n->kind == PLN_INT_IMM;
  if (!numbers && x != y && !may_be_neutral(m) && !may_be_neutral(n))
    return PLN_NO_TERM;
  return fold_numbers(a, kind, x, y);
}

pln_term pln_fold(pln_analyzer *a, pln_kind kind, pln_term x, pln_term y) {
  if (!x || !y)
    return PLN_NO_TERM;
  pln_term out = fold_operands(a, kind, x, y);
  if (out)
    return out;
  out = pln_term_binary(a, kind, x, y);
  if (out)
    a->nodes[out].folded = true;
  return out;
}

pln_term pln_fold_again(pln_analyzer *a, pln_term t) {
  pln_term out = PLN_NO_TERM;
  if (pln_at(a, t)->folded)
    return t;
  pln_term_node n = *pln_at(a, t);
  if (n.kind >= PLN_PRIM_ADD && n.kind <= PLN_PRIM_OR)
    out = fold_operands(a, (pln_kind)n.kind, n.a, n.b);
  else if (n.kind == PLN_PRIM_NOT && pln_is_const(a, n.a))
    out = pln_fold_not(a, n.a);
  else if (n.kind == PLN_SELECT)
    out = pln_fold_select(a, n.a, n.b, n.c);
  else if (n.kind == PLN_PRIM_CAST)
    out = pln_fold_cast(a, (pln_dtype)n.dtype, n.a);
  a->nodes[t].folded = (!out || out == t) && a->status == PLN_OK;
  return out ? out : t;
}

pln_term pln_fold_not(pln_analyzer *a, pln_term x) {
  if (pln_is_const(a, x))
    return pln_term_bool(a, !pln_const(a, x));
  return pln_term_unary(a, PLN_PRIM_NOT, x);
}

pln_term pln_fold_select(pln_analyzer *a, pln_term condition, pln_term x,
                         pln_term y) {
  if (pln_is_const(a, condition))
    return pln_const(a, condition) ? x : y;
  return x == y ? x : pln_term_select(a, condition, x, y);
}

/* A number as a value of another dtype, if it is one. */
static pln_term cast_number(pln_analyzer *a, pln_dtype dtype, pln_term x) {
  const pln_term_node *n = pln_at(a, x);
  double number;
  if (!number_of(a, x, &number))
    return PLN_NO_TERM;
  if (pln_is_float_dtype(dtype))
    return pln_term_float(a, dtype, number);
  if (n->kind == PLN_INT_IMM && dtype == PLN_BOOL)
    return pln_term_bool(a, n->u.value != 0);
  if (n->kind == PLN_INT_IMM)
    return pln_holds_int(dtype, n->u.value)
               ? pln_term_int(a, dtype, 1, n->u.value)
               : PLN_NO_TERM;
  if (!(number > -9e18 && number < 9e18))
    return PLN_NO_TERM;
  if (dtype == PLN_BOOL)
    return pln_term_bool(a, number != 0);
  return pln_holds_int(dtype, (int64_t)number)
             ? pln_term_int(a, dtype, 1, (int64_t)number)
             : PLN_NO_TERM;
}

pln_term pln_fold_cast(pln_analyzer *a, pln_dtype dtype, pln_term x) {
  if (!x || pln_at(a, x)->dtype == dtype)
    return x;
  pln_dtype from = (pln_dtype)pln_at(a, x)->dtype;
  bool known =
      pln_is_float_dtype(dtype) || dtype == PLN_BOOL || pln_is_int_dtype(dtype);
  pln_term out = from != PLN_DTYPE_NONE && known && pln_at(a, x)->lanes == 1
                     ? cast_number(a, dtype, x)
                     : PLN_NO_TERM;
  return out ? out : pln_term_cast(a, dtype, x);
}
