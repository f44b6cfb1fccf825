/* global.c: pooling over all spatial axes of tensors (batch, channels,
 * space...): types and kernels. Called through ops.def. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/sum.h"

pln_status pln_infer_global_pool(pln_infer *call) {
  pln_shape s;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  pln_arg_shape(call, 0, &s);
  for (int32_t i = 2; i < s.rank; i++)
    s.dims[i] = 1;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &s);
}

/* Reduces a plane of n elements to one element. */
typedef void (*plane_fn)(const void *in, size_t n, double p, void *out);

/* With fewer lanes the compiler unrolls the loop and does not vectorise. */
enum { LANES = 32 };

/* Small planes are summed in four lanes and divided in float32, as ONNX Runtime
 * does: a mean of quantised numbers may lie exactly between two others. The sum
 * of a large plane would lose digits. */
enum { SMALL = 4096 };
static double mean_plane_float(const float *x, size_t n) {
  float lane[4] = {0};
  size_t i = 0;
  if (n > SMALL)
    return pln_sum_float(x, n) / (double)n;
  for (; i + 4 <= n; i += 4)
    for (size_t k = 0; k < 4; k++)
      lane[k] += x[i + k];
  float all = (lane[0] + lane[2]) + (lane[1] + lane[3]);
  for (; i < n; i++)
    all += x[i];
  return (double)(all / (float)n);
}

static double mean_plane_double(const double *x, size_t n) {
  return pln_sum_double(x, n) / (double)n;
}

#define PLANES(T, power)                                                       \
  static void mean_##T(const void *in, size_t n, double p, void *out) {        \
    (void)p;                                                                   \
    *(T *)out = (T)mean_plane_##T(in, n);                                      \
  }                                                                            \
  /* The last lanes overlap earlier ones, which does not change a maximum. */  \
  PLN_MULTIVERSION static void max_##T(const void *in, size_t n, double p,     \
                                       void *out) {                            \
    const T *x = in;                                                           \
    T lane[LANES], top = (T)-INFINITY;                                         \
    (void)p;                                                                   \
    for (size_t k = 0; k < LANES; k++)                                         \
      lane[k] = top;                                                           \
    for (size_t i = 0; n >= LANES && i < n; i += LANES) {                      \
      const T *from = x + (i + LANES < n ? i : n - LANES);                     \
      for (size_t k = 0; k < LANES; k++)                                       \
        lane[k] = from[k] > lane[k] ? from[k] : lane[k];                       \
    }                                                                          \
    for (size_t i = 0; n < LANES && i < n; i++)                                \
      top = x[i] > top ? x[i] : top;                                           \
    for (size_t k = 0; k < LANES / 2; k++)                                     \
      lane[k] = lane[k] > lane[k + LANES / 2] ? lane[k] : lane[k + LANES / 2]; \
    for (size_t k = 0; k < LANES / 4; k++)                                     \
      lane[k] = lane[k] > lane[k + LANES / 4] ? lane[k] : lane[k + LANES / 4]; \
    for (size_t k = 0; k < LANES / 4; k++)                                     \
      top = lane[k] > top ? lane[k] : top;                                     \
    *(T *)out = top;                                                           \
  }                                                                            \
  static void norm_##T(const void *in, size_t n, double p, void *out) {        \
    const T *x = in;                                                           \
    double all = 0;                                                            \
    if (p == 1)                                                                \
      all = pln_sum_abs_##T(x, n);                                             \
    else if (p == 2)                                                           \
      all = sqrt(pln_sum_square_##T(x, n, 0));                                 \
    else                                                                       \
      for (size_t i = 0; i < n; i++)                                           \
        all += pow(fabs((double)x[i]), p);                                     \
    *(T *)out = (T)(p > 2 ? pow(all, 1 / p) : all);                            \
  }
PLANES(float, powf)
PLANES(double, pow)

/* Planes that threads share. */
typedef struct shared_planes {
  plane_fn fn;
  const char *in;
  char *out;
  size_t n, size; /* elements of a plane; bytes of an element */
  double p;
} shared_planes;

static void run_plane_range(void *ud, size_t begin, size_t end) {
  const shared_planes *s = ud;
  for (size_t i = begin; i < end; i++)
    s->fn(s->in + i * s->n * s->size, s->n, s->p, s->out + i * s->size);
}

/* The elements that pay for another thread. */
enum { SHARED_WORK = 1 << 15 };

static pln_status run_planes(pln_kernel_call *call, plane_fn single,
                             plane_fn twice, double p) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  if (x->dtype != PLN_FLOAT32 && x->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2 || x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "rank %u has no channels", x->rank);
  for (uint32_t i = 0; i < x->rank; i++)
    dims[i] = i < 2 ? x->dims[i] : 1;
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims,
                           &call->results[0]));
  size_t size = pln_element_size((pln_dtype)x->dtype);
  size_t planes = pln_dims_product(x->dims, 0, 2);
  size_t n = pln_dims_product(x->dims, 2, x->rank);
  shared_planes s = {.fn = size == 4 ? single : twice,
                     .in = x->data,
                     .out = pln_tensor_writable(call->results[0]),
                     .n = n,
                     .size = size,
                     .p = p};
  pln_parallel_ranges(call->engine, planes, 1 + SHARED_WORK / (n + 1),
                      run_plane_range, &s);
  return PLN_OK;
}

static pln_status run_mean(pln_kernel_call *call) {
  return run_planes(call, mean_float, mean_double, 0);
}

static pln_status run_max(pln_kernel_call *call) {
  return run_planes(call, max_float, max_double, 0);
}

static pln_status run_norm(pln_kernel_call *call) {
  int64_t p = pln_kernel_int(call, "p", 2);
  if (p < 1)
    return pln_kernel_refuse(call, "p is %lld", (long long)p);
  return run_planes(call, norm_float, norm_double, (double)p);
}

pln_status pln_kernel_global_avg_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", run_mean);
}

pln_status pln_kernel_global_max_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", run_max);
}

pln_status pln_kernel_global_lp_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", run_norm);
}
