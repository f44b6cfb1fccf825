/* qnn_call.c: questions about the operands of a quantised operator, and the
 * expressions that replace it. Called by the other files of this folder. */

#include "transform/quantize/qnn_call.h"

#include <math.h>

/* ------------------------------------------------------------------ questions
 */

pln_type pln_qnn_type(const pln_qnn_call *q, pln_ref node) {
  return node == PLN_NONE ? 0 : q->r.b->graph->nodes[node].type;
}

pln_dtype pln_qnn_dtype(const pln_qnn_call *q, pln_ref node) {
  return pln_type_dtype(q->r.engine, pln_qnn_type(q, node));
}

int32_t pln_qnn_rank(const pln_qnn_call *q, pln_ref node) {
  return pln_type_rank(q->r.engine, pln_qnn_type(q, node));
}

int64_t pln_qnn_extent(const pln_qnn_call *q, pln_ref node, uint32_t axis) {
  pln_type type = pln_qnn_type(q, node);
  if ((int64_t)axis >= pln_type_rank(q->r.engine, type))
    return -1;
  pln_dim dim = pln_type_dims(q->r.engine, type)[axis];
  return PLN_DIM_IS_CONST(dim) ? dim : -1;
}

bool pln_qnn_shape(const pln_qnn_call *q, pln_ref node, uint32_t *rank,
                   int64_t *dims) {
  int32_t n = pln_qnn_rank(q, node);
  if (n < 0 || n > PLN_MAX_RANK)
    return false;
  *rank = (uint32_t)n;
  for (uint32_t i = 0; i < *rank; i++) {
    dims[i] = pln_qnn_extent(q, node, i);
    if (dims[i] < 0)
      return false;
  }
  return true;
}

static const pln_tensor *scalar_of(const pln_qnn_call *q, pln_ref node) {
  const pln_graph *g = q->r.b->graph;
  if (node == PLN_NONE || g->nodes[node].kind != PLN_CONSTANT)
    return NULL;
  const pln_tensor *tensor = pln_node_tensor(g, node);
  return tensor->rank == 0 ? tensor : NULL;
}

bool pln_qnn_is_scalar(const pln_qnn_call *q, pln_ref node) {
  return scalar_of(q, node) != NULL;
}

double pln_qnn_scalar_value(const pln_qnn_call *q, pln_ref node) {
  const pln_tensor *tensor = scalar_of(q, node);
  double value = 0;
  return tensor && pln_tensor_number(tensor, 0, &value) ? value : NAN;
}

bool pln_qnn_is_value(const pln_qnn_call *q, pln_ref node, pln_dtype dtype,
                      double value) {
  const pln_tensor *tensor = scalar_of(q, node);
  return tensor && tensor->dtype == dtype &&
         pln_qnn_scalar_value(q, node) == value;
}

bool pln_qnn_is_same_scalar(const pln_qnn_call *q, pln_ref a, pln_ref b) {
  const pln_tensor *x = scalar_of(q, a), *y = scalar_of(q, b);
  return x && y && pln_tensor_same(x, y);
}

bool pln_qnn_range(pln_dtype dtype, double *least, double *most) {
  bool is_signed =
      dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32;
  if (!is_signed && dtype != PLN_UINT8 && dtype != PLN_UINT16)
    return false;
  uint32_t bits = pln_dtype_bits(dtype) - is_signed;
  *least = is_signed ? -ldexp(1, (int)bits) : 0;
  *most = ldexp(1, (int)bits) - 1;
  return true;
}

int64_t pln_qnn_axis(const pln_qnn_call *q, const char *name, int32_t rank) {
  int64_t axis = pln_attrs_int(q->r.engine, q->attrs, name, -1);
  return axis < 0 && rank > 0 ? axis + rank : axis;
}

/* ----------------------------------------------------------------- expressions
 */

static pln_relay_attr text_attr(const char *name, const char *text) {
  return (pln_relay_attr){name,
                          {.kind = PLN_ATTR_STRING, .v.s = pln_text(text)}};
}

static pln_relay_attr float_attr(const char *name, double value) {
  return (pln_relay_attr){name, {.kind = PLN_ATTR_FLOAT, .v.f = value}};
}

pln_ref pln_qnn_unary(pln_qnn_call *q, pln_op op, pln_ref x) {
  return pln_relay_call(&q->r, op, 1, x);
}

pln_ref pln_qnn_binary(pln_qnn_call *q, pln_op op, pln_ref x, pln_ref y) {
  return pln_relay_call(&q->r, op, 2, x, y);
}

pln_ref pln_qnn_cast(pln_qnn_call *q, pln_ref x, pln_dtype dtype) {
  pln_relay_attr to = text_attr("dtype", pln_dtype_name(dtype));
  return pln_relay_call_with(&q->r, PLN_OP_CAST, 1, &to, 1, &x);
}

pln_ref pln_qnn_scalar(pln_qnn_call *q, pln_dtype dtype, double value) {
  return pln_relay_scalar(&q->r, dtype, value);
}

