/* conv.c: type inference of Relay's convolutions over one to three axes (plain,
 * transposed, quantised, bit-packed), and of dilations and correlations. Called
 * through ops.def; the kernels are in relay/kernel/conv.c. Layouts are
 * attributes; the window is the weight's unless an attribute gives it. */

#include "op/infer/window.h"
#include "op/relay/data_layout.h"

/* Spatial axes and default layouts, by rank. */
typedef struct conv_form {
  const char *space; /* "HW" */
  const char *data, *kernel;
} conv_form;

static const conv_form forms[] = {
    {"W", "NCW", "OIW"}, {"HW", "NCHW", "OIHW"}, {"DHW", "NCDHW", "OIDHW"}};

/* The kernel of a dilation is added, one per channel. */
static const conv_form dilation = {"HW", "NCHW", "IHW"};

static const conv_form *conv_form_of(pln_op op) {
  switch (op) {
  case PLN_OP_CONV_1D:
  case PLN_OP_CONV_1D_TRANSPOSE: return &forms[0];
  case PLN_OP_CONV_3D:
  case PLN_OP_CONV_3D_WINOGRAD:
  case PLN_OP_CONV_3D_TRANSPOSE: return &forms[2];
  case PLN_OP_DILATION_2D: return &dilation;
  default: return &forms[1];
  }
}

/* The attributes and shapes of a call. */
typedef struct conv_call {
  const conv_form *form;
  uint32_t n; /* number of spatial axes */
  pln_data_layout data, kernel, out;
  pln_shape x, w;
} conv_call;

/* Returns true for weights in the form of a special algorithm, whose shape is
 * arbitrary. Blocked weights are read where attributes give no window. */
static bool hides_weight(const pln_infer *call) {
  pln_op op = call->op;
  return op == PLN_OP_CONV_2D_WINOGRAD || op == PLN_OP_CONV_3D_WINOGRAD ||
         op == PLN_OP_CONV_2D_GEMM || op == PLN_OP_BITSERIAL_CONV_2D ||
         (op == PLN_OP_CONV_2D_NCHWC && pln_call_has(call, "channels") &&
          pln_call_has(call, "kernel_size"));
}

/* Checks that attributes give the window if the weight's shape does not. */
static pln_status expect_window(const pln_infer *call, const conv_call *c) {
  uint32_t n;
  if (pln_call_int(call, "channels", -1) < 0)
    return pln_call_error(call, "channels is missing");
  (void)pln_call_ints(call, "kernel_size", &n);
  if (n != c->n && call->op != PLN_OP_BITSERIAL_CONV_2D)
    return pln_call_error(call, "kernel_size is missing");
  return PLN_OK;
}

static pln_status read_conv_call(const pln_infer *call, conv_call *c) {
  bool hidden = hides_weight(call);
  pln_slice text =
      pln_attrs_string(call->engine, call->attrs, "data_layout", "");
  c->form = conv_form_of(call->op);
  c->n = (uint32_t)strlen(c->form->space);
  PLN_TRY(pln_data_layout_of(call, "data_layout", c->form->data, &c->data));
  PLN_TRY(
      pln_data_layout_of(call, "kernel_layout", c->form->kernel, &c->kernel));
  if (call->op == PLN_OP_CONV_2D_BACKWARD_WEIGHT || text.size == 0 ||
      !pln_call_string_is(call, "out_layout", "", ""))
    PLN_TRY(pln_data_layout_of(call, "out_layout", c->form->data, &c->out));
  else
    c->out = c->data;
  PLN_TRY(pln_arg_expect_rank(call, 0, c->data.rank));
  if (!hidden)
    PLN_TRY(pln_arg_expect_rank(call, 1, c->kernel.rank));
  pln_arg_shape(call, 0, &c->x);
  pln_arg_shape(call, 1, &c->w);
  if (c->x.rank < 0)
    pln_shape_ranked(&c->x, c->data.rank);
  if (c->w.rank < 0 || hidden)
    pln_shape_ranked(&c->w, c->kernel.rank);
  return hidden ? expect_window(call, c) : PLN_OK;
}

