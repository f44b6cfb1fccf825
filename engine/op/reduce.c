/* reduce.c: sums, products, norms, extremes and their indices over axes. Called
 * through ops.def.
 *
 * What holds: float32 and halves are accumulated in double and rounded once,
 * so that the order of elements hardly matters; integers wrap around. NaN wins
 * in max and min. Over no elements a sum is 0 and a product 1; max, min, mean
 * and indices of nothing are refused for integers, and for floats are
 * -inf, inf and NaN.
 *
 * The reduced axes and the kept ones are walked as two nests of loops; axes
 * that lie side by side and are treated alike are one. */

#include <math.h>

#include "op/convert.h"
#include "op/elementwise.h"
#include "op/through_float.h"

/* ------------------------------------------------------------ which elements
 */

/* Axes of one nest, outermost first; steps in elements. */
typedef struct nest {
  uint32_t rank;
  size_t count; /* the product of dims */
  int64_t dims[PLN_MAX_RANK];
  int64_t steps[PLN_MAX_RANK];
} nest;

typedef struct reduction {
  nest kept, reduced;
  uint32_t rank; /* of the result */
  int64_t dims[PLN_MAX_RANK];
} reduction;

/* The next offset, odometer-wise. */
static int64_t advance(const nest *n, int64_t *at, int64_t offset) {
  for (uint32_t k = n->rank; k-- > 0;) {
    offset += n->steps[k];
    if (++at[k] < n->dims[k])
      return offset;
    offset -= n->steps[k] * n->dims[k];
    at[k] = 0;
  }
  return offset;
}

/* Extents beside an empty axis may overflow: they are never walked. */
static int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void add_axis(nest *n, int64_t dim, int64_t step, bool joins) {
  n->count *= (size_t)dim;
  if (joins) { /* the axis before goes on where this one ends */
    n->dims[n->rank - 1] = times(n->dims[n->rank - 1], dim);
    n->steps[n->rank - 1] = step;
    return;
  }
  n->dims[n->rank] = dim;
  n->steps[n->rank++] = step;
}

static void plan(const pln_tensor *x, const bool *axes, bool keep,
                 reduction *r) {
  int64_t step = 1, steps[PLN_MAX_RANK];
  bool joins = false;
  *r = (reduction){.kept.count = 1, .reduced.count = 1};
  for (uint32_t i = x->rank; i-- > 0; step = times(step, x->dims[i]))
    steps[i] = step;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (!axes[i] || keep)
      r->dims[r->rank++] = axes[i] ? 1 : x->dims[i];
    joins = i > 0 && axes[i] == axes[i - 1];
    add_axis(axes[i] ? &r->reduced : &r->kept, x->dims[i], steps[i], joins);
  }
}

/* False when the axes are not valid. */
static bool read_axes(const pln_kernel_call *call, const pln_tensor *x,
                      bool *axes) {
  pln_list list = pln_kernel_list(call, 1, "axes");
  memset(axes, list.count == 0, PLN_MAX_RANK);
  for (uint32_t i = 0; i < list.count; i++) {
    uint32_t axis;
    if (!pln_kernel_axis(pln_list_at(&list, i), x->rank, &axis))
      return false;
    axes[axis] = true;
  }
  return true;
}

/* -------------------------------------------------------------- accumulation
 */

/* What is accumulated, and how it ends. */
typedef struct measure {
  enum { SUM, SUM_ABS, SUM_SQUARE, PRODUCT, GREATEST, SMALLEST } gather;
  enum { PLAIN, MEAN, ROOT, LOGARITHM } finish;
} measure;

static double start_of(const measure *m) {
  switch (m->gather) {
  case SUM:
  case SUM_ABS:
  case SUM_SQUARE: return 0;
  case PRODUCT: return 1;
  case GREATEST: return -INFINITY;
  case SMALLEST: return INFINITY;
  }
  return 0;
}

