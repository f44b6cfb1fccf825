/* piecewise.c: activation functions of straight pieces, clip and prelu. Called
 * through ops.def.
 *
 * NaN gives NaN, except where a definition compares with it. Products are
 * rounded before they are added, on every machine, as in the definitions: where
 * a piece ends is then the same for all runtimes. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/elementwise/elementwise.h"

/* p and q are the parameters, of the loop's type. */
#define RELU(T, x) ((x) < 0 ? (T)0 : (x))
#define LEAKY(T, x) ((x) < 0 ? p * (x) : (x))
/* ONNX defines these by Less and Where, so NaN gives 0. */
#define THRESHOLDED(T, x) ((x) > p ? (x) : (T)0)
#define SHRINK(T, x) ((x) < -q ? (x) + p : (x) > q ? (x)-p : (T)0)
#define UNIT(T, y) ((y) < 0 ? (T)0 : (y) > 1 ? (T)1 : (y))
#define HARD_SIGMOID(T, x) UNIT(T, p *(x) + q)
#define HARD_SWISH(T, x) ((x)*UNIT(T, (x) * (T)(1.0 / 6) + (T)0.5))
#define SOFTSIGN(T, x) ((x) / (1 + ((x) < 0 ? -(x) : (x))))

#define FLOAT_LOOPS(name, f)                     \
  PLN_UNARY_LOOP(name, FLOAT32, float, float, f) \
  PLN_UNARY_LOOP(name, FLOAT64, double, double, f)
FLOAT_LOOPS(relu, RELU)
FLOAT_LOOPS(leaky, LEAKY)
FLOAT_LOOPS(thresholded, THRESHOLDED)
FLOAT_LOOPS(shrink, SHRINK)
FLOAT_LOOPS(hard_sigmoid, HARD_SIGMOID)
FLOAT_LOOPS(hard_swish, HARD_SWISH)
FLOAT_LOOPS(softsign, SOFTSIGN)
#define RELU_INT(D, T) PLN_UNARY_LOOP(relu, D, T, T, RELU)
PLN_SIGNED_TYPES(RELU_INT)

/* ------------------------------------------------------------------ kernels */

#define SIGNED(name)                                                           \
  PLN_LOOP_OF(name, INT8), PLN_LOOP_OF(name, INT16), PLN_LOOP_OF(name, INT32), \
      PLN_LOOP_OF(name, INT64)

PLN_UNARY_KERNEL(relu, SIGNED(relu), PLN_FLOAT_LOOPS(relu))
PLN_UNARY_KERNEL(hard_swish, PLN_FLOAT_LOOPS(hard_swish))
PLN_UNARY_KERNEL(softsign, PLN_FLOAT_LOOPS(softsign))
PLN_PARAMETRIC_KERNEL(leaky_relu, leaky, "alpha", 0.01, "", 0)
PLN_PARAMETRIC_KERNEL(thresholded_relu, thresholded, "alpha", 1, "", 0)
PLN_PARAMETRIC_KERNEL(hard_sigmoid, hard_sigmoid, "alpha", 0.2, "beta", 0.5)
PLN_PARAMETRIC_KERNEL(shrink, shrink, "bias", 0, "lambd", 0.5)

/* ------------------------------------------------------------ two operands */

#define SLOPED(T, x, slope) ((x) < 0 ? (slope) * (x) : (x))
#define SLOPED_INT(T, x, slope) \
  ((x) < 0 ? (T)((uint64_t)(x) * (uint64_t)(slope)) : (x))
#define UNSLOPED(T, x, slope) (x)
#define PRELU_FLOATS(D, T) PLN_PAIR_LOOP(prelu, D, T, T, SLOPED)
PLN_FLOAT_TYPES(PRELU_FLOATS)
PLN_PAIR_LOOP(prelu, INT32, int32_t, int32_t, SLOPED_INT)
PLN_PAIR_LOOP(prelu, INT64, int64_t, int64_t, SLOPED_INT)

/* The slope must not make the result larger than operand 0. */
static bool fits_into(const pln_tensor *small, const pln_tensor *large) {
  if (small->rank > large->rank)
    return false;
  for (uint32_t i = 0; i < small->rank; i++) {
    int64_t extent = small->dims[small->rank - 1 - i];
    if (extent != 1 && extent != large->dims[large->rank - 1 - i])
      return false;
  }
  return true;
}

/* Relay's form: a vector of slopes along one axis. */
static pln_status slope_along_axis(pln_kernel_call *call,
                                   const pln_pair_loops *loops) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *s = pln_kernel_arg(call, 1);
  int64_t dims[PLN_MAX_RANK];
  uint32_t axis;
  pln_tensor *slope;
  if (!x || !s || s->rank != 1 || x->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 1), x->rank, &axis) ||
      (s->dims[0] != x->dims[axis] && s->dims[0] != 1))
    return pln_kernel_refuse(call, "the slope does not match the axis");
  for (uint32_t i = 0; i < x->rank; i++)
    dims[i] = i == axis ? s->dims[0] : 1;
  PLN_TRY(pln_tensor_reshaped(s, x->rank, dims, &slope));
  pln_status status =
      pln_pair_compute(call, loops, x, slope, &call->results[0]);
  pln_tensor_release(slope);
  return status;
}

pln_status pln_kernel_prelu(pln_kernel_call *call) {
  static const pln_pair_loops loops = {.of = {PLN_FLOAT_LOOPS(prelu),
                                              PLN_LOOP_OF(prelu, INT32),
                                              PLN_LOOP_OF(prelu, INT64)}};
  const pln_tensor *x = pln_kernel_arg(call, 0), *s = pln_kernel_arg(call, 1);
  if (pln_kernel_list(call, PLN_NONE, "axis").given)
    return slope_along_axis(call, &loops);
  if (!x || !s || !fits_into(s, x))
    return pln_kernel_refuse(call, "the slope does not broadcast");
  return pln_pair_run(call, &loops);
}

