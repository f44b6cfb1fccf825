/* reduce.c: sums, products, norms and extrema over axes. Called through
 * ops.def.
 *
 * float32 and 16-bit floats are accumulated in double and rounded once, so that
 * the order of elements hardly matters, but for sums and means of short rows of
 * float32, which have the bits of ONNX Runtime; integers wrap. NaN wins in max
 * and min. Over no elements a sum is 0, a product 1, max and min are -inf and
 * inf, or the least and the greatest integer. The mean of nothing is NaN; of
 * integers folding refuses it, and a run gives 0.
 *
 * Results are computed in blocks along the innermost kept axis: from contiguous
 * runs if the innermost axis is reduced, else from rows of elements that belong
 * to different results. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/elementwise/convert.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/reduce/axes.h"
#include "op/kernel/reduce/loops.h"

/* Returns false if the axes are not valid. */
static bool read_reduce_axes(const pln_kernel_call *call, const pln_tensor *x,
                             bool *axes) {
  pln_list list = pln_kernel_list(call, 1, "axes");
  memset(axes, list.count == 0, PLN_MAX_RANK);
  for (uint32_t i = 0; i < list.count; i++) {
    uint32_t axis;
    if (!pln_kernel_axis(pln_list_at(&list, i), x->rank, &axis))
      return false;
    axes[axis] = true;
  }
  bool exclude = list.count && pln_kernel_int(call, "exclude", 0);
  for (uint32_t i = 0; exclude && i < x->rank; i++)
    axes[i] = !axes[i];
  return true;
}

/* ----------------------------------------------------------------- gathering
 */

/* The loop of a reduction, and how its accumulator becomes a result. */
typedef struct measure {
  pln_reduce_kind gather;
  enum { PLAIN, MEAN, ROOT, LOGARITHM } finish;
} measure;

/* Results, and converted elements, per block; elements between two polls for a
 * stop, a multiple of what the loops take at once. */
enum { BLOCK = 512, PART = 1 << 18 };

typedef struct job {
  const pln_engine *engine;
  const measure *measure;
  const pln_reduce_loops *loops;
  pln_conversion conversion; /* from the operand's dtype to the loops' */
  size_t size;               /* of an element */
  size_t count;              /* elements per result */
  const char *data;
  pln_reduce_accumulator start;
} job;

static bool is_plain_int(pln_dtype dtype) {
  return (dtype >= PLN_UINT8 && dtype <= PLN_INT64) || dtype == PLN_UINT32 ||
         dtype == PLN_UINT64;
}

/* Returns the initial value of an integer extremum, which is also the result
 * over no elements. */
static uint64_t end_of(pln_dtype dtype, bool least) {
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  bool has_sign = dtype == PLN_INT8 || dtype == PLN_INT16 ||
                  dtype == PLN_INT32 || dtype == PLN_INT64;
  uint64_t most = UINT64_MAX >> (64 - bits + has_sign);
  return !least ? most : has_sign ? ~most : 0;
}

static bool is_extreme(const measure *m) {
  return m->gather == PLN_REDUCE_GREATEST || m->gather == PLN_REDUCE_SMALLEST;
}

static job make_job(const measure *m, const pln_tensor *x, size_t count) {
  pln_dtype dtype = (pln_dtype)x->dtype;
  pln_dtype fed = pln_dtype_is_half(dtype) ? PLN_FLOAT32
                  : pln_dtype_is_float(dtype) || dtype == PLN_UINT64
                      ? dtype
                      : PLN_INT64;
  const pln_reduce_loops *loops = pln_reduce_find(m->gather, fed);
  pln_reduce_accumulator start = loops->start;
  if (is_extreme(m) && !pln_dtype_is_float(dtype))
    start.bits = end_of(dtype, m->gather == PLN_REDUCE_GREATEST);
  return (job){.engine = x->engine,
               .measure = m,
               .loops = loops,
               .start = start,
               .conversion = {.from = dtype, .to = fed},
               .size = pln_element_size(dtype),
               .count = count,
               .data = x->data};
}

/* Returns n elements, at most a block, in the dtype of the loops: converted
 * into `block` if necessary. */
static const void *feed(const job *j, int64_t offset, size_t n, void *block) {
  const void *from = j->data + offset * (int64_t)j->size;
  if (j->conversion.from == j->conversion.to)
    return from;
  /* cannot fail: conversions here only widen */
  (void)pln_convert(&j->conversion, from, n, block);
  return block;
}

