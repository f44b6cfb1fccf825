/* axis_norm.c: lp_normalization, along one axis, and
 * mean_variance_normalization, over any axes. Called through ops.def. */

#include <math.h>

#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/strided.h"
#include "op/kernel/sum.h"

/* --------------------------------------------------------- lp_normalization */

enum { BLOCK = 256 };

/* n elements `step` apart, for `width` neighbours at a time. A norm of 0 gives
 * zeros. */
#define DIVIDE(T, absolute, root)                                            \
  PLN_MULTIVERSION static void add_powers_##T(T *restrict sum, const T *x,   \
                                              size_t width, bool squares) {  \
    if (squares)                                                             \
      for (size_t i = 0; i < width; i++)                                     \
        sum[i] += x[i] * x[i];                                               \
    else                                                                     \
      for (size_t i = 0; i < width; i++)                                     \
        sum[i] += absolute(x[i]);                                            \
  }                                                                          \
  PLN_MULTIVERSION static void divide_##T(T *restrict to, const T *x,        \
                                          const T *norm, size_t width) {     \
    for (size_t i = 0; i < width; i++)                                       \
      to[i] = norm[i] != 0 ? x[i] / norm[i] : 0;                             \
  }                                                                          \
  static void columns_##T(const void *in, void *out, size_t n, size_t step,  \
                          size_t width, bool squares) {                      \
    const T *x = in;                                                         \
    T *to = out, norm[BLOCK] = {0};                                          \
    for (size_t i = 0; i < n; i++)                                           \
      add_powers_##T(norm, x + i * step, width, squares);                    \
    for (size_t i = 0; squares && i < width; i++)                            \
      norm[i] = root(norm[i]);                                               \
    for (size_t i = 0; i < n; i++)                                           \
      divide_##T(to + i * step, x + i * step, norm, width);                  \
  }                                                                          \
  PLN_MULTIVERSION static void row_##T(const void *in, void *out, size_t n,  \
                                       bool squares) {                       \
    const T *x = in;                                                         \
    T *to = out;                                                             \
    double norm =                                                            \
        squares ? sqrt(pln_sum_square_##T(x, n, 0)) : pln_sum_abs_##T(x, n); \
    const T by = (T)norm;                                                    \
    for (size_t i = 0; i < n; i++)                                           \
      to[i] = by != 0 ? x[i] / by : 0;                                       \
  }
DIVIDE(float, fabsf, sqrtf)
DIVIDE(double, fabs, sqrt)

static void divide_slab(bool single, const char *in, char *out, size_t n,
                        size_t inner, bool squares) {
  size_t size = single ? sizeof(float) : sizeof(double);
  if (inner == 1) {
    (single ? row_float : row_double)(in, out, n, squares);
    return;
  }
  for (size_t at = 0; at < inner; at += BLOCK)
    (single ? columns_float
            : columns_double)(in + at * size, out + at * size, n, inner,
                              inner - at < BLOCK ? inner - at : BLOCK, squares);
}

static pln_status lp_normalization(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t p = pln_kernel_int(call, "p", 2);
  int64_t along = pln_kernel_int(call, "axis", -1);
  bool single = x->dtype == PLN_FLOAT32;
  uint32_t axis;
  if (!single && x->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (p != 1 && p != 2)
    return pln_kernel_refuse(call, "p is %lld", (long long)p);
  if (!pln_kernel_axis(along, x->rank, &axis))
    return pln_kernel_refuse(call, "axis %lld lies outside of rank %u",
                             (long long)along, x->rank);
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &call->results[0]));
  size_t n = (size_t)x->dims[axis];
  size_t inner = pln_dims_product(x->dims, axis + 1, x->rank);
  size_t slab = n * inner * pln_element_size((pln_dtype)x->dtype);
  char *out = pln_tensor_writable(call->results[0]);
  for (size_t at = 0; at < x->bytes; at += slab)
    divide_slab(single, (const char *)x->data + at, out + at, n, inner, p == 2);
  return PLN_OK;
}

pln_status pln_kernel_lp_normalization(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", lp_normalization);
}

