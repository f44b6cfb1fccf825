/* fake_quantization.c: operators of floats, converted to operators of quantised
 * integers. Called by FakeQuantizationToInteger for each call of a region.
 *
 *     nn.dense(x, w) of types (s, z, int8) and (t, y, int8)
 *       =>   qnn.dense(x, w, z, y, s, t) of type (s * t, 0, int32)
 *
 * Semantics: TVM's fake_quantization_to_integer.py. */

#include <math.h>

#include "transform/quantize/fake_quantization.h"

typedef pln_fake_quantized_call fq_call;

/* True if the first n operands are quantised. */
static bool are_quantised(const fq_call *c, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (i >= c->q.n_args || !pln_affine_is_known(&c->types[i]))
      return false;
  return true;
}

static pln_ref same_call(fq_call *c, pln_op op, uint32_t n,
                         const pln_ref *args) {
  return pln_relay_call_core(&c->q.r, op, c->q.attrs, n, args);
}

static void set_attr(fq_call *c, pln_relay_attr *attr) {
  pln_engine *e = c->q.r.engine;
  if (c->q.r.status == PLN_OK)
    c->q.r.status =
        pln_symbol_intern(e, pln_text(attr->name), &attr->value.name);
  if (c->q.r.status == PLN_OK)
    c->q.r.status = pln_attrs_with(e, c->q.attrs, &attr->value, &c->q.attrs);
}

/* Padding is written for each side, as TVM's constructors do. */
static void spell_out_padding(fq_call *c) {
  const pln_attr *given = pln_attrs_find(c->q.r.engine, c->q.attrs, "padding");
  int64_t pads[4] = {0};
  uint32_t n = given && given->kind == PLN_ATTR_INTS ? given->count : 0;
  pln_relay_attr all = pln_relay_ints("padding", 4, pads);
  if (n > 2)
    return;
  for (uint32_t i = 0; i < 4 && n; i++)
    pads[i] = given->v.ints[i % n];
  set_attr(c, &all);
}

/* -------------------------------------------------------------------
 * identities
 */

/* Operators that only move elements, or choose some. */
static pln_ref keep_type(fq_call *c) {
  if (c->q.n_args != 1 || !are_quantised(c, 1))
    return PLN_NONE;
  c->result = c->types[0];
  return same_call(c, c->q.op, 1, c->q.args);
}

/* Indices are no quantised value. */
static pln_ref take(fq_call *c) {
  if (c->q.n_args != 2 || !are_quantised(c, 1))
    return PLN_NONE;
  c->result = c->types[0];
  return same_call(c, c->q.op, 2, c->q.args);
}

static pln_ref split(fq_call *c) {
  pln_ref out = keep_type(c);
  if (out != PLN_NONE)
    c->n_result_fields = c->q.r.b->graph->nodes[out].results;
  return c->n_result_fields ? out : PLN_NONE;
}

static pln_ref top_k(fq_call *c) {
  pln_slice ret =
      pln_attrs_string(c->q.r.engine, c->q.attrs, "ret_type", "both");
  return pln_slice_is(ret, "values") ? keep_type(c) : PLN_NONE;
}

static pln_ref broadcast_to(fq_call *c) {
  pln_engine *e = c->q.r.engine;
  if (c->q.r.status == PLN_OK)
    c->q.r.status = pln_attrs_without(e, c->q.attrs, "dtype", &c->q.attrs);
  return keep_type(c);
}

/* The mean of int32, as the operand's dtype. */
static pln_ref mean(fq_call *c) {
  if (!are_quantised(c, 1))
    return PLN_NONE;
  c->result = c->types[0];
  pln_ref x = pln_qnn_cast(&c->q, c->q.args[0], PLN_INT32);
  return pln_qnn_cast(&c->q, same_call(c, c->q.op, 1, &x), c->result.dtype);
}

/* ------------------------------------------------------------- at the boundary
 */

