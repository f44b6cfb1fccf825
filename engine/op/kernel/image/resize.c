/* resize.c: resize, and upsampling, which it superseded: types and kernels.
 * Called through ops.def. Nearest neighbours are copied, for any dtype;
 * weighted sums are computed in float32 or float64, to which integers and
 * 16-bit floats are converted. */

#include <math.h>

#include "op/kernel/elementwise/convert.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/image/resample.h"
#include "op/kernel/multiversion.h"

/* ----------------------------------------------------------------- factors */

/* Factors of the axes: an argument that is a constant or a concatenation of
 * constants, or an attribute. */
typedef struct factors {
  uint32_t count; /* 0: unknown */
  float of[PLN_MAX_RANK];
} factors;

/* Appends the elements of a constant; false if there is none in memory. */
static bool append_factors(factors *f, const pln_tensor *t) {
  if (!t || t->external || t->dtype != PLN_FLOAT32 ||
      t->count > PLN_MAX_RANK - f->count)
    return false;
  for (uint32_t i = 0; i < t->count; i++)
    memcpy(&f->of[f->count++],
           (const char *)t->data + (t->splat ? 0 : i) * sizeof(float),
           sizeof(float)); /* a view into a file may be unaligned */
  return true;
}

static bool factors_of_parts(const pln_infer *call, const pln_node *n,
                             factors *out) {
  const pln_ref *args = pln_operands(call->graph, n);
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_node *part = &call->graph->nodes[args[i]];
    if (part->kind != PLN_CONSTANT ||
        !append_factors(out, call->graph->tensors[part->data]))
      return false;
  }
  return true;
}

static bool factors_of_arg(const pln_infer *call, uint32_t arg, factors *out) {
  if (append_factors(out, pln_arg_tensor(call, arg)))
    return true;
  if (arg >= call->n_args || call->fields || call->tensors)
    return false;
  const pln_node *n = &call->graph->nodes[call->args[arg]];
  return n->kind == PLN_CALL && n->data == PLN_OP_CONCAT &&
         factors_of_parts(call, n, out);
}

static factors read_factors(const pln_infer *call, uint32_t arg) {
  factors f = {0};
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "scales");
  if (arg != PLN_NONE && factors_of_arg(call, arg, &f))
    return f;
  f.count = 0;
  if (a && a->kind == PLN_ATTR_FLOATS && a->count <= PLN_MAX_RANK)
    for (; f.count < a->count; f.count++)
      f.of[f.count] = (float)a->v.floats[f.count];
  return f;
}

/* floor(extent * factor), in single precision as in ONNX Runtime. Symbolic
 * extents allow factors k and 1/k. */
static pln_status scale_extent(const pln_infer *call, pln_dim in, float factor,
                               pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  if (!(factor > 0) || factor > 1e6f || in == PLN_DIM_UNKNOWN)
    return PLN_OK;
  if (factor == 1) {
    *out = in;
    return PLN_OK;
  }
  if (PLN_DIM_IS_CONST(in)) {
    float scaled = floorf((float)in * factor);
    if (scaled >= 0 && scaled < 9e15f)
      *out = (pln_dim)scaled;
    return PLN_OK;
  }
  float inverse = 1 / factor;
  if (factor == floorf(factor))
    return pln_infer_dim(call, PLN_DIM_MUL, in, (pln_dim)factor, out);
  if (inverse == floorf(inverse) && inverse < 1e6f)
    return pln_infer_dim(call, PLN_DIM_FLOORDIV, in, (pln_dim)inverse, out);
  return PLN_OK;
}

/* ------------------------------------------------------------------ resize */

/* The axis that element `i` of sizes or factors belongs to: by attribute axes,
 * else all in order. */
static pln_status resized_axis(const pln_infer *call, uint32_t i, uint32_t n,
                               const pln_shape *x, int32_t *axis) {
  uint32_t n_axes;
  const int64_t *axes = pln_call_ints(call, "axes", &n_axes);
  if (n != (axes ? n_axes : (uint32_t)x->rank))
    return pln_call_error(call, "%u sizes or factors for %u axes", n,
                          axes ? n_axes : (uint32_t)x->rank);
  *axis = (int32_t)i;
  return axes ? pln_call_axis(call, axes[i], x->rank, axis) : PLN_OK;
}

