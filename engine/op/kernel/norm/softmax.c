/* softmax.c: softmax, log_softmax and hardmax along an axis. Called through
 * ops.def.
 *
 * With coerce_2d (before opset 13) all axes from `axis` on count as one. The
 * maximum is subtracted first, and sums are in double, but for the float32 sums
 * of short rows, which are in the order of ONNX Runtime. If the axis is the
 * innermost one, blocks of rows that fit the cache are processed; otherwise
 * blocks of neighbouring columns. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/reduce/loops.h"

/* Rows or columns at a time, and elements of them; elements that pay for
 * another thread. */
enum { BLOCK = 128, ELEMENTS = 4096, SHARED_WORK = 8192 };
/* A float32 sum of more elements would lose digits. */
enum { SHORT_ROW = 4096 };

/* -------------------------------------------------------------------- loops */

/* By row or column: the maximum, and the sum of exponentials, later its inverse
 * or logarithm. */
typedef struct block {
  pln_reduce_accumulator top[BLOCK], sum[BLOCK];
} block;

/* `runs`: over rows of n elements; `row`: over one element of each of m
 * columns. The functions are: the exponentials of x - max; times the inverse
 * sum; the logarithm. */
typedef struct loops {
  pln_dtype dtype;
  void (*raise_runs)(const block *b, const void *x, void *to, size_t n,
                     size_t rows);
  void (*scale_runs)(const block *b, const void *x, void *to, size_t n,
                     size_t rows);
  void (*lower_runs)(const block *b, const void *x, void *to, size_t n,
                     size_t rows);
  void (*raise_row)(const block *b, const void *x, void *to, size_t m);
  void (*scale_row)(const block *b, const void *x, void *to, size_t m);
  void (*lower_row)(const block *b, const void *x, void *to, size_t m);
} loops;

#define RAISED(T, x, top, sum, old) EXP_##T((x) - (T)(top))
#define SCALED(T, x, top, sum, old) ((old) * (T)(sum))
/* The sum in two parts, so that little is lost in float. */
#define LOWERED(T, x, top, sum, old) \
  (((x) - (T)(top)) - (T)(sum) - (T)((sum) - (double)(T)(sum)))
#define EXP_float(x) pln_exp_negative(x)
#define EXP_double(x) exp(x)

#define LOOP(name, T, f)                                                  \
  PLN_MULTIVERSION_AVX512 static void name##_runs_##T(                    \
      const block *b, const void *in, void *out, size_t n, size_t rows) { \
    const T *restrict x = in;                                             \
    T *restrict to = out;                                                 \
    for (size_t r = 0; r < rows; r++, x += n, to += n) {                  \
      const double top = b->top[r].number, sum = b->sum[r].number;        \
      (void)x, (void)top, (void)sum;                                      \
      for (size_t i = 0; i < n; i++)                                      \
        to[i] = (T)f(T, x[i], top, sum, to[i]);                           \
    }                                                                     \
  }                                                                       \
  PLN_MULTIVERSION_AVX512 static void name##_row_##T(                     \
      const block *b, const void *in, void *out, size_t m) {              \
    const T *restrict x = in;                                             \
    T *restrict to = out;                                                 \
    const double *top = &b->top->number, *sum = &b->sum->number;          \
    (void)x, (void)top, (void)sum;                                        \
    for (size_t i = 0; i < m; i++)                                        \
      to[i] = (T)f(T, x[i], top[i], sum[i], to[i]);                       \
  }
#define LOOPS(T)         \
  LOOP(raise, T, RAISED) \
  LOOP(scale, T, SCALED) \
  LOOP(lower, T, LOWERED)
LOOPS(float)
LOOPS(double)
#define LOOPS_ROW(D, T)                                                     \
  {                                                                         \
    PLN_##D, raise_runs_##T, scale_runs_##T, lower_runs_##T, raise_row_##T, \
        scale_row_##T, lower_row_##T                                        \
  }
static const loops singles = LOOPS_ROW(FLOAT32, float);
static const loops doubles = LOOPS_ROW(FLOAT64, double);

/* A row of n elements, `step` apart. */
typedef void (*row_fn)(const void *in, void *out, size_t n, size_t step);

#define HARDMAX(T)                                                            \
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
HARDMAX(float)
HARDMAX(double)

/* ------------------------------------------------------------------ walking */