/* --------------------------------------------------------------------- clip */

/* Written so that NaN passes through. */
#define AT_LEAST(T, x, y) ((x) < (y) ? (y) : (x))
#define AT_MOST(T, x, y) ((x) > (y) ? (y) : (x))
#define LEAST_LOOP(D, T) PLN_PAIR_LOOP(at_least, D, T, T, AT_LEAST)
#define MAX_LOOP(D, T) PLN_PAIR_LOOP(at_most, D, T, T, AT_MOST)
PLN_INT_TYPES(LEAST_LOOP)
PLN_INT_TYPES(MAX_LOOP)
PLN_FLOAT_TYPES(LEAST_LOOP)
PLN_FLOAT_TYPES(MAX_LOOP)
/* If the limits cross, the upper one applies. */
#define CLIP_UNIT(T, x) AT_MOST(T, AT_LEAST(T, x, p), q)
FLOAT_LOOPS(clip, CLIP_UNIT)

#define ALL(name)                                                    \
  SIGNED(name), PLN_LOOP_OF(name, UINT8), PLN_LOOP_OF(name, UINT16), \
      PLN_LOOP_OF(name, UINT32), PLN_LOOP_OF(name, UINT64),          \
      PLN_FLOAT_LOOPS(name)

/* Applies `limit` (NULL: none) to *all and replaces it. */
static pln_status limit_by(pln_kernel_call *call, const pln_pair_loops *loops,
                           const pln_tensor *limit, pln_tensor **all) {
  pln_tensor *limited;
  if (!limit)
    return PLN_OK;
  if (limit->count != 1 || limit->rank > (*all)->rank)
    return pln_kernel_refuse(call, "a limit must be a scalar");
  PLN_TRY(pln_pair_compute(call, loops, *all, limit, &limited));
  pln_tensor_release(*all);
  *all = limited;
  return PLN_OK;
}

/* Argument `i`, or attribute `name` as a scalar of operand 0's dtype: Relay
 * gives floats for integers, too, and a limit outside of the dtype's range is
 * none. *out: retained, or NULL. */
static pln_status find_limit(const pln_kernel_call *call, uint32_t i,
                             const char *name, pln_tensor **out) {
  const pln_tensor *given = pln_kernel_arg(call, i);
  *out = given ? pln_tensor_retain(given) : NULL;
  if (given || !pln_attrs_find(call->engine, call->attrs, name))
    return PLN_OK;
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  double value = pln_kernel_float(call, name, 0);
  return pln_tensor_full(call->engine, dtype, 0, NULL,
                         pln_dtype_is_float(dtype) ? value : trunc(value), out);
}

static pln_status clip_by(pln_kernel_call *call, const pln_pair_loops *loops,
                          uint32_t i, const char *name, pln_tensor **all) {
  pln_tensor *limit;
  PLN_TRY(find_limit(call, i, name, &limit));
  pln_status status = limit_by(call, loops, limit, all);
  pln_tensor_release(limit);
  return status;
}

static pln_status clip_by_arguments(pln_kernel_call *call) {
  static const pln_pair_loops least = {.of = {ALL(at_least)}};
  static const pln_pair_loops most = {.of = {ALL(at_most)}};
  pln_tensor *all = pln_tensor_retain(call->args[0]);
  pln_status status = clip_by(call, &least, 1, "a_min", &all);
  if (status == PLN_OK)
    status = clip_by(call, &most, 2, "a_max", &all);
  if (status == PLN_OK)
    call->results[0] = all;
  else
    pln_tensor_release(all);
  return status;
}

/* Reads the limit in argument `i`; false if it is not a scalar of operand 0's
 * dtype. A NaN limit has no effect. */
static bool read_limit(const pln_kernel_call *call, uint32_t i, double *limit) {
  const pln_tensor *t = pln_kernel_arg(call, i);
  if (!t)
    return true;
  if (t->rank || t->dtype != call->args[0]->dtype || !pln_is_float32_or_64(t))
    return false;
  double given = pln_element_at(t, 0);
  *limit = given == given ? given : *limit;
  return true;
}

/* Floats are always limited: infinities become the greatest finite numbers. */
static bool is_limited(const pln_kernel_call *call) {
  const pln_tensor *x = call->args[0];
  return pln_kernel_arg(call, 1) || pln_kernel_arg(call, 2) ||
         pln_attrs_find(call->engine, call->attrs, "a_min") ||
         pln_attrs_find(call->engine, call->attrs, "a_max") ||
         pln_dtype_is_float((pln_dtype)x->dtype);
}

pln_status pln_kernel_clip(pln_kernel_call *call) {
  static const pln_unary_loops loops = {.of = {PLN_FLOAT_LOOPS(clip)}};
  if (!pln_kernel_arg(call, 0))
    return pln_kernel_refuse(call, "the operand is missing");
  if (!is_limited(call)) {
    pln_kernel_same(call, 0, call->args[0]);
    return PLN_OK;
  }
  if (!pln_dtype_is_float((pln_dtype)call->args[0]->dtype))
    return clip_by_arguments(call);
  /* The default limit in ONNX. */
  double most = pln_float_greatest((pln_dtype)call->args[0]->dtype);
  pln_params params = {pln_kernel_float(call, "a_min", -most),
                       pln_kernel_float(call, "a_max", most)};
  if (!read_limit(call, 1, &params.p) || !read_limit(call, 2, &params.q))
    return clip_by_arguments(call);
  return pln_unary_run(call, &loops, &params);
}
