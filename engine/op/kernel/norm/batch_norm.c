/* batch_norm.c: batch normalisation: type and kernel. Called through ops.def.
 *
 * (x - mean) / sqrt(variance + epsilon) * scale + bias is computed as x * a +
 * b, with a and b computed once per channel. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/sum.h"

/* One result in inference; in training also mean and variance, and before opset
 * 9 the saved ones. */
pln_status pln_infer_batch_norm(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  int64_t axis = pln_call_int(call, "axis", 1);
  for (uint32_t i = 1; i < 5; i++)
    if (pln_call_int(call, "spatial", 1))
      PLN_TRY(pln_arg_expect_rank(call, i, 1));
  if (pln_call_int(call, "spatial", 1) && pln_arg_rank(call, 0) >= 2) {
    PLN_TRY(pln_args_channels(call, 1, 5, axis));
    PLN_TRY(pln_set_operand_channels(call, 1, 5, axis));
  }
  pln_result_like(call, 0, 0);
  for (uint32_t i = 1; i < pln_call_n_results(call); i++)
    pln_result_like(call, i, 3);
  return PLN_OK;
}

/* ------------------------------------------------------------------- loops */

/* Threads share planes of one channel, or rows of all of them if they have one
 * element each. */
typedef struct application {
  const void *in, *factors, *addends; /* of one dtype */
  void *out;
  size_t channels, inner;
} application;

#define APPLY(T)                                                              \
  PLN_MULTIVERSION static void plane_##T(T *restrict to, const T *restrict x, \
                                         size_t n, T a, T b) {                \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = x[i] * a + b;                                                   \
  }                                                                           \
  PLN_MULTIVERSION static void columns_##T(                                   \
      T *restrict to, const T *restrict x, size_t n, const T *restrict a,     \
      const T *restrict b) {                                                  \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = x[i] * a[i] + b[i];                                             \
  }                                                                           \
  static void apply_##T(void *ud, size_t begin, size_t end) {                 \
    const application *p = ud;                                                \
    const T *x = p->in, *a = p->factors, *b = p->addends;                     \
    const size_t channels = p->channels, inner = p->inner;                    \
    T *to = p->out;                                                           \
    for (size_t i = begin; i < end; i++)                                      \
      if (inner == 1)                                                         \
        columns_##T(to + i * channels, x + i * channels, channels, a, b);     \
      else                                                                    \
        plane_##T(to + i * inner, x + i * inner, inner, a[i % channels],      \
                  b[i % channels]);                                           \
  }                                                                           \
  static void store_##T(const double *from, size_t n, void *to) {             \
    for (size_t i = 0; i < n; i++)                                            \
      ((T *)to)[i] = (T)from[i];                                              \
  }
APPLY(float)
APPLY(double)

/* ------------------------------------------------------------------- calls */

typedef struct batches {
  const pln_tensor *x, *scale, *bias, *mean, *variance;
  size_t batch, channels, inner;
  double *now_mean, *now_variance; /* per channel; later factor and addend */
  void *store;                     /* as factors and addends of x's dtype */
} batches;

static pln_status read_batches(const pln_kernel_call *call, batches *b) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool spatial = pln_kernel_int(call, "spatial", 1) != 0;
  b->x = x;
  b->scale = pln_kernel_arg(call, 1);
  b->bias = pln_kernel_arg(call, 2);
  b->mean = pln_kernel_arg(call, 3);
  b->variance = pln_kernel_arg(call, 4);
  if (x->rank < 1)
    return pln_kernel_refuse(call, "a scalar has no channels");
  int64_t axis = pln_kernel_int(call, "axis", 1);
  bool relay = pln_kernel_int(call, "relay", 0) != 0;
  if (axis < 0)
    axis += x->rank;
  if (axis < 0 || (axis >= x->rank && (relay || axis != 1)))
    return pln_kernel_refuse(call, "there is no axis %lld", (long long)axis);
  bool whole = axis >= x->rank; /* ONNX: a vector is a batch of one channel */
  uint32_t first = whole ? x->rank : (uint32_t)axis;
  uint32_t end = spatial && !whole ? first + 1 : x->rank;
  b->batch = pln_dims_product(x->dims, 0, first);
  b->channels = pln_dims_product(x->dims, first, end);
  b->inner = pln_dims_product(x->dims, end, x->rank);
  for (uint32_t i = 0; i < 5; i++) {
    const pln_tensor *t = pln_kernel_arg(call, i);
    if (!pln_is_float32_or_64(t))
      return pln_kernel_no_dtype(call, (pln_dtype)t->dtype);
    if (i > 0 && t->count != b->channels)
      return pln_kernel_refuse(call,
                               "operand %u has %zu elements for %zu "
                               "channels",
                               i, t->count, b->channels);
  }
  return PLN_OK;
}

static double sum_run(const pln_tensor *x, size_t at, size_t n) {
  return x->dtype == PLN_FLOAT32
             ? pln_sum_float((const float *)x->data + at, n)
             : pln_sum_double((const double *)x->data + at, n);
}