/* Accumulates n neighbouring results, each from one element of every row. */
static void gather_rows(const job *j, int64_t offset, size_t n, size_t rows,
                        size_t step, pln_reduce_accumulator *all) {
  uint64_t block[BLOCK];
  bool same = j->conversion.from == j->conversion.to;
  size_t most = same ? PART / BLOCK : 1, done = 0;
  for (size_t r = 0; r < rows; r += most) {
    size_t part = rows - r < most ? rows - r : most;
    if (pln_is_stopped_after(j->engine, &done, n * part))
      return;
    j->loops->rows(feed(j, offset + (int64_t)(r * step), n, block), n, part,
                   step, all);
  }
}

/* Whether rows of n elements are summed in float32: short ones that are whole
 * sums. */
static bool is_short_sum(const job *j, size_t n) {
  return j->measure->gather == PLN_REDUCE_SUM &&
         (j->measure->finish == PLAIN || j->measure->finish == MEAN) &&
         j->conversion.from == PLN_FLOAT32 && n == j->count &&
         pln_sum_is_short(n);
}

/* Accumulates one result from each row of n elements. */
static void gather_runs(const job *j, int64_t offset, size_t n, size_t rows,
                        size_t step, pln_reduce_accumulator *all) {
  uint64_t block[BLOCK];
  bool same = j->conversion.from == j->conversion.to;
  size_t most = same ? PART : BLOCK, done = 0;
  if (is_short_sum(j, n)) {
    pln_sum_short_runs(feed(j, offset, n, NULL), n, rows, step, all);
    return;
  }
  if (same && n * rows <= PART) {
    j->loops->runs(feed(j, offset, n, NULL), n, rows, step, all);
    return;
  }
  for (size_t r = 0; r < rows; r++, offset += (int64_t)step)
    for (size_t at = 0; at < n; at += most) {
      size_t part = n - at < most ? n - at : most;
      if (pln_is_stopped_after(j->engine, &done, part))
        return;
      j->loops->runs(feed(j, offset + (int64_t)at, part, block), part, 1, 0,
                     all + r);
    }
}

/* ------------------------------------------------------------------ finishing
 */

/* Multiplication by the inverse of a power of two is exact, and faster. */
PLN_MULTIVERSION_AVX512 static void divide_sums(pln_reduce_accumulator *all,
                                                size_t n, size_t count) {
  double *restrict sums = &all->number;
  double by = (double)count, inverse = 1 / by;
  if ((count & (count - 1)) == 0)
    for (size_t i = 0; i < n; i++)
      sums[i] *= inverse;
  else
    for (size_t i = 0; i < n; i++)
      sums[i] /= by;
}

static void finish_floats(const job *j, pln_reduce_accumulator *all, size_t n) {
  switch (j->measure->finish) {
  case PLAIN: break;
  case MEAN: divide_sums(all, n, j->count); break;
  case ROOT:
    for (size_t i = 0; i < n; i++)
      all[i].number = sqrt(all[i].number);
    break;
  case LOGARITHM:
    for (size_t i = 0; i < n; i++)
      all[i].number = log(all[i].number);
    break;
  }
}

/* Divides sums of integers by their count, truncating towards zero. The sums
 * have wrapped within the dtype. */
static void mean_of_ints(const job *j, void *data, size_t n) {
  pln_conversion out = {.from = j->conversion.to, .to = j->conversion.from};
  uint64_t whole[BLOCK], count = j->count ? j->count : 1;
  (void)pln_convert(&j->conversion, data, n, whole);
  for (size_t i = 0; i < n; i++)
    if (out.from == PLN_INT64 && whole[i] > INT64_MAX)
      whole[i] = 0 - (0 - whole[i]) / count;
    else
      whole[i] /= count;
  (void)pln_convert(&out, whole, n, data);
}

/* Finishes a block of results and stores it. */
static void store_reduced(const job *j, pln_reduce_accumulator *all, size_t n,
                          void *data) {
  pln_dtype dtype = j->conversion.from;
  pln_conversion out = {.from = PLN_FLOAT64, .to = dtype};
  if (pln_dtype_is_float(dtype)) {
    finish_floats(j, all, n);
    (void)pln_convert(&out, all, n, data);
    return;
  }
  out.from = j->conversion.to;
  (void)pln_convert(&out, all, n, data);
  if (j->measure->finish == MEAN)
    mean_of_ints(j, data, n);
}

/* ------------------------------------------------------------------- walking
 */

/* The innermost reduced axis, and those around it. */
typedef struct inside {
  pln_loop_nest outer;
  size_t n, step;
  bool runs; /* whether elements are contiguous along it; else results are */
} inside;