static pln_ref quantize(fq_call *c) {
  pln_qnn_call *q = &c->q;
  pln_affine_type from = c->types[0];
  c->result = (pln_affine_type){
      q->args[1], q->args[2], pln_type_dtype(q->r.engine, q->type),
      pln_attrs_int(q->r.engine, q->attrs, "axis", -1)};
  if (!are_quantised(c, 1))
    return PLN_NONE;
  from.scale = pln_affine_fold(q, from.scale);
  from.zero = pln_affine_fold(q, from.zero);
  if (pln_affine_is_near(q, from.scale, c->result.scale) &&
      pln_affine_is_near(q, from.zero, c->result.zero) &&
      from.dtype == c->result.dtype)
    return q->args[0];
  return pln_affine_requantize(q, q->args[0], &from, &c->result,
                               c->result.dtype, from.axis);
}

/* --------------------------------------------------------------------- pooling
 */

/* Operand 0 as int32 at the scale of the region's result. */
static pln_ref at_region_scale(fq_call *c) {
  const pln_affine_type *t = &c->types[0], *to = &c->region;
  if (!are_quantised(c, 1) || !pln_affine_is_known(to))
    return PLN_NONE;
  if (pln_affine_is_near(&c->q, t->scale, to->scale) &&
      pln_affine_is_near(&c->q, t->zero, to->zero) && t->dtype == to->dtype)
    return pln_qnn_cast(&c->q, c->q.args[0], PLN_INT32);
  return pln_affine_requantize(&c->q, c->q.args[0], t, to, PLN_INT32, t->axis);
}

/* Requantises to the region's result only if that is the pool's own. */
static pln_ref avg_pool(fq_call *c) {
  const pln_affine_type *t = &c->types[0];
  const pln_affine_type *to = c->below_root ? t : &c->region;
  pln_relay_attr plain = {"out_layout",
                          {.kind = PLN_ATTR_STRING, .v.s = pln_text("")}};
  if (!are_quantised(c, 1) || c->q.n_args != 1 || !pln_affine_is_known(to))
    return PLN_NONE;
  spell_out_padding(c);
  pln_ref args[5] = {c->q.args[0], t->scale, t->zero, to->scale, to->zero};
  c->result = *to;
  set_attr(c, &plain);
  return same_call(c, PLN_OP_QNN_AVG_POOL_2D, 5, args);
}

static pln_ref pool_to_int32(fq_call *c) {
  pln_ref x = at_region_scale(c);
  c->result = c->region;
  c->result.dtype = PLN_INT32;
  return x == PLN_NONE ? PLN_NONE : same_call(c, c->q.op, 1, &x);
}

/* -------------------------------------------------------------------- products
 */

/* (x, w, zero of x, zero of w, scale of x, scale of w), as int32. */
static pln_ref quantised_product(fq_call *c, pln_op op) {
  const pln_affine_type *x = &c->types[0], *w = &c->types[1];
  pln_ref args[6] = {c->q.args[0], c->q.args[1], x->zero,
                     w->zero,      x->scale,     w->scale};
  pln_relay_attr dtype = {"out_dtype",
                          {.kind = PLN_ATTR_STRING, .v.s = pln_text("int32")}};
  set_attr(c, &dtype);
  return same_call(c, op, 6, args);
}

static pln_ref convolve(fq_call *c, pln_op op) {
  pln_engine *e = c->q.r.engine;
  pln_slice layout = pln_attrs_string(e, c->q.attrs, "out_layout", "");
  if (layout.size == 0)
    layout = pln_attrs_string(e, c->q.attrs, "data_layout", "NCHW");
  const char *at = memchr(layout.data, 'C', layout.size);
  if (!are_quantised(c, 2) || !at || layout.size != 4)
    return PLN_NONE;
  c->result = pln_affine_product(&c->q, &c->types[0], &c->types[1], PLN_INT32,
                                 at - layout.data);
  spell_out_padding(c);
  return quantised_product(c, op);
}

static pln_ref conv_2d(fq_call *c) {
  return convolve(c, PLN_OP_QNN_CONV_2D);
}

