/* requantize.c: quantised integers at another scale and zero point. Called by
 * the replacements of qnn.requantize and of operators that need one scale.
 *
 *     qnn.requantize(%x, s, 0, t, z)   =>
 *     cast(clip(add(z, fixed_point_multiply(cast(%x, int32), s / t))))
 *
 * Semantics: TVM's RequantizeLower (requantize.cc, qnn/utils.cc). In int64 the
 * quotient of the scales is a fixed-point number; in floats it is a float. */

#include <math.h>

#include "transform/quantize/qnn_call.h"

/* A vector of scales has at most so many elements. */
enum { MOST_CHANNELS = 1 << 20 };

pln_fixed_point pln_fixed_point_of(double value) {
  pln_fixed_point f = {0, 0};
  int exponent;
  if (value == 0 || !isfinite(value))
    return f;
  int64_t multiplier = llround(frexp(value, &exponent) * 2147483648.0);
  if (multiplier == INT64_C(1) << 31) {
    multiplier /= 2;
    exponent++;
  }
  f.multiplier = (int32_t)multiplier;
  f.shift = exponent;
  return f;
}

pln_ref pln_qnn_fixed_point_multiply(pln_qnn_call *q, pln_ref x, double value) {
  pln_fixed_point f = pln_fixed_point_of(value);
  pln_relay_attr attrs[] = {pln_relay_int("multiplier", f.multiplier),
                            pln_relay_int("shift", f.shift)};
  return pln_relay_call_with(&q->r, PLN_OP_FIXED_POINT_MULTIPLY, 2, attrs, 1,
                             &x);
}

pln_requantize pln_qnn_requantize_to(const pln_qnn_call *q, pln_ref x,
                                     pln_ref scale, pln_ref zero,
                                     pln_ref out_scale, pln_ref out_zero,
                                     pln_dtype dtype) {
  return (pln_requantize){.x = x,
                          .scale = scale,
                          .zero = zero,
                          .out_scale = out_scale,
                          .out_zero = out_zero,
                          .like = x,
                          .dtype = dtype,
                          .axis = -1,
                          .nearest = q->config.nearest,
                          .compute = q->config.compute};
}

/* -------------------------------------------------------------- one multiplier
 */

/* x * 2^left * multiplier, rounded at 2^right: halves away from zero. The
 * rounder of negative numbers is one less. */
static pln_ref round_shift(pln_qnn_call *q, pln_ref x, pln_ref positive,
                           pln_ref negative, pln_ref right, pln_ref like) {
  pln_ref zero = pln_qnn_zeros(q, like, PLN_INT64);
  pln_ref at_least = pln_qnn_binary(q, PLN_OP_GREATER_OR_EQUAL, x, zero);
  pln_ref rounder = pln_qnn_where(q, at_least, positive, negative);
  x = pln_qnn_binary(q, PLN_OP_ADD, x, rounder);
  x = pln_qnn_binary(q, PLN_OP_RIGHT_SHIFT, x, right);
  return pln_qnn_cast(q, x, PLN_INT32);
}

static pln_ref multiply_nearest(pln_qnn_call *q, pln_ref x, double value,
                                pln_ref like) {
  pln_fixed_point f = pln_fixed_point_of(value);
  int32_t left = f.shift > 0 ? f.shift : 0, right = left - f.shift + 31;
  if (left > 62 || right > 62)
    return PLN_NONE;
  int64_t half = INT64_C(1) << (right - 1);
  x = pln_qnn_cast(q, x, PLN_INT64);
  if (left)
    x = pln_qnn_binary(q, PLN_OP_LEFT_SHIFT, x, pln_qnn_int64(q, left));
  x = pln_qnn_binary(q, PLN_OP_MUL, x, pln_qnn_int64(q, f.multiplier));
  pln_ref positive = pln_qnn_full(q, pln_qnn_int64(q, half), like, PLN_INT64);
  pln_ref negative =
      pln_qnn_full(q, pln_qnn_int64(q, half - 1), like, PLN_INT64);
  return round_shift(q, x, positive, negative, pln_qnn_int64(q, right), like);
}

/* ------------------------------------------------------- a multiplier a
 * channel
 */

/* Fixed-point numbers, one a channel, as rows of integers. */
typedef struct channel_multipliers {
  uint32_t n;
  int64_t *rows; /* multiplier, left, total right, half, half - 1 */
  bool any_left, any_right, out_of_range;
} channel_multipliers;

