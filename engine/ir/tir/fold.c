/* tir/fold.c: constant folding of PrimExprs when they are built, as TVM's
 * operators do: computes immediates and drops neutral elements.
 *
 * Used by scripts' operators; the script printer asks which expressions would
 * fold when read back. Integers wrap at the width of their dtype; division by
 * zero is an error. */

#include <math.h>

#include "ir/tir/tir.h"

static bool equals(const pln_graph *g, pln_ref ref, int64_t value) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_FLOAT_IMM)
    return pln_node_float(g, ref) == (double)value;
  return n->kind == PLN_INT_IMM && pln_node_int(g, ref) == value;
}

static bool divides(pln_kind kind) {
  return kind == PLN_PRIM_DIV || kind == PLN_PRIM_MOD ||
         kind == PLN_PRIM_FLOORDIV || kind == PLN_PRIM_FLOORMOD;
}

/* As in TVM, remainders are folded for index dtypes only. */
static bool is_index(const pln_engine *e, pln_type type) {
  pln_dtype dtype = pln_type_dtype(e, type);
  return dtype == PLN_INT32 || dtype == PLN_INT64;
}

static bool folds_kind(const pln_engine *e, pln_kind kind, pln_type type) {
  switch (kind) {
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORMOD: return is_index(e, type);
  case PLN_PRIM_AND:
  case PLN_PRIM_OR: return pln_type_dtype(e, type) == PLN_BOOL;
  default: return true;
  }
}

/* -1: not a comparison. */
static int fold_comparison(pln_kind kind, bool less, bool equal, bool greater) {
  switch (kind) {
  case PLN_PRIM_EQ: return equal;
  case PLN_PRIM_NE: return !equal;
  case PLN_PRIM_LT: return less;
  case PLN_PRIM_LE: return less || equal;
  case PLN_PRIM_GT: return greater;
  case PLN_PRIM_GE: return greater || equal;
  default: return -1;
  }
}

/* ---------------------------------------------------------------- integers */

/* The low bits of a value, sign-extended for that dtype. */
static int64_t wrapped(pln_dtype dtype, uint64_t value) {
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  if (bits >= 64)
    return (int64_t)value;
  value &= (UINT64_C(1) << bits) - 1;
  uint64_t sign = UINT64_C(1) << (bits - 1);
  bool negative = (value & sign) && pln_is_signed(dtype);
  return negative ? (int64_t)(value | ~(sign - 1)) : (int64_t)value;
}

/* n is not 0; the single overflowing quotient wraps. */
static uint64_t quotient(int64_t m, int64_t n, bool floor) {
  if (n == -1)
    return UINT64_C(0) - (uint64_t)m;
  return (uint64_t)(m / n - (floor && m % n != 0 && (m < 0) != (n < 0)));
}

static uint64_t remainder_of(int64_t m, int64_t n, bool floor) {
  return (uint64_t)m - quotient(m, n, floor) * (uint64_t)n;
}

/* False for a kind that is not arithmetic. */
static bool int_value(pln_kind kind, int64_t m, int64_t n, uint64_t *out) {
  switch (kind) {
  case PLN_PRIM_ADD: *out = (uint64_t)m + (uint64_t)n; return true;
  case PLN_PRIM_SUB: *out = (uint64_t)m - (uint64_t)n; return true;
  case PLN_PRIM_MUL: *out = (uint64_t)m * (uint64_t)n; return true;
  case PLN_PRIM_DIV: *out = quotient(m, n, false); return true;
  case PLN_PRIM_MOD: *out = remainder_of(m, n, false); return true;
  case PLN_PRIM_FLOORDIV: *out = quotient(m, n, true); return true;
  case PLN_PRIM_FLOORMOD: *out = remainder_of(m, n, true); return true;
  case PLN_PRIM_MIN: *out = (uint64_t)(m < n ? m : n); return true;
  case PLN_PRIM_MAX: *out = (uint64_t)(m > n ? m : n); return true;
  default: return false;
  }
}