/* The extent of the window along spatial axis i. */
static pln_status window_extent(const pln_infer *call, const conv_call *c,
                                uint32_t i, pln_dim *out) {
  uint32_t n;
  const int64_t *given = pln_call_ints(call, "kernel_size", &n);
  bool found;
  if (given && i < n) {
    *out = given[i];
    return PLN_OK;
  }
  if (call->op == PLN_OP_BITSERIAL_CONV_2D) {
    *out = 3; /* the default of the attribute */
    return PLN_OK;
  }
  return pln_data_layout_extent(call, &c->kernel, c->w.dims, c->form->space[i],
                                out, &found);
}

/* (extent - 1) * dilation + 1 */
static pln_status reach_of(const pln_infer *call, const conv_call *c,
                           uint32_t i, pln_dim *out) {
  const char *name = c->form == &dilation ? "dilations" : "dilation";
  PLN_TRY(window_extent(call, c, i, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *out, 1, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *out,
                        pln_window_int(call, name, i, 1), out));
  return pln_infer_dim(call, PLN_DIM_ADD, *out, 1, out);
}

/* (extent + pads - reach) / stride + 1: the output extent of a convolution */
static pln_status slid(const pln_infer *call, const conv_call *c, uint32_t i,
                       pln_dim extent, pln_dim *out) {
  pln_dim reach;
  int64_t stride = pln_window_int(call, "strides", i, 1);
  if (stride < 1)
    return pln_call_error(call, "stride %lld", (long long)stride);
  PLN_TRY(reach_of(call, c, i, &reach));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, extent,
                        pln_window_pads(call, c->n, i), out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *out, reach, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *out, stride, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *out, 1, out));
  if (PLN_DIM_IS_CONST(*out) && *out < 0)
    return pln_call_error(call, "the window is larger than axis %c",
                          c->form->space[i]);
  return PLN_OK;
}

/* (extent - 1) * stride + reach - pads + output padding: of a transposed one */
static pln_status unslid(const pln_infer *call, const conv_call *c, uint32_t i,
                         pln_dim extent, pln_dim *out) {
  pln_dim reach;
  PLN_TRY(reach_of(call, c, i, &reach));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, extent, 1, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *out,
                        pln_window_int(call, "strides", i, 1), out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *out, reach, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *out, pln_window_pads(call, c->n, i),
                        out));
  return pln_infer_dim(call, PLN_DIM_ADD, *out,
                       pln_window_int(call, "output_padding", i, 0), out);
}

/* The number of output channels, from the weight. */
static pln_status out_channels(const pln_infer *call, const conv_call *c,
                               bool transposed, pln_dim *out) {
  const pln_attr *given = pln_attrs_find(call->engine, call->attrs, "channels");
  bool found;
  if (given && given->kind == PLN_ATTR_INT) {
    *out = given->v.i;
    return PLN_OK;
  }
  /* TVM writes the layout of a transposed kernel with the operand's channels as
   * O or as I; the result's channels are on the other axis. */
  bool swapped = transposed && c->kernel.rank > 1 && c->kernel.letter[0] == 'O';
  if (c->form == &dilation)
    swapped = true;
  PLN_TRY(pln_data_layout_extent(call, &c->kernel, c->w.dims,
                                 swapped ? 'I' : 'O', out, &found));
  return transposed ? pln_infer_dim(call, PLN_DIM_MUL, *out,
                                    pln_call_int(call, "groups", 1), out)
                    : PLN_OK;
}

