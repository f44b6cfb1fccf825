/* sliding_window.c: window positions over known extents. Called by pooling
 * kernels.
 *
 * All numbers in a pln_sliding_window are below 2^31, so that sums and products
 * of two of them are defined; padding is smaller than the window. */

#include "op/kernel/pool/sliding_window.h"

/* The limit of padding. */
static const int64_t most_padding = (int64_t)1 << 24;

/* Reads element `i` of a list attribute with `want` elements in [least,
 * INT32_MAX]; *value is unchanged if there is none. */
static pln_status read_at(const pln_kernel_call *call, const char *name,
                          uint32_t want, uint32_t i, int64_t least,
                          int64_t *value) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  if (list.count == 0)
    return PLN_OK;
  if (list.count != want)
    return pln_kernel_refuse(call, "expected %u %s, got %u", want, name,
                             list.count);
  *value = list.ints[i];
  if (*value >= least && *value <= INT32_MAX)
    return PLN_OK;
  return pln_kernel_refuse(call, "%s has %lld", name, (long long)*value);
}

static bool auto_pad_is(const pln_kernel_call *call, const char *text) {
  return pln_kernel_string_is(call, "auto_pad", "NOTSET", text);
}

/* Computes the padding of auto_pad=SAME. It is negative if strides skip
 * elements, as in ONNX Runtime. */
static void pad_to_same(const pln_kernel_call *call, pln_sliding_window *a) {
  a->out = (a->in + a->stride - 1) / a->stride;
  int64_t pad = (a->out - 1) * a->stride + a->reach - a->in;
  a->before = auto_pad_is(call, "SAME_LOWER") ? (pad + 1) / 2 : pad / 2;
  a->after = pad - a->before;
}

/* Counts the positions. With ceil_mode the last window may extend past the end,
 * but begins before the padding there. */
static pln_status count_positions(const pln_kernel_call *call,
                                  pln_sliding_window *a) {
  int64_t room = a->in + a->before + a->after - a->reach;
  if (a->before >= a->reach || a->after >= a->reach)
    return pln_kernel_refuse(
        call, "a pad of %lld is not smaller than the window of %lld",
        (long long)(a->before >= a->reach ? a->before : a->after),
        (long long)a->reach);
  a->out = 0;
  if (room < 0 && a->in == 0)
    return PLN_OK;
  if (room < 0)
    return pln_kernel_refuse(call, "a window of %lld is larger than %lld",
                             (long long)a->reach, (long long)a->in);
  if (!pln_kernel_int(call, "ceil_mode", 0)) {
    a->out = room / a->stride + 1;
    return PLN_OK;
  }
  a->out = (room + a->stride - 1) / a->stride + 1;
  if ((a->out - 1) * a->stride >= a->in + a->before)
    a->out--;
  return PLN_OK;
}

static pln_status read_axis(const pln_kernel_call *call, uint32_t space,
                            uint32_t i, pln_sliding_window *a) {
  a->window = 0;
  a->stride = a->dilation = 1;
  a->before = a->after = 0;
  PLN_TRY(read_at(call, "kernel_shape", space, i, 1, &a->window));
  PLN_TRY(read_at(call, "strides", space, i, 1, &a->stride));
  PLN_TRY(read_at(call, "dilations", space, i, 1, &a->dilation));
  if (auto_pad_is(call, "NOTSET")) {
    PLN_TRY(read_at(call, "pads", 2 * space, i, 0, &a->before));
    PLN_TRY(read_at(call, "pads", 2 * space, space + i, 0, &a->after));
  }
  if (a->window == 0)
    return pln_kernel_refuse(call, "kernel_shape is missing");
  if (a->in > INT32_MAX || (a->window - 1) * a->dilation >= INT32_MAX)
    return pln_kernel_refuse(call, "an extent or a window is too large");
  a->reach = (a->window - 1) * a->dilation + 1;
  return PLN_OK;
}

pln_status pln_sliding_window_read(const pln_kernel_call *call,
                                   const pln_tensor *x,
                                   pln_sliding_window *axes) {
  uint32_t space = x->rank - 2;
  bool same =
      auto_pad_is(call, "SAME_UPPER") || auto_pad_is(call, "SAME_LOWER");
  if (x->rank < 3 || x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "rank %u has no spatial axes", x->rank);
  for (uint32_t i = 0; i < space; i++) {
    pln_sliding_window *a = &axes[i];
    a->in = x->dims[i + 2];
    PLN_TRY(read_axis(call, space, i, a));
    if (same)
      pad_to_same(call, a);
    else
      PLN_TRY(count_positions(call, a));
    if (a->before + a->after > most_padding + a->in)
      return pln_kernel_refuse(call, "a pad of %lld is too large",
                               (long long)a->before);
  }
  return PLN_OK;
}

/* Returns the least k >= 0 with first + k * step >= bound. */
static int64_t steps_to(int64_t first, int64_t step, int64_t bound) {
  return first >= bound ? 0 : (bound - first + step - 1) / step;
}

void pln_sliding_window_taps(const pln_sliding_window *a, int64_t position,
                             bool padded, int64_t *first, int64_t *end) {
  int64_t start = position * a->stride - a->before;
  int64_t low = padded ? -a->before : 0;
  int64_t high = padded ? a->in + a->after : a->in;
  *first = steps_to(start, a->dilation, low);
  *end = steps_to(start, a->dilation, high);
  if (*end > a->window)
    *end = a->window;
  if (*first > *end)
    *first = *end;
}