/* The folded value of two constants; a bool for a comparison. */
typedef struct constant {
  bool known, truth, is_bool;
  int64_t i;
  double f;
} constant;

static constant of_truth(int truth) {
  return (constant){.known = true, .is_bool = true, .truth = truth != 0};
}

/* A uint64 result that does not fit in int64 is not folded. */
static constant fold_ints(const pln_engine *e, const pln_graph *g,
                          pln_kind kind, pln_ref x, pln_ref y) {
  int64_t m = pln_node_int(g, x), n = pln_node_int(g, y);
  pln_dtype dtype = pln_type_dtype(e, g->nodes[x].type);
  uint64_t value;
  int truth = fold_comparison(kind, m<n, m == n, m> n);
  if (truth >= 0)
    return of_truth(truth);
  if (!int_value(kind, m, n, &value))
    return (constant){.known = false};
  int64_t i = wrapped(dtype, value);
  return (constant){.known = pln_holds_int(dtype, i), .i = i};
}

/* ------------------------------------------------------------------ floats */

static bool float_value(pln_kind kind, double m, double n, double *out) {
  switch (kind) {
  case PLN_PRIM_ADD: *out = m + n; return true;
  case PLN_PRIM_SUB: *out = m - n; return true;
  case PLN_PRIM_MUL: *out = m * n; return true;
  case PLN_PRIM_DIV: *out = m / n; return true;
  case PLN_PRIM_FLOORDIV: *out = floor(m / n); return true;
  default: return false;
  }
}

/* Single precision, which overflows to infinity. */
static bool single_value(pln_kind kind, float m, float n, double *out) {
  float value;
  switch (kind) {
  case PLN_PRIM_ADD: value = m + n; break;
  case PLN_PRIM_SUB: value = m - n; break;
  case PLN_PRIM_MUL: value = m * n; break;
  case PLN_PRIM_DIV: value = m / n; break;
  case PLN_PRIM_FLOORDIV: value = floorf(m / n); break;
  default: return false;
  }
  *out = (double)value;
  return true;
}

/* A double beyond the range of float becomes an infinity. */
static float to_single(double value) {
  if (value > 3.4028235677973366e38 || value < -3.4028235677973366e38)
    return value > 0 ? INFINITY : -INFINITY;
  return (float)value;
}

/* For half floats only min and max are folded. */
static constant fold_floats(const pln_engine *e, const pln_graph *g,
                            pln_kind kind, pln_ref x, pln_ref y) {
  double m = pln_node_float(g, x), n = pln_node_float(g, y);
  pln_dtype dtype = pln_type_dtype(e, g->nodes[x].type);
  constant out = {.known = true};
  int truth = fold_comparison(kind, m<n, m == n, m> n);
  if (truth >= 0)
    return of_truth(truth);
  if (kind == PLN_PRIM_MIN)
    out.f = n < m ? n : m;
  else if (kind == PLN_PRIM_MAX)
    out.f = m < n ? n : m;
  else if (dtype == PLN_FLOAT32)
    out.known = single_value(kind, to_single(m), to_single(n), &out.f);
  else
    out.known = dtype == PLN_FLOAT64 && float_value(kind, m, n, &out.f);
  return out;
}

static bool is_scalar(const pln_engine *e, const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  return pln_type_get_kind(e, type) == PLN_TYPE_PRIM &&
         pln_type_number(e, type) == 1;
}