/* The result's shape in the plain layout: batch, channels, space. */
static pln_status plain_result(const pln_infer *call, const conv_call *c,
                               bool transposed, pln_shape *out) {
  bool found;
  pln_dim extent;
  pln_shape_ranked(out, (int64_t)c->n + 2);
  PLN_TRY(pln_data_layout_extent(call, &c->data, c->x.dims, 'N', &out->dims[0],
                                 &found));
  PLN_TRY(out_channels(call, c, transposed, &out->dims[1]));
  for (uint32_t i = 0; i < c->n; i++) {
    PLN_TRY(pln_data_layout_extent(call, &c->data, c->x.dims, c->form->space[i],
                                   &extent, &found));
    if (!found)
      return pln_call_error(call, "data_layout has no axis %c",
                            c->form->space[i]);
    PLN_TRY(
        (transposed ? unslid : slid)(call, c, i, extent, &out->dims[2 + i]));
  }
  return PLN_OK;
}

/* True for depthwise weights of Relay's second form: as many as the operand has
 * channels, and the results of each of them (C, multiplier, H, W). */
static pln_status has_multiplier(const pln_infer *call, const conv_call *c,
                                 bool *out) {
  int64_t groups = pln_call_int(call, "groups", 1);
  bool found_x, found_o, found_i;
  pln_dim x, o, i;
  *out = false;
  if (call->op != PLN_OP_CONV_2D || groups < 2 || c->w.rank < 0)
    return PLN_OK;
  PLN_TRY(pln_data_layout_extent(call, &c->data, c->x.dims, 'C', &x, &found_x));
  PLN_TRY(
      pln_data_layout_extent(call, &c->kernel, c->w.dims, 'O', &o, &found_o));
  PLN_TRY(
      pln_data_layout_extent(call, &c->kernel, c->w.dims, 'I', &i, &found_i));
  *out = found_x && found_o && found_i && x == groups && o == groups &&
         PLN_DIM_IS_CONST(i) && i > 1 && i <= INT32_MAX &&
         pln_call_int(call, "channels", -1) == i * groups;
  return PLN_OK;
}

/* The weight's channel extents in its plain layout: the result's, and the
 * operand's divided by the number of groups. In a transposed convolution the
 * operand's come first. */
static pln_status weight_channels(const pln_infer *call, const conv_call *c,
                                  bool transposed, pln_dim *out) {
  int64_t groups = pln_call_int(call, "groups", 1);
  bool found;
  out[transposed] = pln_call_int(call, "channels", -1);
  PLN_TRY(pln_data_layout_extent(call, &c->data, c->x.dims, 'C',
                                 &out[!transposed], &found));
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, out[1], groups, &out[1]);
}

/* Sets the weight's type from attributes alone. */
static pln_status set_conv_weight_type(pln_infer *call, const conv_call *c,
                                       bool transposed) {
  uint32_t n;
  const int64_t *window = pln_call_ints(call, "kernel_size", &n);
  char order[] = "OIDHW";
  pln_data_layout plain;
  pln_shape shape, w;
  if (!window || n != c->n || pln_call_int(call, "channels", -1) < 0 ||
      pln_call_int(call, "groups", 1) < 1 || !call->operands)
    return PLN_OK;
  pln_shape_ranked(&shape, (int64_t)c->n + 2);
  PLN_TRY(weight_channels(call, c, transposed, shape.dims));
  for (uint32_t i = 0; i < n; i++)
    shape.dims[2 + i] = window[i];
  memcpy(order, c->form->kernel, n + 3);
  if (transposed && c->kernel.rank > 0 && c->kernel.letter[0] != 'O')
    memcpy(order, "IO", 2);
  (void)pln_data_layout_read(pln_text(order), &plain);
  PLN_TRY(pln_data_layout_convert(call, &plain, &shape, &c->kernel, &w));
  return pln_set_operand_type(call, 1, pln_arg_dtype(call, 0), &w);
}

/* The types of transformed or packed weights are not set. */
static bool has_plain_weight(pln_op op) {
  return op == PLN_OP_CONV_1D || op == PLN_OP_CONV_2D || op == PLN_OP_CONV_3D ||
         op == PLN_OP_CONV_1D_TRANSPOSE || op == PLN_OP_CONV_2D_TRANSPOSE ||
         op == PLN_OP_CONV_3D_TRANSPOSE;
}

