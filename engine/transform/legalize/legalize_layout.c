/* legalize_layout.c: legalisations that move axes: transposed convolutions and
 * gradients of weights in the layouts that kernels have, takes from tensors of
 * unknown extents.
 *
 * Called by legalize.c.
 *
 *     take(%x: Tensor[(?), int32], %i)   =>   take(stop_fusion(%x), %i)
 *
 * Semantics: TVM's take_legalize, conv2d_transpose_legalize,
 * conv3d_transpose_legalize, legalize_conv2d_backward_weight. */

#include "transform/legalize/legalize.h"

static bool is_dynamic(const pln_engine *e, pln_type type) {
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR)
    return false;
  for (int32_t i = 0; i < pln_type_rank(e, type); i++)
    if (!PLN_DIM_IS_CONST(pln_type_dims(e, type)[i]))
      return true;
  return false;
}

/* ONNX has no such mark; a model of it stays. */
pln_status pln_legalize_take(const pln_legalization *l, pln_ref *out) {
  pln_relay_builder r;
  if (l->n_args != 2 || !is_dynamic(l->engine, pln_legalize_type(l, 0)) ||
      pln_function_is_onnx(l->graph))
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, l->rw));
  pln_ref args[] = {pln_relay_call(&r, PLN_OP_STOP_FUSION, 1, l->args[0]),
                    l->args[1]};
  *out = pln_relay_call_core(&r, PLN_OP_GATHER, l->attrs, 2, args);
  return pln_relay_status(&r);
}

/* ---------------------------------------------------- transposed convolutions
 */

/* Where the axes of `to` are in `from`. False if they are not the same. */
static bool find_axes(pln_slice from, const char *to, uint32_t n,
                      int64_t *axes) {
  if (from.size != n)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    const char *at = memchr(from.data, to[i], from.size);
    if (!at)
      return false;
    axes[i] = at - from.data;
  }
  return true;
}

static pln_status transposed(const pln_legalization *l, uint32_t n,
                             const char *data_layout, const char *kernel_layout,
                             const int64_t *inward, const int64_t *weight_axes,
                             bool moves_weight, pln_ref *out) {
  int64_t outward[5] = {0};
  pln_relay_builder r;
  pln_attrs attrs = l->attrs;
  PLN_TRY(pln_legalize_set_text(l, "data_layout", data_layout, &attrs));
  PLN_TRY(pln_legalize_set_text(l, "kernel_layout", kernel_layout, &attrs));
  PLN_TRY(pln_relay_begin(&r, l->rw));
  pln_ref args[] = {l->args[0], l->args[1]};
  if (moves_weight)
    args[1] = pln_legalize_transpose(&r, args[1], n, weight_axes);
  if (inward)
    args[0] = pln_legalize_transpose(&r, args[0], n, inward);
  *out = pln_relay_call_core(&r, l->graph->nodes[l->old].data, attrs, 2, args);
  for (uint32_t i = 0; i < n && inward; i++)
    outward[inward[i]] = i;
  if (inward)
    *out = pln_legalize_transpose(&r, *out, n, outward);
  return pln_relay_status(&r);
}

pln_status pln_legalize_conv2d_transpose(const pln_legalization *l,
                                         pln_ref *out) {
  static const int64_t inward[] = {0, 3, 1, 2};
  int64_t weight[4];
  pln_slice kernel = pln_legalize_text(l, "kernel_layout");
  pln_slice data = pln_legalize_text(l, "data_layout");
  bool nhwc = pln_slice_is(data, "NHWC");
  bool stays = pln_slice_is(kernel, "IOHW");
  if ((!nhwc && (stays || !pln_slice_is(data, "NCHW"))) ||
      pln_legalize_text(l, "out_layout").size ||
      !find_axes(kernel, "IOHW", 4, weight))
    return PLN_OK;
  return transposed(l, 4, "NCHW", "IOHW", nhwc ? inward : NULL, weight, !stays,
                    out);
}

/* "OIDHW", the default, means IODHW here, as in TVM; it stays. */
pln_status pln_legalize_conv3d_transpose(const pln_legalization *l,
                                         pln_ref *out) {
  static const int64_t inward[] = {0, 4, 1, 2, 3};
  int64_t weight[5];
  pln_slice kernel = pln_legalize_text(l, "kernel_layout");
  if (!pln_slice_is(pln_legalize_text(l, "data_layout"), "NDHWC") ||
      pln_legalize_text(l, "out_layout").size ||
      pln_slice_is(kernel, "OIDHW") || !find_axes(kernel, "IODHW", 5, weight))
    return PLN_OK;
  return transposed(l, 5, "NCDHW", "IODHW", inward, weight,
                    !pln_slice_is(kernel, "IODHW"), out);
}

/* ------------------------------------------------------- gradients of weights
 */

typedef struct gradient {
  const pln_dim *grad, *data, *weight;
  int64_t strides[2], dilation[2], pads[4], groups;
} gradient;

