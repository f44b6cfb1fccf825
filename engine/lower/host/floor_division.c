/* floor_division.c: FloorDiv and FloorMod by operations that processors have
 * (lower_intrin.h).
 *
 * Called by tir.LowerIntrin, operands first. A power of two is a shift or a
 * mask; operands that are not negative are divided towards zero; a numerator
 * with a lower bound is moved above zero by a multiple of the divisor; else the
 * quotient is corrected. */

#include "lower/host/lower_intrin.h"

typedef struct division {
  pln_intrin_lowering *x;
  pln_emit *e;
  pln_stmt_rewrite *s;
  pln_ref a, b; /* images of the operands */
  pln_type type;
  pln_dtype dtype;
  bool modulo;
} division;

/* The number of the bit, -1 for what is no power of two. */
static int power_of_two(const pln_node *n) {
  if (n->kind != PLN_INT_IMM)
    return -1;
  int64_t value = (int64_t)pln_imm_bits(n);
  if (value <= 0 || (value & (value - 1)) != 0)
    return -1;
  int bit = 0;
  while (value >> bit != 1)
    bit++;
  return bit;
}

static pln_ref call2(division *d, const char *builtin, pln_ref x, pln_ref y) {
  pln_ref args[2] = {x, y};
  return pln_emit_call(d->e, builtin, d->type, 2, args);
}

static pln_ref number(division *d, int64_t value) {
  pln_ref scalar = pln_emit_int(d->e, d->dtype, value);
  uint32_t lanes = pln_type_number(d->x->g->engine, d->type);
  if (lanes == 1)
    return scalar;
  return pln_emit_prim(d->e, &(pln_prim){.kind = PLN_BROADCAST,
                                         .data = lanes,
                                         .n = 1,
                                         .operands = &scalar});
}

static pln_status minimum(division *d, pln_ref node, int64_t *out) {
  pln_term term;
  int64_t max;
  PLN_TRY(pln_scoped_term(&d->x->scopes, d->s, node, &term));
  return pln_analyzer_const_int_bound(d->x->scopes.a, term, out, &max);
}

/* *out: the expression is proved not to be negative. */
static pln_status is_not_negative(division *d, pln_ref node, bool *out) {
  pln_term term;
  int64_t min;
  PLN_TRY(minimum(d, node, &min));
  *out = min >= 0;
  if (*out || pln_type_number(d->x->g->engine, d->type) != 1)
    return PLN_OK;
  PLN_TRY(pln_scoped_term(&d->x->scopes, d->s, node, &term));
  pln_analyzer *a = d->x->scopes.a;
  pln_term holds = pln_fold(a, PLN_PRIM_GE, term, pln_const_like(a, term, 0));
  PLN_TRY(a->status);
  return pln_analyzer_can_prove(a, holds, 0, out);
}

/* A division whose quotient is not negative may be one towards zero. */
static pln_status quotient_is_not_negative(division *d, bool *out) {
  pln_ref whole = pln_emit_binary(d->e, PLN_PRIM_FLOORDIV, d->a, d->b);
  PLN_TRY(d->e->status);
  return is_not_negative(d, whole, out);
}

static pln_ref towards_zero(division *d, pln_ref a) {
  return pln_emit_folded(d->e, d->modulo ? PLN_PRIM_MOD : PLN_PRIM_DIV, a,
                         d->b);
}

/* The numerator is at least `min`: b * ceildiv(-min, b) makes it positive. */
static pln_status above_zero(division *d, int64_t min, pln_ref *node) {
  pln_emit *e = d->e;
  pln_ref below = pln_emit_int(e, d->dtype, d->modulo ? -min : min);
  pln_ref b1 =
      pln_emit_folded(e, PLN_PRIM_SUB, d->b, pln_emit_int(e, d->dtype, 1));
  pln_ref sum = d->modulo ? pln_emit_folded(e, PLN_PRIM_ADD, below, b1)
                          : pln_emit_folded(e, PLN_PRIM_SUB, b1, below);
  pln_ref ceil = pln_emit_folded(e, PLN_PRIM_DIV, sum, d->b);
  pln_ref moved = pln_emit_folded(e, PLN_PRIM_ADD, d->a,
                                  pln_emit_folded(e, PLN_PRIM_MUL, d->b, ceil));
  PLN_TRY(e->status);
  PLN_TRY(pln_scoped_simplify(&d->x->scopes, d->s, moved, &moved));
  *node = towards_zero(d, moved);
  if (!d->modulo)
    *node = pln_emit_folded(e, PLN_PRIM_SUB, *node, ceil);
  return e->status;
}

