/* qnn_conv_2d.c: replacement of quantised convolutions. Called through the
 * table of canonicalize_ops.c.
 *
 * With zero points a of the data and b of the kernel the convolution of
 * x - a and w - b is, where x is padded with a,
 *
 *     conv(x, w) - b pool(x) - a sum(w) + a b n
 *
 * where pool sums windows: it is n times their mean. Terms that are 0 are left
 * out. Groups other than depthwise, and a dilated kernel with a zero point, are
 * convolved as int32 after subtraction.
 *
 * Semantics: TVM's convolution.cc. */

#include "transform/quantize/qnn_call.h"

typedef struct conv_2d {
  int64_t strides[2], dilation[2], kernel_size[2], padding[4];
  int64_t groups, channels; /* channels -1: not given */
  /* Axes of the data and of the kernel. */
  int64_t data_c, data_h, data_w, o, i, h, w;
  int64_t in_channels, out_channels, multiplier;
  bool depthwise;
  pln_dtype dtype; /* of the sums */
  /* Zero points; -1 each if one of them is not a constant scalar. */
  bool dynamic;
  int64_t x_zero_value, w_zero_value;
  pln_ref x_zero, w_zero;
} conv_2d;

/* ----------------------------------------------------------------------
 * reading
 */

/* Reads n integers; one integer stands for all, two for padding of each side.
 */
static bool read_ints(const pln_qnn_call *q, const char *name, uint32_t n,
                      int64_t fallback, int64_t *out) {
  const pln_attr *a = pln_attrs_find(q->r.engine, q->attrs, name);
  uint32_t count = a && a->kind == PLN_ATTR_INTS ? a->count : 0;
  if (count != 0 && count != 1 && count != 2 && count != n)
    return false;
  for (uint32_t i = 0; i < n; i++)
    out[i] = count ? a->v.ints[i % count] : fallback;
  return count > 0 || fallback >= 0;
}

static int64_t axis_of(pln_slice layout, char name) {
  const char *at = layout.size ? memchr(layout.data, name, layout.size) : NULL;
  return at ? at - layout.data : -1;
}

static bool read_layouts(const pln_qnn_call *q, conv_2d *c) {
  static const char *const kernels[] = {"OIHW", "HWIO", "HWOI", "OHWI"};
  pln_engine *e = q->r.engine;
  pln_slice data = pln_attrs_string(e, q->attrs, "data_layout", "NCHW");
  pln_slice kernel = pln_attrs_string(e, q->attrs, "kernel_layout", "OIHW");
  bool known = false;
  for (size_t i = 0; i < PLN_COUNT(kernels); i++)
    known |= pln_slice_is(kernel, kernels[i]);
  c->data_c = axis_of(data, 'C');
  c->data_h = axis_of(data, 'H');
  c->data_w = axis_of(data, 'W');
  c->o = axis_of(kernel, 'O');
  c->i = axis_of(kernel, 'I');
  c->h = axis_of(kernel, 'H');
  c->w = axis_of(kernel, 'W');
  return known && (pln_slice_is(data, "NCHW") || pln_slice_is(data, "NHWC"));
}

static bool read_extents(const pln_qnn_call *q, conv_2d *c) {
  pln_engine *e = q->r.engine;
  c->groups = pln_attrs_int(e, q->attrs, "groups", 1);
  c->channels = pln_attrs_int(e, q->attrs, "channels", -1);
  c->depthwise = c->channels == c->groups && c->groups != 1;
  c->in_channels = pln_qnn_extent(q, q->args[0], (uint32_t)c->data_c);
  c->out_channels = pln_qnn_extent(q, q->args[1], (uint32_t)c->o);
  c->multiplier = pln_qnn_extent(q, q->args[1], (uint32_t)c->i);
  c->kernel_size[0] = pln_qnn_extent(q, q->args[1], (uint32_t)c->h);
  c->kernel_size[1] = pln_qnn_extent(q, q->args[1], (uint32_t)c->w);
  return c->in_channels > 0 && c->out_channels > 0 && c->multiplier > 0 &&
         c->kernel_size[0] > 0 && c->kernel_size[1] > 0;
}

static void read_zeros(const pln_qnn_call *q, conv_2d *c) {
  c->x_zero = q->args[2];
  c->w_zero = q->args[3];
  c->dynamic =
      !pln_qnn_is_scalar(q, c->x_zero) || !pln_qnn_is_scalar(q, c->w_zero);
  c->x_zero_value =
      c->dynamic ? -1 : (int64_t)pln_qnn_scalar_value(q, c->x_zero);
  c->w_zero_value =
      c->dynamic ? -1 : (int64_t)pln_qnn_scalar_value(q, c->w_zero);
}