/* The operand that equals the whole expression, or PLN_NONE. */
static pln_ref unit(const pln_graph *g, pln_kind kind, pln_ref x, pln_ref y) {
  switch (kind) {
  case PLN_PRIM_ADD:
    return equals(g, x, 0) ? y : equals(g, y, 0) ? x : PLN_NONE;
  case PLN_PRIM_SUB: return equals(g, y, 0) ? x : PLN_NONE;
  case PLN_PRIM_MUL:
    if (equals(g, x, 1) || equals(g, y, 0))
      return y;
    return equals(g, y, 1) || equals(g, x, 0) ? x : PLN_NONE;
  case PLN_PRIM_DIV:
  case PLN_PRIM_FLOORDIV:
    return equals(g, y, 1) || equals(g, x, 0) ? x : PLN_NONE;
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORMOD: return equals(g, x, 0) ? x : PLN_NONE;
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX: return x == y ? x : PLN_NONE;
  case PLN_PRIM_AND:
    return equals(g, x, 1) || equals(g, y, 0)   ? y
           : equals(g, y, 1) || equals(g, x, 0) ? x
                                                : PLN_NONE;
  case PLN_PRIM_OR:
    return equals(g, x, 0) || equals(g, y, 1)   ? y
           : equals(g, y, 0) || equals(g, x, 1) ? x
                                                : PLN_NONE;
  default: return PLN_NONE;
  }
}

/* True if neither operand is a vector constant: only scalars are folded. */
static bool may_fold(const pln_engine *e, const pln_graph *g, pln_kind kind,
                     pln_ref x, pln_ref y) {
  pln_type type = g->nodes[x].type;
  return type == g->nodes[y].type && folds_kind(e, kind, type) &&
         is_scalar(e, g, x);
}

static constant fold_constants(const pln_engine *e, const pln_graph *g,
                               pln_kind kind, pln_ref x, pln_ref y) {
  if (g->nodes[x].kind == PLN_INT_IMM && g->nodes[y].kind == PLN_INT_IMM)
    return fold_ints(e, g, kind, x, y);
  if (g->nodes[x].kind == PLN_FLOAT_IMM && g->nodes[y].kind == PLN_FLOAT_IMM)
    return fold_floats(e, g, kind, x, y);
  return (constant){.known = false};
}

/* x % 1 */
static bool remainder_is_zero(const pln_graph *g, pln_kind kind, pln_ref y) {
  return (kind == PLN_PRIM_MOD || kind == PLN_PRIM_FLOORMOD) && equals(g, y, 1);
}

static pln_status build_constant(pln_builder *b, pln_type type, constant c,
                                 bool is_float, pln_ref *out) {
  if (!c.is_bool)
    return is_float ? pln_build_float_imm(b, type, c.f, out)
                    : pln_build_int_imm(b, type, c.i, out);
  PLN_TRY(pln_type_prim(b->engine, PLN_BOOL, 1, &type));
  return pln_build_int_imm(b, type, c.truth, out);
}

static pln_status folded(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                         pln_ref *out) {
  const pln_graph *g = b->graph;
  pln_type type = g->nodes[x].type;
  *out = PLN_NONE;
  if (!may_fold(b->engine, g, kind, x, y))
    return PLN_OK;
  if (divides(kind) && equals(g, y, 0))
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "%s: a division by zero", pln_kind_name(kind));
  constant c = fold_constants(b->engine, g, kind, x, y);
  if (c.known)
    return build_constant(b, type, c, g->nodes[x].kind == PLN_FLOAT_IMM, out);
  *out = unit(g, kind, x, y);
  if (*out == PLN_NONE && remainder_is_zero(g, kind, y))
    return pln_build_int_imm(b, type, 0, out);
  return PLN_OK;
}

bool pln_would_simplify(const pln_engine *engine, const pln_graph *g,
                        pln_kind kind, pln_ref x, pln_ref y) {
  if (!may_fold(engine, g, kind, x, y))
    return false;
  return (divides(kind) && equals(g, y, 0)) ||
         fold_constants(engine, g, kind, x, y).known ||
         unit(g, kind, x, y) != PLN_NONE || remainder_is_zero(g, kind, y);
}

pln_status pln_build_folded(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                            pln_ref *out) {
  if (x >= b->graph->n_nodes || y >= b->graph->n_nodes)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "an operand is not a node of this builder");
  pln_ref ref;
  PLN_TRY(folded(b, kind, x, y, &ref));
  if (ref == PLN_NONE)
    return pln_build_binary(b, kind, x, y, out);
  *out = ref;
  return PLN_OK;
}
