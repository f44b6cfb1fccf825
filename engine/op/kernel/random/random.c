/* random.c: random operators. Called through ops.def.
 *
 * An element depends only on the key of its call (rng.h) and its index. These
 * operators are never folded. Samples are computed in double and rounded to the
 * result's dtype. */

#include <math.h>

#include "op/kernel/elementwise/convert.h"
#include "op/kernel/random/rng.h"

static pln_dtype dtype_attr(const pln_infer *call, const char *name,
                            pln_dtype fallback) {
  int64_t dtype = pln_call_int(call, name, fallback);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype : fallback;
}

pln_status pln_infer_random(pln_infer *call) {
  pln_list list = pln_arg_list(call, PLN_NONE, "shape");
  pln_shape shape;
  pln_shape_ranked(&shape, list.given ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < shape.rank; i++)
    shape.dims[i] = pln_list_at(&list, (uint32_t)i);
  return pln_result_tensor(call, 0, dtype_attr(call, "dtype", PLN_FLOAT32),
                           &shape);
}

pln_status pln_infer_random_like(pln_infer *call) {
  pln_dtype dtype = dtype_attr(call, "dtype", pln_arg_dtype(call, 0));
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_multinomial(pln_infer *call) {
  pln_shape x, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, 2);
  if (x.rank == 2)
    out.dims[0] = x.dims[0];
  int64_t size = pln_call_int(call, "sample_size", 1);
  if (PLN_DIM_IS_CONST(size))
    out.dims[1] = size;
  return pln_result_tensor(call, 0, dtype_attr(call, "dtype", PLN_INT32), &out);
}

/* ------------------------------------------------------------------ filling */

enum { BLOCK = 512 }; /* values drawn before they are stored; even */

/* A distribution: computes `n` samples from the index `first` on, a multiple of
 * BLOCK. */
typedef struct distribution {
  pln_rng rng;
  double a, b;          /* low and width, or mean and scale */
  const double *chance; /* BLOCK parameters, for distributions that take them
                           from a tensor */
} distribution;
typedef void (*random_fill_fn)(const distribution *by, uint64_t first, size_t n,
                               double *out);

static void fill_uniform(const distribution *by, uint64_t first, size_t n,
                         double *out) {
  for (size_t i = 0; i < n; i++)
    out[i] = by->a + by->b * pln_rng_unit(by->rng, first + i);
}

/* Two at a time, by the Box-Muller transform (G. Box and M. Muller, "A note on
 * the generation of random normal deviates", 1958). */
static void fill_normal(const distribution *by, uint64_t first, size_t n,
                        double *out) {
  for (size_t i = 0; i < n; i += 2) {
    double u = 1 - pln_rng_unit(by->rng, first + i);
    double angle =
        6.28318530717958647692 * pln_rng_unit(by->rng, first + i + 1);
    double radius = sqrt(-2 * log(u));
    out[i] = by->a + by->b * (radius * cos(angle));
    if (i + 1 < n)
      out[i + 1] = by->a + by->b * (radius * sin(angle));
  }
}

static void fill_events(const distribution *by, uint64_t first, size_t n,
                        double *out) {
  for (size_t i = 0; i < n; i++)
    out[i] = pln_rng_unit(by->rng, first + i) < by->chance[i];
}

static pln_status store_random_elements(const pln_kernel_call *call,
                                        const double *from, pln_dtype dtype,
                                        size_t first, size_t n, void *data) {
  pln_conversion c = {.from = PLN_FLOAT64, .to = dtype};
  size_t size = pln_element_size(dtype);
  if (pln_convert(&c, from, n, (char *)data + first * size) == PLN_CONVERTED)
    return PLN_OK;
  return pln_kernel_undefined(call);
}

static pln_dtype result_dtype(const pln_kernel_call *call, pln_dtype fallback) {
  int64_t dtype = pln_kernel_int(call, "dtype", fallback);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype : fallback;
}

static pln_status fill_random_tensor(pln_kernel_call *call,
                                     random_fill_fn fill_random,
                                     const distribution *by, pln_dtype dtype,
                                     uint32_t rank, const int64_t *dims) {
  double block[BLOCK];
  void *data;
  if (!pln_dtype_is_float(dtype))
    return pln_kernel_no_dtype(call, dtype);
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] < 0)
      return pln_kernel_refuse(call, "shape has %lld", (long long)dims[i]);
  PLN_TRY(pln_kernel_unset(call, 0, dtype, rank, dims, &data));
  size_t count = call->results[0]->count, done = 0;
  for (size_t at = 0; at < count; at += BLOCK) {
    size_t n = count - at < BLOCK ? count - at : BLOCK;
    PLN_TRY(pln_poll_after(call->engine, &done, 8 * n));
    fill_random(by, at, n, block);
    PLN_TRY(store_random_elements(call, block, dtype, at, n, data));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ kernels */

static distribution uniform_law(const pln_kernel_call *call) {
  double low = pln_kernel_float(call, "low", 0);
  double high = pln_kernel_float(call, "high", 1);
  return (distribution){pln_rng_begin(call), low, high - low, NULL};
}

static distribution normal_law(const pln_kernel_call *call) {
  return (distribution){pln_rng_begin(call), pln_kernel_float(call, "mean", 0),
                        pln_kernel_float(call, "scale", 1), NULL};
}

static pln_status fill_shape(pln_kernel_call *call, random_fill_fn fill_random,
                             distribution by) {
  pln_list shape = pln_kernel_list(call, PLN_NONE, "shape");
  if (!shape.given)
    return pln_kernel_refuse(call, "there is no shape");
  return fill_random_tensor(call, fill_random, &by,
                            result_dtype(call, PLN_FLOAT32), shape.count,
                            shape.ints);
}

static pln_status fill_like(pln_kernel_call *call, random_fill_fn fill_random,
                            distribution by) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  return fill_random_tensor(call, fill_random, &by,
                            result_dtype(call, (pln_dtype)x->dtype), x->rank,
                            x->dims);
}

