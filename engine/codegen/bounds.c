/* bounds.c: bounds of integer expressions, from those of their operands.
 *
 * Called by arith.c: where a result fits its dtype, C's own operators are
 * defined; elsewhere the arithmetic is that of unsigned integers. The bounds of
 * uint64 above INT64_MAX are not represented: its results are not bounded. */

#include "codegen/bounds.h"

__extension__ typedef __int128 wide;

typedef struct wide_bounds {
  wide lo, hi;
} wide_bounds;

static wide least(wide a, wide b) {
  return a < b ? a : b;
}

static wide most(wide a, wide b) {
  return a > b ? a : b;
}

static wide floor_div(wide a, wide b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static wide_bounds product(const pln_c_value *a, const pln_c_value *b) {
  wide p = (wide)a->lo * b->lo, q = (wide)a->lo * b->hi;
  wide r = (wide)a->hi * b->lo, s = (wide)a->hi * b->hi;
  return (wide_bounds){least(least(p, q), least(r, s)),
                       most(most(p, q), most(r, s))};
}

/* Of a quotient by a positive divisor. */
static wide_bounds quotient(const pln_c_value *a, const pln_c_value *b,
                            bool floors) {
  wide p = a->lo / (wide)b->lo, q = a->lo / (wide)b->hi;
  wide r = a->hi / (wide)b->lo, s = a->hi / (wide)b->hi;
  if (floors) {
    p = floor_div(a->lo, b->lo);
    q = floor_div(a->lo, b->hi);
  }
  return (wide_bounds){least(p, q), most(r, s)};
}

static bool raw_bounds(pln_kind kind, const pln_c_value *a,
                       const pln_c_value *b, wide_bounds *out) {
  switch ((int)kind) {
  case PLN_PRIM_ADD:
    *out = (wide_bounds){(wide)a->lo + b->lo, (wide)a->hi + b->hi};
    return true;
  case PLN_PRIM_SUB:
    *out = (wide_bounds){(wide)a->lo - b->hi, (wide)a->hi - b->lo};
    return true;
  case PLN_PRIM_MUL: *out = product(a, b); return true;
  case PLN_PRIM_MIN:
    *out = (wide_bounds){least(a->lo, b->lo), least(a->hi, b->hi)};
    return true;
  case PLN_PRIM_MAX:
    *out = (wide_bounds){most(a->lo, b->lo), most(a->hi, b->hi)};
    return true;
  case PLN_PRIM_DIV:
  case PLN_PRIM_FLOORDIV:
    if (b->lo <= 0)
      return false;
    *out = quotient(a, b, kind == PLN_PRIM_FLOORDIV);
    return true;
  case PLN_PRIM_FLOORMOD:
  case PLN_PRIM_MOD:
    if (b->lo <= 0 || (kind == PLN_PRIM_MOD && a->lo < 0))
      return false;
    *out = (wide_bounds){0, a->lo >= 0 ? least(a->hi, b->hi - 1)
                                       : (wide)b->hi - 1};
    return true;
  default: return false;
  }
}

bool pln_c_bounds(pln_kind kind, pln_dtype dtype, const pln_c_value *a,
                  const pln_c_value *b, int64_t *lo, int64_t *hi) {
  wide_bounds out;
  *lo = pln_c_least(dtype);
  *hi = pln_c_most(dtype);
  if (dtype == PLN_UINT64 || !raw_bounds(kind, a, b, &out) || out.lo < *lo ||
      out.hi > *hi)
    return false;
  *lo = (int64_t)out.lo;
  *hi = (int64_t)out.hi;
  return true;
}

/* Whether a < b (or a <= b) holds. */
static int known_less(const pln_c_value *a, const pln_c_value *b, bool equal) {
  bool open = a->dtype == PLN_UINT64; /* no upper bound */
  if (!open && (equal ? a->hi <= b->lo : a->hi < b->lo))
    return 1;
  if (!open && (equal ? a->lo > b->hi : a->lo >= b->hi))
    return 0;
  if (open && b->lo == 0 && b->hi == 0 && !equal)
    return 0;
  return open && equal && a->lo == 0 && a->hi == 0 ? 1 : -1;
}

static bool same_name(const pln_c_value *a, const pln_c_value *b) {
  return a->texts[0].prec == PLN_C_NAME && b->texts[0].prec == PLN_C_NAME &&
         !strcmp(a->texts[0].data, b->texts[0].data);
}

int pln_c_known(pln_kind kind, const pln_c_value *a, const pln_c_value *b) {
  bool apart = a->dtype != PLN_UINT64 && (a->hi < b->lo || b->hi < a->lo);
  if (a->count != 1 || b->count != 1)
    return -1;
  if (same_name(a, b))
    return kind == PLN_PRIM_EQ || kind == PLN_PRIM_LE || kind == PLN_PRIM_GE;
  switch ((int)kind) {
  case PLN_PRIM_EQ: return apart ? 0 : -1;
  case PLN_PRIM_NE: return apart ? 1 : -1;
  case PLN_PRIM_LT: return known_less(a, b, false);
  case PLN_PRIM_LE: return known_less(a, b, true);
  case PLN_PRIM_GT: return known_less(b, a, false);
  case PLN_PRIM_GE: return known_less(b, a, true);
  default: return -1;
  }
}