static double finish_float(const measure *m, double all, size_t count) {
  switch (m->finish) {
  case PLAIN: return all;
  case MEAN: return all / (double)count;
  case ROOT: return sqrt(all);
  case LOGARITHM: return log(all);
  }
  return all;
}

#define GATHER_FLOATS(T)                                                      \
  static double gather_##T(const measure *m, const T *x, int64_t step,        \
                           int64_t n, double all) {                           \
    switch (m->gather) {                                                      \
    case SUM:                                                                 \
      for (int64_t i = 0; i < n; i++)                                         \
        all += (double)x[i * step];                                           \
      break;                                                                  \
    case SUM_ABS:                                                             \
      for (int64_t i = 0; i < n; i++)                                         \
        all += fabs((double)x[i * step]);                                     \
      break;                                                                  \
    case SUM_SQUARE:                                                          \
      for (int64_t i = 0; i < n; i++)                                         \
        all += (double)x[i * step] * (double)x[i * step];                     \
      break;                                                                  \
    case PRODUCT:                                                             \
      for (int64_t i = 0; i < n; i++)                                         \
        all *= (double)x[i * step];                                           \
      break;                                                                  \
    case GREATEST:                                                            \
      for (int64_t i = 0; i < n; i++)                                         \
        all = all >= (double)x[i * step] || all != all ? all                  \
                                                       : (double)x[i * step]; \
      break;                                                                  \
    case SMALLEST:                                                            \
      for (int64_t i = 0; i < n; i++)                                         \
        all = all <= (double)x[i * step] || all != all ? all                  \
                                                       : (double)x[i * step]; \
      break;                                                                  \
    }                                                                         \
    return all;                                                               \
  }
GATHER_FLOATS(float)
GATHER_FLOATS(double)

/* Halves: one element at a time through float. */
static double gather_half(pln_dtype dtype, const measure *m, const uint16_t *x,
                          int64_t step, int64_t n, double all) {
  for (int64_t i = 0; i < n; i++) {
    float one;
    pln_widen(dtype, x + i * step, &one, 1);
    all = gather_float(m, &one, 1, 1, all);
  }
  return all;
}

static double gather_run(pln_dtype dtype, const measure *m, const void *data,
                         int64_t offset, int64_t step, int64_t n, double all) {
  if (dtype == PLN_FLOAT32)
    return gather_float(m, (const float *)data + offset, step, n, all);
  if (dtype == PLN_FLOAT64)
    return gather_double(m, (const double *)data + offset, step, n, all);
  return gather_half(dtype, m, (const uint16_t *)data + offset, step, n, all);
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

/* The innermost reduced axis is a run, the others an odometer. */
static double gather_all(pln_dtype dtype, const measure *m, const reduction *r,
                         const void *data, int64_t base) {
  const nest *n = &r->reduced;
  double all = start_of(m);
  int64_t at[PLN_MAX_RANK] = {0}, offset = base;
  if (n->rank == 0)
    return gather_run(dtype, m, data, base, 1, 1, all);
  nest outer = *n;
  outer.rank--;
  int64_t run = n->dims[n->rank - 1], step = n->steps[n->rank - 1];
  size_t runs = run ? n->count / (size_t)run : 0;
  for (size_t i = 0; i < runs; i++) {
    all = gather_run(dtype, m, data, offset, step, run, all);
    offset = advance(&outer, at, offset);
  }
  return all;
}

static void reduce_floats(pln_dtype dtype, const measure *m, const reduction *r,
                          const void *data, void *out) {
  int64_t at[PLN_MAX_RANK] = {0}, base = 0;
  for (size_t i = 0; i < r->kept.count; i++) {
    double all = gather_all(dtype, m, r, data, base);
    store_float(dtype, out, i, finish_float(m, all, r->reduced.count));
    base = advance(&r->kept, at, base);
  }
}

/* ----------------------------------------------------------------- integers */

/* bits / count, cut towards zero. */
static uint64_t divide_bits(bool negative, uint64_t bits, uint64_t count) {
  return negative ? 0 - (0 - bits) / count : bits / count;
}

#define GATHER_INTS(D, T)                                                     \
  static uint64_t gather_##D(const measure *m, const T *x, uint64_t all) {    \
    uint64_t bits = (uint64_t)*x;                                             \
    switch (m->gather) {                                                      \
    case SUM: return all + bits;                                              \
    case SUM_ABS: return all + (*x < 1 ? 0 - bits : bits);                    \
    case SUM_SQUARE: return all + bits * bits;                                \
    case PRODUCT: return all * bits;                                          \
    case GREATEST: return *x > (T)all ? bits : all;                           \
    case SMALLEST: return *x < (T)all ? bits : all;                           \
    }                                                                         \
    return all;                                                               \
  }                                                                           \
  static bool reduce_##D(const measure *m, const reduction *r,                \
                         const void *data, void *out) {                       \
    const T *x = data;                                                        \
    int64_t at[PLN_MAX_RANK] = {0}, base = 0;                                 \
    bool extreme = m->gather == GREATEST || m->gather == SMALLEST;            \
    for (size_t i = 0; i < r->kept.count; i++) {                              \
      int64_t in[PLN_MAX_RANK] = {0}, offset = base;                          \
      uint64_t all = extreme ? (uint64_t)x[base] : m->gather == PRODUCT;      \
      for (size_t k = 0; k < r->reduced.count; k++) {                         \
        all = gather_##D(m, x + offset, all);                                 \
        offset = advance(&r->reduced, in, offset);                            \
      }                                                                       \
      T whole = (T)all;                                                       \
      if (m->finish == MEAN)                                                  \
        whole = (T)divide_bits(whole < 1, (uint64_t)whole, r->reduced.count); \
      ((T *)out)[i] = whole;                                                  \
      base = advance(&r->kept, at, base);                                     \
    }                                                                         \
    return true;                                                              \
  }
