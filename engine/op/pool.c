/* pool.c: windows that slide over tensors (batch, channels, space...) and give
 * the greatest element, the mean or a norm each: types and kernels. Called
 * through ops.def.
 *
 * What holds: a window is gathered along all axes but the last into one row,
 * which holds the padding of the last axis too; the row is then gathered along
 * itself. Padding never counts, but for count_include_pad. A window without
 * any element gives -inf or the least integer, a mean or norm of 0. */

#include <math.h>

#include "op/elementwise.h"
#include "op/pool_indices.h"
#include "op/slide.h"
#include "op/through_float.h"
#include "op/wide.h"
#include "op/window.h"

/* ---------------------------------------------------------------- inference */

pln_status pln_infer_pool(pln_infer *call) {
  pln_shape x, out;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_window_extents(call, PLN_NONE, &window);
  if (x.rank < 0)
    pln_shape_ranked(&x, window.rank < 0 ? -1 : (int64_t)window.rank + 2);
  pln_shape_unknown(&out);
  if (x.rank >= 0) {
    PLN_TRY(pln_window_slide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  }
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return pln_result_tensor(call, 1, PLN_INT64, &out); /* of max_pool */
}

/* ------------------------------------------------------------------- loops */

/* What a kind of pooling does with elements of one dtype. `row` holds `n`
 * elements. */
typedef struct loops {
  /* Sets a row to what counts for nothing. */
  void (*clear)(void *row, size_t n);
  /* Gathers n more elements into a row. */
  void (*gather)(void *row, const void *in, size_t n, double p);
  /* Gathers `window` elements, `dilation` apart, every `stride` elements. */
  void (*along)(void *out, const void *row, size_t n, const pln_slide *axis);
  /* Ends n results: `outer` taps along the other axes, counts[i] along the
   * row. */
  void (*finish)(void *out, size_t n, double outer, const double *counts,
                 double p);
} loops;

#define GREATER(a, b) ((b) > (a) ? (b) : (a))
#define SUM_OF(a, b) ((a) + (b))

/* Strides that are known let the loop vectorise. */
#define ALONG(name, T, f)                                                     \
  static inline __attribute__((always_inline)) void name##_tap_##T(           \
      T *restrict to, const T *restrict x, size_t n, size_t stride) {         \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = f(to[i], x[i * stride]);                                        \
  }                                                                           \
  PLN_WIDE static void name##_along_##T(void *out, const void *row, size_t n, \
                                        const pln_slide *axis) {              \
    const T *x = row;                                                         \
    T *to = out;                                                              \
    size_t stride = (size_t)axis->stride, step = (size_t)axis->dilation;      \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = x[i * stride];                                                  \
    for (size_t k = 1; k < (size_t)axis->window; k++) {                       \
      const T *from = x + k * step;                                           \
      if (stride == 1)                                                        \
        name##_tap_##T(to, from, n, 1);                                       \
      else if (stride == 2)                                                   \
        name##_tap_##T(to, from, n, 2);                                       \
      else                                                                    \
        name##_tap_##T(to, from, n, stride);                                  \
    }                                                                         \
  }

#define CLEAR(name, T, value)                         \
  static void name##_clear_##T(void *row, size_t n) { \
    T *to = row;                                      \
    for (size_t i = 0; i < n; i++)                    \
      to[i] = value;                                  \
  }

#define GATHER(name, T, term, f)                                              \
  PLN_WIDE static void name##_gather_##T(void *row, const void *in, size_t n, \
                                         double p) {                          \
    T *restrict to = row;                                                     \
    const T *x = in;                                                          \
    (void)p;                                                                  \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = f(to[i], term(x[i]));                                           \
  }

#define ITSELF(x) (x)
#define MAX_LOOPS(D, T, least)    \
  CLEAR(max, T, least)            \
  GATHER(max, T, ITSELF, GREATER) \
  ALONG(max, T, GREATER)
MAX_LOOPS(FLOAT32, float, -INFINITY)
MAX_LOOPS(FLOAT64, double, -INFINITY)
MAX_LOOPS(INT8, int8_t, INT8_MIN)
MAX_LOOPS(INT16, int16_t, INT16_MIN)
MAX_LOOPS(INT32, int32_t, INT32_MIN)
MAX_LOOPS(INT64, int64_t, INT64_MIN)
MAX_LOOPS(UINT8, uint8_t, 0)
MAX_LOOPS(UINT16, uint16_t, 0)
MAX_LOOPS(UINT32, uint32_t, 0)
MAX_LOOPS(UINT64, uint64_t, 0)

