/* plan.c: reads and checks the plan of a convolution. Called by the kernels of
 * plain and transposed convolutions.
 *
 * Nothing here trusts inference: weights, groups, strides and pads may come
 * from a hostile file. Extents are bounded by LARGE, so that sums and products
 * of two of them fit. */

#include "op/kernel/conv/plan.h"

#include "op/kernel/half_as_float.h"

/* Bound of an extent, a stride, a pad. */
enum { LARGE = 1 << 30 };

/* --------------------------------------------------------------- attributes */

/* Element `i` of an attribute of `want` elements, within [least, LARGE]. */
static pln_status read_at(const pln_kernel_call *call, const char *name,
                          uint32_t want, uint32_t i, int64_t least,
                          int64_t *out) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  if (list.count == 0)
    return PLN_OK;
  if (list.count != want || !list.ints)
    return pln_kernel_refuse(call, "expected %u %s, got %u", want, name,
                             list.count);
  *out = list.ints[i];
  if (*out < least || *out > LARGE)
    return pln_kernel_refuse(call, "%s[%u] is %lld, not within %lld to %d",
                             name, i, (long long)*out, (long long)least, LARGE);
  return PLN_OK;
}

static pln_status read_motion(const pln_kernel_call *call, uint32_t space,
                              uint32_t i, pln_conv_axis *axis, int64_t *end) {
  int64_t window = axis->window;
  axis->stride = axis->dilation = 1;
  axis->begin = *end = 0;
  PLN_TRY(read_at(call, "strides", space, i, 1, &axis->stride));
  PLN_TRY(read_at(call, "dilations", space, i, 1, &axis->dilation));
  PLN_TRY(read_at(call, "pads", 2 * space, i, 0, &axis->begin));
  PLN_TRY(read_at(call, "pads", 2 * space, space + i, 0, end));
  PLN_TRY(read_at(call, "kernel_shape", space, i, 1, &window));
  if (window != axis->window)
    return pln_kernel_refuse(call, "kernel_shape[%u] is %lld, of weights %lld",
                             i, (long long)window, (long long)axis->window);
  if (axis->in > LARGE || axis->window > LARGE || axis->window < 1)
    return pln_kernel_refuse(call, "axis %u: a window of %lld over %lld", i + 2,
                             (long long)axis->window, (long long)axis->in);
  return PLN_OK;
}

static bool pads_are(const pln_kernel_call *call, const char *mode) {
  return pln_kernel_string_is(call, "auto_pad", "NOTSET", mode);
}

/* The leading part of a padding that both ends share. */
static int64_t leading_pad(const pln_kernel_call *call, int64_t total) {
  return pads_are(call, "SAME_LOWER") ? total - total / 2 : total / 2;
}

static int64_t dilated_kernel_extent(const pln_conv_axis *axis) {
  return (axis->window - 1) * axis->dilation + 1;
}

/* -------------------------------------------------------------------- plain */

static pln_status slide(const pln_kernel_call *call, uint32_t i, int64_t end,
                        pln_conv_axis *axis) {
  if (pads_are(call, "SAME_UPPER") || pads_are(call, "SAME_LOWER")) {
    axis->out = (axis->in + axis->stride - 1) / axis->stride;
    int64_t total =
        (axis->out - 1) * axis->stride + dilated_kernel_extent(axis) - axis->in;
    axis->begin = leading_pad(call, total > 0 ? total : 0);
    return PLN_OK;
  }
  if (!pads_are(call, "NOTSET"))
    axis->begin = end = 0;
  int64_t room = axis->in + axis->begin + end - dilated_kernel_extent(axis);
  if (room < 0 && axis->in > 0)
    return pln_kernel_refuse(call, "axis %u: the window is larger than %lld",
                             i + 2, (long long)axis->in);
  axis->out = room < 0 ? 0 : room / axis->stride + 1;
  return PLN_OK;
}

/* --------------------------------------------------------------- transposed */

