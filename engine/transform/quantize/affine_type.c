/* affine_type.c: affine types of integers: comparison, products, and calls that
 * convert from and to them. Called by FakeQuantizationToInteger.
 *
 * Semantics: TVM's TensorAffineType and the helpers of
 * fake_quantization_to_integer.py. */

#include <math.h>

#include "eval/call.h"
#include "transform/quantize/fake_quantization.h"

/* ------------------------------------------------------------------ comparison
 */

static const pln_tensor *tensor_of(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CONSTANT ? pln_node_tensor(g, node) : NULL;
}

/* Elements of a tensor, or its only one. */
static bool element(const pln_tensor *t, size_t i, double *out) {
  return pln_tensor_number(t, t->count == 1 ? 0 : i, out);
}

/* numpy.allclose of vectors and scalars. */
static bool all_close(const pln_tensor *a, const pln_tensor *b) {
  size_t n = a->count > b->count ? a->count : b->count;
  double x, y;
  if ((a->count != n && a->count != 1) || (b->count != n && b->count != 1))
    return false;
  for (size_t i = 0; i < n; i++)
    if (!element(a, i, &x) || !element(b, i, &y) ||
        !(fabs(x - y) <= 1e-8 + 1e-5 * fabs(y)))
      return false;
  return true;
}

/* Scales are small expressions; what is deeper counts as different. */
enum { MOST_COMPARED = 64 };

static bool same_node(const pln_graph *g, pln_ref a, pln_ref b) {
  const pln_node *x = &g->nodes[a], *y = &g->nodes[b];
  if (x->kind == PLN_CONSTANT && y->kind == PLN_CONSTANT)
    return pln_tensor_same(tensor_of(g, a), tensor_of(g, b));
  if (x->kind == PLN_VAR && y->kind == PLN_VAR)
    return x->data == y->data;
  return x->kind == PLN_CALL && y->kind == PLN_CALL && x->data &&
         x->data == y->data && x->attrs == y->attrs && x->count == y->count;
}

static bool same_expression(const pln_graph *g, pln_ref a, pln_ref b) {
  pln_ref stack[MOST_COMPARED][2] = {{a, b}};
  uint32_t n = 1;
  while (n > 0) {
    pln_ref x = stack[--n][0], y = stack[n][1];
    if (x == y)
      continue;
    uint32_t count = g->nodes[x].kind == PLN_CALL ? g->nodes[x].count : 0;
    if (!same_node(g, x, y) || count > MOST_COMPARED - n)
      return false;
    for (uint32_t i = 0; i < count; i++, n++) {
      stack[n][0] = pln_operand(g, x, i);
      stack[n][1] = pln_operand(g, y, i);
    }
  }
  return true;
}

bool pln_affine_is_near(const pln_qnn_call *q, pln_ref a, pln_ref b) {
  const pln_graph *g = q->r.b->graph;
  if (a == PLN_NONE || b == PLN_NONE)
    return false;
  const pln_tensor *x = tensor_of(g, a), *y = tensor_of(g, b);
  return x && y ? all_close(x, y) : same_expression(g, a, b);
}

bool pln_affine_is_equal(const pln_qnn_call *q, const pln_affine_type *a,
                         const pln_affine_type *b) {
  const pln_graph *g = q->r.b->graph;
  return pln_affine_is_known(a) && pln_affine_is_known(b) &&
         a->dtype == b->dtype && a->axis == b->axis &&
         same_expression(g, a->scale, b->scale) &&
         same_expression(g, a->zero, b->zero);
}

/* -------------------------------------------------------------------- products
 */

pln_ref pln_affine_fold(pln_qnn_call *q, pln_ref node) {
  pln_tensor *result[1] = {NULL};
  pln_refusal why;
  if (node == PLN_NONE || q->r.b->graph->nodes[node].kind != PLN_CALL ||
      pln_n_fields(q->r.b->graph, &q->r.b->graph->nodes[node]) ||
      !pln_eval_can_fold(q->r.b->graph, node, &why))
    return node;
  pln_status status = pln_eval_call(q->r.b->graph, node, result);
  if (status == PLN_ERR_UNSUPPORTED)
    return node;
  if (status == PLN_OK)
    status = pln_build_constant(q->r.b, result[0], &node);
  pln_tensor_release(result[0]);
  q->r.status = status;
  return status == PLN_OK ? node : PLN_NONE;
}

pln_affine_type pln_affine_product(pln_qnn_call *q, const pln_affine_type *a,
                                   const pln_affine_type *b, pln_dtype dtype,
                                   int64_t axis) {
  pln_ref scale =
      pln_affine_fold(q, pln_qnn_binary(q, PLN_OP_MUL, a->scale, b->scale));
  pln_ref zero = pln_affine_fold(q, pln_qnn_unary(q, PLN_OP_ZEROS_LIKE, scale));
  zero = pln_affine_fold(q, pln_qnn_cast(q, zero, PLN_INT32));
  return (pln_affine_type){scale, zero, dtype, axis};
}

/* ----------------------------------------------------------------- conversions
 */

static pln_relay_attr dtype_attr(pln_dtype dtype) {
  return (pln_relay_attr){
      "out_dtype",
      {.kind = PLN_ATTR_STRING, .v.s = pln_text(pln_dtype_name(dtype))}};
}

pln_ref pln_affine_quantize(pln_qnn_call *q, pln_ref x,
                            const pln_affine_type *to, int64_t axis) {
  pln_relay_attr attrs[] = {dtype_attr(to->dtype), pln_relay_int("axis", axis)};
  pln_ref args[3] = {x, to->scale, to->zero};
  return pln_relay_call_with(&q->r, PLN_OP_QNN_QUANTIZE, 2, attrs, 3, args);
}

pln_ref pln_affine_requantize(pln_qnn_call *q, pln_ref x,
                              const pln_affine_type *from,
                              const pln_affine_type *to, pln_dtype dtype,
                              int64_t axis) {
  pln_relay_attr attrs[] = {dtype_attr(dtype), pln_relay_int("axis", axis)};
  pln_ref args[5] = {x, from->scale, from->zero, to->scale, to->zero};
  return pln_relay_call_with(&q->r, PLN_OP_QNN_REQUANTIZE, 2, attrs, 5, args);
}

pln_ref pln_affine_dequantize(pln_qnn_call *q, pln_ref x,
                              const pln_affine_type *from) {
  pln_relay_attr attrs[] = {dtype_attr(PLN_FLOAT32),
                            pln_relay_int("axis", from->axis)};
  pln_ref args[3] = {x, from->scale, from->zero};
  return pln_relay_call_with(&q->r, PLN_OP_QNN_DEQUANTIZE, 2, attrs, 3, args);
}