static pln_status by_factors(const pln_infer *call, const factors *f,
                             pln_shape *shape) {
  for (uint32_t i = 0; i < f->count; i++) {
    int32_t axis;
    PLN_TRY(resized_axis(call, i, f->count, shape, &axis));
    PLN_TRY(
        scale_extent(call, shape->dims[axis], f->of[i], &shape->dims[axis]));
  }
  if (f->count == 0)
    pln_shape_ranked(shape, shape->rank);
  return PLN_OK;
}

static pln_status by_sizes(const pln_infer *call, const pln_list *sizes,
                           pln_shape *shape) {
  bool stretched = pln_call_string_is(call, "keep_aspect_ratio_policy",
                                      "stretch", "stretch");
  if (!sizes->sized) {
    pln_shape_ranked(shape, shape->rank);
    return PLN_OK;
  }
  for (uint32_t i = 0; i < sizes->count; i++) {
    int32_t axis;
    PLN_TRY(resized_axis(call, i, sizes->count, shape, &axis));
    shape->dims[axis] =
        stretched ? pln_list_at(sizes, i) : (pln_dim)PLN_DIM_UNKNOWN;
  }
  return PLN_OK;
}

/* (x, scales) in opset 10; later (x, roi, scales, sizes) with one of scales and
 * sizes; an empty one counts as omitted. */