PLN_INT_TYPES(GATHER_INTS)

static bool reduce_ints(pln_dtype dtype, const measure *m, const reduction *r,
                        const void *data, void *out) {
  bool needs =
      m->gather == GREATEST || m->gather == SMALLEST || m->finish == MEAN;
  if (r->reduced.count == 0 && needs && r->kept.count)
    return false;
  switch (dtype) {
  case PLN_BOOL: /* stored as 0 and 1; only the extremes of ONNX */
    return needs && m->finish == PLAIN && reduce_UINT8(m, r, data, out);
#define CASE(D, T) \
  case PLN_##D: return reduce_##D(m, r, data, out);
    PLN_INT_TYPES(CASE)
  default: return false;
  }
}

/* ------------------------------------------------------------------ kernels */

static bool is_float(pln_dtype dtype) {
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 || dtype == PLN_FLOAT16 ||
         dtype == PLN_BFLOAT16;
}

static bool is_plain_int(pln_dtype dtype) {
  return (dtype >= PLN_UINT8 && dtype <= PLN_INT64) || dtype == PLN_UINT32 ||
         dtype == PLN_UINT64;
}

/* The axes to reduce; *done: the result is the operand itself. */
static pln_status begin(pln_kernel_call *call, reduction *r, bool *done) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool axes[PLN_MAX_RANK];
  *done = false;
  if (!x || x->rank > PLN_MAX_RANK || !read_axes(call, x, axes))
    return pln_kernel_refuse(call, "axes do not fit the operand");
  pln_dtype dtype = (pln_dtype)x->dtype;
  if (!is_float(dtype) && !is_plain_int(dtype) && dtype != PLN_BOOL)
    return pln_kernel_no_dtype(call, dtype);
  pln_list list = pln_kernel_list(call, 1, "axes");
  if (list.count == 0 && pln_kernel_int(call, "noop_with_empty_axes", 0)) {
    *done = true;
    pln_kernel_same(call, 0, x);
  }
  plan(x, axes, pln_kernel_int(call, "keepdims", 1) != 0, r);
  return PLN_OK;
}

