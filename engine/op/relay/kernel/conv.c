/* conv.c: kernels of Relay's convolutions: operands are transposed to the plain
 * layouts, convolved by the kernels of ONNX's operators, and transposed back.
 * Called through ops.def; types are in relay/infer/conv.c. */

#include "op/relay/kernel/window.h"
#include "op/relay/kernel/zero_point.h"

/* Plain layouts, by number of spatial axes. */
static const char *const plain_data[] = {"", "NCW", "NCHW", "NCDHW"};
static const char *const plain_kernel[] = {"", "OIW", "OIHW", "OIDHW"};
static const char *const plain_transposed[] = {"", "IOW", "IOHW", "IODHW"};

static uint32_t space_of(pln_op op) {
  switch (op) {
  case PLN_OP_CONV_1D:
  case PLN_OP_CONV_1D_TRANSPOSE: return 1;
  case PLN_OP_CONV_3D:
  case PLN_OP_CONV_3D_TRANSPOSE: return 3;
  default: return 2;
  }
}

/* The dtype of sums: attribute out_dtype, else the operand's own. */
static pln_dtype sum_dtype(const pln_kernel_call *call, pln_dtype other) {
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  return dtype ? dtype : other;
}

/* The weight of a transposed convolution with the operand's channels first.
 * They are O if the layout begins with it, else I. */
static const pln_tensor *transposed_weight(pln_composition *s,
                                           const pln_tensor *w, uint32_t n) {
  pln_slice layout = pln_attrs_string(s->call->engine, s->call->attrs,
                                      "kernel_layout", plain_transposed[n]);
  bool swapped = layout.size && layout.data[0] == 'O';
  return pln_compose_layout(
      s, w, layout.size ? layout : pln_text(plain_transposed[n]),
      pln_text(swapped ? plain_kernel[n] : plain_transposed[n]));
}

/* Depthwise weights (C, multiplier, H, W) as (C * multiplier, 1, H, W). */
static const pln_tensor *
one_channel_each(pln_composition *s, const pln_tensor *x, const pln_tensor *w) {
  int64_t groups = pln_kernel_int(s->call, "groups", 1);
  bool multiplied = groups > 1 && x->dims[1] == groups &&
                    w->dims[0] == groups && w->dims[1] > 1;
  int64_t dims[] = {w->dims[0] * w->dims[1], 1, w->dims[2], w->dims[3]};
  return multiplied ? pln_compose_reshape(s, w, 4, dims) : w;
}

static const pln_tensor *convolve_plain_layout(pln_composition *s,
                                               const pln_tensor *x,
                                               const pln_tensor *w,
                                               bool transposed) {
  uint32_t n = space_of(s->call->op);
  int64_t more[PLN_WINDOW_AXES];
  x = pln_compose_to_plain_layout(s, x, "data_layout", plain_data[n]);
  w = transposed
          ? transposed_weight(s, w, n)
          : pln_compose_to_plain_layout(s, w, "kernel_layout", plain_kernel[n]);
  if (!x || !w || x->rank != n + 2 || w->rank != n + 2) {
    pln_composition_refuse(s, "this form of the call is not implemented");
    return NULL;
  }
  if (n == 2 && !transposed)
    w = one_channel_each(s, x, w);
  if (!w)
    return NULL;
  pln_compose_window(s, n, NULL);
  pln_compose_int(s, "group", pln_kernel_int(s->call, "groups", 1));
  if (transposed && pln_relay_ints(s->call, "output_padding", n, 0, more))
    pln_compose_ints(s, "output_padding", n, more);
  const pln_tensor *y = pln_compose_binary(
      s, transposed ? PLN_OP_CONV_TRANSPOSE : PLN_OP_CONV, x, w);
  return pln_compose_from_plain_layout(s, y, "out_layout", "data_layout",
                                       plain_data[n]);
}

/* Integers of at most 16 bits, whatever their dtype. */
static bool is_short(const pln_tensor *x) {
  const int32_t *in = x->data;
  if (x->dtype != PLN_INT32)
    return x->dtype == PLN_INT8 || x->dtype == PLN_UINT8 ||
           x->dtype == PLN_INT16 || x->dtype == PLN_UINT16;
  for (size_t i = 0; i < x->count; i++)
    if (in[i] < -UINT16_MAX || in[i] > UINT16_MAX)
      return false;
  return true;
}