static double square_run(const pln_tensor *x, size_t at, size_t n,
                         double centre) {
  return x->dtype == PLN_FLOAT32
             ? pln_sum_square_float((const float *)x->data + at, n,
                                    (float)centre)
             : pln_sum_square_double((const double *)x->data + at, n, centre);
}

/* Computes the mean and variance of this batch by channel. */
static void measure_batch_moments(batches *b) {
  size_t step = b->channels * b->inner;
  double n = (double)b->batch * (double)b->inner;
  for (size_t c = 0; c < b->channels; c++) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < b->batch; i++)
      sum += sum_run(b->x, i * step + c * b->inner, b->inner);
    b->now_mean[c] = sum / n;
    for (size_t i = 0; i < b->batch; i++)
      squares +=
          square_run(b->x, i * step + c * b->inner, b->inner, b->now_mean[c]);
    b->now_variance[c] = squares / n;
  }
}

/* Result `i` is keep * before + (1 - keep) * now. */
static pln_status put_running(pln_kernel_call *call, uint32_t i, double keep,
                              const pln_tensor *before, const double *now) {
  if (i >= call->n_results)
    return PLN_OK;
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)before->dtype, before->rank,
                           before->dims, &call->results[i]));
  for (size_t c = 0; c < before->count; c++)
    pln_element_set(call->results[i], c,
                    keep * pln_element_at(before, c) + (1 - keep) * now[c]);
  return PLN_OK;
}

/* Running mean and variance; before opset 14 also those of this batch. */
static pln_status train(pln_kernel_call *call, batches *b) {
  double momentum = pln_kernel_float(call, "momentum", 0.9);
  measure_batch_moments(b);
  PLN_TRY(put_running(call, 1, momentum, b->mean, b->now_mean));
  PLN_TRY(put_running(call, 2, momentum, b->variance, b->now_variance));
  PLN_TRY(put_running(call, 3, 0, b->mean, b->now_mean));
  return put_running(call, 4, 0, b->variance, b->now_variance);
}

/* The elements that pay for another thread. */
enum { SHARED_WORK = 1 << 15 };

static void apply_all(pln_engine *engine, batches *b, void *out) {
  bool single = b->x->dtype == PLN_FLOAT32;
  size_t size = pln_element_size((pln_dtype)b->x->dtype);
  char *factors = b->store, *addends = factors + b->channels * size;
  application p = {b->x->data, factors, addends, out, b->channels, b->inner};
  (single ? store_float : store_double)(b->now_mean, b->channels, factors);
  (single ? store_float : store_double)(b->now_variance, b->channels, addends);
  size_t rows = b->batch * (b->inner == 1 ? 1 : b->channels);
  size_t row = b->inner == 1 ? b->channels : b->inner;
  pln_parallel_ranges(engine, rows, 1 + SHARED_WORK / (row + 1),
                      single ? apply_float : apply_double, &p);
}

static pln_status normalise(pln_kernel_call *call, batches *b) {
  double epsilon = pln_kernel_float(call, "epsilon", 1e-5);
  bool relay = pln_kernel_int(call, "relay", 0) != 0;
  bool scales = pln_kernel_int(call, "scale", 1) != 0;
  bool centers = pln_kernel_int(call, "center", 1) != 0;
  bool trains = !relay && (pln_kernel_int(call, "training_mode", 0) ||
                           call->n_results > 1);
  if (trains)
    PLN_TRY(train(call, b));
  for (uint32_t i = 1; relay && i < call->n_results && i < 3; i++)
    pln_kernel_same(call, i, call->args[i + 2]);
  /* In float32 each step is rounded, as in other runtimes. */
  bool single = b->x->dtype == PLN_FLOAT32 && !trains && !relay;
  for (size_t c = 0; c < b->channels; c++) {
    double mean = trains ? b->now_mean[c] : pln_element_at(b->mean, c);
    double variance =
        trains ? b->now_variance[c] : pln_element_at(b->variance, c);
    double scale = scales ? pln_element_at(b->scale, c) : 1;
    double bias = centers ? pln_element_at(b->bias, c) : 0;
    if (single) {
      float inverse = 1 / sqrtf((float)variance + (float)epsilon);
      float factor = inverse * (float)scale;
      b->now_mean[c] = (double)factor;
      b->now_variance[c] = (double)((float)bias - (float)mean * factor);
    } else {
      double factor = scale / sqrt(variance + epsilon);
      b->now_mean[c] = factor;
      b->now_variance[c] = bias - mean * factor;
    }
  }
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)b->x->dtype, b->x->rank,
                           b->x->dims, &call->results[0]));
  apply_all(call->engine, b, pln_tensor_writable(call->results[0]));
  return PLN_OK;
}

static pln_status batch_norm(pln_kernel_call *call) {
  batches b = {0};
  PLN_TRY(read_batches(call, &b));
  size_t room = (4 * b.channels + 1) * sizeof(double);
  b.now_mean = pln_mem_new(call->engine, room);
  if (!b.now_mean)
    return pln_nomem(call->engine);
  b.now_variance = b.now_mean + b.channels;
  b.store = b.now_variance + b.channels;
  pln_status status = normalise(call, &b);
  pln_mem_free(call->engine, b.now_mean, room);
  return status;
}

pln_status pln_kernel_batch_norm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "03333", batch_norm);
}
