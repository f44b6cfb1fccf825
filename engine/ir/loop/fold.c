/* loop/fold.c: arithmetic on PrimExprs that computes what is constant, as TVM
 * does when a + b is written: immediates are computed, and what adds nothing
 * is left out.
 *
 * Scripts' operators and printing of ranges build with it. Integers are
 * computed as dims are; what overflows stays as it was written. */

#include <math.h>

#include "ir/loop/loop.h"

static bool equals(const pln_graph *g, pln_ref ref, int64_t value) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_FLOAT_IMM)
    return pln_node_float(g, ref) == (double)value;
  return n->kind == PLN_INT_IMM && pln_node_int(g, ref) == value;
}

static bool dim_op(pln_kind kind, pln_dim_op *op) {
  switch (kind) {
  case PLN_PRIM_ADD: *op = PLN_DIM_ADD; return true;
  case PLN_PRIM_SUB: *op = PLN_DIM_SUB; return true;
  case PLN_PRIM_MUL: *op = PLN_DIM_MUL; return true;
  case PLN_PRIM_DIV: *op = PLN_DIM_TRUNCDIV; return true;
  case PLN_PRIM_FLOORDIV: *op = PLN_DIM_FLOORDIV; return true;
  case PLN_PRIM_FLOORMOD: *op = PLN_DIM_FLOORMOD; return true;
  case PLN_PRIM_MIN: *op = PLN_DIM_MIN; return true;
  case PLN_PRIM_MAX: *op = PLN_DIM_MAX; return true;
  default: return false;
  }
}

/* -1: no comparison. */
static int compare(pln_kind kind, bool less, bool equal) {
  switch (kind) {
  case PLN_PRIM_EQ: return equal;
  case PLN_PRIM_NE: return !equal;
  case PLN_PRIM_LT: return less;
  case PLN_PRIM_LE: return less || equal;
  case PLN_PRIM_GT: return !less && !equal;
  case PLN_PRIM_GE: return !less;
  default: return -1;
  }
}

static pln_status build_bool(pln_builder *b, bool value, pln_ref *out) {
  pln_type type;
  PLN_TRY(pln_type_prim(b->engine, PLN_BOOL, 1, &type));
  return pln_build_int_imm(b, type, value, out);
}

/* *out stays PLN_NONE when the result is not known or does not fit. */
static pln_status fold_ints(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                            pln_ref *out) {
  const pln_graph *g = b->graph;
  int64_t m = pln_node_int(g, x), n = pln_node_int(g, y);
  pln_type type = g->nodes[x].type;
  pln_dim_op op;
  pln_dim value = PLN_DIM_UNKNOWN;
  int truth = compare(kind, m < n, m == n);
  if (truth >= 0)
    return build_bool(b, truth, out);
  if (kind == PLN_PRIM_MOD && n != 0 && n != -1)
    value = m % n;
  else if (dim_op(kind, &op) && PLN_DIM_IS_CONST(m) && PLN_DIM_IS_CONST(n))
    PLN_TRY(pln_dim_binary(b->engine, op, m, n, &value));
  pln_dtype dtype = pln_type_dtype(b->engine, type);
  if (!PLN_DIM_IS_CONST(value) || !pln_holds_int(dtype, value))
    return PLN_OK;
  return pln_build_int_imm(b, type, value, out);
}

static pln_status fold_floats(pln_builder *b, pln_kind kind, pln_ref x,
                              pln_ref y, pln_ref *out) {
  const pln_graph *g = b->graph;
  double m = pln_node_float(g, x), n = pln_node_float(g, y), value;
  pln_type type = g->nodes[x].type;
  bool single = pln_type_dtype(b->engine, type) == PLN_FLOAT32;
  int truth = compare(kind, m < n, m == n);
  if (m != m || n != n)
    return PLN_OK;
  if (truth >= 0)
    return build_bool(b, truth, out);
  switch (kind) {
  case PLN_PRIM_ADD: value = m + n; break;
  case PLN_PRIM_SUB: value = m - n; break;
  case PLN_PRIM_MUL: value = m * n; break;
  case PLN_PRIM_DIV:
    if (n == 0)
      return PLN_OK;
    value = m / n;
    break;
  case PLN_PRIM_MIN: value = m < n ? m : n; break;
  case PLN_PRIM_MAX: value = m > n ? m : n; break;
  default: return PLN_OK;
  }
  if (!isfinite(value))
    return PLN_OK;
  if (single && fabs(value) <= 3.4028234663852886e38)
    value = (float)value;
  return pln_build_float_imm(b, type, value, out);
}

