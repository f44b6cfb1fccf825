/* roi.c: roi_align and roi_pool: regions of interest of images (batch,
 * channels, height, width), resampled to one size, or max-pooled. Types and
 * kernels. Called through ops.def. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"

/* ---------------------------------------------------------------- inference */

static pln_dim int_dim(const pln_infer *call, const char *name, int64_t other) {
  int64_t extent = pln_call_int(call, name, other);
  return extent >= 0 ? extent : (pln_dim)PLN_DIM_UNKNOWN;
}

/* The shape of the result: one image per region, with the operand's channels;
 * the caller sets its extents. */
static pln_status shape_of_regions(const pln_infer *call, pln_shape *out) {
  pln_shape x, rois;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &rois);
  pln_shape_ranked(out, 4);
  if (rois.rank == 2)
    out->dims[0] = rois.dims[0];
  if (x.rank == 4)
    out->dims[1] = x.dims[1];
  return PLN_OK;
}

/* Sets the spatial extents from a list attribute, if it is given. */
static void pooled_extents(const pln_infer *call, const char *name,
                           pln_shape *out) {
  uint32_t n;
  const int64_t *pooled = pln_call_ints(call, name, &n);
  for (uint32_t i = 0; pooled && n == 2 && i < 2; i++)
    if (PLN_DIM_IS_CONST(pooled[i]))
      out->dims[2 + i] = pooled[i];
}

/* (batch, channels, height, width) as Relay's layout NHWC. */
static void move_channels_last(pln_shape *s) {
  pln_dim channels = s->dims[1];
  s->dims[1] = s->dims[2];
  s->dims[2] = s->dims[3];
  s->dims[3] = channels;
}