/* Checks the operand's channels against the weight's: equal, or for a plain
 * convolution those of one group. Unknown extents pass. */
static pln_status check_channels(const pln_infer *call, const conv_call *c,
                                 bool transposed) {
  int64_t groups = pln_call_int(call, "groups", 1);
  bool swapped = transposed && c->kernel.rank > 1 && c->kernel.letter[0] == 'O';
  bool found;
  pln_dim x, w;
  PLN_TRY(pln_data_layout_extent(call, &c->data, c->x.dims, 'C', &x, &found));
  if (!found || !PLN_DIM_IS_CONST(x))
    return PLN_OK;
  PLN_TRY(pln_data_layout_extent(call, &c->kernel, c->w.dims,
                                 swapped ? 'O' : 'I', &w, &found));
  if (!found || !PLN_DIM_IS_CONST(w) || groups < 1)
    return PLN_OK;
  if (!transposed && (x % groups != 0 || x / groups != w))
    return pln_call_error(call,
                          "expected %lld channels a group, got %lld in "
                          "%lld groups",
                          (long long)w, (long long)x, (long long)groups);
  if (transposed && x != w)
    return pln_call_error(call, "expected %lld channels, got %lld",
                          (long long)w, (long long)x);
  return PLN_OK;
}

/* Checks the attribute against the weight of a convolution without groups: with
 * groups the weight's axes may count channels of a group. */
static pln_status check_result_channels(const pln_infer *call,
                                        const conv_call *c) {
  int64_t channels = pln_call_int(call, "channels", -1);
  bool found;
  pln_dim w;
  if (channels < 0 || pln_call_int(call, "groups", 1) != 1)
    return PLN_OK;
  PLN_TRY(pln_data_layout_extent(call, &c->kernel, c->w.dims, 'O', &w, &found));
  if (!found || !PLN_DIM_IS_CONST(w) || w == channels)
    return PLN_OK;
  return pln_call_error(call, "channels is %lld, but the weight has %lld",
                        (long long)channels, (long long)w);
}

static pln_status infer_form(pln_infer *call, bool transposed,
                             pln_dtype fallback) {
  conv_call c;
  pln_data_layout plain;
  pln_shape result, out;
  bool multiplied;
  PLN_TRY(read_conv_call(call, &c));
  PLN_TRY(has_multiplier(call, &c, &multiplied));
  if (has_plain_weight(call->op) && !multiplied) {
    PLN_TRY(set_conv_weight_type(call, &c, transposed));
    PLN_TRY(check_channels(call, &c, transposed));
    if (!transposed)
      PLN_TRY(check_result_channels(call, &c));
  }
  PLN_TRY(plain_result(call, &c, transposed, &result));
  (void)pln_data_layout_read(pln_text(c.form->data), &plain);
  PLN_TRY(pln_data_layout_convert(call, &plain, &result, &c.out, &out));
  return pln_result_tensor(call, 0, pln_call_dtype(call, "out_dtype", fallback),
                           &out);
}

pln_status pln_infer_conv_2d(pln_infer *call) {
  return infer_form(call, false, pln_arg_dtype(call, 0));
}

pln_status pln_infer_conv_2d_transpose(pln_infer *call) {
  return infer_form(call, true, pln_arg_dtype(call, 0));
}

/* (data, offsets, weight) */
pln_status pln_infer_deformable_conv_2d(pln_infer *call) {
  pln_ref args[2] = {call->args[0], call->args[2]};
  pln_infer plain = *call;
  if (call->fields)
    return PLN_OK;
  plain.args = args;
  plain.n_args = 2;
  plain.operands = NULL;
  return infer_form(&plain, false, pln_arg_dtype(call, 0));
}

pln_status pln_infer_qnn_conv_2d(pln_infer *call) {
  return infer_form(call, false, PLN_INT32);
}

/* The maximal displacement between two windows of a correlation, in steps on
 * each side, and the border that is cut from an image. */