static bool read_conv(const pln_qnn_call *q, conv_2d *c) {
  int64_t size[2];
  c->dtype = pln_type_dtype(q->r.engine, q->type);
  if (!read_layouts(q, c) || !read_extents(q, c) ||
      !read_ints(q, "strides", 2, 1, c->strides) ||
      !read_ints(q, "dilation", 2, 1, c->dilation) ||
      !read_ints(q, "padding", 4, 0, c->padding) ||
      !read_ints(q, "kernel_size", 2, -1, size))
    return false;
  read_zeros(q, c);
  return true;
}

/* True if the terms can be computed one by one. */
static bool has_terms(const conv_2d *c) {
  bool dilated = c->dilation[0] != 1 || c->dilation[1] != 1;
  return (c->w_zero_value == 0 || !dilated) && (c->groups == 1 || c->depthwise);
}

static pln_ref int32(pln_qnn_call *q, int64_t value) {
  return pln_qnn_scalar(q, PLN_INT32, (double)(int32_t)value);
}

/* ---------------------------------------------------------------------- terms
 */

/* The convolution with that padding, else the attributes of the call. */
static pln_ref convolve(pln_qnn_call *q, pln_ref x, pln_ref w,
                        const int64_t *padding) {
  pln_attr pads = {.kind = PLN_ATTR_INTS, .count = 4, .v.ints = padding};
  pln_attrs attrs = q->attrs;
  pln_ref args[2] = {x, w};
  if (padding && q->r.status == PLN_OK)
    q->r.status =
        pln_symbol_intern(q->r.engine, pln_text("padding"), &pads.name);
  if (padding && q->r.status == PLN_OK)
    q->r.status = pln_attrs_with(q->r.engine, attrs, &pads, &attrs);
  return pln_relay_call_core(&q->r, PLN_OP_CONV_2D, attrs, 2, args);
}

/* The data with its zero point around it. */
static pln_ref pad(pln_qnn_call *q, const conv_2d *c) {
  int64_t widths[4][2] = {{0}};
  pln_attr items[4];
  pln_relay_attr attrs[] = {
      {"pad_width", {.kind = PLN_ATTR_LIST, .count = 4}},
      {"pad_mode", {.kind = PLN_ATTR_STRING, .v.s = pln_text("constant")}}};
  pln_ref args[2] = {q->args[0], c->x_zero};
  if (!(c->padding[0] | c->padding[1] | c->padding[2] | c->padding[3]))
    return q->args[0];
  for (uint32_t side = 0; side < 2; side++) {
    widths[c->data_h][side] = c->padding[2 * side];
    widths[c->data_w][side] = c->padding[2 * side + 1];
  }
  for (uint32_t i = 0; i < 4; i++)
    items[i] =
        (pln_attr){.kind = PLN_ATTR_INTS, .count = 2, .v.ints = widths[i]};
  if (q->r.status == PLN_OK)
    q->r.status = pln_attrs_list(q->r.engine, 4, items, &attrs[0].value.v.dict);
  return pln_relay_call_with(&q->r, PLN_OP_PAD, 2, attrs, 2, args);
}

/* Sums of windows: means of what was multiplied by the window's size. */
static pln_ref pool(pln_qnn_call *q, const conv_2d *c, pln_ref x) {
  static const int64_t none[2] = {0, 0};
  int64_t n = c->kernel_size[0] * c->kernel_size[1];
  pln_relay_attr attrs[] = {
      pln_relay_ints("pool_size", 2, c->kernel_size),
      pln_relay_ints("strides", 2, c->strides),
      pln_relay_ints("dilation", 2, c->dilation),
      pln_relay_ints("padding", 2, none),
      {"layout",
       {.kind = PLN_ATTR_STRING,
        .v.s = pln_text(c->data_c == 1 ? "NCHW" : "NHWC")}},
      pln_relay_int("ceil_mode", 0),
      pln_relay_int("count_include_pad", 0)};
  if (n == 1 && c->strides[0] * c->strides[1] == 1)
    return x;
  if (n != 1)
    x = pln_qnn_binary(q, PLN_OP_MUL, x, int32(q, n));
  return pln_relay_call_with(&q->r, PLN_OP_AVG_POOL_2D, PLN_COUNT(attrs), attrs,
                             1, &x);
}

/* b pool(x); its only channel is repeated for zero points a channel. */
static pln_ref data_term(pln_qnn_call *q, const conv_2d *c, pln_ref padded) {
  pln_ref x = pln_qnn_cast(q, padded, PLN_INT32);
  x = pln_qnn_sum(q, PLN_OP_REDUCE_SUM, x, 1, &c->data_c, true);
  x = pool(q, c, x);
  if (pln_qnn_is_value(q, c->w_zero, PLN_INT32, 1))
    return x;
  if (!pln_qnn_is_scalar(q, c->w_zero))
    x = pln_qnn_repeat(q, x, c->out_channels, c->data_c);
  return pln_qnn_binary(q, PLN_OP_MUL, c->w_zero, x);
}