pln_status pln_infer_resize(pln_infer *call) {
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  uint32_t scales = call->n_args == 2 ? 1 : 2;
  if (shape.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
  if (!pln_arg_absent(call, 3)) {
    pln_list sizes = pln_arg_list(call, 3, NULL);
    PLN_TRY(by_sizes(call, &sizes, &shape));
  } else {
    factors f = read_factors(call, scales);
    PLN_TRY(by_factors(call, &f, &shape));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_upsample(pln_infer *call) {
  pln_shape shape;
  if (pln_call_has(call, "scale_h") || pln_call_has(call, "scale_w"))
    return pln_infer_upsampling(call);
  pln_arg_shape(call, 0, &shape);
  factors f = read_factors(call, call->n_args > 1 ? 1 : PLN_NONE);
  if (shape.rank >= 0)
    PLN_TRY(by_factors(call, &f, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* ------------------------------------------------------- reading a resizing */

/* The parameters of a call. */
typedef struct resizing {
  const pln_tensor *x;
  pln_sampling how;
  double extrapolation;
  pln_sampled_axis axes[PLN_MAX_RANK];
} resizing;

static float float_at(const pln_tensor *t, uint32_t i) {
  float single;
  if (t->dtype == PLN_FLOAT64)
    return (float)((const double *)t->data)[i];
  if (t->dtype == PLN_FLOAT32)
    return ((const float *)t->data)[i];
  pln_widen((pln_dtype)t->dtype, (const uint16_t *)t->data + i, &single, 1);
  return single;
}

/* A tensor without elements counts as omitted. */
static const pln_tensor *given_arg(const pln_kernel_call *call, uint32_t i) {
  const pln_tensor *t = pln_kernel_arg(call, i);
  return t && t->count ? t : NULL;
}

/* The names of an attribute's values, in the order of their enum. */
static pln_status read_choice(const pln_kernel_call *call, const char *name,
                              const char *const *values, uint32_t n,
                              uint32_t *out) {
  for (*out = 0; *out < n; ++*out)
    if (pln_kernel_string_is(call, name, values[0], values[*out]))
      return PLN_OK;
  return pln_kernel_refuse(call, "%s is unknown", name);
}

static pln_status read_mode(const pln_kernel_call *call, pln_sampling *how) {
  static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear",
                                      "trilinear"};
  uint32_t mode;
  PLN_TRY(read_choice(call, "mode", modes, PLN_COUNT(modes), &mode));
  how->mode =
      mode > PLN_RESAMPLE_CUBIC ? PLN_RESAMPLE_LINEAR : (pln_resample)mode;
  return PLN_OK;
}

static pln_status read_sampling(const pln_kernel_call *call,
                                pln_sampling *how) {
  static const char *const coordinates[] = {
      "half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners",       "asymmetric",           "tf_crop_and_resize",
      "tf_half_pixel_for_nn"};
  static const char *const nearest[] = {
      "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"};
  uint32_t at, rule;
  PLN_TRY(read_mode(call, how));
  PLN_TRY(read_choice(call, "coordinate_transformation_mode", coordinates,
                      PLN_COUNT(coordinates), &at));
  PLN_TRY(
      read_choice(call, "nearest_mode", nearest, PLN_COUNT(nearest), &rule));
  how->coordinates = (pln_coordinates)at;
  how->nearest = (pln_nearest)rule;
  how->cubic = (float)pln_kernel_float(call, "cubic_coeff_a", -0.75);
  how->antialias = pln_kernel_int(call, "antialias", 0) != 0;
  how->exclude_outside = pln_kernel_int(call, "exclude_outside", 0) != 0;
  return PLN_OK;
}

static void keep_axes(resizing *r) {
  for (uint32_t i = 0; i < r->x->rank; i++)
    r->axes[i] = (pln_sampled_axis){.in = r->x->dims[i],
                                    .out = r->x->dims[i],
                                    .length = (float)r->x->dims[i],
                                    .scale = 1,
                                    .end = 1};
}

/* The axis that element `i` of a list of `n` belongs to. */
static pln_status listed_axis(const pln_kernel_call *call, const resizing *r,
                              uint32_t n, uint32_t i, uint32_t *axis) {
  pln_list axes = pln_kernel_list(call, PLN_NONE, "axes");
  uint32_t want = axes.given ? axes.count : r->x->rank;
  *axis = i;
  if (n != want)
    return pln_kernel_refuse(call, "%u sizes or factors for %u axes", n, want);
  if (axes.given && !pln_kernel_axis(axes.ints[i], r->x->rank, axis))
    return pln_kernel_refuse(call, "axis %lld lies outside of rank %u",
                             (long long)axes.ints[i], r->x->rank);
  return PLN_OK;
}

static pln_status set_factor(const pln_kernel_call *call, resizing *r,
                             uint32_t n, uint32_t i, float factor) {
  uint32_t axis;
  PLN_TRY(listed_axis(call, r, n, i, &axis));
  pln_sampled_axis *a = &r->axes[axis];
  float out = floorf((float)a->in * factor);
  if (!(factor > 0) || !(out < (float)INT32_MAX))
    return pln_kernel_refuse(call, "a factor of %g for axis %u", (double)factor,
                             axis);
  a->scale = factor;
  a->length = (float)a->in * factor;
  a->out = factor == 1 ? a->in : (int64_t)out;
  return PLN_OK;
}

/* To keep the aspect ratio, all axes get the least or the greatest factor. */
static pln_status keep_aspect(const pln_kernel_call *call, resizing *r,
                              const pln_list *sizes, bool larger) {
  float factor = larger ? 0 : INFINITY;
  for (uint32_t i = 0; i < sizes->count; i++) {
    uint32_t axis;
    PLN_TRY(listed_axis(call, r, sizes->count, i, &axis));
    float one = r->axes[axis].scale;
    factor = larger ? fmaxf(factor, one) : fminf(factor, one);
  }
  for (uint32_t i = 0; i < sizes->count; i++) {
    uint32_t axis;
    PLN_TRY(listed_axis(call, r, sizes->count, i, &axis));
    pln_sampled_axis *a = &r->axes[axis];
    float out = roundf(factor * (float)a->in);
    if (!(out < (float)INT32_MAX))
      return pln_kernel_refuse(call, "a factor of %g for axis %u",
                               (double)factor, axis);
    a->scale = factor;
    a->length = out;
    a->out = (int64_t)out;
  }
  return PLN_OK;
}

static pln_status set_sizes(const pln_kernel_call *call, resizing *r,
                            const pln_list *sizes) {
  for (uint32_t i = 0; i < sizes->count; i++) {
    uint32_t axis;
    int64_t out = pln_list_at(sizes, i);
    PLN_TRY(listed_axis(call, r, sizes->count, i, &axis));
    pln_sampled_axis *a = &r->axes[axis];
    if (out < 0 || out > INT32_MAX)
      return pln_kernel_refuse(call, "a size of %lld for axis %u",
                               (long long)out, axis);
    a->out = out;
    a->length = (float)out;
    a->scale = a->in > 0 ? (float)out / (float)a->in : 1;
  }
  if (pln_kernel_string_is(call, "keep_aspect_ratio_policy", "stretch",
                           "not_larger"))
    return keep_aspect(call, r, sizes, false);
  if (pln_kernel_string_is(call, "keep_aspect_ratio_policy", "stretch",
                           "not_smaller"))
    return keep_aspect(call, r, sizes, true);
  return PLN_OK;
}

/* The region: starts of all axes, then ends. */
static pln_status set_region(const pln_kernel_call *call, resizing *r,
                             const pln_tensor *roi) {
  uint32_t n = roi ? (uint32_t)(roi->count / 2) : 0;
  if (r->how.coordinates != PLN_TF_CROP_AND_RESIZE)
    return PLN_OK;
  if (!roi || !pln_dtype_is_float((pln_dtype)roi->dtype) ||
      roi->count != 2 * (size_t)n || n > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the region of interest is not valid");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t axis;
    PLN_TRY(listed_axis(call, r, n, i, &axis));
    r->axes[axis].begin = float_at(roi, i);
    r->axes[axis].end = float_at(roi, n + i);
  }
  return PLN_OK;
}

static pln_status set_factors(const pln_kernel_call *call, resizing *r,
                              const pln_tensor *scales) {
  if (!pln_dtype_is_float((pln_dtype)scales->dtype) ||
      scales->count > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the factors are not valid");
  for (uint32_t i = 0; i < scales->count; i++)
    PLN_TRY(
        set_factor(call, r, (uint32_t)scales->count, i, float_at(scales, i)));
  return PLN_OK;
}

static pln_status begin_resizing(const pln_kernel_call *call, resizing *r) {
  r->x = pln_kernel_arg(call, 0);
  if (r->x->rank == 0 || r->x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "rank %u is not implemented", r->x->rank);
  for (uint32_t i = 0; i < r->x->rank; i++)
    if (r->x->dims[i] > INT32_MAX)
      return pln_kernel_refuse(call, "axis %u is too large", i);
  keep_axes(r);
  return PLN_OK;
}

static pln_status read_resizing(const pln_kernel_call *call, resizing *r) {
  const pln_tensor *scales = given_arg(call, call->n_args == 2 ? 1 : 2);
  pln_list sizes = pln_kernel_list(call, 3, NULL);
  PLN_TRY(begin_resizing(call, r));
  PLN_TRY(read_sampling(call, &r->how));
  r->extrapolation = pln_kernel_float(call, "extrapolation_value", 0);
  if (sizes.count)
    PLN_TRY(set_sizes(call, r, &sizes));
  else if (scales)
    PLN_TRY(set_factors(call, r, scales));
  else
    return pln_kernel_refuse(call, "neither sizes nor factors are given");
  return set_region(call, r, call->n_args > 2 ? given_arg(call, 1) : NULL);
}

static pln_status read_upsampling(const pln_kernel_call *call, resizing *r) {
  const pln_tensor *scales = given_arg(call, 1);
  const pln_attr *listed = pln_attrs_find(call->engine, call->attrs, "scales");
  PLN_TRY(begin_resizing(call, r));
  PLN_TRY(read_mode(call, &r->how));
  r->how.coordinates = PLN_ASYMMETRIC;
  r->how.nearest = PLN_SIMPLE;
  if (scales)
    return set_factors(call, r, scales);
  if (!listed || listed->kind != PLN_ATTR_FLOATS)
    return pln_kernel_refuse(call, "factors are missing");
  for (uint32_t i = 0; i < listed->count; i++)
    PLN_TRY(set_factor(call, r, listed->count, i, (float)listed->v.floats[i]));
  return PLN_OK;
}

/* ------------------------------------------------------------------ dtypes */

/* Stores `value` as one element. Integers saturate, and are truncated or
 * rounded. */
static void store_resized_element(pln_dtype dtype, double value, bool rounds,
                                  void *to) {
  float single = (float)value;
  uint32_t bits = pln_dtype_bits(dtype);
  if (dtype == PLN_FLOAT64) {
    memcpy(to, &value, sizeof value);
  } else if (dtype == PLN_FLOAT32) {
    memcpy(to, &single, sizeof single);
  } else if (pln_dtype_is_half(dtype)) {
    pln_narrow(dtype, &single, to, 1);
  } else {
    bool is_signed = dtype == PLN_INT8 || dtype == PLN_INT16 ||
                     dtype == PLN_INT32 || dtype == PLN_INT64;
    double end = ldexp(1, (int)bits - is_signed), least = is_signed ? -end : 0;
    value = rounds ? round(value) : trunc(value);
    uint64_t all = value != value             ? 0
                   : value < least            ? (uint64_t)(int64_t)least
                   : value < end && value < 0 ? (uint64_t)(int64_t)value
                   : value < end              ? (uint64_t)value
                                 : (UINT64_MAX >> (64 - bits)) >> is_signed;
    switch (bits) {
    case 8: *(uint8_t *)to = (uint8_t)all; break;
    case 16: *(uint16_t *)to = (uint16_t)all; break;
    case 32: *(uint32_t *)to = (uint32_t)all; break;
    default: *(uint64_t *)to = all; break;
    }
  }
}

/* Converts the operand to float32 or float64; 16-bit floats and bytes fit
 * float32. */
static pln_status as_floats(const pln_tensor *x, pln_tensor **out) {
  pln_conversion c = {.engine = x->engine, .from = (pln_dtype)x->dtype};
  bool bytes = pln_dtype_bits(c.from) <= 16;
  c.to = bytes ? PLN_FLOAT32 : PLN_FLOAT64;
  *out = NULL;
  if (x->dtype == PLN_FLOAT32 || x->dtype == PLN_FLOAT64) {
    *out = pln_tensor_retain(x);
    return PLN_OK;
  }
  PLN_TRY(pln_tensor_unset(x->engine, c.to, x->rank, x->dims, out));
  pln_convert(&c, x->data, x->count, pln_tensor_writable(*out));
  return PLN_OK;
}

/* Clamps sums to the range of 8-bit or 16-bit integers, and rounds them half
 * away from zero if asked to. NaN becomes 0. */
PLN_MULTIVERSION static void
round_and_clip_elements(pln_dtype dtype, bool rounds, float *x, size_t n) {
  bool has_sign = dtype == PLN_INT8 || dtype == PLN_INT16;
  float range = (float)(1 << pln_dtype_bits(dtype));
  const float low = has_sign ? -range / 2 : 0, high = low + range - 1;
  const float half = rounds ? 0.5f : 0;
  for (size_t i = 0; i < n; i++) {
    float y = x[i] == x[i] ? x[i] : 0;
    y += y < 0 ? -half : half;
    y = y < low ? low : y;
    x[i] = y > high ? high : y;
  }
}

/* Sums in float32 as another dtype. */
static void narrow_sums(pln_dtype dtype, bool rounds, float *sums, size_t n,
                        void *out) {
  pln_conversion c = {.from = PLN_FLOAT32, .to = dtype};
  if (!pln_dtype_is_half(dtype))
    round_and_clip_elements(dtype, rounds, sums, n);
  pln_convert(&c, sums, n, out);
}

/* Makes result 0 from float32 or float64 sums, which it takes ownership of. */
static pln_status convert_sums_to_result(pln_kernel_call *call,
                                         const resizing *r, pln_tensor *sums) {
  pln_dtype dtype = (pln_dtype)r->x->dtype;
  size_t size = pln_element_size(dtype);
  if (sums->dtype == dtype) {
    call->results[0] = sums;
    return PLN_OK;
  }
  pln_status status = pln_tensor_unset(call->engine, dtype, sums->rank,
                                       sums->dims, &call->results[0]);
  char *out = status == PLN_OK ? pln_tensor_writable(call->results[0]) : NULL;
  if (out && sums->dtype == PLN_FLOAT32)
    narrow_sums(dtype, r->how.antialias, pln_tensor_writable(sums), sums->count,
                out);
  else
    for (size_t i = 0; out && i < sums->count; i++)
      store_resized_element(dtype, ((const double *)sums->data)[i],
                            r->how.antialias, out + i * size);
  pln_tensor_release(sums);
  return status;
}

/* ------------------------------------------------------------------ kernels */

static bool is_resizable_dtype(pln_dtype dtype) {
  return pln_dtype_is_float(dtype) ||
         (pln_dtype_bits(dtype) >= 8 && dtype >= PLN_UINT8 &&
          dtype <= PLN_INT64) ||
         dtype == PLN_UINT32 || dtype == PLN_UINT64;
}

static void extents_of(const resizing *r, int64_t *dims) {
  for (uint32_t i = 0; i < r->x->rank; i++)
    dims[i] = r->axes[i].out;
}

static pln_status move_nearest(pln_kernel_call *call, const resizing *r) {
  const pln_tensor *x = r->x;
  size_t size = pln_element_size((pln_dtype)x->dtype);
  int64_t dims[PLN_MAX_RANK];
  extents_of(r, dims);
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims,
                           &call->results[0]));
  pln_resample_nearest(call->engine, x->rank, r->axes, size, x->data,
                       pln_tensor_writable(call->results[0]));
  return PLN_OK;
}

static pln_status sum_weighted(pln_kernel_call *call, const resizing *r) {
  int64_t dims[PLN_MAX_RANK];
  pln_tensor *x, *sums = NULL;
  extents_of(r, dims);
  PLN_TRY(as_floats(r->x, &x));
  pln_status status =
      pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims, &sums);
  if (status == PLN_OK)
    status = pln_resample_sums(call->engine, x->rank, r->axes,
                               pln_element_size((pln_dtype)x->dtype), x->data,
                               pln_tensor_writable(sums));
  pln_tensor_release(x);
  if (status == PLN_OK)
    return convert_sums_to_result(call, r, sums);
  pln_tensor_release(sums);
  return status;
}

/* Positions of tf_crop_and_resize outside the tensor get a constant. */
static void extrapolate(const resizing *r, pln_tensor *out) {
  size_t size = pln_element_size((pln_dtype)out->dtype);
  uint64_t element[2];
  char *data = pln_tensor_writable(out);
  store_resized_element((pln_dtype)out->dtype, r->extrapolation, false,
                        element);
  for (uint32_t axis = 0; axis < out->rank; axis++) {
    const pln_sampled_axis *a = &r->axes[axis];
    size_t inner = pln_dims_product(out->dims, axis + 1, out->rank);
    size_t outer = pln_dims_product(out->dims, 0, axis);
    for (size_t i = 0; i < outer * (size_t)a->out; i++)
      if (a->outside && a->outside[i % (size_t)a->out])
        for (size_t k = 0; k < inner; k++)
          memcpy(data + (i * inner + k) * size, element, size);
  }
}

/* If factors change no extent, ONNX Runtime copies the operand. */
static bool changes(const resizing *r) {
  bool other = r->how.coordinates == PLN_TF_CROP_AND_RESIZE;
  for (uint32_t i = 0; i < r->x->rank; i++)
    other |= r->axes[i].in != r->axes[i].out;
  return other;
}

static pln_status check_dtype(const pln_kernel_call *call, const resizing *r) {
  pln_dtype dtype = (pln_dtype)r->x->dtype;
  size_t size = pln_element_size(dtype);
  bool moves = r->how.mode == PLN_RESAMPLE_NEAREST &&
               r->how.coordinates != PLN_TF_CROP_AND_RESIZE;
  if (dtype == PLN_STRING || size == 0 ||
      (!moves && !is_resizable_dtype(dtype)))
    return pln_kernel_no_dtype(call, dtype);
  return PLN_OK;
}

static pln_status make_result(pln_kernel_call *call, resizing *r) {
  int64_t dims[PLN_MAX_RANK];
  void *data;
  size_t count, bytes;
  extents_of(r, dims);
  if (pln_tensor_size((pln_dtype)r->x->dtype, r->x->rank, dims, &count,
                      &bytes) != PLN_OK)
    return pln_kernel_refuse(call, "the result is too large");
  if (count == 0)
    return pln_kernel_result(call, 0, (pln_dtype)r->x->dtype, r->x->rank, dims,
                             &data);
  if (r->x->count == 0)
    return pln_kernel_refuse(call, "the tensor to sample is empty");
  for (uint32_t i = 0; i < r->x->rank; i++)
    PLN_TRY(pln_sample_axis(call->engine, &r->how, &r->axes[i]));
  PLN_TRY((r->how.mode == PLN_RESAMPLE_NEAREST ? move_nearest
                                               : sum_weighted)(call, r));
  if (r->how.coordinates == PLN_TF_CROP_AND_RESIZE)
    extrapolate(r, call->results[0]);
  return PLN_OK;
}

static pln_status run_resizing(pln_kernel_call *call, resizing *r) {
  PLN_TRY(check_dtype(call, r));
  if (!changes(r)) {
    pln_kernel_same(call, 0, r->x);
    return PLN_OK;
  }
  pln_status status = make_result(call, r);
  for (uint32_t i = 0; i < r->x->rank; i++)
    pln_sampled_axis_free(call->engine, &r->axes[i]);
  return status;
}

pln_status pln_kernel_resize(pln_kernel_call *call) {
  resizing r = {.how.mode = PLN_RESAMPLE_NEAREST};
  PLN_TRY(read_resizing(call, &r));
  return run_resizing(call, &r);
}

pln_status pln_kernel_upsample(pln_kernel_call *call) {
  resizing r = {.how.mode = PLN_RESAMPLE_NEAREST};
  if (pln_attrs_find(call->engine, call->attrs, "scale_h") ||
      pln_attrs_find(call->engine, call->attrs, "scale_w"))
    return pln_kernel_upsample_by(call);
  PLN_TRY(read_upsampling(call, &r));
  return run_resizing(call, &r);
}
