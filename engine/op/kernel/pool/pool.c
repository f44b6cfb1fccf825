/* pool.c: maximum, average and Lp pooling over windows of tensors (batch,
 * channels, space...): types and kernels. Called through ops.def.
 *
 * A window is first reduced along all axes except the last into one row, which
 * includes the padding of the last axis; the row is then reduced along itself.
 * Padding is not counted, except with count_include_pad. A window without
 * elements gives -inf or the least integer; a mean or norm gives 0. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/infer/window.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/pool/max_indices.h"
#include "op/kernel/pool/sliding_window.h"

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
  return pln_result_tensor(call, 1, PLN_INT64,
                           &out); /* the indices of max_pool */
}

/* ------------------------------------------------------------------- loops */

/* Numbers of rows that one loop reduces: the first one, and later ones. */
enum { AT_FIRST = 3, AT_ONCE = 2 };

/* The loops of a kind of pooling for one dtype. `row` holds `n` elements. */
typedef struct loops {
  /* Sets a row to the neutral element. */
  void (*clear)(void *row, size_t n);
  /* Sets a row to the reduction of AT_FIRST other rows. */
  void (*first)(void *row, const void *const *in, size_t n, double p);
  /* Reduces AT_ONCE more rows into it. */
  void (*more)(void *row, const void *const *in, size_t n, double p);
  /* Reduces `window` elements, `dilation` apart, every `stride` elements. */
  void (*along)(void *out, const void *row, size_t n,
                const pln_sliding_window *axis);
  /* Finishes n results: `outer` counted taps along the other axes, counts[i],
   * in the dtype, along the row. */
  void (*finish)(void *out, size_t n, double outer, const void *counts,
                 double p);
} loops;

#define GREATER(a, b) ((b) > (a) ? (b) : (a))
#define SUM_OF(a, b) ((a) + (b))

/* Constant strides let the loops vectorise; common ones have their own loop. */
#define ALONG(name, T, f, wide, known)                                    \
  static inline __attribute__((always_inline)) void name##_taps_##T(      \
      T *restrict to, const T *restrict x, size_t n, size_t stride,       \
      size_t step, size_t window) {                                       \
    size_t k = window < 3 ? window : 3;                                   \
    if (window == 1)                                                      \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = x[i * stride];                                            \
    else if (window == 2)                                                 \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = f(x[i * stride], x[i * stride + step]);                   \
    else                                                                  \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = f(f(x[i * stride], x[i * stride + step]),                 \
                  x[i * stride + 2 * step]);                              \
    for (; k + 1 < window; k += 2)                                        \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = f(f(to[i], x[i * stride + k * step]),                     \
                  x[i * stride + (k + 1) * step]);                        \
    if (k < window)                                                       \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = f(to[i], x[i * stride + k * step]);                       \
  }                                                                       \
  wide static void name##_along_##T(void *out, const void *row, size_t n, \
                                    const pln_sliding_window *axis) {     \
    size_t stride = (size_t)axis->stride, step = (size_t)axis->dilation;  \
    if (known && stride == 1)                                             \
      name##_taps_##T(out, row, n, 1, step, (size_t)axis->window);        \
    else if (known && stride == 2)                                        \
      name##_taps_##T(out, row, n, 2, step, (size_t)axis->window);        \
    else                                                                  \
      name##_taps_##T(out, row, n, stride, step, (size_t)axis->window);   \
  }

#define CLEAR(name, T, value)                         \
  static void name##_clear_##T(void *row, size_t n) { \
    T *to = row;                                      \
    for (size_t i = 0; i < n; i++)                    \
      to[i] = value;                                  \
  }

#define GATHER(name, T, term, f, value, wide)                                  \
  wide static void name##_first_##T(void *row, const void *const *in,          \
                                    size_t n, double p) {                      \
    T *restrict to = row;                                                      \
    const T *x = in[0], *y = in[1], *z = in[2];                                \
    (void)p;                                                                   \
    for (size_t i = 0; i < n; i++)                                             \
      to[i] = (T)f(f(f((T)value, term(x[i])), term(y[i])), term(z[i]));        \
  }                                                                            \
  wide static void name##_more_##T(void *row, const void *const *in, size_t n, \
                                   double p) {                                 \
    T *restrict to = row;                                                      \
    const T *x = in[0], *y = in[1];                                            \
    (void)p;                                                                   \
    for (size_t i = 0; i < n; i++)                                             \
      to[i] = (T)f(f(to[i], term(x[i])), term(y[i]));                          \
  }