pln_status pln_infer_roi_align(pln_infer *call) {
  pln_shape out, x;
  pln_slice layout =
      pln_attrs_string(call->engine, call->attrs, "layout", "NCHW");
  bool last = pln_slice_is(layout, "NHWC");
  if (!last && !pln_slice_is(layout, "NCHW"))
    return pln_call_error(call, "layout '%.*s' is neither NCHW nor NHWC",
                          (int)(layout.size < 40 ? layout.size : 40),
                          layout.data);
  PLN_TRY(shape_of_regions(call, &out));
  pln_arg_shape(call, 0, &x);
  if (last && x.rank == 4)
    out.dims[1] = x.dims[3];
  out.dims[2] = int_dim(call, "output_height", 1);
  out.dims[3] = int_dim(call, "output_width", 1);
  pooled_extents(call, "pooled_size", &out);
  if (last)
    move_channels_last(&out);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_max_roi_pool(pln_infer *call) {
  pln_shape out;
  PLN_TRY(shape_of_regions(call, &out));
  pooled_extents(call, "pooled_size", &out);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* ---------------------------------------------------------------- roi_align */

/* A sample along one axis: interpolated between two elements. */
typedef struct roi_sample {
  size_t low, high;
  double high_part;
  bool outside; /* the sample is 0 */
} roi_sample;

/* The samples of a region along one axis. */
typedef struct roi_line {
  int64_t extent, bins, grid; /* grid: samples a bin */
  double begin, size;
  roi_sample *samples; /* bins * grid */
  size_t room;
} roi_line;

typedef struct alignment {
  pln_engine *engine;
  roi_line y, x;
  bool greatest, half_pixel;
  bool weighted; /* mode max takes the greatest weighted neighbour, as ONNX
                  * does, not the greatest sample */
  bool indexed;  /* each region begins with the index of its image */
  int64_t ratio;
  double scale;
} alignment;

/* The limit of samples per bin. */
static const double most_samples = 1 << 12;

static void sample_roi_line(roi_line *l) {
  double step = l->size / (double)l->bins / (double)l->grid;
  for (int64_t i = 0; i < l->bins * l->grid; i++) {
    double at = l->begin + ((double)i + 0.5) * step;
    roi_sample *s = &l->samples[i];
    s->outside = !(at >= -1 && at <= (double)l->extent) || l->extent == 0;
    s->low = s->high = 0;
    s->high_part = 0;
    if (s->outside)
      continue;
    at = at < 0 ? 0 : at;
    s->low = (size_t)at;
    if (s->low + 1 >= (size_t)l->extent)
      at = (double)(s->low = (size_t)l->extent - 1);
    s->high = s->low + 1 < (size_t)l->extent ? s->low + 1 : s->low;
    s->high_part = at - (double)s->low;
  }
}

static pln_status place_line(const pln_kernel_call *call, const alignment *a,
                             double begin, double end, roi_line *l) {
  double offset = a->half_pixel ? 0.5 : 0;
  l->begin = begin * a->scale - offset;
  l->size = end * a->scale - offset - l->begin;
  if (!a->half_pixel && !(l->size > 1))
    l->size = 1; /* smaller regions have size 1 before opset 16 */
  double grid =
      a->ratio > 0 ? (double)a->ratio : ceil(l->size / (double)l->bins);
  if (!(grid <= most_samples) || !isfinite(l->begin))
    return pln_kernel_refuse(call, "the region from %g to %g is too large",
                             begin, end);
  l->grid = grid > 0 ? (int64_t)grid : 0;
  size_t room = (size_t)(l->bins * l->grid) * sizeof *l->samples;
  if (room > l->room) {
    pln_mem_free(call->engine, l->samples, l->room);
    l->room = 0;
    l->samples = pln_mem_new(call->engine, room);
    if (!l->samples)
      return pln_nomem(call->engine);
    l->room = room;
  }
  sample_roi_line(l);
  return PLN_OK;
}

/* A sample is the sum of the weighted values of its four neighbours; in mode
 * "max" of ONNX their maximum. Samples outside are 0. */
#define ALIGN(T)                                                           \
  static double sample_##T(const alignment *a, const T *plane,             \
                           const roi_sample *y, const roi_sample *x) {     \
    if (y->outside || x->outside)                                          \
      return 0;                                                            \
    const T *low = plane + y->low * (size_t)a->x.extent;                   \
    const T *high = plane + y->high * (size_t)a->x.extent;                 \
    double ly = y->high_part, hy = 1 - ly, lx = x->high_part, hx = 1 - lx; \
    double v[4] = {                                                        \
        hy * hx * (double)low[x->low], hy * lx * (double)low[x->high],     \
        ly * hx * (double)high[x->low], ly * lx * (double)high[x->high]};  \
    if (a->weighted)                                                       \
      return fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));                     \
    return v[0] + v[1] + v[2] + v[3];                                      \
  }                                                                        \
  static T max_bin_##T(const alignment *a, const T *plane,                 \
                       const roi_sample *y, const roi_sample *x) {         \
    double all = 0;                                                        \
    for (int64_t i = 0; i < a->y.grid; i++)                                \
      for (int64_t k = 0; k < a->x.grid; k++) {                            \
        double v = sample_##T(a, plane, &y[i], &x[k]);                     \
        all = i + k == 0 ? v : fmax(all, v);                               \
      }                                                                    \
    return (T)all;                                                         \
  }                                                                        \
  static T mean_bin_##T(const alignment *a, const T *plane,                \
                        const roi_sample *y, const roi_sample *x) {        \
    const size_t row = (size_t)a->x.extent;                                \
    const int64_t rows = a->y.grid, columns = a->x.grid;                   \
    double all = 0, count = (double)(rows * columns);                      \
    for (int64_t i = 0; i < rows; i++) {                                   \
      const T *low = plane + y[i].low * row;                               \
      const T *high = plane + y[i].high * row;                             \
      const double ly = y[i].high_part, hy = 1 - ly;                       \
      for (int64_t k = 0; k < columns && !y[i].outside; k++) {             \
        const double lx = x[k].high_part, hx = 1 - lx;                     \
        if (!x[k].outside)                                                 \
          all += hy * hx * (double)low[x[k].low] +                         \
                 hy * lx * (double)low[x[k].high] +                        \
                 ly * hx * (double)high[x[k].low] +                        \
                 ly * lx * (double)high[x[k].high];                        \
      }                                                                    \
    }                                                                      \
    return (T)(count == 0 ? all : all / count);                            \
  }                                                                        \
  static void region_##T(const alignment *a, const void *image,            \
                         size_t channels, void *out) {                     \
    const T *plane = image;                                                \
    T *to = out;                                                           \
    for (size_t c = 0; c < channels; c++) {                                \
      if (pln_is_stopped(a->engine))                                       \
        return;                                                            \
      for (int64_t i = 0; i < a->y.bins; i++)                              \
        for (int64_t k = 0; k < a->x.bins; k++)                            \
          *to++ = (a->greatest ? max_bin_##T : mean_bin_##T)(              \
              a, plane, a->y.samples + i * a->y.grid,                      \
              a->x.samples + k * a->x.grid);                               \
      plane += a->y.extent * a->x.extent;                                  \
    }                                                                      \
  }
ALIGN(float)
ALIGN(double)