/* auto_pad and output_shape determine the extent, which determines the pads. */
static pln_status unslide(const pln_kernel_call *call, uint32_t space,
                          uint32_t i, int64_t end, pln_conv_axis *axis) {
  int64_t extra = 0, wanted = -1;
  PLN_TRY(read_at(call, "output_padding", space, i, 0, &extra));
  PLN_TRY(read_at(call, "output_shape", space, i, 0, &wanted));
  int64_t full = axis->in ? (axis->in - 1) * axis->stride : 0;
  full += dilated_kernel_extent(axis) + extra;
  bool same = pads_are(call, "SAME_UPPER") || pads_are(call, "SAME_LOWER");
  if (same && wanted < 0)
    wanted = axis->in * axis->stride;
  if (wanted >= 0) {
    int64_t total = full - wanted;
    axis->out = wanted;
    axis->begin = total > 0 ? total / 2 : 0;
    if (total > 0 && !pads_are(call, "SAME_UPPER"))
      axis->begin = total - total / 2;
    return PLN_OK;
  }
  if (!pads_are(call, "NOTSET"))
    axis->begin = end = 0;
  axis->out = axis->in ? full - axis->begin - end : 0;
  if (axis->out < 0)
    return pln_kernel_refuse(call, "axis %u: pads remove all of extent %lld",
                             i + 2, (long long)axis->in);
  return PLN_OK;
}

/* ------------------------------------------------------------------ reading */

static pln_status read_conv_axes(const pln_kernel_call *call, bool transposed,
                                 const pln_tensor *x, const pln_tensor *w,
                                 pln_conv_plan *p) {
  for (uint32_t i = 0; i < PLN_CONV_AXES; i++)
    p->axis[i] = (pln_conv_axis){
        .in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
  p->space = x->rank - 2;
  for (uint32_t i = 0; i < p->space; i++) {
    pln_conv_axis *axis = &p->axis[PLN_CONV_AXES - p->space + i];
    int64_t end;
    axis->in = x->dims[i + 2];
    axis->window = w->dims[i + 2];
    PLN_TRY(read_motion(call, p->space, i, axis, &end));
    if (transposed)
      PLN_TRY(unslide(call, p->space, i, end, axis));
    else
      PLN_TRY(slide(call, i, end, axis));
  }
  return PLN_OK;
}

static size_t product_of(const pln_conv_plan *p, size_t offset) {
  size_t product = 1;
  for (uint32_t i = 0; i < PLN_CONV_AXES; i++) {
    int64_t extent;
    memcpy(&extent, (const char *)&p->axis[i] + offset, sizeof extent);
    product *= (size_t)extent;
  }
  return product;
}

/* Weights are (out, in / group, ...), or of a transposed convolution (in, out /
 * group, ...). */
static pln_status read_channels(const pln_kernel_call *call, bool transposed,
                                const pln_tensor *x, const pln_tensor *w,
                                pln_conv_plan *p) {
  int64_t groups = pln_kernel_int(call, "group", 1);
  int64_t split = w->dims[0];
  if (groups < 1 || split % groups || x->dims[1] % groups)
    return pln_kernel_refuse(call, "%lld groups of %lld and %lld channels",
                             (long long)groups, (long long)x->dims[1],
                             (long long)split);
  int64_t meets = transposed ? split / groups : w->dims[1];
  if (x->dims[1] / groups != meets)
    return pln_kernel_refuse(call, "expected %lld channels a group, got %lld",
                             (long long)meets,
                             (long long)(x->dims[1] / groups));
  p->batch = (size_t)x->dims[0];
  p->groups = (size_t)groups;
  p->in = (size_t)meets;
  p->out = (size_t)(transposed ? w->dims[1] : split / groups);
  return PLN_OK;
}

static pln_status check_bias(const pln_kernel_call *call,
                             const pln_conv_plan *p) {
  const pln_tensor *bias = pln_kernel_arg(call, 2);
  if (!bias || (bias->rank == 1 && bias->count == p->groups * p->out &&
                bias->dtype == pln_kernel_arg(call, 0)->dtype))
    return PLN_OK;
  return pln_kernel_refuse(call, "the bias must be %zu elements of %s",
                           p->groups * p->out,
                           pln_dtype_name((pln_dtype)call->args[0]->dtype));
}

static pln_status read_plan(const pln_kernel_call *call, bool transposed,
                            pln_conv_plan *p) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  *p = (pln_conv_plan){0};
  if (!x || !w || x->dtype != w->dtype || x->rank != w->rank || x->rank < 3)
    return pln_kernel_refuse(call, "operands do not match each other");
  if (x->rank > 2 + PLN_CONV_AXES)
    return pln_kernel_refuse(call, "more than %d spatial axes", PLN_CONV_AXES);
  PLN_TRY(read_conv_axes(call, transposed, x, w, p));
  PLN_TRY(read_channels(call, transposed, x, w, p));
  p->taps = product_of(p, offsetof(pln_conv_axis, window));
  p->in_plane = product_of(p, offsetof(pln_conv_axis, in));
  p->out_plane = product_of(p, offsetof(pln_conv_axis, out));
  return check_bias(call, p);
}