/* Computes n results, `step` apart, from the elements at `offset` on. */
static void gather_block(const job *j, const inside *in, int64_t offset,
                         size_t n, size_t step, char *to) {
  pln_reduce_accumulator all[BLOCK];
  int64_t at[PLN_MAX_RANK] = {0};
  size_t done = 0;
  for (size_t i = 0; i < n; i++)
    all[i] = j->start;
  for (size_t i = 0; i < in->outer.count; i++) {
    if (pln_is_stopped_after(j->engine, &done, n * in->n))
      return;
    if (in->runs)
      gather_runs(j, offset, in->n, n, step, all);
    else
      gather_rows(j, offset, n, in->n, in->step, all);
    offset = pln_loop_nest_advance(&in->outer, at, offset);
  }
  store_reduced(j, all, n, to);
}

/* All results: rows of `width`, `step` apart. Threads share them; no sum is
 * divided. */
typedef struct gathering {
  const job *job;
  pln_loop_nest kept; /* without the innermost axis */
  size_t width, step;
  inside in;
  char *to;
} gathering;

static void gather_range(void *ud, size_t begin, size_t end) {
  const gathering *g = ud;
  const job *j = g->job;
  int64_t at[PLN_MAX_RANK];
  size_t c = begin % g->width;
  int64_t base = pln_loop_nest_seek(&g->kept, begin / g->width, at);
  while (begin < end) {
    size_t n = g->width - c < BLOCK ? g->width - c : BLOCK;
    n = n < end - begin ? n : end - begin;
    if (pln_is_stopped(j->engine))
      return;
    gather_block(j, &g->in, base + (int64_t)(c * g->step), n, g->step,
                 g->to + begin * j->size);
    begin += n;
    c += n;
    if (c < g->width)
      continue;
    base = pln_loop_nest_advance(&g->kept, at, base);
    c = 0;
  }
}

/* The number of elements that pays for another thread. */
enum { SHARED_WORK = 1 << 15 };

static void gather_all(pln_engine *engine, const job *j, const pln_reduction *r,
                       char *to) {
  gathering g = {
      .job = j, .kept = r->kept, .in = {.outer = r->reduced}, .to = to};
  pln_loop_nest_pop(&g.kept, &g.width, &g.step);
  pln_loop_nest_pop(&g.in.outer, &g.in.n, &g.in.step);
  g.in.runs = r->reduced.rank && g.in.step == 1;
  pln_parallel_ranges(engine, g.kept.count * g.width,
                      1 + SHARED_WORK / (j->count + 1), gather_range, &g);
}

/* ------------------------------------------------------------------ kernels */

static bool is_noop(const pln_kernel_call *call) {
  return pln_kernel_list(call, 1, "axes").count == 0 &&
         pln_kernel_int(call, "noop_with_empty_axes", 0) != 0;
}

/* Returns true if the reduction of one element is that element. */
static bool keeps_single(const measure *m) {
  return m->gather != PLN_REDUCE_ABS && m->gather != PLN_REDUCE_SQUARE &&
         (m->finish == PLAIN || m->finish == MEAN);
}

/* Reads the axes. Where ONNX defines that none are reduced, each element is
 * still reduced alone: a norm or a logarithm is computed. */
static pln_status begin_reduction(pln_kernel_call *call, pln_reduction *r) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool axes[PLN_MAX_RANK];
  if (!x || x->rank > PLN_MAX_RANK || !read_reduce_axes(call, x, axes))
    return pln_kernel_refuse(call, "axes do not match the operand");
  pln_dtype dtype = (pln_dtype)x->dtype;
  if (!pln_dtype_is_float(dtype) && !is_plain_int(dtype) && dtype != PLN_BOOL)
    return pln_kernel_no_dtype(call, dtype);
  if (is_noop(call))
    memset(axes, 0, sizeof axes);
  pln_reduction_plan(x, axes, pln_kernel_int(call, "keepdims", 1) != 0, r);
  return PLN_OK;
}

/* Computes roots and logarithms of integers in double, truncated towards
 * zero. */
