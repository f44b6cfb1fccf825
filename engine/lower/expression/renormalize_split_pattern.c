/* renormalize_split_pattern.c: tir.RenormalizeSplitPattern: quotients of split
 * loops in the form in which a loop's parts cancel.
 *
 * Run by the executor; tir.Simplify comes after it.
 *
 *     (x * 3 + y) // 12   =>   (x + y // 3) // 4
 *     x % 12 // 4         =>   x // 4 % 3
 *     x < 12              =>   x // 12 < 1
 *     if 0 < 1: A[0] = 1  =>   A[0] = 1
 *
 * Semantics: TVM's tir.RenormalizeSplitPattern. */

#include "lower/known_branch.h"
#include "lower/lower.h"

typedef struct renormalizer {
  const pln_graph *g;
  pln_builder *b;
} renormalizer;

/* An integer constant, or a Broadcast of one. */
static bool is_constant(const pln_graph *g, pln_ref ref, int64_t *value) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_BROADCAST)
    n = &g->nodes[ref = g->operands[n->first]];
  if (n->kind != PLN_INT_IMM)
    return false;
  *value = pln_node_int(g, ref);
  return true;
}

/* A constant of the type of a node. */
static pln_status constant_like(renormalizer *x, pln_ref like, int64_t value,
                                pln_ref *out) {
  pln_engine *e = x->b->engine;
  pln_type type = x->b->graph->nodes[like].type, scalar;
  uint32_t lanes = (uint32_t)pln_type_number(e, type);
  PLN_TRY(pln_type_prim(e, pln_type_dtype(e, type), 1, &scalar));
  PLN_TRY(pln_build_int_imm(x->b, scalar, value, out));
  pln_prim spec = {
      .kind = PLN_BROADCAST, .data = lanes, .n = 1, .operands = out};
  return lanes > 1 ? pln_build_prim(x->b, &spec, out) : PLN_OK;
}

static pln_ref part(const renormalizer *x, pln_ref ref, uint32_t i) {
  return pln_operand(x->b->graph, ref, i);
}

static pln_kind kind_of(const renormalizer *x, pln_ref ref) {
  return (pln_kind)x->b->graph->nodes[ref].kind;
}

static pln_status fold(renormalizer *x, pln_kind kind, pln_ref a, pln_ref b,
                       pln_ref *out) {
  return pln_build_folded(x->b, kind, a, b, out);
}

/* x % (c1 * c2) // c2 is x // c2 % c1. */
static pln_status divide_remainder(renormalizer *x, pln_ref a, pln_ref b,
                                   int64_t c2, pln_ref *out) {
  int64_t c3;
  pln_ref quotient, modulus;
  if (kind_of(x, a) != PLN_PRIM_FLOORMOD ||
      !is_constant(x->b->graph, part(x, a, 1), &c3) || c3 % c2 != 0)
    return PLN_OK;
  PLN_TRY(fold(x, PLN_PRIM_FLOORDIV, part(x, a, 0), b, &quotient));
  PLN_TRY(constant_like(x, b, c3 / c2, &modulus));
  return fold(x, PLN_PRIM_FLOORMOD, quotient, modulus, out);
}

/* The x * c of x * c + y or x * c + y + z; *rest: the other summands. */
static pln_status split_sum(renormalizer *x, pln_ref sum, pln_ref *product,
                            pln_ref *rest) {
  int64_t c;
  *product = PLN_NONE;
  if (kind_of(x, sum) != PLN_PRIM_ADD)
    return PLN_OK;
  pln_ref left = part(x, sum, 0), right = part(x, sum, 1);
  *rest = right;
  if (kind_of(x, left) == PLN_PRIM_ADD) {
    pln_ref first = part(x, left, 0), second = part(x, left, 1);
    if (kind_of(x, first) != PLN_PRIM_MUL ||
        !is_constant(x->b->graph, part(x, first, 1), &c))
      return PLN_OK;
    *product = first;
    return fold(x, PLN_PRIM_ADD, second, right, rest);
  }
  if (kind_of(x, left) == PLN_PRIM_MUL &&
      is_constant(x->b->graph, part(x, left, 1), &c))
    *product = left;
  return PLN_OK;
}

/* (x * c1 + y) // c2 is (x * (c1 / c) + y // c) // (c2 / c), c = gcd(c1, c2).
 */