enum { MULTIPLIER, LEFT, RIGHT, HALF, HALF_LESS_1, N_ROWS };

static double scale_at(const pln_tensor *scales, uint32_t i) {
  double value = 0;
  return pln_tensor_number(scales, i, &value) ? value : 0;
}

static void set_channel(channel_multipliers *c, uint32_t i, double value) {
  pln_fixed_point f = pln_fixed_point_of(value);
  int32_t left = f.shift > 0 ? f.shift : 0, right = left - f.shift;
  c->out_of_range |= left > 62 || right > 31;
  int32_t total = right > 31 ? 62 : right + 31;
  int64_t half = INT64_C(1) << (total - 1);
  int64_t values[N_ROWS] = {f.multiplier, left, total, half, half - 1};
  for (uint32_t row = 0; row < N_ROWS; row++)
    c->rows[row * c->n + i] = values[row];
  c->any_left |= left != 0;
  c->any_right |= right != 0;
}

/* A row as a vector along the axis. */
static pln_ref channel_row(pln_qnn_call *q, const channel_multipliers *c,
                           uint32_t row, int32_t rank, int64_t axis) {
  pln_ref vector = pln_qnn_vector(q, PLN_INT64, c->n, c->rows + row * c->n);
  return pln_qnn_along_axis(q, vector, rank, axis);
}

static pln_ref channels_nearest(pln_qnn_call *q, const channel_multipliers *c,
                                pln_ref x, pln_ref like, int64_t axis) {
  int32_t rank = pln_qnn_rank(q, like);
  x = pln_qnn_cast(q, x, PLN_INT64);
  if (c->any_left)
    x = pln_qnn_binary(q, PLN_OP_LEFT_SHIFT, x,
                       channel_row(q, c, LEFT, rank, axis));
  x = pln_qnn_binary(q, PLN_OP_MUL, x,
                     channel_row(q, c, MULTIPLIER, rank, axis));
  pln_ref positive =
      pln_qnn_broadcast(q, channel_row(q, c, HALF, rank, axis), like);
  pln_ref negative =
      pln_qnn_broadcast(q, channel_row(q, c, HALF_LESS_1, rank, axis), like);
  return round_shift(q, x, positive, negative,
                     channel_row(q, c, RIGHT, rank, axis), like);
}

/* The int32 vector of a row, less `offset`. */
static pln_ref small_row(pln_qnn_call *q, const channel_multipliers *c,
                         uint32_t row, int32_t offset) {
  int32_t *values = pln_mem_new(q->r.engine, c->n * sizeof *values);
  if (!values) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  for (uint32_t i = 0; i < c->n; i++)
    values[i] = (int32_t)c->rows[row * c->n + i] - offset;
  pln_ref out = pln_qnn_vector(q, PLN_INT32, c->n, values);
  pln_mem_free(q->r.engine, values, c->n * sizeof *values);
  return out;
}

static pln_ref channels_upward(pln_qnn_call *q, const channel_multipliers *c,
                               pln_ref x, int64_t axis) {
  pln_relay_attr attrs[] = {pln_relay_int("is_lshift_required", c->any_left),
                            pln_relay_int("is_rshift_required", c->any_right),
                            pln_relay_ints("axes", 1, &axis)};
  pln_ref args[4] = {x, small_row(q, c, MULTIPLIER, 0),
                     small_row(q, c, LEFT, 0), small_row(q, c, RIGHT, 31)};
  return pln_relay_call_with(&q->r, PLN_OP_FIXED_POINT_MULTIPLY_PER_AXIS, 3,
                             attrs, 4, args);
}

static pln_ref multiply_channels(pln_qnn_call *q, const pln_requantize *p,
                                 pln_ref x, const pln_tensor *scales,
                                 int64_t axis) {
  channel_multipliers c = {.n = (uint32_t)scales->count};
  size_t size = c.n * N_ROWS * sizeof *c.rows;
  double to = pln_qnn_scalar_value(q, p->out_scale);
  c.rows = pln_mem_new(q->r.engine, size);
  if (!c.rows) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  for (uint32_t i = 0; i < c.n; i++)
    set_channel(&c, i, scale_at(scales, i) / to);
  pln_ref out = PLN_NONE;
  if (!c.out_of_range)
    out = p->nearest ? channels_nearest(q, &c, x, p->like, axis)
                     : channels_upward(q, &c, x, axis);
  pln_mem_free(q->r.engine, c.rows, size);
  return out;
}

