/* arg_reduce.c: argmax and argmin. Called through ops.def.
 *
 * NaN counts both as the greatest and as the smallest, the first NaN before
 * later ones; of equal elements the first is taken, or the last if asked for. A
 * contiguous run is scanned twice, for the element and then for its index; rows
 * of elements that belong to neighbouring results are scanned once. */

#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/reduce/axes.h"
#include "op/kernel/reduce/loops.h"

/* Results per block, and lanes of a vector loop. */
enum { BLOCK = 256, LANES = 16 };

/* The indices in rows of n > 0 elements, `step` elements apart. */
typedef void (*run_fn)(const void *x, size_t n, size_t rows, size_t step,
                       bool last, int64_t *places);
/* Considers n elements at index `place`; `best` has the elements so far. */
typedef void (*row_fn)(const void *x, size_t n, int64_t place, bool last,
                       void *best, int64_t *places);

typedef struct order {
  run_fn run;
  row_fn row;
} order;

#define MORE(a, b) ((a) > (b))
#define LESS(a, b) ((a) < (b))
/* Finds the best of n > 0 elements of each row, of at most a block of rows; NaN
 * if one is NaN. */
#define BEST_FLOAT(name, D, T, OVER, gather)                          \
  static void best_##name##_##D(const T *x, size_t n, size_t rows,    \
                                size_t step, T *best) {               \
    const pln_reduce_loops *loops = pln_reduce_find(gather, PLN_##D); \
    pln_reduce_accumulator all[BLOCK];                                \
    for (size_t r = 0; r < rows; r++)                                 \
      all[r] = loops->start;                                          \
    loops->runs(x, n, rows, step, all);                               \
    for (size_t r = 0; r < rows; r++)                                 \
      best[r] = (T)all[r].number;                                     \
  }
#define BEST_INT(name, D, T, OVER, gather)                         \
  static void best_##name##_##D(const T *x, size_t n, size_t rows, \
                                size_t step, T *best) {            \
    for (size_t r = 0; r < rows; r++, x += step) {                 \
      best[r] = x[0];                                              \
      for (size_t i = 1; i < n; i++)                               \
        best[r] = OVER(x[i], best[r]) ? x[i] : best[r];            \
    }                                                              \
  }

#define LOOPS(WIDE, name, D, T, OVER)                                          \
  static size_t nan_##name##_##D(const T *x, size_t n, bool last) {            \
    size_t found = 0;                                                          \
    for (size_t i = 0; i < n; i++)                                             \
      if (x[i] != x[i]) {                                                      \
        found = i;                                                             \
        if (!last)                                                             \
          break;                                                               \
      }                                                                        \
    return found;                                                              \
  }                                                                            \
  static size_t last_##name##_##D(const T *x, size_t n, T best) {              \
    size_t i = n - 1;                                                          \
    while (i > 0 && x[i] != best)                                              \
      i--;                                                                     \
    return i;                                                                  \
  }                                                                            \
  WIDE static void run_##name##_##D(const void *in, size_t n, size_t rows,     \
                                    size_t step, bool last, int64_t *places) { \
    const T *x = in;                                                           \
    T block[BLOCK];                                                            \
    best_##name##_##D(x, n, rows, step, block);                                \
    for (size_t r = 0; r < rows; r++, x += step) {                             \
      const T best = block[r];                                                 \
      size_t i = 0;                                                            \
      uint32_t hit = 0;                                                        \
      if (best != best || last) {                                              \
        i = best != best ? nan_##name##_##D(x, n, last)                        \
                         : last_##name##_##D(x, n, best);                      \
        places[r] = (int64_t)i;                                                \
        continue;                                                              \
      }                                                                        \
      for (; i + LANES <= n; i += LANES) {                                     \
        for (size_t k = 0; k < LANES; k++)                                     \
          hit |= (uint32_t)(x[i + k] == best) << k;                            \
        if (hit)                                                               \
          break;                                                               \
      }                                                                        \
      while (!hit && i + 1 < n && x[i] != best)                                \
        i++;                                                                   \
      places[r] = (int64_t)i + (hit ? __builtin_ctz(hit) : 0);                 \
    }                                                                          \
  }                                                                            \
  WIDE static void row_##name##_##D(const void *in, size_t n, int64_t place,   \
                                    bool last, void *so_far,                   \
                                    int64_t *restrict places) {                \
    const T *restrict x = in;                                                  \
    T *restrict best = so_far;                                                 \
    for (size_t i = 0; i < n; i++) {                                           \
      const T a = best[i], b = x[i];                                           \
      const bool over = OVER(b, a) | ((b != b) & (a == a));                    \
      const bool even = last & ((a == b) | (b != b));                          \
      best[i] = (over | even) ? b : a;                                         \
      places[i] = (over | even) ? place : places[i];                           \
    }                                                                          \
  }
#define PLAIN /* no multiversioning */
#define INT_LOOPS(D, T)                           \
  BEST_INT(more, D, T, MORE, PLN_REDUCE_GREATEST) \
  BEST_INT(less, D, T, LESS, PLN_REDUCE_SMALLEST) \
  LOOPS(PLAIN, more, D, T, MORE)                  \
  LOOPS(PLAIN, less, D, T, LESS)
#define FLOAT_LOOPS(D, T)                           \
  BEST_FLOAT(more, D, T, MORE, PLN_REDUCE_GREATEST) \
  BEST_FLOAT(less, D, T, LESS, PLN_REDUCE_SMALLEST) \
  LOOPS(PLN_MULTIVERSION_AVX512, more, D, T, MORE)  \
  LOOPS(PLN_MULTIVERSION_AVX512, less, D, T, LESS)