static pln_status reduce_as_double(pln_kernel_call *call,
                                   pln_kernel_fn kernel) {
  const pln_tensor *x = call->args[0], *axes = pln_kernel_arg(call, 1);
  pln_conversion there = {.from = (pln_dtype)x->dtype, .to = PLN_FLOAT64};
  pln_conversion back = {
      .from = PLN_FLOAT64, .to = there.from, .folding = call->folding};
  pln_tensor *wide, *reduced = NULL;
  void *out;
  PLN_TRY(pln_tensor_unset(call->engine, there.to, x->rank, x->dims, &wide));
  pln_kernel_call twice = *call;
  const pln_tensor *args[] = {wide, axes};
  twice.args = args;
  twice.n_args = PLN_COUNT(args);
  twice.results = &reduced;
  pln_status status =
      PLN_ERR_UNSUPPORTED; /* not reached: all integer dtypes convert */
  if (pln_convert(&there, x->data, x->count, pln_tensor_writable(wide)) ==
      PLN_CONVERTED)
    status = kernel(&twice);
  if (status == PLN_OK)
    status = pln_kernel_unset(call, 0, there.from, reduced->rank, reduced->dims,
                              &out);
  if (status == PLN_OK &&
      pln_convert(&back, reduced->data, reduced->count, out) != PLN_CONVERTED)
    status = pln_kernel_refuse(call, "the result is not an integer");
  pln_tensor_release(reduced);
  pln_tensor_release(wide);
  return status;
}

/* Returns true for an integer operand, which reduce_as_double computes. */
static bool operand_is_integer(const pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  return x && is_plain_int((pln_dtype)x->dtype);
}

static pln_status reduce_tensor(pln_kernel_call *call, measure m) {
  pln_reduction r;
  void *out;
  PLN_TRY(begin_reduction(call, &r));
  const pln_tensor *x = call->args[0];
  pln_dtype dtype = (pln_dtype)x->dtype;
  bool is_empty = r.reduced.count == 0 && r.kept.count;
  if (dtype == PLN_BOOL && !is_extreme(&m))
    return pln_kernel_undefined(call);
  if (is_empty && m.finish == MEAN && !pln_dtype_is_float(dtype) &&
      call->folding)
    return pln_kernel_undefined(call);
  if (is_noop(call) && keeps_single(&m)) {
    pln_kernel_same(call, 0, x);
    return PLN_OK;
  }
  PLN_TRY(pln_kernel_unset(call, 0, dtype, r.rank, r.dims, &out));
  job j = make_job(&m, x, r.reduced.count);
  if (r.kept.count)
    gather_all(call->engine, &j, &r, out);
  return PLN_OK;
}

#define REDUCE_KERNEL(name, gathered, finished)                \
  pln_status pln_kernel_##name(pln_kernel_call *call) {        \
    return reduce_tensor(call, (measure){gathered, finished}); \
  }
REDUCE_KERNEL(sum, PLN_REDUCE_SUM, PLAIN)
REDUCE_KERNEL(mean, PLN_REDUCE_SUM, MEAN)
REDUCE_KERNEL(max, PLN_REDUCE_GREATEST, PLAIN)
REDUCE_KERNEL(min, PLN_REDUCE_SMALLEST, PLAIN)
REDUCE_KERNEL(prod, PLN_REDUCE_PRODUCT, PLAIN)
REDUCE_KERNEL(reduce_l1, PLN_REDUCE_ABS, PLAIN)
REDUCE_KERNEL(reduce_sum_square, PLN_REDUCE_SQUARE, PLAIN)

pln_status pln_kernel_reduce_l2(pln_kernel_call *call) {
  if (operand_is_integer(call))
    return reduce_as_double(call, pln_kernel_reduce_l2);
  return reduce_tensor(call, (measure){PLN_REDUCE_SQUARE, ROOT});
}

pln_status pln_kernel_reduce_log_sum(pln_kernel_call *call) {
  if (operand_is_integer(call))
    return reduce_as_double(call, pln_kernel_reduce_log_sum);
  return reduce_tensor(call, (measure){PLN_REDUCE_SUM, LOGARITHM});
}

/* Copies n elements, `step` apart, to `to`: double for float64, else float. */
static void load_floats(pln_dtype dtype, const void *data, int64_t at, size_t n,
                        size_t step, void *to) {
  const float *single = data;
  const double *twice = data;
  const uint16_t *half = data;
  uint16_t halves[BLOCK];
  if (dtype == PLN_FLOAT32)
    for (size_t i = 0; i < n; i++)
      ((float *)to)[i] = single[at + (int64_t)(i * step)];
  else if (dtype == PLN_FLOAT64)
    for (size_t i = 0; i < n; i++)
      ((double *)to)[i] = twice[at + (int64_t)(i * step)];
  else {
    for (size_t i = 0; i < n; i++)
      halves[i] = half[at + (int64_t)(i * step)];
    pln_widen(dtype, halves, to, n);
  }
}

