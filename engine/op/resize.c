/* resize.c: the types of operators on images and on boxes. Called through
 * ops.def. */

#include <math.h>

#include "op/infer.h"

/* ----------------------------------------------------------------- factors */

/* Factors along axes: a constant argument or an attribute. */
typedef struct factors {
  uint32_t count; /* 0: not known */
  const pln_tensor *tensor;
  const double *floats;
} factors;

static factors read_factors(const pln_infer *call, uint32_t arg) {
  const pln_tensor *t = arg == PLN_NONE ? NULL : pln_arg_tensor(call, arg);
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "scales");
  if (t && t->dtype == PLN_FLOAT32 && t->count <= PLN_MAX_RANK)
    return (factors){.count = (uint32_t)t->count, .tensor = t};
  if (a && a->kind == PLN_ATTR_FLOATS && a->count <= PLN_MAX_RANK)
    return (factors){.count = a->count, .floats = a->v.floats};
  return (factors){0};
}

static float factor_at(const factors *f, uint32_t i) {
  float factor;
  if (f->floats)
    return (float)f->floats[i];
  const char *data = f->tensor->data;
  memcpy(&factor, data + (f->tensor->splat ? 0 : i) * sizeof factor,
         sizeof factor);
  return factor;
}

/* floor(extent * factor), in single precision as ONNX Runtime computes it.
 * Extents known only by name allow factors k and 1/k. */
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

/* The axes that `count` sizes or factors speak of: attribute axes, else all. */
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
    PLN_TRY(scale_extent(call, shape->dims[axis], factor_at(f, i),
                         &shape->dims[axis]));
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

/* (x, scales) in opset 10; (x, roi, scales, sizes) later, where one of scales
 * and sizes is given; an empty one counts as omitted. */
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
  pln_arg_shape(call, 0, &shape);
  factors f = read_factors(call, call->n_args > 1 ? 1 : PLN_NONE);
  if (shape.rank >= 0)
    PLN_TRY(by_factors(call, &f, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* ------------------------------------------------------------------- grids */

/* (batch, channels, space...) at (batch, grid..., axes). */
pln_status pln_infer_grid_sample(pln_infer *call) {
  pln_shape x, grid, out;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &grid);
  pln_shape_ranked(&out, x.rank >= 0 ? x.rank : grid.rank);
  if (out.rank >= 0 && out.rank < 3)
    return pln_arg_error(call, 0, "expected rank 3 or more, got %d", out.rank);
  if (x.rank >= 0) {
    PLN_TRY(pln_arg_expect_rank(call, 1, x.rank));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  }
  for (int32_t i = 1; i < grid.rank - 1; i++)
    out.dims[i + 1] = grid.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* size (batch, channels, space...) gives (batch, space..., axes). */
pln_status pln_infer_affine_grid(pln_infer *call) {
  pln_list size = pln_arg_list(call, 1, NULL);
  pln_shape out;
  bool good = size.sized && size.count >= 3 && size.count < PLN_MAX_RANK;
  pln_shape_ranked(&out, good ? (int64_t)size.count : -1);
  if (!good)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  out.dims[0] = pln_list_at(&size, 0);
  for (uint32_t i = 2; i < size.count; i++)
    out.dims[i - 1] = pln_list_at(&size, i);
  out.dims[size.count - 1] = size.count - 2;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* ------------------------------------------------------------------- boxes */

pln_status pln_infer_non_max_suppression(pln_infer *call) {
  pln_shape out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  pln_shape_ranked(&out, 2);
  out.dims[1] = 3;
  return pln_result_tensor(call, 0, PLN_INT64, &out);
}

pln_status pln_infer_image_decoder(pln_infer *call) {
  pln_shape out;
  pln_shape_ranked(&out, 3);
  bool grey = pln_call_string_is(call, "pixel_format", "RGB", "Grayscale");
  out.dims[2] = grey ? 1 : 3;
  return pln_result_tensor(call, 0, PLN_UINT8, &out);
}