/* Roots and logarithms of integers: computed in double, cut towards zero. */
static pln_status reduce_as_double(pln_kernel_call *call,
                                   pln_kernel_fn kernel) {
  const pln_tensor *x = call->args[0], *axes = pln_kernel_arg(call, 1);
  pln_conversion there = {.from = (pln_dtype)x->dtype, .to = PLN_FLOAT64};
  pln_conversion back = {
      .from = PLN_FLOAT64, .to = there.from, .folding = true};
  pln_tensor *wide, *reduced = NULL;
  void *out;
  PLN_TRY(pln_tensor_unset(call->engine, there.to, x->rank, x->dims, &wide));
  pln_kernel_call twice = *call;
  const pln_tensor *args[] = {wide, axes};
  twice.args = args;
  twice.results = &reduced;
  pln_status status = PLN_ERR_UNSUPPORTED; /* never: all integers convert */
  if (pln_convert(&there, x->data, x->count, pln_tensor_writable(wide)) ==
      PLN_CONVERTED)
    status = kernel(&twice);
  if (status == PLN_OK)
    status = pln_kernel_unset(call, 0, there.from, reduced->rank, reduced->dims,
                              &out);
  if (status == PLN_OK &&
      pln_convert(&back, reduced->data, reduced->count, out) != PLN_CONVERTED)
    status = pln_kernel_refuse(call, "the result is no integer");
  pln_tensor_release(reduced);
  pln_tensor_release(wide);
  return status;
}

/* An integer operand that `reduce_as_double` is for. */
static bool is_integer(const pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  return x && is_plain_int((pln_dtype)x->dtype);
}

static pln_status reduce(pln_kernel_call *call, measure m) {
  reduction r;
  bool done;
  void *out;
  PLN_TRY(begin(call, &r, &done));
  if (done)
    return PLN_OK;
  const pln_tensor *x = call->args[0];
  pln_dtype dtype = (pln_dtype)x->dtype;
  PLN_TRY(pln_kernel_result(call, 0, dtype, r.rank, r.dims, &out));
  if (is_float(dtype))
    reduce_floats(dtype, &m, &r, x->data, out);
  else if (!reduce_ints(dtype, &m, &r, x->data, out))
    return pln_kernel_undefined(call);
  return PLN_OK;
}

#define REDUCE_KERNEL(name, gathered, finished)         \
  pln_status pln_kernel_##name(pln_kernel_call *call) { \
    return reduce(call, (measure){gathered, finished}); \
  }
REDUCE_KERNEL(sum, SUM, PLAIN)
REDUCE_KERNEL(mean, SUM, MEAN)
REDUCE_KERNEL(max, GREATEST, PLAIN)
REDUCE_KERNEL(min, SMALLEST, PLAIN)
REDUCE_KERNEL(prod, PRODUCT, PLAIN)
REDUCE_KERNEL(reduce_l1, SUM_ABS, PLAIN)
REDUCE_KERNEL(reduce_sum_square, SUM_SQUARE, PLAIN)

pln_status pln_kernel_reduce_l2(pln_kernel_call *call) {
  if (is_integer(call))
    return reduce_as_double(call, pln_kernel_reduce_l2);
  return reduce(call, (measure){SUM_SQUARE, ROOT});
}

pln_status pln_kernel_reduce_log_sum(pln_kernel_call *call) {
  if (is_integer(call))
    return reduce_as_double(call, pln_kernel_reduce_log_sum);
  return reduce(call, (measure){SUM, LOGARITHM});
}

static double load_float(pln_dtype dtype, const void *data, int64_t at) {
  float single;
  if (dtype == PLN_FLOAT32)
    return (double)((const float *)data)[at];
  if (dtype == PLN_FLOAT64)
    return ((const double *)data)[at];
  pln_widen(dtype, (const uint16_t *)data + at, &single, 1);
  return (double)single;
}