/* The tensor as outer x n x inner. */
typedef struct layout {
  size_t outer, n, inner;
} layout;

static bool find_rows(const pln_kernel_call *call, const pln_tensor *x,
                      layout *r) {
  bool coerce = pln_kernel_int(call, "coerce_2d", 0) != 0;
  int64_t at = pln_kernel_int(call, "axis", -1);
  uint32_t axis = 0, rank = x->rank ? x->rank : 1;
  if (coerce && at == (int64_t)x->rank)
    axis = x->rank;
  else if (!pln_kernel_axis(at, rank, &axis))
    return false;
  uint32_t end = coerce || !x->rank ? x->rank : axis + 1;
  *r = (layout){pln_dims_product(x->dims, 0, x->rank ? axis : 0),
                pln_dims_product(x->dims, x->rank ? axis : 0, end),
                pln_dims_product(x->dims, end, x->rank)};
  return true;
}

static void start_row_partials(const pln_reduce_loops *gather,
                               pln_reduce_accumulator *all, size_t n) {
  for (size_t i = 0; i < n; i++)
    all[i] = gather->start;
}

/* Turns sums into inverses or logarithms. A float32 sum is rounded first: an
 * element that is almost certain then gives exactly 1, as with a float32 sum,
 * and equal elements stay equal. */
static void finish_sums(const loops *l, block *b, size_t n, bool logarithm) {
  for (size_t i = 0; i < n; i++) {
    double sum = b->sum[i].number;
    if (l->dtype == PLN_FLOAT32 && !logarithm)
      sum = (double)(float)sum;
    b->sum[i].number = logarithm ? log(sum) : 1 / sum;
  }
}

typedef float lanes16 __attribute__((vector_size(64)));
typedef float unaligned16
    __attribute__((vector_size(64), aligned(4), may_alias));

/* The sum in sixteen lanes of float32; these are added up by halves, then by
 * neighbours. */
PLN_MULTIVERSION_AVX512 static float sum_short_row(const float *x, size_t n) {
  size_t whole = n - n % 16;
  lanes16 sum = {0};
  float lane[16];
  for (size_t i = 0; i < whole; i += 16)
    sum += *(const unaligned16 *)(x + i);
  memcpy(lane, &sum, sizeof lane);
  for (size_t i = whole; i < n; i++)
    lane[i - whole] += x[i];
  for (size_t i = 0; i < 8; i++)
    lane[i] += lane[i + 8];
  for (size_t left = 4; left > 0; left /= 2)
    for (size_t i = 0; i < left; i++)
      lane[i] = lane[2 * i] + lane[2 * i + 1];
  return lane[0];
}

/* Adds up rows of n elements. */
static void sum_rows(const loops *l, bool logarithm, const void *x, size_t n,
                     size_t rows, pln_reduce_accumulator *sum) {
  const pln_reduce_loops *add = pln_reduce_find(PLN_REDUCE_SUM, l->dtype);
  const float *row = x;
  if (l->dtype != PLN_FLOAT32 || logarithm || n > SHORT_ROW) {
    start_row_partials(add, sum, rows);
    add->runs(x, n, rows, n, sum);
    return;
  }
  for (size_t i = 0; i < rows; i++)
    sum[i].number = (double)sum_short_row(row + i * n, n);
}

/* Rows of n contiguous elements. */
static void run_rows(const pln_engine *engine, const loops *l, bool logarithm,
                     const char *in, char *out, size_t n, size_t rows) {
  const pln_reduce_loops *best = pln_reduce_find(PLN_REDUCE_GREATEST, l->dtype);
  size_t size = n * pln_element_size(l->dtype), most = ELEMENTS / n;
  size_t part = most < 1 ? 1 : most < BLOCK ? most : BLOCK;
  size_t done = 0;
  block b;
  for (size_t at = 0; at < rows; at += part) {
    if (pln_is_stopped_after(engine, &done, part * n))
      return;
    size_t k = rows - at < part ? rows - at : part;
    const char *x = in + at * size;
    char *to = out + at * size;
    start_row_partials(best, b.top, k);
    best->runs(x, n, k, n, b.top);
    l->raise_runs(&b, x, to, n, k);
    sum_rows(l, logarithm, to, n, k, b.sum);
    finish_sums(l, &b, k, logarithm);
    (logarithm ? l->lower_runs : l->scale_runs)(&b, x, to, n, k);
  }
}