static pln_ref conv_2d_transpose(fq_call *c) {
  return convolve(c, PLN_OP_QNN_CONV_2D_TRANSPOSE);
}

static pln_ref dense(fq_call *c) {
  if (!are_quantised(c, 2))
    return PLN_NONE;
  c->result =
      pln_affine_product(&c->q, &c->types[0], &c->types[1], PLN_INT32, 1);
  return quantised_product(c, PLN_OP_QNN_DENSE);
}

static pln_ref batch_matmul(fq_call *c) {
  pln_relay_attr attrs[] = {
      {"out_dtype", {.kind = PLN_ATTR_STRING, .v.s = pln_text("int32")}},
      pln_relay_int("transpose_a", 0),
      pln_relay_int("transpose_b", 1)};
  const pln_affine_type *x = &c->types[0], *w = &c->types[1];
  pln_engine *e = c->q.r.engine;
  if (!are_quantised(c, 2) || pln_attrs_int(e, c->q.attrs, "transpose_a", 0) ||
      !pln_attrs_int(e, c->q.attrs, "transpose_b", 0))
    return PLN_NONE;
  pln_ref args[6] = {c->q.args[0], c->q.args[1], x->zero,
                     w->zero,      x->scale,     w->scale};
  c->result = pln_affine_product(&c->q, x, w, PLN_INT32, x->axis);
  c->result.zero = pln_qnn_scalar(&c->q, PLN_INT32, 0);
  return pln_relay_call_with(&c->q.r, PLN_OP_QNN_BATCH_MATMUL, 3, attrs, 6,
                             args);
}

/* True if the constant is zero throughout, or the node makes zeros. */
static bool is_zero(const pln_qnn_call *q, pln_ref node) {
  const pln_graph *g = q->r.b->graph;
  if (g->nodes[node].kind == PLN_CALL && g->nodes[node].data == PLN_OP_CAST)
    node = pln_operand(g, node, 0);
  if (g->nodes[node].kind == PLN_CALL)
    return g->nodes[node].data == PLN_OP_ZEROS_LIKE;
  if (g->nodes[node].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = pln_node_tensor(g, node);
  int64_t value = 0;
  for (size_t i = 0; i < t->count; i++)
    if (!pln_tensor_int(t, t->splat ? 0 : i, &value) || value != 0)
      return false;
  return true;
}

/* A bias gets the type of what it is added to: sums in int32 with zero point 0.
 * TVM adds other types too, whose sums have another zero point or overflow. */
static pln_ref bias_add(fq_call *c) {
  pln_qnn_call *q = &c->q;
  const pln_affine_type *x = &c->types[0], *b = &c->types[1];
  pln_ref args[2] = {q->args[0], q->args[1]};
  if (!are_quantised(c, 1) || q->n_args != 2 || x->dtype != PLN_INT32 ||
      !is_zero(q, x->zero))
    return PLN_NONE;
  c->result = *x;
  if (!pln_affine_is_known(b)) {
    if (q->r.b->graph->nodes[args[1]].kind != PLN_CONSTANT ||
        !pln_dtype_is_float(pln_qnn_dtype(q, args[1])))
      return PLN_NONE;
    args[1] = pln_affine_quantize(q, args[1], x, 0);
  } else if (!pln_affine_is_near(q, x->scale, b->scale) ||
             !pln_affine_is_near(q, x->zero, b->zero) || x->dtype != b->dtype) {
    pln_affine_type to = *x;
    to.scale = pln_affine_fold(q, to.scale);
    to.zero = pln_affine_fold(q, to.zero);
    args[1] = pln_affine_requantize(q, args[1], b, &to, x->dtype, 0);
  }
  return same_call(c, q->op, 2, args);
}

/* --------------------------------------------------------------- two operands
 */

/* A constant operand gets the type of the other. *out: the result's type. */
static bool unify_operands(fq_call *c, pln_affine_type *out) {
  pln_qnn_call *q = &c->q;
  if (q->n_args != 2 || !pln_affine_is_known(&c->region))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    const pln_affine_type *other = &c->types[1 - i];
    if (pln_affine_is_known(&c->types[i]))
      continue;
    if (!pln_affine_is_known(other) ||
        q->r.b->graph->nodes[q->args[i]].kind != PLN_CONSTANT)
      return false;
    q->args[i] = pln_affine_quantize(q, q->args[i], other, -1);
    c->types[i] = *other;
  }
  *out = c->types[0].dtype == c->region.dtype ? c->region : c->types[0];
  return true;
}

