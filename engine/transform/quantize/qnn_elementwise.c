/* qnn_elementwise.c: replacements of quantised sums, products and
 * concatenations, and of activations and pooling. Called through the table of
 * canonicalize_ops.c.
 *
 *     qnn.add(%a, %b, s, z, t, y, u, w)   =>
 *     cast(clip(requantize(%a, s, z, u, w) + requantize(%b, t, y, u, w) - w))
 *
 * Semantics: TVM's add.cc, subtract.cc, mul.cc, concatenate.cc, leaky_relu.cc,
 * softmax.cc and avg_pool2d.cc. Shapes for constants are those of the first
 * operand. */

#include <math.h>

#include "transform/quantize/qnn_call.h"

/* Operands of the binary operators. */
enum { LHS, RHS, LHS_SCALE, LHS_ZERO, RHS_SCALE, RHS_ZERO, SCALE, ZERO };

static bool is_zero(const pln_qnn_call *q, pln_ref node) {
  return pln_qnn_is_value(q, node, PLN_INT32, 0);
}

/* ------------------------------------------------------------ sums, products
 */

static pln_ref side_at_result_scale(pln_qnn_call *q, uint32_t side,
                                    const char *axis) {
  pln_requantize p = pln_qnn_requantize_to(
      q, q->args[side], q->args[LHS_SCALE + 2 * side],
      q->args[LHS_ZERO + 2 * side], q->args[SCALE], q->args[ZERO], PLN_INT32);
  p.like = q->args[LHS];
  p.axis = pln_attrs_int(q->r.engine, q->attrs, axis, -1);
  return pln_qnn_requantize_or_cast(q, &p);
}

/* The sum has the zero point once too often, the difference lacks it. */
pln_ref pln_qnn_add(pln_qnn_call *q) {
  bool less = q->op == PLN_OP_QNN_SUBTRACT;
  pln_ref a = side_at_result_scale(q, LHS, "lhs_axis");
  pln_ref b = side_at_result_scale(q, RHS, "rhs_axis");
  pln_ref y = pln_qnn_binary(q, less ? PLN_OP_SUB : PLN_OP_ADD, a, b);
  if (!is_zero(q, q->args[ZERO]))
    y = pln_qnn_binary(q, less ? PLN_OP_ADD : PLN_OP_SUB, y, q->args[ZERO]);
  return pln_qnn_convert(q, y, pln_qnn_dtype(q, q->args[LHS]));
}

static pln_ref centred(pln_qnn_call *q, pln_ref x, pln_ref zero) {
  x = pln_qnn_cast(q, x, PLN_INT32);
  return is_zero(q, zero) ? x : pln_qnn_binary(q, PLN_OP_SUB, x, zero);
}

/* The same with a zero point a channel. */
static pln_ref centred_along(pln_qnn_call *q, pln_ref x, pln_ref zero,
                             int64_t axis) {
  static const int64_t flat[1] = {-1};
  int32_t rank = pln_qnn_rank(q, q->args[LHS]);
  x = pln_qnn_cast(q, x, PLN_INT32);
  if (is_zero(q, zero))
    return x;
  zero = pln_qnn_reshape(q, zero, 1, flat);
  zero = pln_qnn_along_axis(q, zero, rank, axis < 0 ? axis + rank : axis);
  return pln_qnn_binary(q, PLN_OP_SUB, x, pln_qnn_cast(q, zero, PLN_INT32));
}

static pln_ref requantize_product(pln_qnn_call *q, pln_ref y, pln_ref scale,
                                  int64_t axis) {
  pln_requantize p = pln_qnn_requantize_to(
      q, y, scale, pln_qnn_scalar(q, PLN_INT32, 0), q->args[SCALE],
      q->args[ZERO], pln_qnn_dtype(q, q->args[LHS]));
  p.like = q->args[LHS];
  p.axis = axis;
  return pln_qnn_build_requantize(q, &p);
}

/* The constant vector of float32 that a scale is, or NULL. */
static const pln_tensor *scales_of(const pln_qnn_call *q, pln_ref node) {
  const pln_graph *g = q->r.b->graph;
  const pln_tensor *t =
      g->nodes[node].kind == PLN_CONSTANT ? pln_node_tensor(g, node) : NULL;
  return t && t->dtype == PLN_FLOAT32 && t->count <= UINT32_MAX ? t : NULL;
}

static pln_ref product_of_scales(pln_qnn_call *q) {
  const pln_tensor *a = scales_of(q, q->args[LHS_SCALE]);
  const pln_tensor *b = scales_of(q, q->args[RHS_SCALE]);
  double x, y;
  if (!a || !b || a->count != b->count)
    return PLN_NONE;
  size_t size = a->count * sizeof(float);
  float *scales = pln_mem_new(q->r.engine, size);
  if (!scales) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  for (size_t i = 0; i < a->count; i++)
    scales[i] = pln_tensor_number(a, i, &x) && pln_tensor_number(b, i, &y)
                    ? (float)(x * y)
                    : NAN;
  pln_ref out = pln_qnn_vector(q, PLN_FLOAT32, (uint32_t)a->count, scales);
  pln_mem_free(q->r.engine, scales, size);
  return out;
}

