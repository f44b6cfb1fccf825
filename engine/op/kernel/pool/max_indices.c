/* max_indices.c: the indices of the maxima that max_pool found. Called by
 * pool.c. The offsets of a window's elements are listed once for all positions
 * whose windows lie inside, and plane after plane is searched there; for each
 * other position they are listed once and shared by all planes. */

#include "op/kernel/pool/max_indices.h"

#include <math.h>

#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/pool/sliding_window.h"

/* Returns the index i for which element at[i] of the plane is the greatest of
 * n. */
typedef size_t (*best_fn)(const void *plane, const size_t *at, size_t n);

#define BEST(D, T)                                                        \
  static size_t best_##D(const void *plane, const size_t *at, size_t n) { \
    const T *x = plane;                                                   \
    size_t best = 0;                                                      \
    for (size_t i = 1; i < n; i++)                                        \
      if (x[at[i]] > x[at[best]] || x[at[best]] != x[at[best]])           \
        best = i;                                                         \
    return best;                                                          \
  }
PLN_INT_TYPES(BEST)
PLN_FLOAT_TYPES(BEST)

static best_fn find_best(pln_dtype dtype) {
#define ROW(D, T) [PLN_##D] = best_##D,
  static const best_fn by_dtype[PLN_N_DTYPES] = {PLN_INT_TYPES(ROW)
                                                     PLN_FLOAT_TYPES(ROW)};
#undef ROW
  return by_dtype[dtype];
}

/* The windows of one loop. */
enum { LANES = 64 };

/* The same for m windows, at most LANES, that begin `stride` elements apart:
 * best[j] is the index for the window j. There are no branches that depend on
 * elements, which nothing predicts. */
typedef void (*best_row_fn)(const void *first, const size_t *at, size_t n,
                            size_t stride, size_t m, uint32_t *best);

#define BEST_LANES(D, T)                                                      \
  static inline __attribute__((always_inline)) void best_lanes_##D(           \
      const T *restrict x, const size_t *at, size_t n, size_t stride,         \
      size_t m, uint32_t *restrict best) {                                    \
    T most[LANES];                                                            \
    for (size_t j = 0; j < m; j++) {                                          \
      most[j] = x[at[0] + j * stride];                                        \
      best[j] = 0;                                                            \
    }                                                                         \
    for (size_t i = 1; i < n; i++) {                                          \
      const T *from = x + at[i];                                              \
      for (size_t j = 0; j < m; j++) {                                        \
        const T now = from[j * stride], before = most[j];                     \
        const bool later = (now > before) | (before != before);               \
        best[j] = later ? (uint32_t)i : best[j];                              \
        most[j] = later ? now : before;                                       \
      }                                                                       \
    }                                                                         \
  }                                                                           \
  PLN_MULTIVERSION static void best_row_##D(                                  \
      const void *first, const size_t *at, size_t n, size_t stride, size_t m, \
      uint32_t *best) {                                                       \
    if (stride == 1)                                                          \
      best_lanes_##D(first, at, n, 1, m, best);                               \
    else if (stride == 2)                                                     \
      best_lanes_##D(first, at, n, 2, m, best);                               \
    else                                                                      \
      best_lanes_##D(first, at, n, stride, m, best);                          \
  }
PLN_INT_TYPES(BEST_LANES)
PLN_FLOAT_TYPES(BEST_LANES)

static best_row_fn find_best_row(pln_dtype dtype) {
#define ROW(D, T) [PLN_##D] = best_row_##D,
  static const best_row_fn by_dtype[PLN_N_DTYPES] = {PLN_INT_TYPES(ROW)
                                                         PLN_FLOAT_TYPES(ROW)};
#undef ROW
  return by_dtype[dtype];
}

/* The elements of the window at `position`, in order, and their indices
 * according to storage_order. */
typedef struct window {
  uint32_t space;
  bool column_major;
  pln_sliding_window axis[PLN_MAX_RANK];
  /* The positions [inside, past) along each axis have all their taps. */
  int64_t inside[PLN_MAX_RANK], past[PLN_MAX_RANK];
  size_t n;
  size_t *at, *index;
} window;