#define SUM_LOOPS(T, absolute, root, power)                               \
  CLEAR(sum, T, 0)                                                        \
  GATHER(sum, T, ITSELF, SUM_OF)                                          \
  GATHER(abs, T, absolute, SUM_OF)                                        \
  GATHER(square, T, SQUARE, SUM_OF)                                       \
  ALONG(sum, T, SUM_OF)                                                   \
  static void power_gather_##T(void *row, const void *in, size_t n,       \
                               double p) {                                \
    T *to = row;                                                          \
    const T *x = in;                                                      \
    for (size_t i = 0; i < n; i++)                                        \
      to[i] += power(absolute(x[i]), (T)p);                               \
  }                                                                       \
  PLN_WIDE static void mean_finish_##T(void *out, size_t n, double outer, \
                                       const double *counts, double p) {  \
    T *to = out;                                                          \
    (void)p;                                                              \
    for (size_t i = 0; i < n; i++)                                        \
      to[i] /= (T)(outer * counts[i]);                                    \
  }                                                                       \
  PLN_WIDE static void root_finish_##T(void *out, size_t n, double outer, \
                                       const double *counts, double p) {  \
    T *to = out;                                                          \
    (void)outer, (void)counts, (void)p;                                   \
    for (size_t i = 0; i < n; i++)                                        \
      to[i] = root(to[i]);                                                \
  }                                                                       \
  static void power_finish_##T(void *out, size_t n, double outer,         \
                               const double *counts, double p) {          \
    T *to = out;                                                          \
    (void)outer, (void)counts;                                            \
    for (size_t i = 0; i < n; i++)                                        \
      to[i] = power(to[i], (T)(1 / p));                                   \
  }
#define SQUARE(x) ((x) * (x))
SUM_LOOPS(float, fabsf, sqrtf, powf)
SUM_LOOPS(double, fabs, sqrt, pow)

static void no_finish(void *out, size_t n, double outer, const double *counts,
                      double p) {
  (void)out, (void)n, (void)outer, (void)counts, (void)p;
}

/* ---------------------------------------------------------------- the walk */

typedef struct pool {
  const loops *loops;
  size_t size;    /* of an element */
  double p;       /* of a norm */
  bool padded;    /* padding counts as elements of 0 */
  uint32_t outer; /* axes of space but the last */
  pln_slide axis[PLN_MAX_RANK];
  size_t in_plane, out_plane; /* elements */
  int64_t pad, cut; /* elements before the last axis, and of it passed over */
  char *row;        /* with the padding of the last axis */
  size_t n_row;
  double *counts; /* taps along the last axis that count */
} pool;

/* The taps along each outer axis at one position. */
typedef struct taps {
  int64_t first[PLN_MAX_RANK], end[PLN_MAX_RANK];
  int64_t at[PLN_MAX_RANK]; /* the tap that is looked at */
  bool some;
  double count; /* that count */
} taps;

static void find_taps(const pool *p, const int64_t *position, taps *t) {
  t->some = true;
  t->count = 1;
  for (uint32_t i = 0; i < p->outer; i++) {
    int64_t first, end;
    pln_slide_taps(&p->axis[i], position[i], false, &t->first[i], &t->end[i]);
    pln_slide_taps(&p->axis[i], position[i], p->padded, &first, &end);
    t->some &= t->first[i] < t->end[i];
    t->count *= (double)(end - first);
    t->at[i] = t->first[i];
  }
  if (t->count == 0)
    t->count = 1;
}

/* Where the row of the taps begins in its plane. */
static size_t row_offset(const pool *p, const int64_t *position,
                         const taps *t) {
  size_t at = 0;
  for (uint32_t i = 0; i < p->outer; i++) {
    const pln_slide *a = &p->axis[i];
    at *= (size_t)a->in;
    at +=
        (size_t)(position[i] * a->stride + t->at[i] * a->dilation - a->before);
  }
  return at * (size_t)p->axis[p->outer].in + (size_t)p->cut;
}

static bool next_tap(const pool *p, taps *t) {
  for (uint32_t i = p->outer; i-- > 0;) {
    if (++t->at[i] < t->end[i])
      return true;
    t->at[i] = t->first[i];
  }
  return false;
}

static bool next_position(const pool *p, int64_t *position) {
  for (uint32_t i = p->outer; i-- > 0;) {
    if (++position[i] < p->axis[i].out)
      return true;
    position[i] = 0;
  }
  return false;
}

static void pool_row(const pool *p, const char *plane, const int64_t *position,
                     char *out) {
  const pln_slide *last = &p->axis[p->outer];
  char *inside = p->row + (size_t)p->pad * p->size;
  size_t n = (size_t)last->out, held = (size_t)(last->in - p->cut);
  taps t;
  find_taps(p, position, &t);
  p->loops->clear(inside, held);
  if (t.some && held > 0)
    do
      p->loops->gather(inside, plane + row_offset(p, position, &t) * p->size,
                       held, p->p);
    while (next_tap(p, &t));
  p->loops->along(out, p->row, n, last);
  p->loops->finish(out, n, t.count, p->counts, p->p);
}

static void pool_planes(const pool *p, size_t planes, const char *in,
                        char *out) {
  size_t step = (size_t)p->axis[p->outer].out * p->size;
  p->loops->clear(p->row, p->n_row);
  for (size_t i = 0; i < planes; i++, in += p->in_plane * p->size) {
    int64_t position[PLN_MAX_RANK] = {0};
    do {
      pool_row(p, in, position, out);
      out += step;
    } while (next_position(p, position));
  }
}