static bool read_pair(const pln_legalization *l, const char *name,
                      int64_t *out) {
  pln_attr value;
  if (pln_relay_get(l->engine, PLN_OP_CONV_2D_BACKWARD_WEIGHT, l->attrs, name,
                    &value) != PLN_OK ||
      value.kind != PLN_ATTR_INTS || value.count != 2 || value.v.ints[0] < 1 ||
      value.v.ints[1] < 1)
    return false;
  out[0] = value.v.ints[0];
  out[1] = value.v.ints[1];
  return true;
}

/* Only for the layouts of channels first. */
static bool read_gradient(const pln_legalization *l, gradient *g) {
  pln_type result = pln_legalize_result(l);
  pln_attr pads;
  g->grad = pln_legalize_dims(l, 0, 4);
  g->data = pln_legalize_dims(l, 1, 4);
  g->groups = pln_attrs_int(l->engine, l->attrs, "groups", 1);
  if (!g->grad || !g->data || g->groups < 1 ||
      pln_type_get_kind(l->engine, result) != PLN_TYPE_TENSOR ||
      pln_type_rank(l->engine, result) != 4 ||
      !pln_slice_is(pln_legalize_text(l, "data_layout"), "NCHW") ||
      !read_pair(l, "strides", g->strides) ||
      !read_pair(l, "dilation", g->dilation) ||
      pln_relay_get(l->engine, PLN_OP_CONV_2D_BACKWARD_WEIGHT, l->attrs,
                    "padding", &pads) != PLN_OK ||
      pads.kind != PLN_ATTR_INTS || (pads.count != 2 && pads.count != 4))
    return false;
  g->weight = pln_type_dims(l->engine, result);
  for (uint32_t i = 0; i < 4; i++)
    g->pads[i] = pads.v.ints[i % pads.count];
  return true;
}

static pln_ref reshape_to(pln_relay_builder *r, pln_ref x, uint32_t n,
                          const int64_t *shape) {
  const pln_relay_attr attr = pln_relay_ints("newshape", n, shape);
  return pln_relay_call_with(r, PLN_OP_RESHAPE, 1, &attr, 1, &x);
}

/* The convolution of all channels of the data with those of the gradient, as
 * groups. */
static pln_ref convolve(pln_relay_builder *r, const pln_legalization *l,
                        const gradient *g) {
  const int64_t reps[] = {1, g->data[1] / g->groups, 1, 1};
  const int64_t by_channel[] = {-1, 1, 0, 0}, in_one_batch[] = {1, -1, 0, 0};
  const pln_relay_attr tiling = pln_relay_ints("reps", 4, reps);
  pln_ref grad =
      pln_relay_call_with(r, PLN_OP_TILE, 1, &tiling, 1, &l->args[0]);
  pln_slice dtype = pln_legalize_text(l, "out_dtype");
  const pln_relay_attr attrs[] = {
      pln_relay_ints("strides", 2, g->dilation),
      pln_relay_ints("padding", 4, g->pads),
      pln_relay_ints("dilation", 2, g->strides),
      pln_relay_int("groups", g->data[1] * g->data[0]),
      {"out_dtype", {.kind = PLN_ATTR_STRING, .v.s = dtype}}};
  grad = reshape_to(r, grad, 4, by_channel);
  pln_ref args[] = {reshape_to(r, l->args[1], 4, in_one_batch), grad};
  return pln_relay_call_with(r, PLN_OP_CONV_2D, 4 + (dtype.size > 0), attrs, 2,
                             args);
}

static int64_t padded_extent(const gradient *g, uint32_t i) {
  int64_t free = g->data[2 + i] - (g->grad[2 + i] - 1) * g->strides[i] - 1 +
                 g->pads[i] + g->pads[2 + i];
  return free < 0 ? 0 : free / g->dilation[i] + 1;
}

pln_status pln_legalize_conv2d_backward_weight(const pln_legalization *l,
                                               pln_ref *out) {
  static const int64_t batch = 0, swap[] = {1, 0, 2, 3};
  pln_relay_builder r;
  gradient g;
  if (!read_gradient(l, &g))
    return PLN_OK;
  int64_t channels = g.data[1] / g.groups;
  const int64_t shape[] = {g.data[0], channels, g.grad[1], padded_extent(&g, 0),
                           padded_extent(&g, 1)};
  const int64_t begin[4] = {0}, strides[] = {1};
  const int64_t end[] = {g.grad[1], channels, g.weight[2], g.weight[3]};
  const pln_relay_attr sum = pln_relay_ints("axis", 1, &batch);
  const pln_relay_attr slice[] = {pln_relay_ints("begin", 4, begin),
                                  pln_relay_ints("end", 4, end),
                                  pln_relay_ints("strides", 1, strides)};
  if (shape[3] < g.weight[2] || shape[4] < g.weight[3])
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, l->rw));
  pln_ref x = reshape_to(&r, convolve(&r, l, &g), 5, shape);
  x = pln_relay_call_with(&r, PLN_OP_REDUCE_SUM, 1, &sum, 1, &x);
  *out = pln_legalize_transpose(&r, x, 4, swap);
  if (shape[3] > g.weight[2] || shape[4] > g.weight[3])
    *out = pln_relay_call_with(&r, PLN_OP_SLICE, 3, slice, 1, out);
  return pln_relay_status(&r);
}