/* `m` columns of n elements, with stride `inner`. */
static void run_columns(const pln_engine *engine, const loops *l,
                        bool logarithm, const char *in, char *out, size_t n,
                        size_t inner, size_t m) {
  const pln_reduce_loops *best = pln_reduce_find(PLN_REDUCE_GREATEST, l->dtype);
  const pln_reduce_loops *add = pln_reduce_find(PLN_REDUCE_SUM, l->dtype);
  size_t step = inner * pln_element_size(l->dtype), done = 0;
  block b;
  start_row_partials(best, b.top, m);
  start_row_partials(add, b.sum, m);
  best->rows(in, m, n, inner, b.top);
  for (size_t i = 0; i < n; i++) {
    if (pln_is_stopped_after(engine, &done, m))
      return;
    l->raise_row(&b, in + i * step, out + i * step, m);
  }
  add->rows(out, m, n, inner, b.sum);
  finish_sums(l, &b, m, logarithm);
  for (size_t i = 0; i < n; i++) {
    if (pln_is_stopped_after(engine, &done, m))
      return;
    (logarithm ? l->lower_row : l->scale_row)(&b, in + i * step, out + i * step,
                                              m);
  }
}

/* A running call, whose rows (indices of `outer`) threads share. */
typedef struct softmax_run {
  pln_engine *engine;
  const loops *loops;
  bool logarithm;
  layout layout;
  const char *in;
  char *out;
} softmax_run;

static void run_range(void *ud, size_t begin, size_t end) {
  const softmax_run *s = ud;
  const layout *r = &s->layout;
  size_t size = pln_element_size(s->loops->dtype);
  size_t from = begin * r->n * r->inner * size;
  if (r->inner == 1) {
    run_rows(s->engine, s->loops, s->logarithm, s->in + from, s->out + from,
             r->n, end - begin);
    return;
  }
  for (size_t o = begin; o < end; o++)
    for (size_t i = 0; i < r->inner; i += BLOCK) {
      size_t base = (o * r->n * r->inner + i) * size;
      if (pln_is_stopped(s->engine))
        return;
      run_columns(s->engine, s->loops, s->logarithm, s->in + base,
                  s->out + base, r->n, r->inner,
                  r->inner - i < BLOCK ? r->inner - i : BLOCK);
    }
}

/* ------------------------------------------------------------------ kernels */

static pln_status begin_softmax(pln_kernel_call *call, layout *r, void **out) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (!x || !find_rows(call, x, r))
    return pln_kernel_refuse(call, "the axis does not match the operand");
  if (x->dtype != PLN_FLOAT32 && x->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  return pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, x->dims, out);
}

static pln_status run_softmax(pln_kernel_call *call, bool logarithm) {
  layout r;
  void *out;
  PLN_TRY(begin_softmax(call, &r, &out));
  const pln_tensor *x = call->args[0];
  if (!x->count)
    return PLN_OK;
  softmax_run s = {.engine = call->engine,
                   .loops = x->dtype == PLN_FLOAT32 ? &singles : &doubles,
                   .logarithm = logarithm,
                   .layout = r,
                   .in = x->data,
                   .out = out};
  pln_parallel_ranges(call->engine, r.outer, 1 + SHARED_WORK / (r.n * r.inner),
                      run_range, &s);
  return PLN_OK;
}

static pln_status softmax(pln_kernel_call *call) {
  return run_softmax(call, false);
}

static pln_status log_softmax(pln_kernel_call *call) {
  return run_softmax(call, true);
}

static pln_status hardmax(pln_kernel_call *call) {
  layout r;
  void *data;
  PLN_TRY(begin_softmax(call, &r, &data));
  const pln_tensor *x = call->args[0];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  row_fn fn = x->dtype == PLN_FLOAT32 ? hardmax_float : hardmax_double;
  size_t done = 0;
  for (size_t i = 0; i < r.outer * r.inner && x->count; i++) {
    size_t base = (i / r.inner * r.n * r.inner + i % r.inner) * size;
    if (pln_is_stopped_after(call->engine, &done, r.n))
      break;
    fn((const char *)x->data + base, (char *)data + base, r.n, r.inner);
  }
  return PLN_OK;
}

pln_status pln_kernel_softmax(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", softmax);
}

pln_status pln_kernel_log_softmax(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", log_softmax);
}

pln_status pln_kernel_hardmax(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", hardmax);
}