/* Integer sums wrap. Sums of short integers are computed in double, which is
 * exact for them. */
static const pln_tensor *convolve_exactly(pln_composition *s,
                                          const pln_tensor *x,
                                          const pln_tensor *w, bool transposed,
                                          pln_dtype dtype) {
  const pln_tensor *y =
      convolve_plain_layout(s, pln_compose_cast(s, x, PLN_FLOAT64),
                            pln_compose_cast(s, w, PLN_FLOAT64), transposed);
  return pln_compose_cast(s, pln_compose_cast(s, y, PLN_INT64), dtype);
}

static const pln_tensor *convolve(pln_composition *s, const pln_tensor *x,
                                  const pln_tensor *w, bool transposed) {
  if (!x || !w)
    return NULL;
  pln_dtype dtype = sum_dtype(s->call, (pln_dtype)x->dtype);
  if (pln_dtype_is_float(dtype))
    return convolve_plain_layout(s, pln_compose_cast(s, x, dtype),
                                 pln_compose_cast(s, w, dtype), transposed);
  if (!is_short(x) || !is_short(w))
    pln_composition_refuse(s, "only integers of at most 16 bits are convolved");
  return convolve_exactly(s, x, w, transposed, dtype);
}

const pln_tensor *pln_compose_convolution(pln_composition *s,
                                          const pln_tensor *x,
                                          const pln_tensor *w) {
  return convolve(s, x, w, false);
}

static pln_status convolve_plain(pln_kernel_call *call, bool transposed) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(&s,
                                convolve(&s, pln_kernel_arg(call, 0),
                                         pln_kernel_arg(call, 1), transposed));
}

pln_status pln_kernel_conv_2d(pln_kernel_call *call) {
  return convolve_plain(call, false);
}

pln_status pln_kernel_conv_2d_transpose(pln_kernel_call *call) {
  return convolve_plain(call, true);
}

/* (data, offsets, weight) */
pln_status pln_kernel_deformable_conv_2d(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *args[3] = {
      pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 0), "data_layout",
                                  plain_data[2]),
      pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 2), "kernel_layout",
                                  plain_kernel[2]),
      pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 1), "data_layout",
                                  plain_data[2])};
  pln_compose_window(&s, 2, NULL);
  pln_compose_int(&s, "group", pln_kernel_int(call, "groups", 1));
  pln_compose_int(&s, "offset_group",
                  pln_kernel_int(call, "deformable_groups", 1));
  for (uint32_t i = 0; i < 3; i++)
    if (args[i] && args[i]->rank != 4)
      pln_composition_refuse(&s, "this form of the call is not implemented");
  const pln_tensor *y = pln_compose_call(&s, PLN_OP_DEFORM_CONV, 3, args);
  return pln_composition_finish(
      &s, pln_compose_from_plain_layout(&s, y, "out_layout", "data_layout",
                                        plain_data[2]));
}

/* ---------------------------------------------------------------- quantised */

/* The axis of the weight that holds the result's channels. */
static int32_t channel_axis(const pln_kernel_call *call, bool transposed) {
  const char *plain = transposed ? plain_transposed[2] : plain_kernel[2];
  pln_slice layout =
      pln_attrs_string(call->engine, call->attrs, "kernel_layout", plain);
  if (!layout.size)
    layout = pln_text(plain);
  bool swapped = transposed && layout.data[0] == 'O';
  const char *at = memchr(layout.data, swapped ? 'I' : 'O', layout.size);
  return at ? (int32_t)(at - layout.data) : -1;
}

/* (x, weight, their zero points, their scales): int32 sums of products, with
 * the product of the scales. Pads have the value of the zero point. */
static pln_status convolve_quantised(pln_kernel_call *call, bool transposed) {
  pln_composition s;
  if (sum_dtype(call, PLN_INT32) != PLN_INT32)
    return pln_kernel_refuse(call, "sums are computed in int32 only");
  pln_composition_begin(&s, call);
  if (!is_short(pln_kernel_arg(call, 0)) || !is_short(pln_kernel_arg(call, 1)))
    pln_composition_refuse(&s,
                           "only integers of at most 16 bits are convolved");
  const pln_tensor *x = pln_compose_centred(&s, 0, 2, -1);
  const pln_tensor *w =
      pln_compose_centred(&s, 1, 3, channel_axis(call, transposed));
  return pln_composition_finish(
      &s, convolve_exactly(&s, x, w, transposed, PLN_INT32));
}