static pln_ref depthwise_data_term(pln_qnn_call *q, const conv_2d *c,
                                   pln_ref padded) {
  pln_ref x = pool(q, c, pln_qnn_cast(q, padded, PLN_INT32));
  if (!pln_qnn_is_value(q, c->w_zero, PLN_INT32, 1)) {
    pln_ref zero = c->w_zero;
    if (!pln_qnn_is_scalar(q, zero))
      zero = pln_qnn_repeat(q, zero, c->multiplier, 0);
    x = pln_qnn_binary(q, PLN_OP_MUL, zero, x);
  }
  return c->multiplier == 1 ? x
                            : pln_qnn_repeat(q, x, c->multiplier, c->data_c);
}

/* a sum(w), along the channels of the data. */
static pln_ref kernel_term(pln_qnn_call *q, const conv_2d *c) {
  int64_t axes[3], shape[4] = {1, 1, 1, 1};
  uint32_t n = 0;
  for (int64_t axis = 0; axis < 4; axis++)
    if (axis != c->o && !(c->depthwise && axis == c->i))
      axes[n++] = axis;
  shape[c->data_c] = c->out_channels * (c->depthwise ? c->multiplier : 1);
  pln_ref w = pln_qnn_cast(q, q->args[1], PLN_INT32);
  w = pln_qnn_sum(q, PLN_OP_REDUCE_SUM, w, n, axes, false);
  w = pln_qnn_reshape(q, w, 4, shape);
  if (pln_qnn_is_value(q, c->x_zero, PLN_INT32, 1))
    return w;
  return pln_qnn_binary(q, PLN_OP_MUL, c->x_zero, w);
}

/* a b n */
static pln_ref constant_term(pln_qnn_call *q, const conv_2d *c) {
  int64_t n = c->kernel_size[0] * c->kernel_size[1] *
              (c->depthwise ? 1 : c->in_channels);
  if (!c->dynamic)
    return int32(q, c->x_zero_value * c->w_zero_value * n);
  pln_ref size = int32(q, n);
  pln_ref zeros = pln_qnn_binary(q, PLN_OP_MUL, c->x_zero, c->w_zero);
  return pln_qnn_binary(q, PLN_OP_MUL, size, zeros);
}

static pln_ref combine_terms(pln_qnn_call *q, const conv_2d *c) {
  static const int64_t none[4] = {0, 0, 0, 0};
  pln_ref padded = pad(q, c);
  pln_ref product = convolve(q, padded, q->args[1], none);
  if (c->x_zero_value == 0 && c->w_zero_value == 0)
    return product;
  if (c->w_zero_value == 0)
    return pln_qnn_binary(q, PLN_OP_SUB, product, kernel_term(q, c));
  pln_ref data = c->depthwise ? depthwise_data_term(q, c, padded)
                              : data_term(q, c, padded);
  data = pln_qnn_binary(q, PLN_OP_SUB, product, data);
  if (c->x_zero_value == 0)
    return data;
  pln_ref rest =
      pln_qnn_binary(q, PLN_OP_SUB, constant_term(q, c), kernel_term(q, c));
  return pln_qnn_binary(q, PLN_OP_ADD, data, rest);
}

/* ------------------------------------------------------------- without terms
 */

static pln_ref shifted(pln_qnn_call *q, const conv_2d *c, pln_ref x,
                       pln_ref zero) {
  pln_dtype dtype = pln_dtype_bits(c->dtype) < 32 ? PLN_INT32 : c->dtype;
  pln_ref wide = pln_qnn_cast(q, x, dtype);
  if (pln_qnn_is_value(q, zero, dtype, 0))
    return wide;
  return pln_qnn_binary(q, PLN_OP_SUB, wide, pln_qnn_cast(q, zero, dtype));
}

static pln_ref convolve_shifted(pln_qnn_call *q, const conv_2d *c) {
  pln_ref x = shifted(q, c, q->args[0], c->x_zero);
  return convolve(q, x, shifted(q, c, q->args[1], c->w_zero), NULL);
}

/* A zero point of the kernel that is not constant becomes a vector along the
 * channels of the data, or the outputs of the kernel. */
pln_ref pln_qnn_conv_2d(pln_qnn_call *q) {
  static const int64_t flat[1] = {-1};
  conv_2d c = {0};
  if (!read_conv(q, &c))
    return PLN_NONE;
  bool terms = has_terms(&c);
  if (c.dynamic) {
    pln_ref vector = pln_qnn_reshape(q, c.w_zero, 1, flat);
    c.w_zero = pln_qnn_along_axis(q, vector, 4, terms ? c.data_c : c.o);
  }
  if (q->r.status != PLN_OK)
    return PLN_NONE;
  return terms ? combine_terms(q, &c) : convolve_shifted(q, &c);
}
