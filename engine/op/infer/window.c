/* window.c: output extents of sliding windows. Called by the inference of
 * convolutions and pooling. Symbolic extents give expressions. */

#include "op/infer/window.h"

/* Element `i` of an attribute with `want` elements, else the fallback. Values
 * too small for an extent are unknown. */
static pln_dim attr_at(const pln_infer *call, const char *name, uint32_t want,
                       uint32_t i, int64_t fallback) {
  uint32_t n;
  const int64_t *ints = pln_call_ints(call, name, &n);
  if (!ints || n != want)
    return fallback;
  return PLN_DIM_IS_CONST(ints[i]) ? ints[i] : (pln_dim)PLN_DIM_UNKNOWN;
}

static pln_status check_count(const pln_infer *call, const char *name,
                              int32_t want) {
  uint32_t n;
  if (!pln_call_ints(call, name, &n) || n == 0 || n == (uint32_t)want)
    return PLN_OK;
  return pln_call_error(call, "expected %d %s, got %u", want, name, n);
}

static pln_status check_counts(const pln_infer *call, int32_t space) {
  PLN_TRY(check_count(call, "kernel_shape", space));
  PLN_TRY(check_count(call, "strides", space));
  PLN_TRY(check_count(call, "dilations", space));
  return check_count(call, "pads", 2 * space);
}

void pln_window_extents(const pln_infer *call, uint32_t weight,
                        pln_extents *out) {
  uint32_t n;
  const int64_t *ints = pln_call_ints(call, "kernel_shape", &n);
  pln_shape w;
  out->rank = -1;
  if (ints && n > 0 && n <= PLN_MAX_RANK) {
    out->rank = (int32_t)n;
    for (uint32_t i = 0; i < n; i++)
      out->dims[i] = PLN_DIM_IS_CONST(ints[i]) ? ints[i] : PLN_DIM_UNKNOWN;
    return;
  }
  if (weight == PLN_NONE)
    return;
  pln_arg_shape(call, weight, &w);
  for (int32_t i = 2; i < w.rank; i++)
    out->dims[i - 2] = w.dims[i];
  out->rank = w.rank < 2 ? -1 : w.rank - 2;
}

/* The window along one axis. */
typedef struct motion {
  int64_t stride, dilation;
  pln_dim begin, end; /* pads */
  pln_dim window;     /* extent including dilation */
} motion;

static pln_status read_motion(const pln_infer *call, uint32_t n, uint32_t i,
                              pln_dim window, motion *m) {
  m->stride = attr_at(call, "strides", n, i, 1);
  m->dilation = attr_at(call, "dilations", n, i, 1);
  m->begin = attr_at(call, "pads", 2 * n, i, 0);
  m->end = attr_at(call, "pads", 2 * n, n + i, 0);
  if (m->stride < 1 || m->dilation < 1)
    return pln_call_error(call, "strides and dilations must be positive");
  if (!pln_call_string_is(call, "auto_pad", "NOTSET", "NOTSET"))
    m->begin = m->end = 0;
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, window, 1, &m->window));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, m->window, m->dilation, &m->window));
  return pln_infer_dim(call, PLN_DIM_ADD, m->window, 1, &m->window);
}

static bool pads_to_same(const pln_infer *call) {
  return pln_call_string_is(call, "auto_pad", "NOTSET", "SAME_UPPER") ||
         pln_call_string_is(call, "auto_pad", "NOTSET", "SAME_LOWER");
}

/* With ceil_mode the last window may extend past the end, but must not start in
 * the padding at the end. Deciding that needs a known extent. */
static pln_dim drop_hanging(const motion *m, pln_dim in, pln_dim out) {
  if (m->stride == 1)
    return out;
  if (!PLN_DIM_IS_CONST(in) || !PLN_DIM_IS_CONST(out) ||
      !PLN_DIM_IS_CONST(m->begin))
    return PLN_DIM_UNKNOWN;
  int64_t start, limit;
  if (__builtin_mul_overflow(out - 1, m->stride, &start) ||
      __builtin_add_overflow(in, m->begin, &limit))
    return PLN_DIM_UNKNOWN;
  return start >= limit ? out - 1 : out;
}