/* The divisor is positive, of the numerator nothing is known. */
static pln_ref corrected(division *d) {
  pln_emit *e = d->e;
  pln_ref quotient = pln_emit_folded(e, PLN_PRIM_DIV, d->a, d->b);
  pln_ref rest = pln_emit_folded(e, PLN_PRIM_MOD, d->a, d->b);
  bool shifts = d->type == pln_emit_type(e, PLN_INT32) ||
                d->type == pln_emit_type(e, PLN_INT64);
  if (shifts) {
    pln_ref sign =
        call2(d, "shift_right", rest, number(d, pln_dtype_bits(d->dtype) - 1));
    return d->modulo ? pln_emit_folded(e, PLN_PRIM_ADD, rest,
                                       call2(d, "bitwise_and", d->b, sign))
                     : pln_emit_folded(e, PLN_PRIM_ADD, quotient, sign);
  }
  pln_ref holds = pln_emit_folded(e, PLN_PRIM_GE, rest, number(d, 0));
  return d->modulo
             ? pln_emit_select(e, holds, rest,
                               pln_emit_folded(e, PLN_PRIM_ADD, rest, d->b))
             : pln_emit_select(
                   e, holds, quotient,
                   pln_emit_folded(e, PLN_PRIM_SUB, quotient, number(d, 1)));
}

static pln_ref let(division *d, pln_ref var, pln_ref value, pln_ref body) {
  pln_ref operands[3] = {var, value, body};
  return pln_emit_prim(
      d->e, &(pln_prim){.kind = PLN_PRIM_LET, .n = 3, .operands = operands});
}

/* The quotient towards zero is right: it is exact, or the signs agree. */
static pln_ref rounds_down(division *d, pln_ref rest) {
  pln_emit *e = d->e;
  pln_ref zero = number(d, 0);
  pln_ref up = pln_emit_folded(e, PLN_PRIM_AND,
                               pln_emit_folded(e, PLN_PRIM_GE, d->b, zero),
                               pln_emit_folded(e, PLN_PRIM_GE, rest, zero));
  pln_ref down = pln_emit_folded(e, PLN_PRIM_AND,
                                 pln_emit_folded(e, PLN_PRIM_LT, d->b, zero),
                                 pln_emit_folded(e, PLN_PRIM_LE, rest, zero));
  return pln_emit_folded(e, PLN_PRIM_OR, up, down);
}

/* Nothing is known of either operand: quotient and remainder are computed
 * once. */
static pln_ref any_signs(division *d) {
  pln_emit *e = d->e;
  pln_ref rest = pln_emit_var(e, "rmod", d->type);
  pln_ref right = rounds_down(d, rest), result;
  if (d->modulo) {
    result = pln_emit_select(e, right, rest,
                             pln_emit_folded(e, PLN_PRIM_ADD, rest, d->b));
  } else {
    pln_ref quotient = pln_emit_var(e, "rdiv", d->type);
    result = pln_emit_select(
        e, right, quotient,
        pln_emit_folded(e, PLN_PRIM_SUB, quotient, number(d, 1)));
    result =
        let(d, quotient, pln_emit_folded(e, PLN_PRIM_DIV, d->a, d->b), result);
  }
  return let(d, rest, pln_emit_folded(e, PLN_PRIM_MOD, d->a, d->b), result);
}

static pln_ref by_bit(division *d, int bit) {
  return d->modulo
             ? call2(d, "bitwise_and", d->a, number(d, (INT64_C(1) << bit) - 1))
             : call2(d, "shift_right", d->a, number(d, bit));
}