static pln_ref multiply_by_channel(pln_qnn_call *q) {
  int64_t axis = pln_attrs_int(q->r.engine, q->attrs, "lhs_axis", -1);
  if (axis != pln_attrs_int(q->r.engine, q->attrs, "rhs_axis", -1))
    return PLN_NONE;
  pln_ref a = centred_along(q, q->args[LHS], q->args[LHS_ZERO], axis);
  pln_ref b = centred_along(q, q->args[RHS], q->args[RHS_ZERO], axis);
  return requantize_product(q, pln_qnn_binary(q, PLN_OP_MUL, a, b),
                            product_of_scales(q), axis);
}

pln_ref pln_qnn_multiply(pln_qnn_call *q) {
  if (!pln_qnn_is_scalar(q, q->args[LHS_SCALE]) ||
      !pln_qnn_is_scalar(q, q->args[RHS_SCALE]))
    return multiply_by_channel(q);
  pln_ref a = centred(q, q->args[LHS], q->args[LHS_ZERO]);
  pln_ref b = centred(q, q->args[RHS], q->args[RHS_ZERO]);
  float scale = (float)pln_qnn_scalar_value(q, q->args[LHS_SCALE]) *
                (float)pln_qnn_scalar_value(q, q->args[RHS_SCALE]);
  return requantize_product(q, pln_qnn_binary(q, PLN_OP_MUL, a, b),
                            pln_qnn_scalar(q, PLN_FLOAT32, (double)scale), -1);
}

/* --------------------------------------------------------------- concatenation
 */

/* Field `i` of an operand that is a tuple. */
static pln_ref field_of(pln_qnn_call *q, pln_ref tuple, uint32_t i) {
  const pln_graph *g = q->r.b->graph;
  pln_ref out = PLN_NONE;
  if (g->nodes[tuple].kind == PLN_TUPLE)
    return pln_operand(g, tuple, i);
  if (q->r.status == PLN_OK)
    q->r.status = pln_build_tuple_get_item(q->r.b, tuple, i, &out);
  return q->r.status == PLN_OK ? out : PLN_NONE;
}

static pln_ref part_at_result_scale(pln_qnn_call *q, uint32_t i) {
  pln_ref x = field_of(q, q->args[0], i);
  pln_ref scale = field_of(q, q->args[1], i);
  pln_ref zero = field_of(q, q->args[2], i);
  if (pln_qnn_is_same_scalar(q, scale, q->args[3]) &&
      pln_qnn_is_same_scalar(q, zero, q->args[4]))
    return x;
  pln_requantize p = pln_qnn_requantize_to(q, x, scale, zero, q->args[3],
                                           q->args[4], pln_qnn_dtype(q, x));
  return pln_qnn_build_requantize(q, &p);
}

static pln_ref join_parts(pln_qnn_call *q, uint32_t n, pln_ref *parts) {
  pln_relay_attr axis =
      pln_relay_int("axis", pln_attrs_int(q->r.engine, q->attrs, "axis", 0));
  pln_ref tuple;
  for (uint32_t i = 0; i < n; i++) {
    parts[i] = part_at_result_scale(q, i);
    if (parts[i] == PLN_NONE)
      return PLN_NONE;
  }
  q->r.status = pln_build_tuple(q->r.b, n, parts, &tuple);
  if (q->r.status != PLN_OK)
    return PLN_NONE;
  return pln_relay_call_with(&q->r, PLN_OP_CONCAT, 1, &axis, 1, &tuple);
}

pln_ref pln_qnn_concatenate(pln_qnn_call *q) {
  const pln_graph *g = q->r.b->graph;
  uint32_t n = pln_type_n_parts(q->r.engine, pln_qnn_type(q, q->args[0]));
  for (uint32_t i = 1; i < 3; i++)
    if (g->nodes[q->args[i]].kind != PLN_TUPLE ||
        g->nodes[q->args[i]].count != n)
      return PLN_NONE;
  if (pln_type_get_kind(q->r.engine, pln_qnn_type(q, q->args[0])) !=
          PLN_TYPE_TUPLE ||
      n == 0)
    return PLN_NONE;
  pln_ref *parts = pln_mem_new(q->r.engine, n * sizeof *parts);
  if (!parts) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  pln_ref out = join_parts(q, n, parts);
  pln_mem_free(q->r.engine, parts, n * sizeof *parts);
  return out;
}

/* ----------------------------------------------------------- activations,
 * pools
 */