#define ITSELF(x) (x)
#define PLAIN /* loops without multiversioning */
#define MAX_LOOPS(T, least, wide, known)       \
  CLEAR(max, T, least)                         \
  GATHER(max, T, ITSELF, GREATER, least, wide) \
  ALONG(max, T, GREATER, wide, known)
MAX_LOOPS(float, -INFINITY, PLN_MULTIVERSION, true)
MAX_LOOPS(double, -INFINITY, PLN_MULTIVERSION, true)
MAX_LOOPS(int8_t, INT8_MIN, PLN_MULTIVERSION, true)
MAX_LOOPS(int16_t, INT16_MIN, PLAIN, false)
MAX_LOOPS(int32_t, INT32_MIN, PLAIN, false)
MAX_LOOPS(int64_t, INT64_MIN, PLAIN, false)
MAX_LOOPS(uint8_t, 0, PLN_MULTIVERSION, true)
MAX_LOOPS(uint16_t, 0, PLAIN, false)
MAX_LOOPS(uint32_t, 0, PLAIN, false)
MAX_LOOPS(uint64_t, 0, PLAIN, false)

#define SUM_LOOPS(T, absolute, root, power_of)                           \
  CLEAR(sum, T, 0)                                                       \
  GATHER(sum, T, ITSELF, SUM_OF, 0, PLN_MULTIVERSION)                    \
  GATHER(abs, T, absolute, SUM_OF, 0, PLN_MULTIVERSION)                  \
  GATHER(square, T, SQUARE, SUM_OF, 0, PLN_MULTIVERSION)                 \
  GATHER(power, T, power_of, SUM_OF, 0, PLAIN)                           \
  ALONG(sum, T, SUM_OF, PLN_MULTIVERSION, true)                          \
  PLN_MULTIVERSION static void mean_finish_##T(                          \
      void *out, size_t n, double outer, const void *counts, double p) { \
    T *restrict to = out;                                                \
    const T *count = counts, all = (T)outer;                             \
    (void)p;                                                             \
    for (size_t i = 0; i < n; i++)                                       \
      to[i] /= all * count[i];                                           \
  }                                                                      \
  PLN_MULTIVERSION static void root_finish_##T(                          \
      void *out, size_t n, double outer, const void *counts, double p) { \
    T *to = out;                                                         \
    (void)outer, (void)counts, (void)p;                                  \
    for (size_t i = 0; i < n; i++)                                       \
      to[i] = root(to[i]);                                               \
  }                                                                      \
  static void power_finish_##T(void *out, size_t n, double outer,        \
                               const void *counts, double p) {           \
    T *to = out;                                                         \
    (void)outer, (void)counts;                                           \
    for (size_t i = 0; i < n; i++)                                       \
      to[i] = (T)pow((double)to[i], 1 / p);                              \
  }
#define SQUARE(x) ((x) * (x))
#define POWER_float(x) powf(fabsf(x), (float)p)
#define POWER_double(x) pow(fabs(x), p)
SUM_LOOPS(float, fabsf, sqrtf, POWER_float)
SUM_LOOPS(double, fabs, sqrt, POWER_double)

static void no_finish(void *out, size_t n, double outer, const void *counts,
                      double p) {
  (void)out, (void)n, (void)outer, (void)counts, (void)p;
}

/* ---------------------------------------------------------------- the walk */

typedef struct pool {
  const pln_engine *engine;
  const loops *loops;
  size_t size;    /* of an element */
  double p;       /* exponent of an Lp norm */
  bool padded;    /* padding counts as elements with value 0 */
  uint32_t outer; /* number of spatial axes without the last one */
  pln_sliding_window axis[PLN_MAX_RANK];
  size_t in_plane, out_plane; /* elements */
  int64_t pad,
      cut;   /* padding before the last axis; elements of it that are skipped */
  char *row; /* includes the padding of the last axis */
  size_t n_row;
  char *none;   /* a row of neutral elements of the same length */
  void *counts; /* counted taps along the last axis, in the dtype */
  bool maximum; /* reducing an element twice changes nothing */
  size_t group; /* planes that are pooled together */
  /* Not 0: images of two axes are padded and reduced as one long row. Then
   * `row` holds two of `group` planes, `high` rows of n_row elements each, and
   * neutral elements behind them, `flat` elements in all. */
  size_t flat, high;
} pool;

/* The taps along each outer axis at one position. */
typedef struct taps {
  int64_t first[PLN_MAX_RANK], end[PLN_MAX_RANK];
  int64_t at[PLN_MAX_RANK]; /* the current tap */
  bool some;
  double count; /* number of counted taps */
} taps;

