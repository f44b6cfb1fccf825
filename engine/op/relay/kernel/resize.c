/* resize.c: kernels of Relay's resampling of 1-D, 2-D and 3-D images and of
 * regions, in any layout, through ONNX's Resize. Called through ops.def; types
 * are in relay/infer/image.c. */

#include <math.h>

#include "op/relay/kernel/window.h"

static const char *const plain_data[] = {"", "NCW", "NCHW", "NCDHW"};

/* Translates the value of attribute `name` to ONNX's by a table. */
static const char *translate(const pln_kernel_call *call, const char *name,
                             const char *const resize_attrs[][2], uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_kernel_string_is(call, name, resize_attrs[0][0],
                             resize_attrs[i][0]))
      return resize_attrs[i][1];
  return NULL;
}

static const char *mode_of(const pln_kernel_call *call, const char *other) {
  static const char *const resize_attrs[][2] = {
      {"linear", "linear"},    {"bilinear", "linear"},
      {"trilinear", "linear"}, {"nearest_neighbor", "nearest"},
      {"cubic", "cubic"},      {"bicubic", "cubic"},
      {"nearest", "nearest"}};
  if (!pln_attrs_find(call->engine, call->attrs, "method"))
    return other;
  return translate(call, "method", resize_attrs, PLN_COUNT(resize_attrs));
}

static const char *coordinates_of(const pln_kernel_call *call) {
  static const char *const resize_attrs[][2] = {
      {"half_pixel", "half_pixel"},
      {"align_corners", "align_corners"},
      {"asymmetric", "asymmetric"},
      {"pytorch_half_pixel", "pytorch_half_pixel"},
      {"tf_half_pixel_for_nn", "tf_half_pixel_for_nn"}};
  return translate(call, "coordinate_transformation_mode", resize_attrs,
                   PLN_COUNT(resize_attrs));
}

/* Halves round away from zero; values below them are truncated. */
static const char *nearest_of(const pln_kernel_call *call, const char *other) {
  static const char *const resize_attrs[][2] = {
      {"round", "round_prefer_ceil"},
      {"round_prefer_floor", "round_prefer_floor"},
      {"round_prefer_ceil", "round_prefer_ceil"},
      {"floor", "floor"},
      {"ceil", "ceil"}};
  if (!pln_attrs_find(call->engine, call->attrs, "rounding_method"))
    return other;
  return translate(call, "rounding_method", resize_attrs,
                   PLN_COUNT(resize_attrs));
}

/* The sampling attributes in ONNX's form. */
typedef struct resize_attrs {
  const char *mode, *coordinates, *nearest;
} resize_attrs;

/* Resamples the plain operand to `sizes` of its spatial axes. */
static const pln_tensor *resample(pln_composition *s, const pln_tensor *x,
                                  uint32_t n, const int64_t *sizes,
                                  const resize_attrs *how) {
  static const int64_t axes[] = {2, 3, 4};
  if (!how->mode || !how->coordinates || !how->nearest)
    pln_composition_refuse(s, "this mode is not implemented");
  if (s->status != PLN_OK)
    return NULL;
  const pln_tensor *args[4] = {x, NULL, NULL, pln_compose_vector(s, n, sizes)};
  pln_compose_string(s, "mode", how->mode);
  pln_compose_string(s, "coordinate_transformation_mode", how->coordinates);
  pln_compose_string(s, "nearest_mode", how->nearest);
  pln_compose_ints(s, "axes", n, axes);
  pln_compose_float(s, "cubic_coeff_a",
                    pln_kernel_float(s->call, "cubic_alpha", -0.5));
  pln_compose_int(s, "exclude_outside",
                  pln_kernel_int(s->call, "cubic_exclude", 0));
  return pln_compose_call(s, PLN_OP_RESIZE, 4, args);
}

static const pln_tensor *plain_operand(pln_composition *s, uint32_t n) {
  const pln_tensor *x = pln_compose_to_plain_layout(
      s, pln_kernel_arg(s->call, 0), "layout", plain_data[n]);
  if (x && x->rank == n + 2)
    return x;
  pln_composition_refuse(s, "the layout does not match the operand");
  return NULL;
}

