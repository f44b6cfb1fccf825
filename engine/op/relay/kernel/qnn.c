/* qnn.c: kernels of Relay's quantised operators, computed as TVM lowers them:
 * quantize, dequantize, requantize by fixed-point multipliers, arithmetic,
 * products, functions through float32; and fixed_point_multiply. Called through
 * ops.def; types are in relay/infer/qnn.c, convolutions in conv.c. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/relay/kernel/zero_point.h"

/* -------------------------------------------------------------- fixed point */

/* multiplier * 2^(shift - 31) */
typedef struct fixed_point {
  int64_t multiplier;
  int shift;
} fixed_point;

static fixed_point to_fixed(double factor) {
  fixed_point f = {0, 0};
  if (factor == 0)
    return f;
  f.multiplier = (int64_t)round(frexp(factor, &f.shift) * 2147483648.0);
  if (f.multiplier == INT64_C(1) << 31) {
    f.multiplier /= 2;
    f.shift++;
  }
  return f;
}

/* The rounded product: halves up, or with `nearest` away from zero. False if it
 * is out of range. */
static bool multiply_fixed_point(int64_t x, fixed_point f, bool nearest,
                                 int64_t *out) {
  int left = f.shift > 0 ? f.shift : 0, right = 31 + left - f.shift;
  if (f.shift > 30 || f.shift < -30 ||
      __builtin_mul_overflow(x, INT64_C(1) << left, &x) ||
      __builtin_mul_overflow(x, f.multiplier, &x))
    return false;
  int64_t half = INT64_C(1) << (right - 1);
  half -= nearest && x < 0;
  if (__builtin_add_overflow(x, half, &x))
    return false;
  *out = x >> right;
  return true;
}

static pln_status refuse_range(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "a scale or a product is out of range");
}

/* The least and the greatest integer of a quantised dtype. */
static bool range_of(pln_dtype dtype, int64_t *least, int64_t *most) {
  bool is_signed =
      dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32;
  *least = *most = 0;
  if (!is_signed && dtype != PLN_UINT8 && dtype != PLN_UINT16 &&
      dtype != PLN_UINT32)
    return false;
  uint32_t bits = pln_dtype_bits(dtype) - is_signed;
  *least = is_signed ? -(INT64_C(1) << bits) : 0;
  *most = (INT64_C(1) << bits) - 1;
  return true;
}

pln_status pln_kernel_fixed_point_multiply(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  fixed_point f = {pln_kernel_int(call, "multiplier", 0), 0};
  int64_t shift = pln_kernel_int(call, "shift", 0), product;
  const int32_t *in = x->data;
  void *data;
  if (x->dtype != PLN_INT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (f.multiplier < 0 || f.multiplier > INT32_MAX || shift < -30 || shift > 30)
    return refuse_range(call);
  f.shift = (int)shift;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT32, x->rank, x->dims, &data));
  for (size_t i = 0; i < x->count; i++) {
    if (!multiply_fixed_point(in[i], f, false, &product))
      return refuse_range(call);
    ((int32_t *)data)[i] = (int32_t)(uint64_t)product;
  }
  return PLN_OK;
}

/* A vector of int32 with an element for each index of the axis. */
static bool fits_axis(const pln_tensor *t, const pln_tensor *x, uint32_t axis) {
  return t && t->dtype == PLN_INT32 && t->rank == 1 &&
         t->dims[0] == x->dims[axis];
}

