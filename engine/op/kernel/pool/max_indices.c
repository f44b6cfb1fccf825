/* max_indices.c: the indices of the maxima that max_pool found. Called by
 * pool.c. The offsets of a window's elements are listed once per position and
 * shared by all planes. */

#include "op/kernel/pool/max_indices.h"

#include <math.h>

#include "op/kernel/elementwise/elementwise.h"
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

/* The elements of the window at `position`, in order, and their indices
 * according to storage_order. */
typedef struct window {
  uint32_t space;
  bool column_major;
  pln_sliding_window axis[PLN_MAX_RANK];
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

static bool next_position(const window *w, int64_t *position) {
  for (uint32_t i = w->space; i-- > 0;) {
    if (++position[i] < w->axis[i].out)
      return true;
    position[i] = 0;
  }
  return false;
}

/* Writes the indices of the maxima of all planes. A window without elements has
 * index 0. */
static void write_indices(window *w, const pln_tensor *x, best_fn best,
                          int64_t *out) {
  size_t planes = (size_t)x->dims[0] * (size_t)x->dims[1];
  size_t in = pln_dims_product(x->dims, 2, x->rank), step = 1, o = 0;
  size_t size = pln_element_size((pln_dtype)x->dtype);
  int64_t position[PLN_MAX_RANK] = {0};
  for (uint32_t i = 0; i < w->space; i++)
    step *= (size_t)w->axis[i].out;
  do {
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
  write_indices(&w, x, find_best((pln_dtype)x->dtype), out);
  pln_mem_free(call->engine, w.at, size);
  return PLN_OK;
}