static void find_taps(const pool *p, const int64_t *position, taps *t) {
  t->some = true;
  t->count = 1;
  for (uint32_t i = 0; i < p->outer; i++) {
    int64_t first, end;
    pln_sliding_window_taps(&p->axis[i], position[i], false, &t->first[i],
                            &t->end[i]);
    pln_sliding_window_taps(&p->axis[i], position[i], p->padded, &first, &end);
    t->some &= t->first[i] < t->end[i];
    t->count *= (double)(end - first);
    t->at[i] = t->first[i];
  }
  if (t->count == 0)
    t->count = 1;
}

/* Returns the offset of the row of the current taps in its plane. */
static size_t row_offset(const pool *p, const int64_t *position,
                         const taps *t) {
  size_t at = 0;
  for (uint32_t i = 0; i < p->outer; i++) {
    const pln_sliding_window *a = &p->axis[i];
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

/* Rows that are being reduced into `to`. */
typedef struct gathering {
  const pool *pool;
  char *to;
  size_t n; /* elements */
  bool begun;
  uint32_t count;
  const void *rows[AT_FIRST];
} gathering;

static void combine_gathered_rows(gathering *g) {
  const loops *l = g->pool->loops;
  uint32_t most = g->begun ? AT_ONCE : AT_FIRST;
  while (g->count < most)
    g->rows[g->count++] = g->pool->none;
  (g->begun ? l->more : l->first)(g->to, g->rows, g->n, g->pool->p);
  g->begun = true;
  g->count = 0;
}

/* Computes one row of results, with the taps `t`, from one plane. */
static void pool_row(const pool *p, const char *plane, const int64_t *position,
                     taps *t, char *out) {
  const pln_sliding_window *last = &p->axis[p->outer];
  size_t n = (size_t)last->out;
  gathering g = {.pool = p,
                 .to = p->row + (size_t)p->pad * p->size,
                 .n = (size_t)(last->in - p->cut)};
  if (t->some && g.n > 0)
    do {
      g.rows[g.count++] = plane + row_offset(p, position, t) * p->size;
      if (g.count == (g.begun ? AT_ONCE : AT_FIRST))
        combine_gathered_rows(&g);
    } while (next_tap(p, t));
  if (g.count || !g.begun)
    combine_gathered_rows(&g);
  p->loops->along(out, p->row, n, last);
  p->loops->finish(out, n, t->count, p->counts, p->p);
}

/* Pools n planes; false if a stop is requested. */
static bool pool_by_rows(const pool *p, size_t n, const char *in, char *out) {
  size_t step = (size_t)p->axis[p->outer].out * p->size, done = 0;
  size_t from = p->in_plane * p->size, to = p->out_plane * p->size;
  size_t row = (size_t)p->axis[p->outer].in;
  int64_t position[PLN_MAX_RANK] = {0};
  taps t;
  do {
    find_taps(p, position, &t);
    if (pln_is_stopped_after(p->engine, &done, n * row * (size_t)t.count))
      return false;
    for (size_t k = 0; k < n; k++)
      pool_row(p, in + k * from, position, &t, out + k * to);
    out += step;
  } while (next_position(p, position));
  return true;
}

/* ------------------------------------------------------------ small images */

/* Copies rows of each of n planes from one layout to another. */
static void copy_plane_rows(size_t n, size_t rows, size_t bytes,
                            const char *from, size_t from_row,
                            size_t from_plane, char *to, size_t to_row,
                            size_t to_plane) {
  for (size_t k = 0; k < n && bytes; k++)
    for (size_t r = 0; r < rows; r++)
      memcpy(to + k * to_plane + r * to_row,
             from + k * from_plane + r * from_row, bytes);
}

/* Reduces all rows of `from` along the outer axis: as if they were one, because
 * a step along that axis is n_row elements everywhere. */
static void reduce_flat(const pool *p, const char *from, size_t n, char *to) {
  size_t window = (size_t)p->axis[0].window;
  size_t step = (size_t)p->axis[0].dilation * p->n_row * p->size;
  const void *rows[AT_FIRST];
  for (size_t k = 0; k < window;) {
    size_t most = k ? AT_ONCE : AT_FIRST, first = k;
    for (size_t i = 0; i < most; i++)
      rows[i] = k < window ? from + k++ * step : from;
    (first ? p->loops->more : p->loops->first)(to, rows, n, p->p);
  }
}

/* Finishes the results of n planes, row by row. */
static void finish_flat(const pool *p, size_t n, char *out) {
  size_t row = (size_t)p->axis[1].out, plane = p->out_plane * p->size;
  taps t;
  if (p->loops->finish == no_finish)
    return;
  for (int64_t r = 0; r < p->axis[0].out; r++) {
    find_taps(p, &r, &t);
    for (size_t k = 0; k < n; k++)
      p->loops->finish(out + k * plane + (size_t)r * row * p->size, row,
                       t.count, p->counts, p->p);
  }
}

/* Pools n planes of two axes without strides; results of positions between
 * planes and rows are computed and dropped. */
static void pool_flat(const pool *p, size_t n, const char *in, char *out) {
  const pln_sliding_window *a = &p->axis[0], *b = &p->axis[1];
  size_t row = p->n_row * p->size, count = n * p->high * p->n_row;
  size_t plane = p->high * row, length = (size_t)b->in * p->size;
  size_t result = (size_t)b->out * p->size;
  char *padded = p->row, *reduced = padded + p->flat * p->size;
  p->loops->clear(padded, p->flat);
  copy_plane_rows(n, (size_t)a->in, length, in, length, p->in_plane * p->size,
                  padded + (size_t)a->before * row + (size_t)p->pad * p->size,
                  row, plane);
  reduce_flat(p, padded, count, reduced);
  p->loops->clear(reduced + count * p->size, p->flat - count);
  p->loops->along(padded, reduced, count, b);
  copy_plane_rows(n, (size_t)a->out, result, padded, row, plane, out, result,
                  p->out_plane * p->size);
  finish_flat(p, n, out);
}

/* The bytes of planes that are pooled together. */
enum { NEAR = 1 << 14 };

/* Images of two axes whose rows are so short that calls for each of them would
 * cost more than their elements. */
static void plan_flat(pool *p) {
  enum { SHORT = 32 };
  const pln_sliding_window *a = &p->axis[0], *b = &p->axis[1];
  /* Without others, the loops reduce AT_FIRST rows and then AT_ONCE more. */
  bool whole = a->window >= AT_FIRST && (a->window - AT_FIRST) % AT_ONCE == 0;
  if (!(p->maximum || whole) || p->outer != 1 || a->stride != 1 ||
      b->stride != 1 || a->before < 0 || b->before < 0 || a->after < 0 ||
      b->after < 0 || p->n_row > SHORT || a->out + a->reach > 2 * SHORT)
    return;
  size_t reach = (size_t)(a->out - 1 + a->reach);
  size_t covered = (size_t)(a->before + a->in);
  p->high = reach > covered ? reach : covered;
  size_t most = 2 * NEAR / (p->high * p->n_row * p->size) + 1;
  p->group = most < p->group ? most : p->group;
  p->flat = p->group * p->high * p->n_row + (size_t)a->reach * p->n_row +
            (size_t)b->reach;
}

/* Pools all planes. For small planes the loop over positions is the outer one:
 * taps are found once per position. */
static void pool_planes(const pool *p, size_t planes, const char *in,
                        char *out) {
  size_t from = p->in_plane * p->size, to = p->out_plane * p->size, done = 0;
  for (size_t i = 0; i < planes; i += p->group) {
    size_t n = planes - i < p->group ? planes - i : p->group;
    if (!p->flat && !pool_by_rows(p, n, in + i * from, out + i * to))
      return;
    if (p->flat && pln_is_stopped_after(p->engine, &done, p->flat))
      return;
    if (p->flat)
      pool_flat(p, n, in + i * from, out + i * to);
  }
}

/* ------------------------------------------------------------------- calls */

static void count_last(pool *p) {
  const pln_sliding_window *last = &p->axis[p->outer];
  for (int64_t i = 0; i < last->out; i++) {
    int64_t first, end;
    pln_sliding_window_taps(last, i, p->padded, &first, &end);
    double count = end > first ? (double)(end - first) : 1;
    if (p->size == sizeof(float))
      ((float *)p->counts)[i] = (float)count;
    else if (p->size == sizeof(double))
      ((double *)p->counts)[i] = count;
  }
}

/* Reads the windows and computes the extents of the result. */
static pln_status plan(const pln_kernel_call *call, const pln_tensor *x,
                       pool *p, int64_t *dims) {
  PLN_TRY(pln_sliding_window_read(call, x, p->axis));
  p->engine = call->engine;
  p->outer = x->rank - 3;
  p->size = pln_element_size((pln_dtype)x->dtype);
  memcpy(dims, x->dims, 2 * sizeof *dims);
  for (uint32_t i = 2; i < x->rank; i++)
    dims[i] = p->axis[i - 2].out;
  p->in_plane = pln_dims_product(x->dims, 2, x->rank);
  p->out_plane = pln_dims_product(dims, 2, x->rank);
  return PLN_OK;
}

/* The planes that threads share; each worker has a row of its own. */
typedef struct shared_planes {
  const pool *pool;
  size_t planes, step; /* planes of a part */
  const char *in;
  char *out;
} shared_planes;

static void pool_part(void *ud, size_t part, uint32_t worker) {
  const shared_planes *s = ud;
  pool p = *s->pool;
  size_t first = part * s->step, left = s->planes - first;
  p.row += worker * (p.flat ? 2 * p.flat : p.n_row) * p.size;
  pool_planes(&p, left < s->step ? left : s->step,
              s->in + first * p.in_plane * p.size,
              s->out + first * p.out_plane * p.size);
}

/* The elements read that pay for another thread. */
enum { SHARED_WORK = 1 << 15 };

static void share_planes(pln_engine *engine, const pool *p, size_t planes,
                         const char *in, char *out) {
  size_t parts = 2 * (size_t)pln_parallel_workers(engine);
  size_t least = 1 + SHARED_WORK / (p->in_plane + 1);
  size_t step = (planes + parts - 1) / parts;
  bool alone = pln_parallel_workers(engine) == 1;
  shared_planes s = {p, planes, step < least ? least : step, in, out};
  if (alone)
    s.step = planes;
  pln_parallel_for(engine, (planes + s.step - 1) / s.step, pool_part, &s);
}

/* Allocates the rows and the counts, computes, and frees them. */
static pln_status run_pool_loop(const pln_kernel_call *call,
                                const pln_tensor *x, pool *p, void *out) {
  const pln_sliding_window *last = &p->axis[p->outer];
  p->pad = last->before > 0 ? last->before : 0;
  p->cut = last->before < 0 ? -last->before : 0;
  int64_t reach = (last->out - 1) * last->stride + last->reach;
  int64_t covered = p->pad + last->in;
  p->n_row = (size_t)(reach > covered ? reach : covered);
  size_t from = p->in_plane * p->size;
  size_t planes = (size_t)x->dims[0] * (size_t)x->dims[1];
  p->group = from < NEAR ? NEAR / (from + 1) + 1 : 1;
  p->group = planes < p->group ? planes : p->group;
  plan_flat(p);
  size_t row = p->n_row * p->size, counts = (size_t)last->out * p->size;
  size_t workers = pln_parallel_workers(call->engine);
  size_t own = p->flat ? 2 * p->flat * p->size : row;
  size_t bytes = counts + row + workers * own;
  char *store = pln_mem_new(call->engine, bytes);
  if (!store)
    return pln_nomem(call->engine);
  p->counts = store;
  p->none = store + counts;
  p->row = p->none + row;
  count_last(p);
  p->loops->clear(p->none, p->flat ? p->n_row : (1 + workers) * p->n_row);
  share_planes(call->engine, p, planes, x->data, out);
  pln_mem_free(call->engine, store, bytes);
  return PLN_OK;
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
  return run_pool_loop(call, x, p, pln_tensor_writable(call->results[0]));
}

#define MEAN_OF(T) \
  { sum_clear_##T, sum_first_##T, sum_more_##T, sum_along_##T, mean_finish_##T }
static pln_status mean_pool(pln_kernel_call *call) {
  static const loops by_dtype[PLN_N_DTYPES] = {
      [PLN_FLOAT32] = MEAN_OF(float), [PLN_FLOAT64] = MEAN_OF(double)};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pool p = {.loops = &by_dtype[x->dtype],
            .padded = pln_kernel_int(call, "count_include_pad", 0) != 0};
  return run_pool(call, &p);
}

#define NORM_OF(T)                                                          \
  {                                                                         \
    {sum_clear_##T, abs_first_##T, abs_more_##T, sum_along_##T, no_finish}, \
        {sum_clear_##T, square_first_##T, square_more_##T, sum_along_##T,   \
         root_finish_##T},                                                  \
    {                                                                       \
      sum_clear_##T, power_first_##T, power_more_##T, sum_along_##T,        \
          power_finish_##T                                                  \
    }                                                                       \
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

#define MAX_OF(D, T)                                                      \
  [PLN_##D] = {max_clear_##T, max_first_##T, max_more_##T, max_along_##T, \
               no_finish},
static pln_status max_pool(pln_kernel_call *call) {
  static const loops by_dtype[PLN_N_DTYPES] = {PLN_INT_TYPES(MAX_OF)
                                                   PLN_FLOAT_TYPES(MAX_OF)};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pool p = {.loops = &by_dtype[x->dtype], .maximum = true};
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