PLN_INT_TYPES(INT_LOOPS)
PLN_FLOAT_TYPES(FLOAT_LOOPS)

#define ROW(D, T) \
  [PLN_##D] = {{run_less_##D, row_less_##D}, {run_more_##D, row_more_##D}},
static const order orders[PLN_N_DTYPES][2] = {PLN_INT_TYPES(ROW)
                                                  PLN_FLOAT_TYPES(ROW)};

/* ------------------------------------------------------------------ walking */

typedef struct job {
  const pln_engine *engine;
  order order;
  bool last;
  size_t size; /* of an element */
  int64_t n;   /* elements to choose from per result */
  int64_t step;
  const char *data;
} job;

/* Computes n neighbouring results, whose first elements begin at `offset`. */
static void choose_rows(const job *j, int64_t offset, size_t n, int64_t *out) {
  uint64_t best[BLOCK];
  const char *row = j->data + offset * (int64_t)j->size;
  memcpy(best, row, n * j->size);
  memset(out, 0, n * sizeof *out);
  size_t done = 0;
  for (int64_t i = 1; i < j->n; i++) {
    if (pln_is_stopped_after(j->engine, &done, n))
      return;
    row += j->step * (int64_t)j->size;
    j->order.row(row, n, i, j->last, best, out);
  }
}

static void choose_all(const job *j, const pln_reduction *r, int64_t *out) {
  pln_loop_nest kept = r->kept;
  size_t width, step;
  int64_t at[PLN_MAX_RANK] = {0}, base = 0;
  size_t done = 0;
  pln_loop_nest_pop(&kept, &width, &step);
  for (size_t i = 0; i < kept.count; i++) {
    for (size_t c = 0; c < width; c += BLOCK) {
      size_t n = width - c < BLOCK ? width - c : BLOCK;
      int64_t offset = base + (int64_t)(c * step);
      if (pln_is_stopped_after(j->engine, &done, n * (size_t)j->n))
        return;
      if (j->step == 1)
        j->order.run(j->data + offset * (int64_t)j->size, (size_t)j->n, n, step,
                     j->last, out);
      else
        choose_rows(j, offset, n, out);
      out += n;
    }
    base = pln_loop_nest_advance(&kept, at, base);
  }
}

/* ------------------------------------------------------------------ kernels */

/* Reads the reduced axes: one, all, or a list; false if invalid. */
static bool read_arg_reduce_axis(const pln_kernel_call *call,
                                 const pln_tensor *x, bool *axes) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "axis");
  pln_list list = pln_kernel_list(call, PLN_NONE, "axis");
  uint32_t axis = 0;
  bool all = a && !list.given;
  memset(axes, all, PLN_MAX_RANK);
  axes[0] |= !a;
  for (uint32_t i = 0; i < list.count; i++) {
    if (x->rank && !pln_kernel_axis(pln_list_at(&list, i), x->rank, &axis))
      return false;
    axes[axis] = true;
  }
  return !pln_kernel_int(call, "exclude", 0);
}

/* Converts indices to int32, as in Relay. */
static pln_status as_int32(pln_kernel_call *call) {
  pln_tensor *wide = call->results[0];
  const int64_t *from = wide->data;
  void *out;
  call->results[0] = NULL;
  pln_status status =
      pln_kernel_unset(call, 0, PLN_INT32, wide->rank, wide->dims, &out);
  size_t done = 0;
  for (size_t i = 0; i < wide->count && status == PLN_OK; i++)
    if (pln_is_stopped_after(call->engine, &done, 1))
      break;
    else if (from[i] > INT32_MAX)
      status = pln_kernel_undefined(call);
    else
      ((int32_t *)out)[i] = (int32_t)from[i];
  pln_tensor_release(wide);
  return status;
}

static pln_status arg_reduce(pln_kernel_call *call, bool greatest) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool axes[PLN_MAX_RANK];
  void *out;
  pln_reduction r;
  if (!x || x->rank > PLN_MAX_RANK || !read_arg_reduce_axis(call, x, axes))
    return pln_kernel_refuse(call, "the axis does not match the operand");
  if (!orders[x->dtype][greatest].run)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  pln_reduction_plan(x, axes, pln_kernel_int(call, "keepdims", 1) != 0, &r);
  if (r.reduced.count == 0 && r.kept.count)
    return pln_kernel_undefined(call);
  if (r.reduced.rank > 1)
    return pln_kernel_refuse(call, "the axes do not lie side by side");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, r.rank, r.dims, &out));
  job j = {.engine = call->engine,
           .order = orders[x->dtype][greatest],
           .last = pln_kernel_int(call, "select_last_index", 0) != 0,
           .size = pln_element_size((pln_dtype)x->dtype),
           .n = (int64_t)r.reduced.count,
           .step = r.reduced.rank ? r.reduced.steps[0] : 0,
           .data = x->data};
  choose_all(&j, &r, out);
  bool narrow = pln_kernel_int(call, "index_dtype", PLN_INT64) == PLN_INT32;
  return narrow ? as_int32(call) : PLN_OK;
}

static pln_status argmax(pln_kernel_call *call) {
  return arg_reduce(call, true);
}

static pln_status argmin(pln_kernel_call *call) {
  return arg_reduce(call, false);
}

pln_status pln_kernel_argmax(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "", argmax);
}

pln_status pln_kernel_argmin(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "", argmin);
}