static pln_status divide_sum(renormalizer *x, pln_ref a, pln_ref b, int64_t c2,
                             pln_ref *out) {
  pln_ref product, rest, factor, divisor;
  int64_t c1, common;
  PLN_TRY(split_sum(x, a, &product, &rest));
  if (product == PLN_NONE ||
      !is_constant(x->b->graph, part(x, product, 1), &c1))
    return PLN_OK;
  common = pln_gcd(c1, c2);
  if (common <= 1)
    return PLN_OK;
  PLN_TRY(constant_like(x, b, common, &divisor));
  PLN_TRY(fold(x, PLN_PRIM_FLOORDIV, rest, divisor, &rest));
  PLN_TRY(constant_like(x, b, c1 / common, &factor));
  PLN_TRY(fold(x, PLN_PRIM_MUL, part(x, product, 0), factor, &product));
  PLN_TRY(fold(x, PLN_PRIM_ADD, product, rest, &product));
  PLN_TRY(constant_like(x, b, c2 / common, &divisor));
  return fold(x, PLN_PRIM_FLOORDIV, product, divisor, out);
}

/* a // b; *out stays PLN_NONE if nothing applies. */
static pln_status renormalize_quotient(renormalizer *x, pln_ref a, pln_ref b,
                                       pln_ref *out) {
  int64_t c2;
  if (!is_constant(x->b->graph, b, &c2) || c2 <= 0)
    return PLN_OK;
  PLN_TRY(divide_remainder(x, a, b, c2, out));
  return *out == PLN_NONE ? divide_sum(x, a, b, c2, out) : PLN_OK;
}

/* x < c is x // c < 1 for positive c. */
static pln_status renormalize_less(renormalizer *x, pln_ref a, pln_ref b,
                                   pln_ref *out) {
  int64_t c;
  pln_ref quotient = PLN_NONE, one;
  if (!is_constant(x->b->graph, b, &c) || c <= 0)
    return PLN_OK;
  PLN_TRY(renormalize_quotient(x, a, b, &quotient));
  if (quotient == PLN_NONE)
    PLN_TRY(fold(x, PLN_PRIM_FLOORDIV, a, b, &quotient));
  PLN_TRY(constant_like(x, b, 1, &one));
  return fold(x, PLN_PRIM_LT, quotient, one, out);
}

/* a <= b is not (b < a). */
static pln_status renormalize_less_equal(renormalizer *x, pln_ref a, pln_ref b,
                                         pln_ref *out) {
  pln_ref less = PLN_NONE;
  PLN_TRY(renormalize_less(x, b, a, &less));
  if (less == PLN_NONE)
    return PLN_OK;
  if (kind_of(x, less) == PLN_INT_IMM)
    return constant_like(x, less, !pln_node_int(x->b->graph, less), out);
  return fold(x, PLN_PRIM_LE, part(x, less, 1), part(x, less, 0), out);
}

static bool is_integer(const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  return pln_type_get_kind(g->engine, type) == PLN_TYPE_PRIM &&
         pln_is_int_dtype(pln_type_dtype(g->engine, type));
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  renormalizer *x = ud;
  const pln_node *n = &x->g->nodes[old];
  if (n->kind < PLN_PRIM_FLOORDIV || n->kind > PLN_PRIM_GE)
    return PLN_OK;
  pln_ref a = pln_stmt_image(s, pln_operand(x->g, old, 0));
  pln_ref b = pln_stmt_image(s, pln_operand(x->g, old, 1));
  x->b = pln_stmt_builder(s);
  if (!is_integer(x->b->graph, a))
    return PLN_OK;
  switch (n->kind) {
  case PLN_PRIM_FLOORDIV: return renormalize_quotient(x, a, b, node);
  case PLN_PRIM_LT: return renormalize_less(x, a, b, node);
  case PLN_PRIM_GT: return renormalize_less(x, b, a, node);
  case PLN_PRIM_LE: return renormalize_less_equal(x, a, b, node);
  case PLN_PRIM_GE: return renormalize_less_equal(x, b, a, node);
  default: return PLN_OK;
  }
}

pln_status pln_pass_tir_renormalize_split_pattern(pln_pass_run *run) {
  renormalizer x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = visit_expr,
                              .enter_body = pln_enter_known_branch,
                              .leave = pln_leave_known_branch};
  return pln_lower_function(run, &mutator);
}