/* The result's scale and zero point are constants without axes. */
static pln_ref arithmetic(fq_call *c, pln_op op) {
  pln_qnn_call *q = &c->q;
  if (!pln_qnn_is_scalar(q, c->result.scale) ||
      !pln_qnn_is_scalar(q, c->result.zero))
    return PLN_NONE;
  const pln_affine_type *a = &c->types[0], *b = &c->types[1];
  pln_relay_attr attrs[] = {pln_relay_int("lhs_axis", a->axis),
                            pln_relay_int("rhs_axis", b->axis)};
  pln_ref args[8] = {q->args[0], q->args[1], a->scale,        a->zero,
                     b->scale,   b->zero,    c->result.scale, c->result.zero};
  return pln_relay_call_with(&q->r, op, 2, attrs, 8, args);
}

/* True for sums in int32 with zero point 0 and one scale, as of a bias behind a
 * product. */
static bool is_plain_sum(const fq_call *c) {
  const pln_affine_type *a = &c->types[0], *b = &c->types[1], *to = &c->result;
  return a->dtype == PLN_INT32 && b->dtype == PLN_INT32 &&
         pln_affine_is_near(&c->q, a->scale, b->scale) &&
         pln_affine_is_near(&c->q, a->zero, b->zero) &&
         pln_affine_is_near(&c->q, a->scale, to->scale) &&
         pln_affine_is_near(&c->q, a->zero, to->zero) &&
         is_zero(&c->q, to->zero);
}

static pln_ref add(fq_call *c) {
  pln_qnn_call *q = &c->q;
  if (!unify_operands(c, &c->result))
    return PLN_NONE;
  if (!is_plain_sum(c))
    return arithmetic(c, PLN_OP_QNN_ADD);
  c->result = c->types[0];
  return pln_qnn_binary(q, PLN_OP_ADD, q->args[0], q->args[1]);
}

static pln_ref subtract(fq_call *c) {
  return unify_operands(c, &c->result) ? arithmetic(c, PLN_OP_QNN_SUBTRACT)
                                       : PLN_NONE;
}

static pln_ref multiply(fq_call *c) {
  return unify_operands(c, &c->result) ? arithmetic(c, PLN_OP_QNN_MUL)
                                       : PLN_NONE;
}

/* minimum and maximum of integers of one type. */
static pln_ref extremum(fq_call *c) {
  pln_qnn_call *q = &c->q;
  if (!unify_operands(c, &c->result))
    return PLN_NONE;
  for (uint32_t i = 0; i < 2; i++)
    if (!pln_affine_is_equal(q, &c->types[i], &c->result))
      q->args[i] =
          pln_affine_requantize(q, q->args[i], &c->types[i], &c->result,
                                c->result.dtype, c->types[i].axis);
  return pln_qnn_binary(q, q->op, q->args[0], q->args[1]);
}

static pln_ref tuple_of(fq_call *c, bool zeros) {
  pln_engine *e = c->q.r.engine;
  size_t size = c->n_fields * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(e, size), out = PLN_NONE;
  if (!parts) {
    c->q.r.status = pln_nomem(e);
    return PLN_NONE;
  }
  for (uint32_t i = 0; i < c->n_fields; i++)
    parts[i] = zeros ? c->fields[i].zero : c->fields[i].scale;
  c->q.r.status = pln_build_tuple(c->q.r.b, c->n_fields, parts, &out);
  pln_mem_free(e, parts, size);
  return c->q.r.status == PLN_OK ? out : PLN_NONE;
}