/* ---------------------------------------------- mean_variance_normalization */

#define CENTRE(T)                                                        \
  PLN_MULTIVERSION static void centre_##T(const void *in, void *out,     \
                                          size_t n) {                    \
    const T *x = in;                                                     \
    T *to = out;                                                         \
    double average = pln_sum_##T(x, n) / (double)n;                      \
    double squares = pln_sum_square_##T(x, n, (T)average) / (double)n;   \
    const T mean = (T)average, factor = (T)(1 / (sqrt(squares) + 1e-9)); \
    for (size_t i = 0; i < n; i++)                                       \
      to[i] = (x[i] - mean) * factor;                                    \
  }
CENTRE(float)
CENTRE(double)

/* The operand's axes with the reduced ones last. */
typedef struct order {
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  int64_t steps[PLN_MAX_RANK]; /* in the operand */
  size_t rows, n;
  bool moved; /* differs from the operand's order */
} order;

static pln_status read_order(const pln_kernel_call *call, const pln_tensor *x,
                             order *o) {
  static const int64_t usual[] = {0, 2, 3};
  pln_list axes = pln_kernel_list(call, PLN_NONE, "axes");
  bool reduced[PLN_MAX_RANK] = {false};
  int64_t steps[PLN_MAX_RANK];
  if (!axes.given)
    axes = (pln_list){.count = PLN_COUNT(usual), .ints = usual};
  if (x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "rank %u is too large", x->rank);
  for (uint32_t i = 0; i < axes.count; i++) {
    uint32_t axis;
    if (!pln_kernel_axis(axes.ints[i], x->rank, &axis))
      return pln_kernel_refuse(call, "axis %lld lies outside of rank %u",
                               (long long)axes.ints[i], x->rank);
    reduced[axis] = true;
  }
  *o = (order){.rows = 1, .n = 1};
  pln_dense_strides(x->rank, x->dims, steps);
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < x->rank; i++) {
      if (reduced[i] != (pass == 1))
        continue;
      o->moved |= o->rank != i;
      o->dims[o->rank] = x->dims[i];
      o->steps[o->rank++] = steps[i];
      *(pass ? &o->n : &o->rows) *= (size_t)x->dims[i];
    }
  return PLN_OK;
}

static void move(pln_engine *engine, const order *o, bool back, size_t size,
                 const void *in, void *out) {
  pln_strided view = {.rank = o->rank};
  memcpy(view.dims, o->dims, o->rank * sizeof *o->dims);
  pln_dense_strides(o->rank, o->dims, back ? view.from : view.to);
  memcpy(back ? view.to : view.from, o->steps, o->rank * sizeof *o->steps);
  pln_strided_copy(engine, out, in, size, &view);
}

static void centre_rows(const pln_engine *engine, const order *o, size_t size,
                        const char *in, char *out) {
  size_t step = o->n * size, done = 0;
  for (size_t r = 0; r < o->rows; r++, in += step, out += step) {
    if (pln_is_stopped_after(engine, &done, o->n))
      return;
    (size == 4 ? centre_float : centre_double)(in, out, o->n);
  }
}

static pln_status mean_variance(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t size = pln_element_size((pln_dtype)x->dtype);
  order o;
  if (x->dtype != PLN_FLOAT32 && x->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(read_order(call, x, &o));
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &call->results[0]));
  void *out = pln_tensor_writable(call->results[0]);
  if (x->count == 0)
    return PLN_OK;
  if (!o.moved) {
    centre_rows(call->engine, &o, size, x->data, out);
    return PLN_OK;
  }
  void *rows = pln_mem_new(call->engine, x->bytes);
  if (!rows)
    return pln_nomem(call->engine);
  move(call->engine, &o, false, size, x->data, rows);
  centre_rows(call->engine, &o, size, rows, rows);
  move(call->engine, &o, true, size, rows, out);
  pln_mem_free(call->engine, rows, x->bytes);
  return PLN_OK;
}

pln_status pln_kernel_mean_variance_normalization(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", mean_variance);
}