/* The image of region r; false if it is no number of one. */
static bool image_of(const pln_kernel_call *call, const alignment *a, size_t r,
                     int64_t *image) {
  if (!a->indexed)
    return pln_tensor_int(pln_kernel_arg(call, 2), r, image);
  double at = pln_element_at(pln_kernel_arg(call, 1), 5 * r);
  bool whole = at >= 0 && at <= INT32_MAX;
  *image = whole ? (int64_t)at : -1;
  return whole;
}

static pln_status align_regions(pln_kernel_call *call, alignment *a,
                                char *out) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *rois = pln_kernel_arg(call, 1);
  size_t size = pln_element_size((pln_dtype)x->dtype);
  size_t channels = (size_t)x->dims[1];
  size_t in = pln_dims_product(x->dims, 1, 4) * size;
  size_t step = channels * (size_t)(a->y.bins * a->x.bins) * size;
  size_t columns = a->indexed ? 5 : 4;
  for (size_t r = 0; r < (size_t)rois->dims[0]; r++, out += step) {
    int64_t image;
    size_t at = columns * r + a->indexed;
    if (!image_of(call, a, r, &image) || image < 0 || image >= x->dims[0])
      return pln_kernel_refuse(call, "region %zu refers to no image", r);
    PLN_TRY(place_line(call, a, pln_element_at(rois, at),
                       pln_element_at(rois, at + 2), &a->x));
    PLN_TRY(place_line(call, a, pln_element_at(rois, at + 1),
                       pln_element_at(rois, at + 3), &a->y));
    (size == 4 ? region_float : region_double)(
        a, (const char *)x->data + (size_t)image * in, channels, out);
  }
  return PLN_OK;
}

static pln_status check_regions(const pln_kernel_call *call, uint32_t columns) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *rois = pln_kernel_arg(call, 1);
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != columns ||
      rois->dtype != x->dtype)
    return pln_kernel_refuse(call, "the regions do not match the operand");
  return PLN_OK;
}

static alignment onnx_alignment(const pln_kernel_call *call) {
  bool greatest = pln_kernel_string_is(call, "mode", "avg", "max");
  return (alignment){
      .engine = call->engine,
      .y.bins = pln_kernel_int(call, "output_height", 1),
      .x.bins = pln_kernel_int(call, "output_width", 1),
      .greatest = greatest,
      .weighted = greatest,
      .half_pixel = pln_kernel_string_is(call, "coordinate_transformation_mode",
                                         "half_pixel", "half_pixel"),
      .ratio = pln_kernel_int(call, "sampling_ratio", 0),
      .scale = pln_kernel_float(call, "spatial_scale", 1)};
}

/* Relay's: each region begins with the index of its image. */
static alignment relay_alignment(const pln_kernel_call *call) {
  pln_list bins = pln_kernel_list(call, PLN_NONE, "pooled_size");
  bool given = bins.count == 2;
  return (alignment){.engine = call->engine,
                     .y.bins = given ? pln_list_at(&bins, 0) : 0,
                     .x.bins = given ? pln_list_at(&bins, 1) : 0,
                     .greatest =
                         pln_kernel_string_is(call, "mode", "avg", "max"),
                     .indexed = true,
                     .ratio = pln_kernel_int(call, "sample_ratio", -1),
                     .scale = pln_kernel_float(call, "spatial_scale", 1)};
}

static pln_status roi_align(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *rois = pln_kernel_arg(call, 1);
  const pln_tensor *images = pln_kernel_arg(call, 2);
  alignment a = images ? onnx_alignment(call) : relay_alignment(call);
  if (!pln_kernel_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_kernel_refuse(call, "a layout other than NCHW");
  PLN_TRY(check_regions(call, images ? 4 : 5));
  if (a.y.bins < 1 || a.x.bins < 1 || a.y.bins > INT16_MAX ||
      a.x.bins > INT16_MAX)
    return pln_kernel_refuse(call, "an output of %lld x %lld",
                             (long long)a.y.bins, (long long)a.x.bins);
  if (images && images->count != (size_t)rois->dims[0])
    return pln_kernel_refuse(call, "%zu images for %lld regions", images->count,
                             (long long)rois->dims[0]);
  int64_t dims[4] = {rois->dims[0], x->dims[1], a.y.bins, a.x.bins};
  a.y.extent = x->dims[2];
  a.x.extent = x->dims[3];
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, 4, dims,
                           &call->results[0]));
  pln_status status =
      align_regions(call, &a, pln_tensor_writable(call->results[0]));
  pln_mem_free(call->engine, a.y.samples, a.y.room);
  pln_mem_free(call->engine, a.x.samples, a.x.room);
  return status;
}