static pln_ref concatenate(fq_call *c) {
  pln_relay_attr axis = pln_relay_int(
      "axis", pln_attrs_int(c->q.r.engine, c->q.attrs, "axis", 0));
  if (c->q.n_args != 1 || !c->n_fields || !pln_affine_is_known(&c->region) ||
      c->q.r.status != PLN_OK)
    return PLN_NONE;
  for (uint32_t i = 0; i < c->n_fields; i++)
    if (!pln_affine_is_known(&c->fields[i]) ||
        c->fields[i].dtype != c->fields[0].dtype)
      return PLN_NONE;
  pln_ref args[5] = {c->q.args[0], tuple_of(c, false)};
  args[2] = tuple_of(c, true);
  args[3] = c->region.scale;
  args[4] = c->region.zero;
  c->result = c->region;
  c->result.dtype = c->fields[0].dtype;
  return pln_relay_call_with(&c->q.r, PLN_OP_QNN_CONCATENATE, 1, &axis, 5,
                             args);
}

/* ------------------------------------------------------------------
 * activations
 */

/* The number of channels that a scale has; 1 for one of all; -1: unknown. */
static int64_t n_channels(const pln_qnn_call *q, pln_ref scale) {
  int32_t rank = pln_qnn_rank(q, scale);
  return rank == 0 ? 1 : rank == 1 ? pln_qnn_extent(q, scale, 0) : -1;
}

/* A scalar or vector, broadcast to n channels along an axis of x. */
static pln_ref by_channel(pln_qnn_call *q, pln_ref value, pln_ref scale,
                          pln_ref x, int64_t axis) {
  int64_t shape[PLN_MAX_RANK];
  int32_t rank = pln_qnn_rank(q, x);
  axis += axis < 0 ? rank : 0;
  if (rank < 1 || rank > PLN_MAX_RANK || axis < 0 || axis >= rank)
    return PLN_NONE;
  for (int32_t i = 0; i < rank; i++)
    shape[i] = i == axis ? -1 : 1;
  value = pln_affine_fold(q, pln_qnn_broadcast(q, value, scale));
  return pln_affine_fold(q, pln_qnn_reshape(q, value, (uint32_t)rank, shape));
}

static pln_ref relu(fq_call *c) {
  pln_qnn_call *q = &c->q;
  pln_affine_type *t = &c->types[0];
  if (!are_quantised(c, 1))
    return PLN_NONE;
  int64_t n = n_channels(q, t->scale);
  pln_ref zero = t->zero;
  if (n < 0)
    return PLN_NONE;
  if (n > 1)
    zero = by_channel(q, zero, t->scale, q->args[0], t->axis);
  c->result = *t;
  zero = pln_affine_fold(q, pln_qnn_cast(q, zero, t->dtype));
  return pln_qnn_binary(q, PLN_OP_MAX, q->args[0], zero);
}