PLN_MULTIVERSION_AVX512 static void exponentials(float *x, float top,
                                                 size_t n) {
  for (size_t i = 0; i < n; i++)
    x[i] = pln_exp_negative(x[i] - top);
}

/* A logarithm of a sum of exponentials that is being computed: first the
 * maximum is found, which is subtracted so that nothing overflows. */
typedef struct exponential_sum {
  const pln_reduce_loops *greatest, *add;
  bool summing, twice; /* twice: elements are double */
  pln_reduce_accumulator top, all;
} exponential_sum;

static void take_block(exponential_sum *s, void *block, size_t n) {
  double *twice = block;
  if (!s->summing) {
    s->greatest->runs(block, n, 1, 0, &s->top);
    return;
  }
  if (s->twice)
    for (size_t i = 0; i < n; i++)
      twice[i] = exp(twice[i] - s->top.number);
  else
    exponentials(block, (float)s->top.number, n);
  s->add->runs(block, n, 1, 0, &s->all);
}

static void take_all(exponential_sum *s, const pln_tensor *x,
                     const pln_loop_nest *reduced, int64_t base) {
  double block[BLOCK];
  pln_loop_nest outer = *reduced;
  int64_t at[PLN_MAX_RANK] = {0};
  size_t n, step, done = 0;
  pln_loop_nest_pop(&outer, &n, &step);
  for (size_t i = 0; i < outer.count; i++) {
    for (size_t k = 0; k < n; k += BLOCK) {
      size_t part = n - k < BLOCK ? n - k : BLOCK;
      if (pln_is_stopped_after(x->engine, &done, 4 * part))
        return;
      load_floats((pln_dtype)x->dtype, x->data, base + (int64_t)(k * step),
                  part, step, block);
      take_block(s, block, part);
    }
    base = pln_loop_nest_advance(&outer, at, base);
  }
}

static double log_sum_exp(const pln_tensor *x, const pln_loop_nest *reduced,
                          int64_t base) {
  pln_dtype dtype = x->dtype == PLN_FLOAT64 ? PLN_FLOAT64 : PLN_FLOAT32;
  exponential_sum s = {.greatest = pln_reduce_find(PLN_REDUCE_GREATEST, dtype),
                       .add = pln_reduce_find(PLN_REDUCE_SUM, dtype),
                       .twice = dtype == PLN_FLOAT64};
  s.top = s.greatest->start;
  s.all = s.add->start;
  if (reduced->count)
    take_all(&s, x, reduced, base);
  double top = s.top.number;
  if (isinf(top) || top != top)
    return top;
  s.summing = true;
  take_all(&s, x, reduced, base);
  return top + log(s.all.number);
}

static void store_float(pln_dtype dtype, void *out, size_t i, double value) {
  float single = (float)value;
  if (dtype == PLN_FLOAT32)
    ((float *)out)[i] = single;
  else if (dtype == PLN_FLOAT64)
    ((double *)out)[i] = value;
  else
    pln_narrow(dtype, &single, (uint16_t *)out + i, 1);
}

typedef struct exponential_sums {
  const pln_tensor *x;
  const pln_reduction *reduction;
  void *out;
} exponential_sums;

static void exponential_range(void *ud, size_t begin, size_t end) {
  const exponential_sums *s = ud;
  const pln_reduction *r = s->reduction;
  int64_t at[PLN_MAX_RANK], base = pln_loop_nest_seek(&r->kept, begin, at);
  size_t done = 0;
  for (size_t i = begin; i < end; i++) {
    if (pln_is_stopped_after(s->x->engine, &done, 4 * r->reduced.count + 8))
      return;
    store_float((pln_dtype)s->x->dtype, s->out, i,
                log_sum_exp(s->x, &r->reduced, base));
    base = pln_loop_nest_advance(&r->kept, at, base);
  }
}

pln_status pln_kernel_logsumexp(pln_kernel_call *call) {
  pln_reduction r;
  void *out;
  if (operand_is_integer(call))
    return reduce_as_double(call, pln_kernel_logsumexp);
  PLN_TRY(begin_reduction(call, &r));
  const pln_tensor *x = call->args[0];
  pln_dtype dtype = (pln_dtype)x->dtype;
  if (!pln_dtype_is_float(dtype))
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(pln_kernel_unset(call, 0, dtype, r.rank, r.dims, &out));
  exponential_sums s = {x, &r, out};
  if (r.kept.count)
    pln_parallel_ranges(call->engine, r.kept.count,
                        1 + SHARED_WORK / (8 * r.reduced.count + 1),
                        exponential_range, &s);
  return PLN_OK;
}