pln_status pln_kernel_random_uniform(pln_kernel_call *call) {
  return fill_shape(call, fill_uniform, uniform_law(call));
}

pln_status pln_kernel_random_normal(pln_kernel_call *call) {
  return fill_shape(call, fill_normal, normal_law(call));
}

pln_status pln_kernel_random_uniform_like(pln_kernel_call *call) {
  return fill_like(call, fill_uniform, uniform_law(call));
}

pln_status pln_kernel_random_normal_like(pln_kernel_call *call) {
  return fill_like(call, fill_normal, normal_law(call));
}

/* Reads n probabilities as doubles, from element `first` on. */
static pln_status read_chances(const pln_kernel_call *call, const pln_tensor *x,
                               size_t first, size_t n, double *out) {
  pln_dtype dtype = (pln_dtype)x->dtype;
  pln_conversion c = {.from = dtype, .to = PLN_FLOAT64};
  const char *from = (const char *)x->data + first * pln_element_size(dtype);
  if (pln_convert(&c, from, n, out) != PLN_CONVERTED)
    return pln_kernel_undefined(call);
  for (size_t i = 0; i < n; i++)
    if (!(out[i] >= 0 && out[i] <= 1))
      return pln_kernel_refuse(call, "%g is not a probability", out[i]);
  return PLN_OK;
}

pln_status pln_kernel_bernoulli(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = result_dtype(call, (pln_dtype)x->dtype);
  double chance[BLOCK], block[BLOCK];
  distribution by = {.rng = pln_rng_begin(call), .chance = chance};
  void *data;
  if (!pln_dtype_is_float((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!pln_convertible(dtype) || pln_element_size(dtype) == 0)
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(pln_kernel_unset(call, 0, dtype, x->rank, x->dims, &data));
  size_t done = 0;
  for (size_t at = 0; at < x->count; at += BLOCK) {
    size_t n = x->count - at < BLOCK ? x->count - at : BLOCK;
    PLN_TRY(pln_poll_after(call->engine, &done, 8 * n));
    PLN_TRY(read_chances(call, x, at, n, chance));
    fill_events(&by, at, n, block);
    PLN_TRY(store_random_elements(call, block, dtype, at, n, data));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------- multinomial */

/* Turns logarithms of weights into their running sum; false if all weights are
 * 0 or one is NaN. */
static bool sum_weights(double *w, size_t n) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(w[i]) || w[i] == INFINITY)
      return false;
    most = w[i] > most ? w[i] : most;
  }
  for (size_t i = 0; i < n; i++) {
    sum += most > -INFINITY ? exp(w[i] - most) : 0;
    w[i] = sum;
  }
  return sum > 0;
}

/* The first class whose running sum exceeds `x`. */
static size_t class_of(const double *sums, size_t n, double x) {
  size_t low = 0, high = n - 1;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (sums[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static pln_status fill_random_row(const pln_kernel_call *call,
                                  const pln_tensor *x, size_t r, double *sums,
                                  pln_rng rng) {
  pln_tensor *out = call->results[0];
  size_t classes = (size_t)x->dims[1], samples = (size_t)out->dims[1];
  pln_conversion c = {.from = (pln_dtype)x->dtype, .to = PLN_FLOAT64};
  const char *from = (const char *)x->data +
                     r * classes * pln_element_size((pln_dtype)x->dtype);
  if (pln_convert(&c, from, classes, sums) != PLN_CONVERTED ||
      !sum_weights(sums, classes))
    return pln_kernel_refuse(
        call, "no class of row %zu has a positive probability", r);
  size_t done = 0;
  for (size_t i = 0; i < samples; i++) {
    size_t at = r * samples + i;
    PLN_TRY(pln_poll_after(call->engine, &done, 16));
    double x01 = pln_rng_unit(rng, at);
    size_t chosen = class_of(sums, classes, x01 * sums[classes - 1]);
    if (out->dtype == PLN_INT32)
      ((int32_t *)pln_tensor_writable(out))[at] = (int32_t)chosen;
    else
      ((int64_t *)pln_tensor_writable(out))[at] = (int64_t)chosen;
  }
  return PLN_OK;
}

pln_status pln_kernel_multinomial(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = result_dtype(call, PLN_INT32);
  int64_t samples = pln_kernel_int(call, "sample_size", 1);
  pln_rng rng = pln_rng_begin(call);
  void *data;
  if (!pln_dtype_is_float((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (dtype != PLN_INT32 && dtype != PLN_INT64)
    return pln_kernel_no_dtype(call, dtype);
  if (x->rank != 2 || samples < 0 || (x->dims[1] > INT32_MAX))
    return pln_kernel_refuse(call, "there are no %lld samples of this operand",
                             (long long)samples);
  int64_t dims[2] = {x->dims[0], samples};
  PLN_TRY(pln_kernel_unset(call, 0, dtype, 2, dims, &data));
  size_t classes = (size_t)x->dims[1], bytes = classes * sizeof(double);
  double *sums = pln_mem_new(call->engine, bytes);
  if (!sums && bytes)
    return pln_nomem(call->engine);
  pln_status status = PLN_OK;
  size_t done = 0;
  for (size_t r = 0; r < (size_t)dims[0] && samples && status == PLN_OK; r++) {
    status = pln_poll_after(call->engine, &done, 4 * classes);
    if (status == PLN_OK)
      status = fill_random_row(call, x, r, sums, rng);
  }
  pln_mem_free(call->engine, sums, bytes);
  return status;
}