pln_status pln_kernel_qnn_conv_2d(pln_kernel_call *call) {
  return convolve_quantised(call, false);
}

pln_status pln_kernel_qnn_conv_2d_transpose(pln_kernel_call *call) {
  return convolve_quantised(call, true);
}

/* ---------------------------------------------------------------- gradients */

/* Exchanges axes 0 and 1. */
static const pln_tensor *exchange(pln_composition *s, const pln_tensor *x) {
  static const int64_t perm[] = {1, 0, 2, 3};
  pln_compose_ints(s, "axes", 4, perm);
  return pln_compose_unary(s, PLN_OP_TRANSPOSE, x);
}

/* The first elements of the spatial axes, as many as the window has. */
static const pln_tensor *crop_window(pln_composition *s, const pln_tensor *x) {
  static const int64_t starts[] = {0, 0}, axes[] = {2, 3};
  int64_t window[PLN_WINDOW_AXES];
  if (!pln_kernel_list(s->call, PLN_NONE, "kernel_size").given ||
      !pln_relay_ints(s->call, "kernel_size", 2, 1, window))
    pln_composition_refuse(s, "kernel_size is missing");
  if (s->status != PLN_OK)
    return NULL;
  const pln_tensor *args[4] = {x, pln_compose_vector(s, 2, starts),
                               pln_compose_vector(s, 2, window),
                               pln_compose_vector(s, 2, axes)};
  return pln_compose_call(s, PLN_OP_SLICE, 4, args);
}

/* N (groups C) H W becomes C (groups N) H W. */
static const pln_tensor *exchange_groups(pln_composition *s,
                                         const pln_tensor *x, int64_t groups) {
  static const int64_t perm[] = {2, 1, 0, 3, 4};
  if (!x || x->rank != 4 || x->dims[1] < groups || x->dims[1] % groups) {
    pln_composition_refuse(s, "groups does not divide the channels");
    return NULL;
  }
  const int64_t *d = x->dims;
  int64_t c = d[1] / groups;
  int64_t split[5] = {d[0], groups, c, d[2], d[3]};
  int64_t joined[4] = {c, groups * d[0], d[2], d[3]};
  x = pln_compose_reshape(s, x, 5, split);
  return pln_compose_reshape(s, pln_compose_transpose(s, x, 5, perm), 4,
                             joined);
}

/* (gradient, data): convolves the data with the gradient; the batch is the
 * contracted axis, and strides and dilations are exchanged. */
pln_status pln_kernel_conv_2d_backward_weight(pln_kernel_call *call) {
  int64_t strides[PLN_WINDOW_AXES], dilations[PLN_WINDOW_AXES];
  int64_t pads[2 * PLN_WINDOW_AXES];
  int64_t groups = pln_kernel_int(call, "groups", 1);
  pln_composition s;
  if (groups < 1 || groups > INT32_MAX ||
      !pln_relay_ints(call, "strides", 2, 1, strides) ||
      !pln_relay_ints(call, "dilation", 2, 1, dilations) ||
      !pln_relay_pads(call, 2, pads))
    return pln_kernel_refuse(call, "this form of the call is not implemented");
  pln_composition_begin(&s, call);
  const pln_tensor *g = pln_compose_to_plain_layout(
      &s, pln_kernel_arg(call, 0), "kernel_layout", plain_data[2]);
  const pln_tensor *x = pln_compose_to_plain_layout(
      &s, pln_kernel_arg(call, 1), "data_layout", plain_data[2]);
  x = exchange_groups(&s, x, groups);
  g = exchange(&s, g);
  pln_compose_int(&s, "group", groups);
  pln_compose_ints(&s, "strides", 2, dilations);
  pln_compose_ints(&s, "dilations", 2, strides);
  pln_compose_ints(&s, "pads", 4, pads);
  const pln_tensor *w =
      crop_window(&s, exchange(&s, pln_compose_binary(&s, PLN_OP_CONV, x, g)));
  return pln_composition_finish(
      &s, pln_compose_from_plain_layout(&s, w, "out_layout", NULL,
                                        plain_kernel[2]));
}