/* (x, multipliers, left shifts, right shifts) */
pln_status pln_kernel_fixed_point_multiply_per_axis(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *rows[3];
  const pln_attr *axes = pln_attrs_find(call->engine, call->attrs, "axes");
  uint32_t axis;
  void *data;
  int64_t product;
  bool fits = x->dtype == PLN_INT32 && axes && axes->kind == PLN_ATTR_INTS &&
              axes->count == 1 &&
              pln_kernel_axis(axes->v.ints[0], x->rank, &axis);
  for (uint32_t i = 0; i < 3 && fits; i++) {
    rows[i] = pln_kernel_arg(call, i + 1);
    fits = fits_axis(rows[i], x, axis);
  }
  if (!fits)
    return pln_kernel_refuse(call, "one axis of int32 is multiplied only");
  size_t inner = pln_dims_product(x->dims, axis + 1, x->rank);
  size_t n = rows[0]->count;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT32, x->rank, x->dims, &data));
  for (size_t i = 0; i < x->count; i++) {
    size_t k = i / inner % n;
    int64_t shift = (int64_t)((const int32_t *)rows[1]->data)[k] -
                    ((const int32_t *)rows[2]->data)[k];
    fixed_point f = {((const int32_t *)rows[0]->data)[k], 0};
    if (shift < -30 || shift > 30 || f.multiplier < 0)
      return refuse_range(call);
    f.shift = (int)shift;
    if (!multiply_fixed_point(((const int32_t *)x->data)[i], f, false,
                              &product))
      return refuse_range(call);
    ((int32_t *)data)[i] = (int32_t)(uint64_t)product;
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- parameters */

/* A scale or zero point: a scalar, or one per index of an axis. */
typedef struct scale_layout {
  const double *of;
  size_t n, inner;
} scale_layout;

static double at(const scale_layout *s, size_t i) {
  return s->of[s->n == 1 ? 0 : i / s->inner % s->n];
}

static bool read_spread(pln_composition *s, uint32_t arg, const pln_tensor *x,
                        scale_layout *out) {
  const pln_tensor *t = pln_kernel_arg(s->call, arg);
  uint32_t axis = 0;
  bool fits = t && t->rank <= 1 && t->count > 0;
  if (fits && t->count > 1)
    fits =
        pln_kernel_axis(pln_kernel_int(s->call, "axis", -1), x->rank, &axis) &&
        x->dims[axis] == (int64_t)t->count;
  if (!fits)
    pln_composition_refuse(s,
                           "a scale or zero point does not match the operand");
  t = fits ? pln_compose_cast(s, t, PLN_FLOAT64) : NULL;
  if (!t)
    return false;
  *out = (scale_layout){.of = t->data, .n = t->count, .inner = 1};
  if (t->count > 1)
    out->inner = pln_dims_product(x->dims, axis + 1, x->rank);
  return true;
}

static pln_dtype requested_dtype(const pln_kernel_call *call, pln_dtype other) {
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  return dtype ? dtype : other;
}

/* Makes an int64 tensor with the shape of x, owned by the composition. */
static const pln_tensor *new_integers(pln_composition *s, const pln_tensor *x,
                                      int64_t **data) {
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status =
        pln_tensor_new(s->call->engine, PLN_INT64, x->rank, x->dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  *data = kept ? pln_tensor_writable(t) : NULL;
  return kept;
}

static int64_t clamp_to_range(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

/* ------------------------------------------------- quantise and back again */

/* round(x / scale) + zero, halves away from zero; false for NaN. */
static bool quantise(const pln_tensor *x, const scale_layout *scale,
                     const scale_layout *zero, int64_t least, int64_t most,
                     int64_t *out) {
  const float *in = x->data;
  for (size_t i = 0; i < x->count; i++) {
    double q = round((double)(in[i] / (float)at(scale, i))) + at(zero, i);
    if (q != q)
      return false;
    out[i] = q <= (double)least ? least : q >= (double)most ? most : (int64_t)q;
  }
  return true;
}

/* Quantises floats; scale and zero point are those operands. */
static const pln_tensor *quantised(pln_composition *s, const pln_tensor *x,
                                   uint32_t scale_arg, uint32_t zero_arg,
                                   pln_dtype dtype) {
  scale_layout scale, zero;
  int64_t least, most, *data;
  x = pln_compose_cast(s, x, PLN_FLOAT32);
  if (!range_of(dtype, &least, &most))
    pln_composition_refuse(s, "the dtype is none of quantised tensors");
  if (s->status != PLN_OK || !read_spread(s, scale_arg, x, &scale) ||
      !read_spread(s, zero_arg, x, &zero))
    return NULL;
  const pln_tensor *out = new_integers(s, x, &data);
  if (out && !quantise(x, &scale, &zero, least, most, data))
    pln_composition_refuse(s, "an element has no defined result");
  return pln_compose_cast(s, out, dtype);
}

pln_status pln_kernel_qnn_quantize(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(&s, quantised(&s, pln_kernel_arg(call, 0), 1, 2,
                                              requested_dtype(call, PLN_INT8)));
}

/* (x - zero) * scale, in float32. */
static const pln_tensor *dequantised(pln_composition *s) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  scale_layout scale, zero;
  pln_tensor *t = NULL;
  if (!read_spread(s, 1, x, &scale) || !read_spread(s, 2, x, &zero))
    return NULL;
  const pln_tensor *in = pln_compose_cast(s, x, PLN_FLOAT64);
  if (in)
    s->status =
        pln_tensor_new(s->call->engine, PLN_FLOAT32, x->rank, x->dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  float *out = kept ? pln_tensor_writable(t) : NULL;
  for (size_t i = 0; kept && i < x->count; i++)
    out[i] = (float)(((const double *)in->data)[i] - at(&zero, i)) *
             (float)at(&scale, i);
  return kept;
}

pln_status pln_kernel_qnn_dequantize(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s, pln_compose_cast(&s, dequantised(&s),
                           requested_dtype(call, PLN_FLOAT32)));
}

/* (x, scale, zero, output scale, output zero): through float32. */
static pln_status through_floats(pln_kernel_call *call, pln_op op) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *y = pln_compose_unary(&s, op, dequantised(&s));
  return pln_composition_finish(
      &s, quantised(&s, y, 3, 4, (pln_dtype)pln_kernel_arg(call, 0)->dtype));
}

pln_status pln_kernel_qnn_function(pln_kernel_call *call) {
  switch (call->op) {
  case PLN_OP_QNN_TANH: return through_floats(call, PLN_OP_TANH);
  case PLN_OP_QNN_EXP: return through_floats(call, PLN_OP_EXP);
  case PLN_OP_QNN_SQRT: return through_floats(call, PLN_OP_SQRT);
  case PLN_OP_QNN_RSQRT: return through_floats(call, PLN_OP_RSQRT);
  case PLN_OP_QNN_ERF: return through_floats(call, PLN_OP_ERF);
  case PLN_OP_QNN_SIGMOID: return through_floats(call, PLN_OP_SIGMOID);
  case PLN_OP_QNN_HARDSWISH: return through_floats(call, PLN_OP_HARD_SWISH);
  case PLN_OP_QNN_LOG: return through_floats(call, PLN_OP_LOG);
  default: return through_floats(call, PLN_OP_ABS);
  }
}

/* --------------------------------------------------------------- requantise */

/* Rescaling from one scale and zero point to another. */
typedef struct rescale_plan {
  scale_layout scale, zero;
  double to_scale;
  int64_t to_zero, least, most;
  bool nearest;
} rescale_plan;

static bool rescale(const rescale_plan *r, const int64_t *in, size_t n,
                    int64_t *out) {
  for (size_t i = 0; i < n; i++) {
    double factor =
        (double)(float)at(&r->scale, i) / (double)(float)r->to_scale;
    int64_t zero = (int64_t)at(&r->zero, i), x;
    if (!(factor > 0 && factor < 1e9) ||
        __builtin_sub_overflow(in[i], zero, &x))
      return false;
    if (factor != 1 &&
        !multiply_fixed_point(x, to_fixed(factor), r->nearest, &x))
      return false;
    if (__builtin_add_overflow(x, r->to_zero, &x))
      return false;
    out[i] = clamp_to_range(x, r->least, r->most);
  }
  return true;
}

/* (x, scale, zero, the result's scale, its zero) */
pln_status pln_kernel_qnn_requantize(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = requested_dtype(call, PLN_INT8);
  rescale_plan r = {
      .nearest = pln_kernel_string_is(call, "rounding", "UPWARD", "TONEAREST")};
  scale_layout scale, zero;
  int64_t *data;
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *in = pln_compose_cast(&s, x, PLN_INT64);
  if (!range_of(dtype, &r.least, &r.most))
    pln_composition_refuse(&s, "the dtype is none of quantised tensors");
  if (!read_spread(&s, 1, x, &r.scale) || !read_spread(&s, 2, x, &r.zero) ||
      !read_spread(&s, 3, x, &scale) || !read_spread(&s, 4, x, &zero))
    return pln_composition_end(&s);
  if (scale.n != 1 || zero.n != 1)
    pln_composition_refuse(&s, "the result has one scale and zero point");
  r.to_scale = scale.of[0];
  r.to_zero = (int64_t)zero.of[0];
  const pln_tensor *out = new_integers(&s, x, &data);
  if (out && !rescale(&r, in->data, x->count, data))
    pln_composition_refuse(&s, "a scale or a product is out of range");
  return pln_composition_finish(&s, pln_compose_cast(&s, out, dtype));
}

/* --------------------------------------------------------------- arithmetic */

static const pln_tensor *requantised(pln_composition *s, const pln_tensor *x,
                                     const pln_tensor *scale,
                                     const pln_tensor *zero,
                                     const char *dtype) {
  const pln_tensor *args[5] = {x, scale, zero, pln_kernel_arg(s->call, 6),
                               pln_kernel_arg(s->call, 7)};
  pln_compose_string(s, "out_dtype", dtype);
  return pln_compose_call(s, PLN_OP_QNN_REQUANTIZE, 5, args);
}

/* Adds or subtracts both operands at the result's scale. The sum subtracts one
 * zero point; the difference adds one. */
static const pln_tensor *add_up(pln_composition *s, bool less) {
  pln_kernel_call *call = s->call;
  const pln_tensor *a =
      requantised(s, pln_kernel_arg(call, 0), pln_kernel_arg(call, 2),
                  pln_kernel_arg(call, 3), "int32");
  const pln_tensor *b =
      requantised(s, pln_kernel_arg(call, 1), pln_kernel_arg(call, 4),
                  pln_kernel_arg(call, 5), "int32");
  const pln_tensor *zero =
      pln_compose_cast(s, pln_kernel_arg(call, 7), PLN_INT32);
  const pln_tensor *y =
      pln_compose_binary(s, less ? PLN_OP_SUB : PLN_OP_ADD, a, b);
  return pln_compose_binary(s, less ? PLN_OP_ADD : PLN_OP_SUB, y, zero);
}

/* Multiplies after subtracting zero points; the scale is the product of
 * both. */
static const pln_tensor *multiply_up(pln_composition *s, const char *dtype) {
  pln_kernel_call *call = s->call;
  const pln_tensor *y =
      pln_compose_binary(s, PLN_OP_MUL, pln_compose_centred(s, 0, 3, -1),
                         pln_compose_centred(s, 1, 5, -1));
  const pln_tensor *scale = pln_compose_binary(
      s, PLN_OP_MUL, pln_kernel_arg(call, 2), pln_kernel_arg(call, 4));
  return requantised(s, y, scale, pln_compose_scalar(s, PLN_INT32, 0), dtype);
}

static const pln_tensor *limited(pln_composition *s, const pln_tensor *x,
                                 pln_dtype dtype) {
  int64_t least, most;
  if (!range_of(dtype, &least, &most))
    pln_composition_refuse(s, "the dtype is none of quantised tensors");
  if (s->status != PLN_OK)
    return NULL;
  const pln_tensor *args[3] = {
      x, pln_compose_scalar(s, PLN_INT32, (double)least),
      pln_compose_scalar(s, PLN_INT32,
                         (double)(most < INT32_MAX ? most : INT32_MAX))};
  return pln_compose_cast(s, pln_compose_call(s, PLN_OP_CLIP, 3, args), dtype);
}

/* (lhs, rhs, and for lhs, rhs and the result: scale, zero) */
pln_status pln_kernel_qnn_broadcast(pln_kernel_call *call) {
  pln_dtype dtype = (pln_dtype)pln_kernel_arg(call, 0)->dtype;
  pln_composition s;
  pln_composition_begin(&s, call);
  if (call->op == PLN_OP_QNN_MUL)
    return pln_composition_finish(&s, multiply_up(&s, pln_dtype_name(dtype)));
  return pln_composition_finish(
      &s, limited(&s, add_up(&s, call->op == PLN_OP_QNN_SUBTRACT), dtype));
}

/* (x, weight, their zero points, their scales): int32 sums of products. */
static pln_status multiply_matrices(pln_kernel_call *call, pln_op op) {
  pln_composition s;
  if (requested_dtype(call, PLN_INT32) != PLN_INT32)
    return pln_kernel_refuse(call, "sums are computed in int32 only");
  pln_composition_begin(&s, call);
  const pln_tensor *x = pln_compose_centred(&s, 0, 2, -1);
  const pln_tensor *w =
      pln_compose_centred(&s, 1, 3, op == PLN_OP_DENSE ? 0 : -1);
  if (op == PLN_OP_BATCH_MATMUL) {
    pln_compose_int(&s, "transpose_a", pln_kernel_int(call, "transpose_a", 0));
    pln_compose_int(&s, "transpose_b", pln_kernel_int(call, "transpose_b", 0));
  }
  return pln_composition_finish(&s, pln_compose_binary(&s, op, x, w));
}

pln_status pln_kernel_qnn_dense(pln_kernel_call *call) {
  return multiply_matrices(call, PLN_OP_DENSE);
}

pln_status pln_kernel_qnn_batch_matmul(pln_kernel_call *call) {
  return multiply_matrices(call, PLN_OP_BATCH_MATMUL);
}