static pln_status displacements(const pln_infer *call, int64_t *steps,
                                int64_t *border) {
  int64_t size = pln_call_int(call, "kernel_size", 1);
  int64_t most = pln_call_int(call, "max_displacement", 1);
  int64_t step = pln_call_int(call, "stride2", 1);
  if (size < 1 || size > INT16_MAX || most < 0 || most > INT16_MAX)
    return pln_call_error(call, "kernel_size %lld, max_displacement %lld",
                          (long long)size, (long long)most);
  if (step < 1)
    return pln_call_error(call, "stride2 is %lld", (long long)step);
  *steps = most / step;
  *border = most + (size - 1) / 2;
  return PLN_OK;
}

/* (extent + pads - 2 * border) / stride1, rounded up */
static pln_status correlated(const pln_infer *call, uint32_t i, int64_t border,
                             pln_dim extent, pln_dim *out) {
  int64_t stride = pln_call_int(call, "stride1", 1);
  if (stride < 1 || stride > INT16_MAX)
    return pln_call_error(call, "stride1 is %lld", (long long)stride);
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, extent, pln_window_pads(call, 2, i),
                        out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *out, stride - 1 - 2 * border, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *out, stride, out));
  if (PLN_DIM_IS_CONST(*out) && *out < 0)
    return pln_call_error(call, "the window is larger than axis %c", "HW"[i]);
  return PLN_OK;
}

/* (image, image): one channel per displacement. */
pln_status pln_infer_correlation(pln_infer *call) {
  int64_t steps = 0, border = 0;
  pln_shape x;
  if (!pln_call_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_call_error(call, "layout is not NCHW");
  PLN_TRY(displacements(call, &steps, &border));
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank(call, 1, 4));
  pln_arg_shape(call, 0, &x);
  if (x.rank < 0)
    pln_shape_ranked(&x, 4);
  x.dims[1] = (2 * steps + 1) * (2 * steps + 1);
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(correlated(call, i, border, x.dims[2 + i], &x.dims[2 + i]));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* (gradient, data): the gradient of the weight, for the given window. */
pln_status pln_infer_conv_2d_backward_weight(pln_infer *call) {
  static const pln_data_layout plain = {4, "OIHW", {0}};
  pln_data_layout data, gradient, out_layout;
  pln_shape g, x, weight, out;
  uint32_t n;
  const int64_t *window = pln_call_ints(call, "kernel_size", &n);
  int64_t groups = pln_call_int(call, "groups", 1);
  bool found;
  PLN_TRY(pln_data_layout_of(call, "kernel_layout", "NCHW", &gradient));
  PLN_TRY(pln_data_layout_of(call, "data_layout", "NCHW", &data));
  PLN_TRY(pln_data_layout_of(call, "out_layout", "OIHW", &out_layout));
  PLN_TRY(pln_arg_expect_rank(call, 0, gradient.rank));
  PLN_TRY(pln_arg_expect_rank(call, 1, data.rank));
  pln_arg_shape(call, 0, &g);
  pln_arg_shape(call, 1, &x);
  pln_shape_ranked(&weight, 4);
  if (g.rank >= 0)
    PLN_TRY(pln_data_layout_extent(call, &gradient, g.dims, 'C',
                                   &weight.dims[0], &found));
  if (x.rank >= 0)
    PLN_TRY(pln_data_layout_extent(call, &data, x.dims, 'C', &weight.dims[1],
                                   &found));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, weight.dims[1],
                        groups > 0 ? groups : 1, &weight.dims[1]));
  for (uint32_t i = 0; window && n == 2 && i < 2; i++)
    weight.dims[2 + i] = window[i];
  PLN_TRY(pln_data_layout_convert(call, &plain, &weight, &out_layout, &out));
  return pln_result_tensor(
      call, 0, pln_call_dtype(call, "out_dtype", pln_arg_dtype(call, 0)), &out);
}

pln_status pln_infer_qnn_conv_2d_transpose(pln_infer *call) {
  return infer_form(call, true, PLN_INT32);
}