static void list_one(window *w, const int64_t *place) {
  size_t at = 0, index = 0;
  for (uint32_t i = 0; i < w->space; i++)
    at = at * (size_t)w->axis[i].in + (size_t)place[i];
  for (uint32_t i = w->space; w->column_major && i-- > 0;)
    index = index * (size_t)w->axis[i].in + (size_t)place[i];
  w->at[w->n] = at;
  w->index[w->n++] = w->column_major ? index : at;
}

static void list_window(window *w, const int64_t *position) {
  int64_t place[PLN_MAX_RANK], begin[PLN_MAX_RANK], end[PLN_MAX_RANK];
  w->n = 0;
  for (uint32_t i = 0; i < w->space; i++) {
    const pln_sliding_window *a = &w->axis[i];
    int64_t first, last, start = position[i] * a->stride - a->before;
    pln_sliding_window_taps(a, position[i], false, &first, &last);
    if (first == last)
      return;
    place[i] = begin[i] = start + first * a->dilation;
    end[i] = start + last * a->dilation;
  }
  for (;;) {
    uint32_t i = w->space;
    list_one(w, place);
    while (i > 0 && (place[i - 1] += w->axis[i - 1].dilation) >= end[i - 1]) {
      i--;
      place[i] = begin[i];
    }
    if (i == 0)
      return;
  }
}

/* ------------------------------------------------------- windows that lie
 * inside */

static bool find_inside(window *w) {
  bool some = true;
  for (uint32_t i = 0; i < w->space; i++) {
    const pln_sliding_window *a = &w->axis[i];
    int64_t room = a->in + a->before - a->reach;
    w->inside[i] = a->before > 0 ? (a->before + a->stride - 1) / a->stride : 0;
    w->past[i] = room < 0 ? 0 : room / a->stride + 1;
    w->past[i] = w->past[i] < a->out ? w->past[i] : a->out;
    some &= w->inside[i] < w->past[i];
  }
  return some;
}

static bool is_inside(const window *w, const int64_t *position) {
  for (uint32_t i = 0; i < w->space; i++)
    if (position[i] < w->inside[i] || position[i] >= w->past[i])
      return false;
  return true;
}

/* What a step along the last axis, and a position, amount to in elements of a
 * plane, in indices, and in results. */
typedef struct window_place {
  size_t at, index, out;
} window_place;

/* Of elements [0, space) of the position, the first tap. */
static window_place place_of(const window *w, const int64_t *position) {
  window_place p = {0, 0, 0};
  for (uint32_t i = 0; i < w->space; i++) {
    const pln_sliding_window *a = &w->axis[i];
    p.at = p.at * (size_t)a->in + (size_t)(position[i] * a->stride - a->before);
    p.out = p.out * (size_t)a->out + (size_t)position[i];
  }
  p.index = w->column_major ? 0 : p.at;
  for (uint32_t i = w->space; w->column_major && i-- > 0;) {
    const pln_sliding_window *a = &w->axis[i];
    p.index =
        p.index * (size_t)a->in + (size_t)(position[i] * a->stride - a->before);
  }
  return p;
}

/* The next position inside, but for the last axis. */
static bool next_row_inside(const window *w, int64_t *position) {
  for (uint32_t i = w->space - 1; i-- > 0;) {
    if (++position[i] < w->past[i])
      return true;
    position[i] = w->inside[i];
  }
  return false;
}

/* Writes the indices of a row of positions of a plane. */
static void write_row_inside(const window *w, const char *plane, size_t size,
                             best_row_fn best, const int64_t *position,
                             size_t offset, int64_t *out) {
  const uint32_t last = w->space - 1;
  window_place p = place_of(w, position);
  size_t stride = (size_t)w->axis[last].stride, step = stride;
  for (uint32_t i = 0; w->column_major && i < last; i++)
    step *= (size_t)w->axis[i].in;
  for (int64_t i = w->inside[last]; i < w->past[last]; i += LANES) {
    uint32_t found[LANES];
    size_t left = (size_t)(w->past[last] - i), m = left < LANES ? left : LANES;
    best(plane + p.at * size, w->at, w->n, stride, m, found);
    for (size_t j = 0; j < m; j++, p.index += step)
      out[p.out++] = (int64_t)(offset + p.index + w->index[found[j]]);
    p.at += m * stride;
  }
}