static bool single_number(const pln_qnn_call *q, pln_ref node, double *out) {
  const pln_graph *g = q->r.b->graph;
  if (node == PLN_NONE || g->nodes[node].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = pln_node_tensor(g, node);
  return t->count == 1 && pln_tensor_number(t, 0, out);
}

/* A bound of clip in the integers of the operand. */
static pln_ref clip_bound(pln_qnn_call *q, double bound,
                          const pln_affine_type *t) {
  pln_ref value = pln_qnn_scalar(q, PLN_FLOAT32, bound);
  int64_t n = n_channels(q, t->scale);
  if (n < 0)
    return PLN_NONE;
  if (n > 1)
    value = by_channel(q, value, t->scale, q->args[0], t->axis);
  return pln_affine_quantize(q, value, t, t->axis);
}

static pln_ref clip(fq_call *c) {
  pln_qnn_call *q = &c->q;
  pln_engine *e = q->r.engine;
  double least = pln_attrs_float(e, q->attrs, "a_min", -INFINITY);
  double most = pln_attrs_float(e, q->attrs, "a_max", INFINITY), scale, zero;
  if (!are_quantised(c, 1) || q->n_args != 1)
    return PLN_NONE;
  c->result = c->types[0];
  pln_affine_type t = c->types[0];
  t.scale = pln_affine_fold(q, t.scale);
  t.zero = pln_affine_fold(q, t.zero);
  if (single_number(q, t.scale, &scale) && single_number(q, t.zero, &zero))
    return pln_qnn_clip(q, q->args[0], trunc(least / scale + zero),
                        trunc(most / scale + zero));
  pln_ref low = clip_bound(q, least, &t), high = clip_bound(q, most, &t);
  pln_ref x = pln_qnn_binary(q, PLN_OP_MAX, q->args[0], low);
  return pln_qnn_binary(q, PLN_OP_MIN, x, high);
}

/* (x, scale, zero, the region's scale, its zero) */
static pln_ref function_call(fq_call *c, pln_op op, uint32_t n_attrs,
                             const pln_relay_attr *attrs, pln_ref x) {
  const pln_affine_type *t = &c->types[0], *to = &c->region;
  if (!are_quantised(c, 1) || !pln_affine_is_known(to))
    return PLN_NONE;
  pln_ref args[5] = {x, t->scale, t->zero, to->scale, to->zero};
  c->result = *to;
  return pln_relay_call_with(&c->q.r, op, n_attrs, attrs, 5, args);
}

static pln_ref function(fq_call *c) {
  static const struct {
    pln_op from, to;
  } functions[] = {
      {PLN_OP_SQRT, PLN_OP_QNN_SQRT},       {PLN_OP_RSQRT, PLN_OP_QNN_RSQRT},
      {PLN_OP_EXP, PLN_OP_QNN_EXP},         {PLN_OP_ERF, PLN_OP_QNN_ERF},
      {PLN_OP_SIGMOID, PLN_OP_QNN_SIGMOID}, {PLN_OP_TANH, PLN_OP_QNN_TANH},
      {PLN_OP_ABS, PLN_OP_QNN_ABS},         {PLN_OP_LOG, PLN_OP_QNN_LOG},
  };
  for (size_t i = 0; i < PLN_COUNT(functions); i++)
    if (functions[i].from == c->q.op)
      return function_call(c, functions[i].to, 0, NULL, c->q.args[0]);
  return PLN_NONE;
}

static pln_ref softmax(fq_call *c) {
  pln_relay_attr axis = pln_relay_int(
      "axis", pln_attrs_int(c->q.r.engine, c->q.attrs, "axis", -1));
  return function_call(c, PLN_OP_QNN_SOFTMAX, 1, &axis, c->q.args[0]);
}

/* TVM applies nn.leaky_relu to the integers first, and takes the operand's type
 * for the result's. For unsigned integers the former is the identity; for
 * signed ones, and other types, the result would be another. */
static pln_ref leaky_relu(fq_call *c) {
  pln_engine *e = c->q.r.engine;
  pln_relay_attr alpha = {
      "alpha",
      {.kind = PLN_ATTR_FLOAT,
       .v.f = pln_attrs_float(e, c->q.attrs, "alpha", 0.25)}};
  pln_affine_type type = c->types[0];
  pln_ref x = c->q.args[0];
  if (!are_quantised(c, 1))
    return PLN_NONE;
  if (type.dtype == PLN_UINT8 || type.dtype == PLN_UINT16)
    x = same_call(c, c->q.op, 1, &x);
  return function_call(c, PLN_OP_QNN_LEAKY_RELU, 1, &alpha, x);
}

/* --------------------------------------------------------------------- padding
 */

static pln_ref pad(fq_call *c) {
  pln_qnn_call *q = &c->q;
  const pln_affine_type *t = &c->types[0], *v = &c->types[1];
  pln_ref args[2] = {q->args[0], q->args[1]};
  if (!are_quantised(c, 1) || q->n_args != 2)
    return PLN_NONE;
  c->result = *t;
  if (!pln_affine_is_known(v)) {
    if (q->r.b->graph->nodes[args[1]].kind != PLN_CONSTANT ||
        !pln_dtype_is_float(pln_qnn_dtype(q, args[1])))
      return PLN_NONE;
    args[1] = pln_affine_quantize(q, args[1], t, -1);
  } else if (!pln_affine_is_equal(q, t, v)) {
    args[1] = pln_affine_requantize(q, args[1], v, t, t->dtype, v->axis);
  }
  return same_call(c, q->op, 2, args);
}

/* ----------------------------------------------------------------------- table
 */

/* `alone`: also converted by itself, with the option use_qat. */
typedef struct fq_row {
  pln_op op;
  pln_fake_quantized_fn convert;
  bool alone, optional;
} fq_row;

static const fq_row rows[] = {
    {PLN_OP_QNN_QUANTIZE, quantize, false, false},
    {PLN_OP_RESHAPE, keep_type, true, false},
    {PLN_OP_SQUEEZE, keep_type, true, false},
    {PLN_OP_SLICE, keep_type, true, false},
    {PLN_OP_TRANSPOSE, keep_type, true, false},
    {PLN_OP_UNSQUEEZE, keep_type, true, false},
    {PLN_OP_MAX_POOL_2D, keep_type, true, false},
    {PLN_OP_BATCH_FLATTEN, keep_type, true, false},
    {PLN_OP_DEPTH_TO_SPACE, keep_type, true, false},
    {PLN_OP_REDUCE_MAX, keep_type, true, false},
    {PLN_OP_REDUCE_MIN, keep_type, true, false},
    {PLN_OP_RESIZE_2D, keep_type, false, false},
    {PLN_OP_GATHER, take, false, false},
    {PLN_OP_EXPAND, broadcast_to, true, false},
    {PLN_OP_SPLIT, split, true, false},
    {PLN_OP_TOP_K, top_k, false, false},
    {PLN_OP_REDUCE_MEAN, mean, false, false},
    {PLN_OP_ADAPTIVE_AVG_POOL_1D, pool_to_int32, false, false},
    {PLN_OP_GLOBAL_AVG_POOL_2D, pool_to_int32, true, false},
    {PLN_OP_AVG_POOL_2D, avg_pool, true, false},
    {PLN_OP_BIAS_ADD, bias_add, true, false},
    {PLN_OP_CONV_2D, conv_2d, true, false},
    {PLN_OP_CONV_2D_TRANSPOSE, conv_2d_transpose, true, false},
    {PLN_OP_DENSE, dense, true, false},
    {PLN_OP_BATCH_MATMUL, batch_matmul, true, false},
    {PLN_OP_CONCAT, concatenate, false, false},
    {PLN_OP_CLIP, clip, true, false},
    {PLN_OP_RELU, relu, true, false},
    {PLN_OP_LEAKY_RELU, leaky_relu, false, false},
    {PLN_OP_PAD, pad, true, false},
    {PLN_OP_ADD, add, false, false},
    {PLN_OP_SUB, subtract, false, false},
    {PLN_OP_MUL, multiply, false, false},
    {PLN_OP_MIN, extremum, true, false},
    {PLN_OP_MAX, extremum, true, false},
    {PLN_OP_SQRT, function, false, false},
    {PLN_OP_RSQRT, function, false, false},
    {PLN_OP_EXP, function, false, false},
    {PLN_OP_ERF, function, false, false},
    {PLN_OP_SIGMOID, function, false, false},
    {PLN_OP_TANH, function, false, false},
    {PLN_OP_ABS, function, false, false},
    {PLN_OP_LOG, function, false, false},
    {PLN_OP_SOFTMAX, softmax, false, true},
};

static const fq_row *find_row(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (rows[i].op == op)
      return &rows[i];
  return NULL;
}

pln_fake_quantized_fn pln_fake_quantized_find(pln_op op, bool optional) {
  const fq_row *row = find_row(op);
  return row && (optional || !row->optional) ? row->convert : NULL;
}

bool pln_fake_quantized_alone(pln_op op) {
  const fq_row *row = find_row(op);
  return row && row->alone;
}