static pln_status slide_one(const pln_infer *call, const motion *m, pln_dim in,
                            pln_dim *out) {
  bool ceil = pln_call_int(call, "ceil_mode", 0) != 0;
  pln_dim room;
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, in, m->begin, &room));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, room, m->end, &room));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, room, m->window, &room));
  if (PLN_DIM_IS_CONST(room) && room < 0 && in != 0)
    return pln_call_error(call, "the window is larger than extent %lld",
                          (long long)in);
  if (ceil)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, room, m->stride - 1, &room));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, room, m->stride, &room));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, room, 1, out));
  if (ceil)
    *out = drop_hanging(m, in, *out);
  if (PLN_DIM_IS_CONST(*out) && *out < 0)
    *out = 0;
  return PLN_OK;
}

static pln_status slide_same(const pln_infer *call, const motion *m, pln_dim in,
                             pln_dim *out) {
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, in, m->stride - 1, out));
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, *out, m->stride, out);
}

pln_status pln_window_slide(const pln_infer *call, const pln_shape *in,
                            const pln_extents *window, pln_shape *out) {
  int32_t space = in->rank - 2;
  bool same = pads_to_same(call);
  pln_shape_ranked(out, in->rank);
  PLN_TRY(check_counts(call, space));
  if (window->rank >= 0 && window->rank != space)
    return pln_call_error(call, "a window of %d axes for %d spatial axes",
                          window->rank, space);
  for (int32_t i = 0; i < space; i++) {
    pln_dim k = window->rank < 0 ? PLN_DIM_UNKNOWN : window->dims[i];
    motion m;
    PLN_TRY(read_motion(call, (uint32_t)space, (uint32_t)i, k, &m));
    PLN_TRY((same ? slide_same : slide_one)(call, &m, in->dims[i + 2],
                                            &out->dims[i + 2]));
  }
  return PLN_OK;
}

static pln_status unslide_one(const pln_infer *call, const motion *m,
                              pln_dim extra, pln_dim in, pln_dim *out) {
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, in, 1, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *out, m->stride, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *out, m->window, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *out, extra, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *out, m->begin, out));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *out, m->end, out));
  if (PLN_DIM_IS_CONST(*out) && *out < 0)
    return pln_call_error(call, "pads remove all of extent %lld",
                          (long long)in);
  return PLN_OK;
}

pln_status pln_window_unslide(const pln_infer *call, const pln_shape *in,
                              const pln_extents *window, pln_shape *out) {
  int32_t space = in->rank - 2;
  uint32_t n = (uint32_t)space;
  pln_shape_ranked(out, in->rank);
  PLN_TRY(check_counts(call, space));
  for (uint32_t i = 0; i < n; i++) {
    pln_dim k = window->rank == space ? window->dims[i] : PLN_DIM_UNKNOWN;
    pln_dim *extent = &out->dims[i + 2];
    motion m;
    PLN_TRY(read_motion(call, n, i, k, &m));
    *extent = attr_at(call, "output_shape", n, i, PLN_DIM_UNKNOWN);
    if (*extent != PLN_DIM_UNKNOWN)
      continue;
    if (pads_to_same(call))
      PLN_TRY(
          pln_infer_dim(call, PLN_DIM_MUL, in->dims[i + 2], m.stride, extent));
    else
      PLN_TRY(unslide_one(call, &m, attr_at(call, "output_padding", n, i, 0),
                          in->dims[i + 2], extent));
  }
  return PLN_OK;
}

/* ------------------------------------------------------ Relay's attributes */

int64_t pln_window_int(const pln_infer *call, const char *name, uint32_t i,
                       int64_t other) {
  uint32_t n;
  const int64_t *list = pln_call_ints(call, name, &n);
  if (!list || n == 0)
    return other;
  return i < n ? list[i] : n == 1 ? list[0] : other;
}

int64_t pln_window_pads(const pln_infer *call, uint32_t axes, uint32_t i) {
  uint32_t n;
  const int64_t *pads = pln_call_ints(call, "padding", &n);
  int64_t a = 0, b = 0, sum;
  if (pads && n == 2 * axes) {
    a = pads[i];
    b = pads[i + axes];
  } else if (pads && (n == axes || n == 1)) {
    a = b = pads[n == 1 ? 0 : i];
  }
  return __builtin_add_overflow(a, b, &sum) ? 0 : sum;
}