static pln_ref add_constant(pln_qnn_call *q, pln_dtype dtype, uint32_t rank,
                            uint32_t n, const void *data) {
  int64_t dims[1] = {n};
  size_t bytes = (size_t)n * pln_dtype_bits(dtype) / 8;
  pln_tensor *tensor;
  pln_ref out = PLN_NONE;
  if (q->r.status != PLN_OK)
    return PLN_NONE;
  q->r.status = pln_tensor_from_bytes(q->r.engine, dtype, rank, dims, data,
                                      bytes, &tensor);
  if (q->r.status != PLN_OK)
    return PLN_NONE;
  q->r.status = pln_build_constant(q->r.b, tensor, &out);
  pln_tensor_release(tensor);
  return q->r.status == PLN_OK ? out : PLN_NONE;
}

pln_ref pln_qnn_int64(pln_qnn_call *q, int64_t value) {
  return add_constant(q, PLN_INT64, 0, 1, &value);
}

pln_ref pln_qnn_vector(pln_qnn_call *q, pln_dtype dtype, uint32_t n,
                       const void *data) {
  return add_constant(q, dtype, 1, n, data);
}

pln_ref pln_qnn_clip(pln_qnn_call *q, pln_ref x, double least, double most) {
  pln_relay_attr attrs[] = {float_attr("a_min", least),
                            float_attr("a_max", most)};
  return pln_relay_call_with(&q->r, PLN_OP_CLIP, 2, attrs, 1, &x);
}

pln_ref pln_qnn_convert(pln_qnn_call *q, pln_ref x, pln_dtype dtype) {
  double least, most;
  if (!pln_qnn_range(dtype, &least, &most))
    return PLN_NONE;
  return pln_qnn_cast(q, pln_qnn_clip(q, x, least, most), dtype);
}

pln_ref pln_qnn_reshape(pln_qnn_call *q, pln_ref x, uint32_t n,
                        const int64_t *dims) {
  pln_relay_attr shape = pln_relay_ints("newshape", n, dims);
  return pln_relay_call_with(&q->r, PLN_OP_RESHAPE, 1, &shape, 1, &x);
}

pln_ref pln_qnn_sum(pln_qnn_call *q, pln_op op, pln_ref x, uint32_t n,
                    const int64_t *axes, bool keepdims) {
  pln_relay_attr attrs[] = {pln_relay_ints("axis", n, axes),
                            pln_relay_int("keepdims", keepdims),
                            pln_relay_int("exclude", 0)};
  return pln_relay_call_with(&q->r, op, 3, attrs, 1, &x);
}

pln_ref pln_qnn_repeat(pln_qnn_call *q, pln_ref x, int64_t repeats,
                       int64_t axis) {
  pln_relay_attr attrs[] = {pln_relay_int("repeats", repeats),
                            pln_relay_int("axis", axis)};
  return pln_relay_call_with(&q->r, PLN_OP_REPEAT, 2, attrs, 1, &x);
}

pln_ref pln_qnn_where(pln_qnn_call *q, pln_ref cond, pln_ref x, pln_ref y) {
  return pln_relay_call(&q->r, PLN_OP_WHERE, 3, cond, x, y);
}

pln_ref pln_qnn_along_axis(pln_qnn_call *q, pln_ref vector, int32_t rank,
                           int64_t axis) {
  int64_t n = rank - axis - 1;
  pln_relay_attr attrs[] = {pln_relay_int("axis", 1),
                            pln_relay_int("num_newaxis", n)};
  if (n <= 0)
    return vector;
  return pln_relay_call_with(&q->r, PLN_OP_UNSQUEEZE, 2, attrs, 1, &vector);
}

/* A call of `op` with the shape of `like`, and that dtype unless it is NONE. */
static pln_ref shaped(pln_qnn_call *q, pln_op op, pln_ref like, pln_dtype dtype,
                      uint32_t n, const pln_ref *args) {
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank;
  if (q->r.status != PLN_OK || !pln_qnn_shape(q, like, &rank, dims))
    return PLN_NONE;
  pln_relay_attr attrs[] = {
      pln_relay_ints("shape", rank, dims),
      text_attr("dtype", dtype ? pln_dtype_name(dtype) : "")};
  return pln_relay_call_with(&q->r, op, dtype ? 2 : 1, attrs, n, args);
}

pln_ref pln_qnn_zeros(pln_qnn_call *q, pln_ref like, pln_dtype dtype) {
  return shaped(q, PLN_OP_ZEROS, like, dtype, 0, NULL);
}

pln_ref pln_qnn_full(pln_qnn_call *q, pln_ref value, pln_ref like,
                     pln_dtype dtype) {
  return shaped(q, PLN_OP_FULL, like, dtype, 1, &value);
}

pln_ref pln_qnn_broadcast(pln_qnn_call *q, pln_ref x, pln_ref like) {
  return shaped(q, PLN_OP_EXPAND, like, PLN_DTYPE_NONE, 1, &x);
}
