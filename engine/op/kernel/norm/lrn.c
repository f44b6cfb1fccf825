/* lrn.c: local response normalisation: x / (bias + alpha / size * squares) ^
 * beta, where squares sums the squares of `size` neighbouring channels. Called
 * through ops.def. A plane is processed in blocks that stay in the cache. */

#include <math.h>

#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"

enum { BLOCK = 512 };

typedef struct lrn_plan {
  double factor, bias, beta; /* factor: alpha / size */
  int64_t below, above;      /* neighbours on both sides */
} lrn_plan;

/* `n` elements of channel c; `step` elements to the next channel. */
#define LRN(T, root, power)                                                   \
  PLN_MULTIVERSION static void add_squares_##T(T *restrict sum, const T *x,   \
                                               size_t n) {                    \
    for (size_t i = 0; i < n; i++)                                            \
      sum[i] += x[i] * x[i];                                                  \
  }                                                                           \
  PLN_MULTIVERSION static void divide_##T(                                    \
      T *restrict to, const T *x, const T *sum, size_t n, T factor, T bias) { \
    for (size_t i = 0; i < n; i++) {                                          \
      T once = root(bias + factor * sum[i]);                                  \
      to[i] = x[i] / (once * root(once));                                     \
    }                                                                         \
  }                                                                           \
  static void block_##T(const lrn_plan *r, const void *in, size_t n,          \
                        int64_t below, int64_t above, size_t step,            \
                        void *out) {                                          \
    const T *x = in;                                                          \
    T *to = out, sum[BLOCK] = {0};                                            \
    for (int64_t k = -below; k <= above; k++)                                 \
      add_squares_##T(sum, x + k * (int64_t)step, n);                         \
    if (r->beta == 0.75)                                                      \
      divide_##T(to, x, sum, n, (T)r->factor, (T)r->bias);                    \
    else                                                                      \
      for (size_t i = 0; i < n; i++)                                          \
        to[i] = x[i] / power((T)r->bias + (T)r->factor * sum[i], (T)r->beta); \
  }
LRN(float, sqrtf, powf)
LRN(double, sqrt, pow)

static void respond(const lrn_plan *r, const pln_tensor *x, size_t batch,
                    char *out) {
  size_t size = pln_element_size((pln_dtype)x->dtype);
  size_t step = pln_dims_product(x->dims, 2, x->rank);
  int64_t channels = x->dims[1];
  size_t done = 0, taps = (size_t)(r->below + r->above) + 4;
  for (int64_t c = 0; c < channels; c++)
    for (size_t at = 0; at < step; at += BLOCK) {
      size_t n = step - at < BLOCK ? step - at : BLOCK;
      if (pln_is_stopped_after(x->engine, &done, n * taps))
        return;
      size_t from = ((batch * (size_t)channels + (size_t)c) * step + at) * size;
      int64_t below = r->below < c ? r->below : c;
      int64_t above = r->above < channels - 1 - c ? r->above : channels - 1 - c;
      (size == 4 ? block_float : block_double)(
          r, (const char *)x->data + from, n, below, above, step, out + from);
    }
}

static pln_status lrn(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t size = pln_kernel_int(call, "size", 0);
  if (x->dtype != PLN_FLOAT32 && x->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2)
    return pln_kernel_refuse(call, "rank %u has no channels", x->rank);
  if (size < 1)
    return pln_kernel_refuse(call, "size is %lld", (long long)size);
  lrn_plan r = {.factor =
                    pln_kernel_float(call, "alpha", 0.0001) / (double)size,
                .bias = pln_kernel_float(call, "bias", 1),
                .beta = pln_kernel_float(call, "beta", 0.75),
                .below = (size - 1) / 2,
                .above = size / 2};
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &call->results[0]));
  for (size_t i = 0; i < (size_t)x->dims[0] && x->count; i++)
    respond(&r, x, i, pln_tensor_writable(call->results[0]));
  return PLN_OK;
}

pln_status pln_kernel_lrn(pln_kernel_call *call) {
  if (pln_kernel_int(call, "axis", 1) != 1)
    return pln_kernel_refuse(call, "channels are not axis 1");
  return pln_kernel_through_float(call, "0", lrn);
}