static bool is_scalar(const pln_engine *e, const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  return pln_type_kind_of(e, type) == PLN_TYPE_PRIM &&
         pln_type_number(e, type) == 1;
}

/* The operand that the whole is, or PLN_NONE. */
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
    return equals(g, y, 1) || (equals(g, x, 0) && !equals(g, y, 0)) ? x
                                                                    : PLN_NONE;
  case PLN_PRIM_FLOORMOD:
    return equals(g, x, 0) && !equals(g, y, 0) ? x : PLN_NONE;
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

static pln_status folded(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                         pln_ref *out) {
  const pln_graph *g = b->graph;
  *out = PLN_NONE;
  if (g->nodes[x].type != g->nodes[y].type || !is_scalar(b->engine, g, x))
    return PLN_OK;
  if (g->nodes[x].kind == PLN_INT_IMM && g->nodes[y].kind == PLN_INT_IMM)
    PLN_TRY(fold_ints(b, kind, x, y, out));
  if (g->nodes[x].kind == PLN_FLOAT_IMM && g->nodes[y].kind == PLN_FLOAT_IMM)
    PLN_TRY(fold_floats(b, kind, x, y, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  *out = unit(g, kind, x, y);
  if (*out == PLN_NONE && kind == PLN_PRIM_FLOORMOD && equals(g, y, 1))
    return pln_build_int_imm(b, g->nodes[x].type, 0, out);
  return PLN_OK;
}

/* Two integers, but for what overflows or divides by zero, are computed. */
static bool ints_fold(const pln_engine *e, const pln_graph *g, pln_kind kind,
                      pln_ref x, pln_ref y) {
  pln_dtype dtype = pln_type_dtype(e, g->nodes[x].type);
  int64_t m = pln_node_int(g, x), n = pln_node_int(g, y), value = m;
  bool overflow = false;
  if (kind == PLN_PRIM_ADD)
    overflow = __builtin_add_overflow(m, n, &value);
  else if (kind == PLN_PRIM_SUB)
    overflow = __builtin_sub_overflow(m, n, &value);
  else if (kind == PLN_PRIM_MUL)
    overflow = __builtin_mul_overflow(m, n, &value);
  else if (kind >= PLN_PRIM_DIV && kind <= PLN_PRIM_FLOORMOD)
    overflow = n == 0 || n == -1;
  return !overflow && pln_holds_int(dtype, value);
}

bool pln_would_fold(pln_engine *engine, const pln_graph *g, pln_kind kind,
                    pln_ref x, pln_ref y) {
  const pln_node *m = &g->nodes[x], *n = &g->nodes[y];
  if (m->type != n->type || !is_scalar(engine, g, x))
    return false;
  if (m->kind == PLN_INT_IMM && n->kind == PLN_INT_IMM)
    return ints_fold(engine, g, kind, x, y);
  if (m->kind == PLN_FLOAT_IMM && n->kind == PLN_FLOAT_IMM)
    return kind != PLN_PRIM_DIV || !equals(g, y, 0);
  return unit(g, kind, x, y) != PLN_NONE ||
         (kind == PLN_PRIM_FLOORMOD && equals(g, y, 1));
}

pln_status pln_build_folded(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                            pln_ref *out) {
  if (x >= b->graph->n_nodes || y >= b->graph->n_nodes)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "an operand is no node of this builder");
  pln_ref ref;
  PLN_TRY(folded(b, kind, x, y, &ref));
  if (ref == PLN_NONE)
    return pln_build_binary(b, kind, x, y, out);
  *out = ref;
  return PLN_OK;
}