/* The greatest is taken out first, so that nothing overflows. */
static double log_sum_exp(pln_dtype dtype, const reduction *r, const void *data,
                          int64_t base) {
  static const measure greatest = {GREATEST, PLAIN};
  int64_t at[PLN_MAX_RANK] = {0}, offset = base;
  double top = gather_all(dtype, &greatest, r, data, base), all = 0;
  if (isinf(top) || top != top)
    return top;
  for (size_t i = 0; i < r->reduced.count; i++) {
    all += exp(load_float(dtype, data, offset) - top);
    offset = advance(&r->reduced, at, offset);
  }
  return top + log(all);
}

pln_status pln_kernel_logsumexp(pln_kernel_call *call) {
  reduction r;
  bool done;
  void *out;
  int64_t at[PLN_MAX_RANK] = {0}, base = 0;
  if (is_integer(call))
    return reduce_as_double(call, pln_kernel_logsumexp);
  PLN_TRY(begin(call, &r, &done));
  if (done)
    return PLN_OK;
  const pln_tensor *x = call->args[0];
  pln_dtype dtype = (pln_dtype)x->dtype;
  if (!is_float(dtype))
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(pln_kernel_result(call, 0, dtype, r.rank, r.dims, &out));
  for (size_t i = 0; i < r.kept.count; i++) {
    store_float(dtype, out, i, log_sum_exp(dtype, &r, x->data, base));
    base = advance(&r.kept, at, base);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ indices */

/* Whether element a is before element b in the wanted order; NaN is first. */
typedef bool (*before_fn)(const void *data, int64_t a, int64_t b);
#define BEFORE(D, T)                                             \
  static bool more_##D(const void *data, int64_t a, int64_t b) { \
    const T *x = data;                                           \
    return x[a] > x[b] || (x[a] != x[a] && x[b] == x[b]);        \
  }                                                              \
  static bool less_##D(const void *data, int64_t a, int64_t b) { \
    const T *x = data;                                           \
    return x[a] < x[b] || (x[a] != x[a] && x[b] == x[b]);        \
  }
PLN_INT_TYPES(BEFORE)
PLN_FLOAT_TYPES(BEFORE)

#define BEFORE_ROW(D, T) [PLN_##D] = {less_##D, more_##D},
static const before_fn orders[PLN_N_DTYPES][2] = {
    PLN_INT_TYPES(BEFORE_ROW) PLN_FLOAT_TYPES(BEFORE_ROW)};

static int64_t best_index(before_fn before, bool last, const void *data,
                          int64_t base, int64_t step, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) {
    int64_t a = base + i * step, b = base + best * step;
    if (before(data, a, b) || (last && !before(data, b, a)))
      best = i;
  }
  return best;
}

static pln_status arg_reduce(pln_kernel_call *call, bool greatest) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  uint32_t axis = 0;
  bool axes[PLN_MAX_RANK] = {false};
  bool last = pln_kernel_int(call, "select_last_index", 0) != 0;
  void *out;
  reduction r;
  int64_t at[PLN_MAX_RANK] = {0}, base = 0;
  if (!x || x->rank > PLN_MAX_RANK ||
      (x->rank &&
       !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis)))
    return pln_kernel_refuse(call, "the axis does not fit the operand");
  before_fn before = orders[x->dtype][greatest];
  if (!before)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  axes[axis] = true;
  plan(x, axes, pln_kernel_int(call, "keepdims", 1) != 0, &r);
  if (r.reduced.count == 0 && r.kept.count)
    return pln_kernel_undefined(call);
  PLN_TRY(pln_kernel_result(call, 0, PLN_INT64, r.rank, r.dims, &out));
  for (size_t i = 0; i < r.kept.count; i++) {
    ((int64_t *)out)[i] = best_index(before, last, x->data, base,
                                     r.reduced.rank ? r.reduced.steps[0] : 0,
                                     (int64_t)r.reduced.count);
    base = advance(&r.kept, at, base);
  }
  return PLN_OK;
}

pln_status pln_kernel_argmax(pln_kernel_call *call) {
  return arg_reduce(call, true);
}

pln_status pln_kernel_argmin(pln_kernel_call *call) {
  return arg_reduce(call, false);
}