/* alpha * x + (1 - alpha) * zero below the operand's zero point. */
pln_ref pln_qnn_leaky_relu(pln_qnn_call *q) {
  double alpha = pln_attrs_float(q->r.engine, q->attrs, "alpha", 0.25);
  pln_ref x = pln_qnn_cast(q, q->args[0], PLN_INT32);
  pln_ref zero = pln_qnn_cast(q, q->args[2], PLN_INT32);
  pln_ref out_zero = pln_qnn_cast(q, q->args[4], PLN_INT32);
  pln_requantize p = pln_qnn_requantize_to(q, x, q->args[1], zero, q->args[3],
                                           out_zero, PLN_INT32);
  p.like = q->args[0];
  pln_ref y = pln_qnn_requantize_or_cast(q, &p);
  if (y == PLN_NONE)
    return PLN_NONE;
  pln_ref below =
      pln_qnn_binary(q, PLN_OP_ADD, pln_qnn_fixed_point_multiply(q, y, alpha),
                     pln_qnn_fixed_point_multiply(q, out_zero, 1 - alpha));
  pln_ref less = pln_qnn_binary(q, PLN_OP_LESS, x, zero);
  return pln_qnn_convert(q, pln_qnn_where(q, less, below, y),
                         pln_qnn_dtype(q, q->args[0]));
}

static pln_ref shift_right(pln_qnn_call *q, pln_ref x, int32_t bits) {
  return pln_qnn_binary(q, PLN_OP_RIGHT_SHIFT, x,
                        pln_qnn_scalar(q, PLN_INT32, bits));
}

/* exp of integers, at most 0, with step 1 / one: a power of 2 times a linear
 * function of the rest (arXiv 2207.01405, algorithm 1). Scaled by the greatest
 * power along the axis. */
static pln_ref exp_of_integers(pln_qnn_call *q, pln_ref x, pln_ref one,
                               int64_t axis) {
  pln_ref log2e = pln_qnn_binary(q, PLN_OP_ADD, x, shift_right(q, x, 1));
  log2e = pln_qnn_binary(q, PLN_OP_SUB, log2e, shift_right(q, x, 4));
  pln_ref minus = pln_qnn_unary(q, PLN_OP_NEG, one);
  pln_ref power =
      pln_qnn_clip(q, pln_qnn_binary(q, PLN_OP_DIV, log2e, minus), 0, 20);
  pln_ref most = pln_qnn_sum(q, PLN_OP_REDUCE_MAX, power, 1, &axis, true);
  pln_ref minus_again = pln_qnn_unary(q, PLN_OP_NEG, one);
  pln_ref whole = pln_qnn_binary(q, PLN_OP_MUL, power, minus_again);
  pln_ref rest = pln_qnn_binary(q, PLN_OP_SUB, log2e, whole);
  rest = pln_qnn_binary(q, PLN_OP_ADD, shift_right(q, rest, 1), one);
  return pln_qnn_binary(q, PLN_OP_LEFT_SHIFT, rest,
                        pln_qnn_binary(q, PLN_OP_SUB, most, power));
}

/* The scale is a constant, at most 1. */
pln_ref pln_qnn_softmax(pln_qnn_call *q) {
  int64_t axis = pln_attrs_int(q->r.engine, q->attrs, "axis", -1);
  double scale = pln_qnn_is_scalar(q, q->args[1])
                     ? pln_qnn_scalar_value(q, q->args[1])
                     : 0;
  if (!(scale > 0 && scale <= 1))
    return PLN_NONE;
  pln_ref x = pln_qnn_binary(
      q, PLN_OP_SUB, pln_qnn_cast(q, q->args[0], PLN_INT32), q->args[2]);
  pln_ref one = pln_qnn_scalar(q, PLN_FLOAT32, round((float)(1 / scale)));
  one = pln_qnn_convert(q, one, PLN_INT32);
  pln_ref most = pln_qnn_sum(q, PLN_OP_REDUCE_MAX, x, 1, &axis, true);
  x = pln_qnn_binary(q, PLN_OP_SUB, x, most);
  pln_ref exps = exp_of_integers(q, x, one, axis);
  pln_ref sums = pln_qnn_sum(q, PLN_OP_REDUCE_SUM, exps, 1, &axis, true);
  pln_ref y = pln_qnn_binary(q, PLN_OP_DIV,
                             pln_qnn_scalar(q, PLN_INT32, 1 << 30), sums);
  y = shift_right(q, pln_qnn_binary(q, PLN_OP_MUL, y, exps), 30 - 7);
  pln_requantize p = pln_qnn_requantize_to(
      q, y, pln_qnn_scalar(q, PLN_FLOAT32, 1.0 / 128),
      pln_qnn_scalar(q, PLN_INT32, 0), q->args[3], q->args[4], PLN_INT8);
  p.like = q->args[0];
  p.axis = 0;
  return pln_qnn_build_requantize(q, &p);
}

pln_ref pln_qnn_avg_pool(pln_qnn_call *q) {
  pln_requantize p = pln_qnn_requantize_to(
      q, q->args[0], q->args[1], q->args[2], q->args[3], q->args[4], PLN_INT32);
  pln_ref x = pln_qnn_requantize_or_cast(q, &p);
  x = pln_relay_call_core(&q->r, PLN_OP_AVG_POOL_2D, q->attrs, 1, &x);
  return pln_qnn_convert(q, x, pln_type_dtype(q->r.engine, q->type));
}