pln_status pln_kernel_roi_align(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", roi_align);
}

/* ----------------------------------------------------------------- roi_pool */

/* A region along one axis, in elements. */
typedef struct roi_span {
  int64_t extent, bins;
  double begin, bin;
} roi_span;

static bool place_span(double begin, double end, roi_span *s) {
  begin = round(begin);
  end = round(end);
  if (!(fabs(begin) < 1e9 && fabs(end) < 1e9))
    return false;
  s->begin = begin;
  s->bin = fmax(end - begin + 1, 1) / (double)s->bins;
  return true;
}

static void bin_of(const roi_span *s, int64_t i, int64_t *begin, int64_t *end) {
  double from = floor((double)i * s->bin) + s->begin;
  double to = ceil((double)(i + 1) * s->bin) + s->begin;
  double last = (double)s->extent;
  *begin = (int64_t)fmin(fmax(from, 0), last);
  *end = (int64_t)fmin(fmax(to, 0), last);
}

/* Returns the maximum of a bin; 0 if it is empty. */
static double greatest_of(const pln_tensor *x, size_t plane, const roi_span *y,
                          const roi_span *w, int64_t i, int64_t k) {
  int64_t y0, y1, x0, x1;
  double top = -INFINITY;
  bin_of(y, i, &y0, &y1);
  bin_of(w, k, &x0, &x1);
  for (int64_t r = y0; r < y1; r++)
    for (int64_t c = x0; c < x1; c++) {
      double v = pln_element_at(x, plane + (size_t)(r * w->extent + c));
      top = v > top ? v : top;
    }
  return y0 >= y1 || x0 >= x1 ? 0 : top;
}

static void pool_region(const pln_tensor *x, size_t image, const roi_span *y,
                        const roi_span *w, pln_tensor *out, size_t at) {
  void *data = pln_tensor_writable(out);
  size_t done = 0,
         work = (size_t)((double)w->bins * (1 + y->bin) * (1 + w->bin));
  for (int64_t c = 0; c < x->dims[1]; c++) {
    size_t plane = (image * (size_t)x->dims[1] + (size_t)c) *
                   (size_t)(x->dims[2] * x->dims[3]);
    for (int64_t i = 0; i < y->bins; i++) {
      if (pln_is_stopped_after(x->engine, &done, work))
        return;
      for (int64_t k = 0; k < w->bins; k++, at++) {
        double top = greatest_of(x, plane, y, w, i, k);
        if (x->dtype == PLN_FLOAT32)
          ((float *)data)[at] = (float)top;
        else
          ((double *)data)[at] = top;
      }
    }
  }
}

static pln_status roi_pool(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *rois = pln_kernel_arg(call, 1);
  pln_list pooled = pln_kernel_list(call, PLN_NONE, "pooled_size");
  double scale = pln_kernel_float(call, "spatial_scale", 1);
  PLN_TRY(check_regions(call, 5));
  if (pooled.count != 2 || pooled.ints[0] < 1 || pooled.ints[1] < 1 ||
      pooled.ints[0] > INT32_MAX || pooled.ints[1] > INT32_MAX)
    return pln_kernel_refuse(call, "pooled_size is not valid");
  roi_span y = {.extent = x->dims[2], .bins = pooled.ints[0]};
  roi_span w = {.extent = x->dims[3], .bins = pooled.ints[1]};
  int64_t dims[4] = {rois->dims[0], x->dims[1], y.bins, w.bins};
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, 4, dims,
                           &call->results[0]));
  size_t step = pln_dims_product(dims, 1, 4);
  for (size_t r = 0; r < (size_t)rois->dims[0]; r++) {
    PLN_TRY(pln_poll(call->engine));
    double image = pln_element_at(rois, 5 * r);
    if (!(image >= 0 && image < (double)x->dims[0]) ||
        !place_span(pln_element_at(rois, 5 * r + 1) * scale,
                    pln_element_at(rois, 5 * r + 3) * scale, &w) ||
        !place_span(pln_element_at(rois, 5 * r + 2) * scale,
                    pln_element_at(rois, 5 * r + 4) * scale, &y))
      return pln_kernel_refuse(call, "region %zu is not valid", r);
    pool_region(x, (size_t)image, &y, &w, call->results[0], r * step);
  }
  return PLN_OK;
}

pln_status pln_kernel_max_roi_pool(pln_kernel_call *call) {
  if (!pln_kernel_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_kernel_refuse(call, "channels are not axis 1");
  return pln_kernel_through_float(call, "0", roi_pool);
}