static int64_t least_of(pln_dtype dtype) {
  uint32_t bits = pln_dtype_bits(dtype);
  return bits >= 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
}

static pln_status positive_divisor(division *d, pln_ref *node) {
  bool positive;
  int64_t min;
  PLN_TRY(is_not_negative(d, d->a, &positive));
  if (!positive && !d->modulo)
    PLN_TRY(quotient_is_not_negative(d, &positive));
  if (positive) {
    *node = towards_zero(d, d->a);
    return PLN_OK;
  }
  PLN_TRY(minimum(d, d->a, &min));
  if (pln_type_number(d->x->g->engine, d->type) == 1 && min < 0 &&
      min != -INT64_MAX && min > least_of(d->dtype))
    return above_zero(d, min, node);
  *node = corrected(d);
  return PLN_OK;
}

static pln_status divide(division *d, pln_ref *node) {
  bool positive;
  int bit = power_of_two(pln_stmt_node(d->s, d->b));
  if (bit >= 0) {
    *node = by_bit(d, bit);
    return PLN_OK;
  }
  PLN_TRY(is_not_negative(d, d->b, &positive));
  if (positive)
    return positive_divisor(d, node);
  *node = any_signs(d);
  return PLN_OK;
}

static division division_of(pln_intrin_lowering *x, pln_emit *e,
                            pln_stmt_rewrite *s, pln_ref old) {
  const pln_node *n = &x->g->nodes[old];
  return (division){.x = x,
                    .e = e,
                    .s = s,
                    .a = pln_stmt_image(s, pln_operand(x->g, old, 0)),
                    .b = pln_stmt_image(s, pln_operand(x->g, old, 1)),
                    .type = n->type,
                    .dtype = pln_type_dtype(x->g->engine, n->type),
                    .modulo = n->kind == PLN_PRIM_FLOORMOD};
}

/* x % y == 0 does not depend on the direction of rounding. */
static void compare_rest(pln_intrin_lowering *x, pln_emit *e,
                         pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  const pln_graph *g = x->g;
  pln_ref rest = pln_operand(g, old, 0), zero = pln_operand(g, old, 1);
  if (g->nodes[rest].kind != PLN_PRIM_FLOORMOD || !pln_is_int(g, zero, 0))
    return;
  division d = division_of(x, e, s, rest);
  *node = pln_emit_binary(e, (pln_kind)g->nodes[old].kind,
                          towards_zero(&d, d.a), pln_stmt_image(s, zero));
}

/* max(x // y, c) with c >= 0 and y >= 0. */
static pln_status at_least(pln_intrin_lowering *x, pln_emit *e,
                           pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  const pln_graph *g = x->g;
  pln_ref quotient = pln_operand(g, old, 0), c = pln_operand(g, old, 1);
  bool positive;
  if (g->nodes[quotient].kind != PLN_PRIM_FLOORDIV ||
      g->nodes[c].kind != PLN_INT_IMM ||
      (int64_t)pln_imm_bits(&g->nodes[c]) < 0)
    return PLN_OK;
  division d = division_of(x, e, s, quotient);
  PLN_TRY(is_not_negative(&d, d.b, &positive));
  if (positive)
    *node = pln_emit_binary(e, PLN_PRIM_MAX, towards_zero(&d, d.a),
                            pln_stmt_image(s, c));
  return PLN_OK;
}

pln_status pln_floor_division_lower(pln_intrin_lowering *x, pln_emit *e,
                                    pln_stmt_rewrite *s, pln_ref old,
                                    pln_ref *node) {
  switch (x->g->nodes[old].kind) {
  case PLN_PRIM_EQ:
  case PLN_PRIM_NE: compare_rest(x, e, s, old, node); return e->status;
  case PLN_PRIM_MAX: return at_least(x, e, s, old, node);
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: break;
  default: return PLN_OK;
  }
  division d = division_of(x, e, s, old);
  if (!pln_is_int_dtype(d.dtype))
    return PLN_OK;
  PLN_TRY(divide(&d, node));
  return e->status;
}