/* ------------------------------------------------------------------- integers
 */

/* x - zero, in that dtype; nothing is subtracted if zero is a constant 0. */
static pln_ref centre(pln_qnn_call *q, const pln_requantize *p, pln_dtype dtype,
                      int64_t axis) {
  static const int64_t flat[1] = {-1};
  pln_ref x = pln_qnn_cast(q, p->x, dtype);
  if (pln_qnn_is_value(q, p->zero, PLN_INT32, 0))
    return x;
  pln_ref zero = pln_qnn_reshape(q, p->zero, 1, flat);
  zero = pln_qnn_along_axis(q, zero, pln_qnn_rank(q, p->like), axis);
  return pln_qnn_binary(q, PLN_OP_SUB, x, pln_qnn_cast(q, zero, dtype));
}

/* The constant tensor of scales, or NULL. */
static const pln_tensor *scales_of(const pln_qnn_call *q, pln_ref scale) {
  const pln_graph *g = q->r.b->graph;
  if (scale == PLN_NONE || g->nodes[scale].kind != PLN_CONSTANT)
    return NULL;
  const pln_tensor *t = pln_node_tensor(g, scale);
  return t->dtype == PLN_FLOAT32 && t->count > 0 && t->count <= MOST_CHANNELS
             ? t
             : NULL;
}

static pln_ref finish_integers(pln_qnn_call *q, const pln_requantize *p,
                               pln_ref x) {
  if (p->dtype == PLN_INT32)
    return x;
  return pln_qnn_convert(q, x, p->dtype);
}

static pln_ref requantize_integers(pln_qnn_call *q, const pln_requantize *p,
                                   const pln_tensor *scales, int64_t axis) {
  pln_ref x = centre(q, p, PLN_INT32, axis);
  double factor = scale_at(scales, 0) / pln_qnn_scalar_value(q, p->out_scale);
  bool same = pln_qnn_is_same_scalar(q, p->scale, p->out_scale);
  if (scales->rank > 0)
    x = multiply_channels(q, p, x, scales, axis);
  else if (!same && p->nearest)
    x = multiply_nearest(q, x, factor, p->like);
  else if (!same)
    x = pln_qnn_fixed_point_multiply(q, x, factor);
  if (!pln_qnn_is_value(q, p->out_zero, PLN_INT32, 0))
    x = pln_qnn_binary(q, PLN_OP_ADD, pln_qnn_cast(q, p->out_zero, PLN_INT32),
                       x);
  return finish_integers(q, p, x);
}

/* --------------------------------------------------------------------- floats
 */

static pln_ref constant(pln_qnn_call *q, pln_ref like, double value) {
  return pln_qnn_scalar(q, pln_qnn_dtype(q, like), value);
}

/* Truncates to an integer, and back to the float dtype. */
static pln_ref truncate(pln_qnn_call *q, pln_ref x) {
  pln_dtype dtype = pln_qnn_dtype(q, x);
  pln_dtype integer = dtype == PLN_FLOAT64 ? PLN_INT64 : PLN_INT32;
  return pln_qnn_cast(q, pln_qnn_cast(q, x, integer), dtype);
}

static pln_ref where_finite(pln_qnn_call *q, pln_ref x, pln_ref rounded) {
  return pln_qnn_where(q, pln_qnn_unary(q, PLN_OP_IS_FINITE, x), rounded, x);
}

/* Halves away from zero. */
static pln_ref round_nearest(pln_qnn_call *q, pln_ref x) {
  if (q->config.has_rounding)
    return pln_qnn_unary(q, PLN_OP_ROUND, x);
  pln_ref half = constant(q, x, 0.5), zero = constant(q, x, 0);
  pln_ref plus = constant(q, x, 1), minus = constant(q, x, -1);
  pln_ref negative = pln_qnn_binary(q, PLN_OP_LESS, x, zero);
  pln_ref sign = pln_qnn_where(q, negative, minus, plus);
  pln_ref y = pln_qnn_binary(q, PLN_OP_MUL, half, sign);
  y = pln_qnn_binary(q, PLN_OP_ADD, x, y);
  y = pln_qnn_binary(q, PLN_OP_MUL, y, sign);
  y = pln_qnn_binary(q, PLN_OP_MUL, truncate(q, y), sign);
  return where_finite(q, x, y);
}