static pln_status set_resize_result(pln_composition *s, uint32_t n,
                                    const pln_tensor *y, pln_dtype dtype) {
  y = pln_compose_cast(s, y, dtype);
  return pln_composition_finish(
      s, pln_compose_from_plain_layout(s, y, NULL, "layout", plain_data[n]));
}

/* ----------------------------------------------------------------- to a size
 */

/* Operand 1, or attribute size, of which one integer may stand for all. */
static bool read_sizes(const pln_kernel_call *call, uint32_t n, int64_t *out) {
  pln_list list = pln_kernel_list(call, 1, "size");
  for (uint32_t i = 0; i < n && list.count; i++)
    out[i] = pln_list_at(&list, list.count == 1 ? 0 : i);
  return list.count == 1 || list.count == n;
}

static pln_dtype result_dtype(const pln_kernel_call *call) {
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  return dtype ? dtype : (pln_dtype)pln_kernel_arg(call, 0)->dtype;
}

pln_status pln_kernel_resize_to(pln_kernel_call *call) {
  uint32_t n = call->op == PLN_OP_RESIZE_1D   ? 1
               : call->op == PLN_OP_RESIZE_3D ? 3
                                              : 2;
  int64_t sizes[PLN_WINDOW_AXES];
  resize_attrs how = {mode_of(call, "linear"), coordinates_of(call),
                      nearest_of(call, "round_prefer_ceil")};
  pln_composition s;
  if (!read_sizes(call, n, sizes))
    return pln_kernel_refuse(call, "the size does not match the operand");
  pln_composition_begin(&s, call);
  const pln_tensor *x = plain_operand(&s, n);
  return set_resize_result(&s, n, resample(&s, x, n, sizes, &how),
                           result_dtype(call));
}

/* ---------------------------------------------------------------- by factors
 */

/* The factor of spatial axis i: an operand, or an attribute. */
static double factor_at(pln_composition *s, uint32_t n, uint32_t i) {
  static const char *const names[] = {"scale_d", "scale_h", "scale_w"};
  pln_kernel_call *call = s->call;
  if (call->n_args == 1)
    return pln_kernel_float(call, names[PLN_WINDOW_AXES - n + i], 1);
  const pln_tensor *t = pln_kernel_arg(call, 1 + i);
  if (!t || t->count != 1)
    return 0;
  t = pln_compose_cast(s, t, PLN_FLOAT64);
  return t ? *(const double *)t->data : 0;
}

static void scale_sizes(pln_composition *s, const pln_tensor *x, uint32_t n,
                        int64_t *sizes) {
  for (uint32_t i = 0; i < n; i++) {
    double size = round((double)x->dims[i + 2] * factor_at(s, n, i));
    if (!(size >= 0 && size <= INT32_MAX)) {
      pln_composition_refuse(s, "a factor is out of range");
      return;
    }
    sizes[i] = (int64_t)size;
  }
}

/* nn.upsampling and nn.upsampling3d, with factors as attributes or operands. */
pln_status pln_kernel_upsample_by(pln_kernel_call *call) {
  bool flat = call->op == PLN_OP_UPSAMPLE || call->op == PLN_OP_DYN_UPSAMPLING;
  uint32_t n = flat ? 2 : 3;
  bool corners = pln_kernel_int(call, "align_corners", 0) ||
                 pln_kernel_string_is(call, "coordinate_transformation_mode",
                                      "", "align_corners");
  resize_attrs how = {mode_of(call, "nearest"), coordinates_of(call),
                      corners ? "round_prefer_ceil" : "floor"};
  int64_t sizes[PLN_WINDOW_AXES] = {0};
  pln_composition s;
  if (flat) /* nn.upsampling has no attribute for coordinates */
    how.coordinates = corners ? "align_corners" : "asymmetric";
  pln_composition_begin(&s, call);
  const pln_tensor *x = plain_operand(&s, n);
  if (x)
    scale_sizes(&s, x, n, sizes);
  return set_resize_result(&s, n, resample(&s, x, n, sizes, &how),
                           (pln_dtype)pln_kernel_arg(call, 0)->dtype);
}

/* ---------------------------------------------------------------- by regions
 */

