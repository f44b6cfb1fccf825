/* softmax.c: softmax, its logarithm, and hardmax, along an axis. Called through
 * ops.def.
 *
 * With coerce_2d (before opset 13) all axes from `axis` on are taken as one.
 * The greatest element is taken out first and sums are in double. */

#include <math.h>

#include "op/elementwise.h"

/* A row of n elements, `step` apart. */
typedef void (*row_fn)(const void *in, void *out, size_t n, size_t step);

#define TOP(T)                                          \
  static T top_##T(const T *x, size_t n, size_t step) { \
    T top = x[0];                                       \
    for (size_t i = 1; i < n; i++)                      \
      top = x[i * step] > top ? x[i * step] : top;      \
    return top;                                         \
  }
TOP(float)
TOP(double)

#define ROWS(T, exponential)                                                  \
  static void softmax_##T(const void *in, void *out, size_t n, size_t step) { \
    const T *x = in;                                                          \
    T *to = out, top = top_##T(x, n, step);                                   \
    double sum = 0;                                                           \
    for (size_t i = 0; i < n; i++)                                            \
      sum += (double)(to[i * step] = exponential(x[i * step] - top));         \
    for (size_t i = 0; i < n; i++)                                            \
      to[i * step] = (T)((double)to[i * step] / sum);                         \
  }                                                                           \
  static void log_softmax_##T(const void *in, void *out, size_t n,            \
                              size_t step) {                                  \
    const T *x = in;                                                          \
    T *to = out, top = top_##T(x, n, step);                                   \
    double sum = 0;                                                           \
    for (size_t i = 0; i < n; i++)                                            \
      sum += (double)exponential(x[i * step] - top);                          \
    sum = log(sum);                                                           \
    for (size_t i = 0; i < n; i++)                                            \
      to[i * step] = (T)((double)(x[i * step] - top) - sum);                  \
  }                                                                           \
  static void hardmax_##T(const void *in, void *out, size_t n, size_t step) { \
    const T *x = in;                                                          \
    T *to = out;                                                              \
    size_t best = 0;                                                          \
    for (size_t i = 1; i < n; i++)                                            \
      if (x[i * step] > x[best * step])                                       \
        best = i;                                                             \
    for (size_t i = 0; i < n; i++)                                            \
      to[i * step] = i == best;                                               \
  }
ROWS(float, expf)
ROWS(double, exp)

/* The tensor as outer x n x inner. */
typedef struct rows {
  size_t outer, n, inner;
} rows;

static bool find_rows(const pln_kernel_call *call, const pln_tensor *x,
                      rows *r) {
  bool coerce = pln_kernel_int(call, "coerce_2d", 0) != 0;
  int64_t at = pln_kernel_int(call, "axis", -1);
  uint32_t axis = 0, rank = x->rank ? x->rank : 1;
  if (coerce && at == (int64_t)x->rank)
    axis = x->rank;
  else if (!pln_kernel_axis(at, rank, &axis))
    return false;
  uint32_t end = coerce || !x->rank ? x->rank : axis + 1;
  *r = (rows){pln_dims_product(x->dims, 0, x->rank ? axis : 0),
              pln_dims_product(x->dims, x->rank ? axis : 0, end),
              pln_dims_product(x->dims, end, x->rank)};
  return true;
}

static void run_rows(row_fn fn, const rows *r, size_t size, const char *in,
                     char *out) {
  for (size_t o = 0; o < r->outer; o++)
    for (size_t i = 0; i < r->inner; i++) {
      size_t base = (o * r->n * r->inner + i) * size;
      fn(in + base, out + base, r->n, r->inner);
    }
}

/* Halves: the whole tensor through float. */
static pln_status run_half(pln_kernel_call *call, row_fn fn, const rows *r,
                           const pln_tensor *x, void *out) {
  size_t size = x->count * sizeof(float);
  float *wide = pln_mem_new(call->engine, size);
  if (!wide)
    return pln_nomem(call->engine);
  pln_widen((pln_dtype)x->dtype, x->data, wide, x->count);
  run_rows(fn, r, sizeof(float), (const char *)wide, (char *)wide);
  pln_narrow((pln_dtype)x->dtype, wide, out, x->count);
  pln_mem_free(call->engine, wide, size);
  return PLN_OK;
}

static pln_status run_softmax(pln_kernel_call *call, row_fn single,
                              row_fn twice) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  rows r;
  void *out;
  if (!x || !find_rows(call, x, &r))
    return pln_kernel_refuse(call, "the axis does not fit the operand");
  pln_dtype dtype = (pln_dtype)x->dtype;
  bool half = dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16;
  if (!half && dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(pln_kernel_result(call, 0, dtype, x->rank, x->dims, &out));
  if (x->count == 0)
    return PLN_OK;
  if (half)
    return run_half(call, single, &r, x, out);
  run_rows(dtype == PLN_FLOAT32 ? single : twice, &r, pln_element_size(dtype),
           x->data, out);
  return PLN_OK;
}

pln_status pln_kernel_softmax(pln_kernel_call *call) {
  return run_softmax(call, softmax_float, softmax_double);
}

pln_status pln_kernel_log_softmax(pln_kernel_call *call) {
  return run_softmax(call, log_softmax_float, log_softmax_double);
}

pln_status pln_kernel_hardmax(pln_kernel_call *call) {
  return run_softmax(call, hardmax_float, hardmax_double);
}