/* Halves up. */
static pln_ref round_upward(pln_qnn_call *q, pln_ref x) {
  pln_ref y = pln_qnn_binary(q, PLN_OP_ADD, x, constant(q, x, 0.5));
  if (q->config.has_rounding)
    return pln_qnn_unary(q, PLN_OP_FLOOR, y);
  pln_ref zero = constant(q, x, 0), one = constant(q, x, 1);
  pln_ref whole = truncate(q, y);
  pln_ref equal = pln_qnn_binary(q, PLN_OP_EQUAL, y, whole);
  pln_ref positive = pln_qnn_binary(q, PLN_OP_GREATER_OR_EQUAL, y, zero);
  pln_ref exact = pln_qnn_binary(q, PLN_OP_OR, equal, positive);
  pln_ref less = pln_qnn_binary(q, PLN_OP_SUB, whole, one);
  return where_finite(q, x, pln_qnn_where(q, exact, whole, less));
}

/* The factors of the channels as a vector of the float dtype. */
static pln_ref factors(pln_qnn_call *q, const pln_requantize *p,
                       const pln_tensor *scales) {
  double to = pln_qnn_scalar_value(q, p->out_scale);
  uint32_t bytes = pln_dtype_bits(p->compute) / 8;
  size_t size = scales->count * bytes;
  char *data = pln_mem_new(q->r.engine, size);
  if (!data) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  for (uint32_t i = 0; i < scales->count; i++)
    pln_float_store(p->compute, scale_at(scales, i) / to, data + i * bytes);
  pln_ref out = pln_qnn_vector(q, p->compute, (uint32_t)scales->count, data);
  pln_mem_free(q->r.engine, data, size);
  return out;
}

static pln_ref scale_floats(pln_qnn_call *q, const pln_requantize *p, pln_ref x,
                            const pln_tensor *scales, int64_t axis) {
  double to = pln_qnn_scalar_value(q, p->out_scale);
  if (scales->rank > 0)
    return pln_qnn_binary(q, PLN_OP_MUL, x,
                          pln_qnn_along_axis(q, factors(q, p, scales),
                                             pln_qnn_rank(q, p->like), axis));
  if (pln_qnn_is_same_scalar(q, p->scale, p->out_scale))
    return x;
  return pln_qnn_binary(q, PLN_OP_MUL,
                        pln_qnn_scalar(q, p->compute, scale_at(scales, 0) / to),
                        x);
}

static pln_ref requantize_floats(pln_qnn_call *q, const pln_requantize *p,
                                 const pln_tensor *scales, int64_t axis) {
  pln_ref x = centre(q, p, p->compute, axis);
  x = scale_floats(q, p, x, scales, axis);
  if (!pln_qnn_is_value(q, p->out_zero, PLN_INT32, 0))
    x = pln_qnn_binary(q, PLN_OP_ADD, x,
                       pln_qnn_cast(q, p->out_zero, p->compute));
  if (x == PLN_NONE)
    return PLN_NONE;
  x = p->nearest ? round_nearest(q, x) : round_upward(q, x);
  return finish_integers(q, p, pln_qnn_cast(q, x, PLN_INT32));
}

/* ------------------------------------------------------------------------ both
 */

pln_ref pln_qnn_build_requantize(pln_qnn_call *q, const pln_requantize *p) {
  const pln_tensor *scales = scales_of(q, p->scale);
  int32_t rank = pln_qnn_rank(q, p->like);
  double to = pln_qnn_scalar_value(q, p->out_scale);
  if (q->r.status != PLN_OK || p->x == PLN_NONE || !scales || rank < 0 ||
      !(to > 0) || !isfinite(to))
    return PLN_NONE;
  int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
  axis = rank == 0 ? 0 : axis;
  if (axis < 0 || (rank > 0 && axis >= rank))
    return PLN_NONE;
  if (p->compute == PLN_INT64)
    return requantize_integers(q, p, scales, axis);
  return requantize_floats(q, p, scales, axis);
}

pln_ref pln_qnn_requantize_or_cast(pln_qnn_call *q, const pln_requantize *p) {
  if (pln_qnn_is_same_scalar(q, p->scale, p->out_scale) &&
      pln_qnn_is_same_scalar(q, p->zero, p->out_zero))
    return pln_qnn_cast(q, p->x, p->dtype);
  return pln_qnn_build_requantize(q, p);
}