/* Image `at` of a batch, as a batch of one. */
static const pln_tensor *image_at(pln_composition *s, const pln_tensor *x,
                                  int64_t at) {
  int64_t dims[4] = {1, x->dims[1], x->dims[2], x->dims[3]};
  size_t bytes = x->bytes / (size_t)x->dims[0];
  pln_tensor *image = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_from_bytes(
        s->call->engine, (pln_dtype)x->dtype, 4, dims,
        (const char *)x->data + (size_t)at * bytes, bytes, &image);
  return pln_compose_own(s, image);
}

/* Resamples one region, given by floats (y, x, y, x) in [0, 1], into the
 * result. */
static pln_status crop(pln_kernel_call *call, const pln_tensor *x, int64_t at,
                       const float *box, const int64_t *size, const char *mode,
                       char *to) {
  static const int64_t axes[] = {2, 3}, four[] = {4};
  pln_tensor *region = NULL;
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *image = image_at(&s, x, at);
  if (s.status == PLN_OK)
    s.status = pln_tensor_from_bytes(call->engine, PLN_FLOAT32, 1, four, box,
                                     4 * sizeof *box, &region);
  const pln_tensor *args[4] = {image, pln_compose_own(&s, region), NULL,
                               pln_compose_vector(&s, 2, size)};
  pln_compose_string(&s, "mode", mode);
  pln_compose_string(&s, "coordinate_transformation_mode",
                     "tf_crop_and_resize");
  pln_compose_string(&s, "nearest_mode", "round_prefer_ceil");
  pln_compose_ints(&s, "axes", 2, axes);
  pln_compose_float(&s, "extrapolation_value",
                    pln_kernel_float(call, "extrapolation_value", 0));
  const pln_tensor *y = pln_compose_call(&s, PLN_OP_RESIZE, 4, args);
  if (y)
    memcpy(to, y->data, y->bytes);
  return pln_composition_end(&s);
}

static const pln_tensor *crop_all(pln_composition *s, const pln_tensor *x,
                                  const pln_tensor *boxes,
                                  const pln_tensor *images, const int64_t *size,
                                  const char *mode) {
  int64_t dims[4] = {boxes->dims[0], x->dims[1], size[0], size[1]}, at;
  pln_tensor *out = NULL;
  s->status = pln_tensor_new(s->call->engine, PLN_FLOAT32, 4, dims, &out);
  const pln_tensor *kept = pln_compose_own(s, out);
  char *to = kept ? pln_tensor_writable(out) : NULL;
  size_t bytes = kept && dims[0] ? kept->bytes / (size_t)dims[0] : 0;
  for (int64_t i = 0; i < dims[0] && s->status == PLN_OK && bytes; i++) {
    if (!pln_tensor_int(images, (size_t)i, &at) || at < 0 || at >= x->dims[0])
      pln_composition_refuse(s, "there is no such image");
    else
      s->status = crop(s->call, x, at, (const float *)boxes->data + 4 * i, size,
                       mode, to + (size_t)i * bytes);
  }
  return kept;
}

/* (images, boxes, image of each box) */
pln_status pln_kernel_crop_and_resize(pln_kernel_call *call) {
  const pln_tensor *boxes = pln_kernel_arg(call, 1);
  const pln_tensor *images = pln_kernel_arg(call, 2);
  const char *mode = mode_of(call, "linear");
  int64_t size[PLN_WINDOW_AXES];
  pln_composition s;
  if (boxes->rank != 2 || boxes->dims[1] != 4 || images->rank != 1 ||
      images->dims[0] != boxes->dims[0] || !mode ||
      !pln_relay_ints(call, "crop_size", 2, 0, size) || size[0] < 1 ||
      size[1] < 1)
    return pln_kernel_refuse(call, "the boxes are not valid");
  pln_composition_begin(&s, call);
  const pln_tensor *x = pln_compose_cast(&s, plain_operand(&s, 2), PLN_FLOAT32);
  boxes = pln_compose_cast(&s, boxes, PLN_FLOAT32);
  const pln_tensor *y =
      boxes ? crop_all(&s, x, boxes, images, size, mode) : NULL;
  return set_resize_result(&s, 2, y, result_dtype(call));
}
