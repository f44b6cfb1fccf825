/* qnn_matmul.c: replacements of quantised products of matrices. Called through
 * the table of canonicalize_ops.c.
 *
 * The product of x - a and w - b is x w - b sum(x) - a sum(w) + a b n; terms
 * that are 0 are left out.
 *
 *     qnn.dense(%x, %w, 1, 0, s, t)   =>
 *     nn.dense(%x, %w) - 1 * sum(cast(%w, int32), axis=[1])
 *
 * Semantics: TVM's dense.cc and batch_matmul.cc. */

#include "transform/quantize/qnn_call.h"

/* Zero points: both are constant scalars, or not (then the sums stay). */
typedef struct zero_points {
  bool known;
  int64_t x, w;
} zero_points;

static zero_points read_zero_points(const pln_qnn_call *q) {
  zero_points z = {.known = pln_qnn_is_scalar(q, q->args[2]) &&
                            pln_qnn_is_scalar(q, q->args[3])};
  if (z.known) {
    z.x = (int64_t)pln_qnn_scalar_value(q, q->args[2]);
    z.w = (int64_t)pln_qnn_scalar_value(q, q->args[3]);
  }
  return z;
}

static pln_ref sum_int32(pln_qnn_call *q, pln_ref x, int64_t axis,
                         bool keepdims) {
  return pln_qnn_sum(q, PLN_OP_REDUCE_SUM, pln_qnn_cast(q, x, PLN_INT32), 1,
                     &axis, keepdims);
}

/* a b n */
static pln_ref constant_term(pln_qnn_call *q, const zero_points *z, int64_t n) {
  if (z->known) {
    int64_t product;
    bool fits = !__builtin_mul_overflow(z->x, z->w, &product) &&
                !__builtin_mul_overflow(product, n, &product);
    return fits ? pln_qnn_scalar(q, PLN_INT32, (double)(int32_t)product)
                : PLN_NONE;
  }
  pln_ref product = pln_qnn_binary(q, PLN_OP_MUL, q->args[2], q->args[3]);
  return pln_qnn_binary(q, PLN_OP_MUL, product,
                        pln_qnn_scalar(q, PLN_INT32, (double)n));
}

/* The terms of one operator: sums of the rows of x times b, and of those of w
 * times a. */
typedef struct matmul_terms {
  pln_ref (*x_term)(pln_qnn_call *q);
  pln_ref (*w_term)(pln_qnn_call *q);
} matmul_terms;

static pln_ref combine(pln_qnn_call *q, pln_ref product, int64_t n,
                       const matmul_terms *terms) {
  zero_points z = read_zero_points(q);
  if (z.known && z.x == 0 && z.w == 0)
    return product;
  if (z.known && z.w == 0)
    return pln_qnn_binary(q, PLN_OP_SUB, product, terms->w_term(q));
  pln_ref data = pln_qnn_binary(q, PLN_OP_SUB, product, terms->x_term(q));
  if (z.known && z.x == 0)
    return data;
  pln_ref rest =
      pln_qnn_binary(q, PLN_OP_SUB, constant_term(q, &z, n), terms->w_term(q));
  return pln_qnn_binary(q, PLN_OP_ADD, data, rest);
}

/* ---------------------------------------------------------------------- dense
 */

static pln_ref dense_x_term(pln_qnn_call *q) {
  pln_ref sum = sum_int32(q, q->args[0], 1, true);
  if (!pln_qnn_is_scalar(q, q->args[3]))
    sum = pln_qnn_repeat(q, sum, pln_qnn_extent(q, q->args[1], 0), 1);
  return pln_qnn_binary(q, PLN_OP_MUL, q->args[3], sum);
}

static pln_ref dense_w_term(pln_qnn_call *q) {
  return pln_qnn_binary(q, PLN_OP_MUL, q->args[2],
                        sum_int32(q, q->args[1], 1, false));
}

pln_ref pln_qnn_dense(pln_qnn_call *q) {
  static const matmul_terms terms = {dense_x_term, dense_w_term};
  int64_t n = pln_qnn_extent(q, q->args[0], 1);
  if (pln_qnn_rank(q, q->args[0]) != 2 || n < 0 ||
      pln_qnn_extent(q, q->args[1], 0) < 0)
    return PLN_NONE;
  return combine(q,
                 pln_relay_call_core(&q->r, PLN_OP_DENSE, q->attrs, 2, q->args),
                 n, &terms);
}

/* --------------------------------------------------------------- batch_matmul
 */

static pln_ref batch_x_term(pln_qnn_call *q) {
  return pln_qnn_binary(q, PLN_OP_MUL, q->args[3],
                        sum_int32(q, q->args[0], 2, true));
}

static pln_ref batch_w_term(pln_qnn_call *q) {
  int64_t shape[3] = {0, 1, pln_qnn_extent(q, q->args[1], 1)};
  pln_ref sum = pln_qnn_binary(q, PLN_OP_MUL, q->args[2],
                               sum_int32(q, q->args[1], 2, true));
  return pln_qnn_reshape(q, sum, 3, shape);
}

pln_ref pln_qnn_batch_matmul(pln_qnn_call *q) {
  static const matmul_terms terms = {batch_x_term, batch_w_term};
  pln_engine *e = q->r.engine;
  int64_t n = pln_qnn_extent(q, q->args[0], 2);
  if (pln_qnn_rank(q, q->args[0]) != 3 || n < 0 ||
      pln_qnn_extent(q, q->args[1], 1) < 0 ||
      pln_qnn_rank(q, q->args[2]) != 0 || pln_qnn_rank(q, q->args[3]) != 0 ||
      pln_attrs_int(e, q->attrs, "transpose_a", 0) ||
      !pln_attrs_int(e, q->attrs, "transpose_b", 1))
    return PLN_NONE;
  return combine(
      q, pln_relay_call_core(&q->r, PLN_OP_BATCH_MATMUL, q->attrs, 2, q->args),
      n, &terms);
}