/* ------------------------------------------------------------------- calls */

static void count_last(pool *p) {
  const pln_slide *last = &p->axis[p->outer];
  for (int64_t i = 0; i < last->out; i++) {
    int64_t first, end;
    pln_slide_taps(last, i, p->padded, &first, &end);
    p->counts[i] = end > first ? (double)(end - first) : 1;
  }
}

/* Reads the windows and the extents of the result. */
static pln_status plan(const pln_kernel_call *call, const pln_tensor *x,
                       pool *p, int64_t *dims) {
  PLN_TRY(pln_slide_read(call, x, p->axis));
  p->outer = x->rank - 3;
  p->size = pln_element_size((pln_dtype)x->dtype);
  memcpy(dims, x->dims, 2 * sizeof *dims);
  for (uint32_t i = 2; i < x->rank; i++)
    dims[i] = p->axis[i - 2].out;
  p->in_plane = pln_dims_product(x->dims, 2, x->rank);
  p->out_plane = pln_dims_product(dims, 2, x->rank);
  return PLN_OK;
}

/* Allocates the row and the counts, walks, releases them. */
static pln_status walk(const pln_kernel_call *call, const pln_tensor *x,
                       pool *p, void *out) {
  const pln_slide *last = &p->axis[p->outer];
  p->pad = last->before > 0 ? last->before : 0;
  p->cut = last->before < 0 ? -last->before : 0;
  int64_t reach = (last->out - 1) * last->stride + last->reach;
  int64_t held = p->pad + last->in;
  p->n_row = (size_t)(reach > held ? reach : held);
  size_t row = p->n_row * p->size, counts = (size_t)last->out * sizeof(double);
  p->row = pln_mem_new(call->engine, row);
  p->counts = pln_mem_new(call->engine, counts);
  bool room = p->row && p->counts;
  if (room) {
    count_last(p);
    pool_planes(p, (size_t)x->dims[0] * (size_t)x->dims[1], x->data, out);
  }
  if (p->row)
    pln_mem_free(call->engine, p->row, row);
  if (p->counts)
    pln_mem_free(call->engine, p->counts, counts);
  return room ? PLN_OK : pln_nomem(call->engine);
}

static pln_status run_pool(pln_kernel_call *call, pool *p) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  if (!p->loops || !p->loops->clear)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(plan(call, x, p, dims));
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims,
                           &call->results[0]));
  if (call->results[0]->count == 0)
    return PLN_OK;
  return walk(call, x, p, pln_tensor_writable(call->results[0]));
}

#define MEAN_OF(T) \
  { sum_clear_##T, sum_gather_##T, sum_along_##T, mean_finish_##T }
static pln_status mean_pool(pln_kernel_call *call) {
  static const loops by_dtype[PLN_N_DTYPES] = {
      [PLN_FLOAT32] = MEAN_OF(float), [PLN_FLOAT64] = MEAN_OF(double)};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pool p = {.loops = &by_dtype[x->dtype],
            .padded = pln_kernel_int(call, "count_include_pad", 0) != 0};
  return run_pool(call, &p);
}

#define NORM_OF(T)                                                            \
  {                                                                           \
    {sum_clear_##T, abs_gather_##T, sum_along_##T, no_finish},                \
        {sum_clear_##T, square_gather_##T, sum_along_##T, root_finish_##T}, { \
      sum_clear_##T, power_gather_##T, sum_along_##T, power_finish_##T        \
    }                                                                         \
  }
static pln_status norm_pool(pln_kernel_call *call) {
  static const loops by_dtype[PLN_N_DTYPES][3] = {
      [PLN_FLOAT32] = NORM_OF(float), [PLN_FLOAT64] = NORM_OF(double)};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t power = pln_kernel_int(call, "p", 2);
  if (power < 1)
    return pln_kernel_refuse(call, "p is %lld", (long long)power);
  pool p = {.loops = &by_dtype[x->dtype][power > 2 ? 2 : power - 1],
            .p = (double)power};
  return run_pool(call, &p);
}

#define MAX_OF(D, T) \
  [PLN_##D] = {max_clear_##T, max_gather_##T, max_along_##T, no_finish},
static pln_status max_pool(pln_kernel_call *call) {
  static const loops by_dtype[PLN_N_DTYPES] = {PLN_INT_TYPES(MAX_OF)
                                                   PLN_FLOAT_TYPES(MAX_OF)};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pool p = {.loops = &by_dtype[x->dtype]};
  PLN_TRY(run_pool(call, &p));
  return call->n_results > 1 ? pln_pool_indices(call) : PLN_OK;
}

pln_status pln_kernel_max_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", max_pool);
}

pln_status pln_kernel_avg_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", mean_pool);
}

pln_status pln_kernel_lp_pool(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", norm_pool);
}