/* Writes the indices of the maxima of all windows that lie inside; their
 * elements are listed from the first one on. */
static void write_inside(window *w, const pln_kernel_call *call, int64_t *out) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t planes = (size_t)x->dims[0] * (size_t)x->dims[1], polled = 0;
  size_t in = pln_dims_product(x->dims, 2, x->rank), step = 1;
  size_t size = pln_element_size((pln_dtype)x->dtype);
  best_row_fn best = find_best_row((pln_dtype)x->dtype);
  list_window(w, w->inside);
  for (size_t i = w->n; i-- > 0;) {
    w->at[i] -= w->at[0];
    w->index[i] -= w->index[0];
  }
  for (uint32_t i = 0; i < w->space; i++)
    step *= (size_t)w->axis[i].out;
  for (size_t k = 0; k < planes; k++) {
    int64_t position[PLN_MAX_RANK];
    memcpy(position, w->inside, sizeof position);
    if (pln_is_stopped_after(call->engine, &polled, step * w->n))
      return;
    do
      write_row_inside(w, (const char *)x->data + k * in * size, size, best,
                       position, k * in, out + k * step);
    while (next_row_inside(w, position));
  }
}

/* ------------------------------------------------------------ other windows
 */

static bool next_position(const window *w, int64_t *position) {
  for (uint32_t i = w->space; i-- > 0;) {
    if (++position[i] < w->axis[i].out)
      return true;
    position[i] = 0;
  }
  return false;
}

/* Writes the indices of the maxima of all planes in the other windows. A window
 * without elements has index 0. */
static void write_others(window *w, const pln_tensor *x, best_fn best,
                         int64_t *out) {
  size_t planes = (size_t)x->dims[0] * (size_t)x->dims[1];
  size_t in = pln_dims_product(x->dims, 2, x->rank), step = 1, o = 0;
  size_t size = pln_element_size((pln_dtype)x->dtype);
  int64_t position[PLN_MAX_RANK] = {0};
  for (uint32_t i = 0; i < w->space; i++)
    step *= (size_t)w->axis[i].out;
  do {
    w->n = 0;
    if (!is_inside(w, position))
      list_window(w, position);
    for (size_t k = 0; k < planes && w->n; k++) {
      const char *plane = (const char *)x->data + k * in * size;
      size_t found = w->index[best(plane, w->at, w->n)];
      out[k * step + o] = (int64_t)(k * in + found);
    }
    o++;
  } while (next_position(w, position));
}

/* A window has at most as many elements as taps, and as the tensor. */
static size_t most_elements(const window *w) {
  size_t n = 1;
  for (uint32_t i = 0; i < w->space; i++) {
    const pln_sliding_window *a = &w->axis[i];
    n *= (size_t)(a->window < a->in ? a->window : a->in);
  }
  return n ? n : 1;
}

pln_status pln_pool_indices(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  window w = {.space = x->rank - 2,
              .column_major = pln_kernel_int(call, "storage_order", 0) != 0};
  void *out;
  PLN_TRY(pln_sliding_window_read(call, x, w.axis));
  PLN_TRY(pln_kernel_result(call, 1, PLN_INT64, x->rank, call->results[0]->dims,
                            &out));
  if (call->results[1]->count == 0)
    return PLN_OK;
  size_t size = 2 * most_elements(&w) * sizeof *w.at;
  w.at = pln_mem_new(call->engine, size);
  if (!w.at)
    return pln_nomem(call->engine);
  w.index = w.at + most_elements(&w);
  best_fn best = find_best((pln_dtype)x->dtype);
  if (find_inside(&w))
    write_inside(&w, call, out);
  write_others(&w, x, best, out);
  pln_mem_free(call->engine, w.at, size);
  return PLN_OK;
}