pln_status pln_conv_read(const pln_kernel_call *call, pln_conv_plan *out) {
  return read_plan(call, false, out);
}

pln_status pln_conv_read_transposed(const pln_kernel_call *call,
                                    pln_conv_plan *out) {
  return read_plan(call, true, out);
}

void pln_conv_split(int64_t first, int64_t stride, int64_t extent, size_t n,
                    size_t *before, size_t *inside) {
  int64_t skip = first < 0 ? (stride - 1 - first) / stride : 0;
  *before = (size_t)skip < n ? (size_t)skip : n;
  first += (int64_t)*before * stride;
  int64_t room = first < extent ? (extent - 1 - first) / stride + 1 : 0;
  *inside = (size_t)room < n - *before ? (size_t)room : n - *before;
}

/* ------------------------------------------------------------------- dtypes */

static pln_status widen_half_operand(const pln_tensor *in, pln_tensor **out) {
  if (pln_dtype_is_half((pln_dtype)in->dtype))
    return pln_tensor_to_float32(in, out);
  *out = pln_tensor_retain(in);
  return PLN_OK;
}

static void result_dims(const pln_kernel_call *call, const pln_conv_plan *p,
                        int64_t *dims) {
  dims[0] = call->args[0]->dims[0];
  dims[1] = (int64_t)(p->groups * p->out);
  for (uint32_t i = 0; i < p->space; i++)
    dims[i + 2] = p->axis[PLN_CONV_AXES - p->space + i].out;
}

/* Sets result 0 to `wide` in the dtype of the operands; takes ownership in any
 * case. */
static pln_status return_widened_result(pln_kernel_call *call,
                                        pln_tensor *wide) {
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  if (!pln_dtype_is_half(dtype)) {
    call->results[0] = wide;
    return PLN_OK;
  }
  pln_status status = pln_tensor_from_float32(wide, dtype, &call->results[0]);
  pln_tensor_release(wide);
  return status;
}

pln_status pln_conv_compute(pln_kernel_call *call, const pln_conv_plan *plan,
                            pln_conv_fn run) {
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  pln_tensor *args[3] = {NULL}, *wide = NULL;
  int64_t dims[2 + PLN_CONV_AXES];
  pln_status status = PLN_OK;
  if (pln_dtype_is_half(dtype))
    dtype = PLN_FLOAT32;
  if (dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, dtype);
  for (uint32_t i = 0; i < 3 && status == PLN_OK; i++)
    if (pln_kernel_arg(call, i))
      status = widen_half_operand(call->args[i], &args[i]);
  result_dims(call, plan, dims);
  if (status == PLN_OK)
    status =
        pln_tensor_unset(call->engine, dtype, plan->space + 2, dims, &wide);
  if (status == PLN_OK && wide->count)
    status = run(call->engine, plan, args, wide);
  for (uint32_t i = 0; i < 3; i++)
    pln_tensor_release(args[i]);
  if (status == PLN_OK)
    return return_widened_result(call, wide);
  pln_tensor_release(wide);
  return status;
}
