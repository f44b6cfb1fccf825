/* unique.c: unique: the distinct elements of a tensor, or the distinct slices
 * along an axis. Called through ops.def.
 *
 * Elements are mapped to unsigned keys with the same order and equality, so
 * that one sort serves all dtypes. NaN comes last and equals NaN; -0 equals 0.
 * Slices are ordered lexicographically. */

#include "op/kernel/strided.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* ---------------------------------------------------------------- inference */

/* Relay's form has results as long as the operand; the fourth is the number of
 * elements that count. */
static pln_status infer_relay_unique(pln_infer *call) {
  pln_shape one = {.rank = 1, .dims = {1}};
  uint32_t n = pln_call_n_results(call);
  pln_result_like(call, 0, 0);
  for (uint32_t i = 1; i < n; i++)
    if (i != 3)
      PLN_TRY(pln_result_shaped_like(call, i, 0, PLN_INT32));
  return pln_result_tensor(call, 3, PLN_INT32, &one);
}

pln_status pln_infer_unique(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return infer_relay_unique(call);
  pln_shape shape, list = {.rank = 1, .dims = {PLN_DIM_UNKNOWN}};
  int32_t axis;
  pln_arg_shape(call, 0, &shape);
  if (!pln_call_has(call, "axis")) {
    shape = list;
  } else if (shape.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
    shape.dims[axis] = PLN_DIM_UNKNOWN;
  }
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape));
  for (uint32_t i = 1; i < 4; i++)
    PLN_TRY(pln_result_tensor(call, i, PLN_INT64, &list));
  return PLN_OK;
}

/* ------------------------------------------------------------------ sorting */

/* Compares rows `a` and `b`: negative, 0 or positive. */
typedef int (*compare_fn)(const void *rows, size_t a, size_t b);

/* Merges the two sorted halves of [begin, end), which meet at `middle`. */
static void merge(compare_fn compare, const void *rows, const size_t *from,
                  size_t begin, size_t middle, size_t end, size_t *to) {
  size_t a = begin, b = middle;
  for (size_t i = begin; i < end; i++)
    if (b == end || (a < middle && compare(rows, from[a], from[b]) <= 0))
      to[i] = from[a++];
    else
      to[i] = from[b++];
}

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

static void number_rows(size_t *order, size_t n) {
  for (size_t i = 0; i < n; i++)
    order[i] = i;
}

/* Merge sort of the numbers of rows [0, n), stable. Returns `order` or `spare`,
 * both of which are overwritten; after a stop request rows in any order. */
static size_t *sort_rows(const pln_engine *engine, compare_fn compare,
                         const void *rows, size_t n, size_t *order,
                         size_t *spare) {
  number_rows(order, n);
  size_t done = 0;
  for (size_t run = 1; run < n; run *= 2) {
    for (size_t at = 0; at < n; at += 2 * run) {
      if (pln_is_stopped_after(engine, &done, 8 * run)) {
        number_rows(order, n);
        return order;
      }
      merge(compare, rows, order, at, min_size(at + run, n),
            min_size(at + 2 * run, n), spare);
    }
    size_t *swap = order;
    order = spare;
    spare = swap;
  }
  return order;
}

/* --------------------------------------------------------------------- keys */

static int compare_strings(const void *strings, size_t a, size_t b) {
  const pln_slice *x = (const pln_slice *)strings + a;
  const pln_slice *y = (const pln_slice *)strings + b;
  size_t n = min_size(x->size, y->size);
  int first = n ? memcmp(x->data, y->data, n) : 0;
  return first ? first : (x->size > y->size) - (x->size < y->size);
}

/* Computes the keys of strings: the rank of each among the distinct ones. */
static void rank_strings(const pln_tensor *x, uint64_t *keys, size_t *order,
                         size_t *spare) {
  uint64_t rank = 0;
  order =
      sort_rows(x->engine, compare_strings, x->data, x->count, order, spare);
  for (size_t i = 0; i < x->count; i++) {
    rank += i && compare_strings(x->data, order[i - 1], order[i]) != 0;
    keys[order[i]] = rank;
  }
}

/* Returns the bits of an element of `size` bytes. */
static uint64_t bits_at(const pln_tensor *x, size_t i, size_t size) {
  uint8_t one;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  const char *at = (const char *)x->data + i * size;
  switch (size) {
  case 1: return memcpy(&one, at, 1), one;
  case 2: return memcpy(&two, at, 2), two;
  case 4: return memcpy(&four, at, 4), four;
  }
  return memcpy(&eight, at, 8), eight;
}

/* Returns the bits of infinity; 0 for dtypes that are no floats. */
static uint64_t infinity_of(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_FLOAT64: return 0x7ff0000000000000u;
  case PLN_FLOAT32: return 0x7f800000u;
  case PLN_FLOAT16: return 0x7c00u;
  case PLN_BFLOAT16: return 0x7f80u;
  }
  return 0;
}

static bool is_signed(pln_dtype dtype) {
  return dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
         dtype == PLN_INT64;
}

static bool has_order(pln_dtype dtype) {
  return infinity_of(dtype) || is_signed(dtype) || dtype == PLN_BOOL ||
         dtype == PLN_UINT8 || dtype == PLN_UINT16 || dtype == PLN_UINT32 ||
         dtype == PLN_UINT64 || dtype == PLN_STRING;
}

static void number_keys(const pln_tensor *x, uint64_t *keys) {
  size_t size = pln_element_size((pln_dtype)x->dtype);
  uint64_t top = (uint64_t)1 << (size * 8 - 1);
  uint64_t flip = is_signed((pln_dtype)x->dtype) ? top : 0;
  uint64_t infinity = infinity_of((pln_dtype)x->dtype);
  for (size_t i = 0; i < x->count; i++) {
    uint64_t bits = bits_at(x, i, size);
    if (!infinity)
      keys[i] = bits ^ flip;
    else if ((bits & (top - 1)) > infinity)
      keys[i] = UINT64_MAX;
    else
      keys[i] = bits & top ? top - (bits & (top - 1)) : top + bits;
  }
}

/* ------------------------------------------------------------------- slices */

/* Slices of a tensor of outer x n x inner elements. */
typedef struct slices {
  const uint64_t *keys;
  size_t outer, n, inner;
} slices;

static int compare_slices(const void *rows, size_t a, size_t b) {
  const slices *s = rows;
  for (size_t o = 0; o < s->outer; o++) {
    const uint64_t *x = s->keys + (o * s->n + a) * s->inner;
    const uint64_t *y = s->keys + (o * s->n + b) * s->inner;
    for (size_t i = 0; i < s->inner; i++)
      if (x[i] != y[i])
        return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

/* Groups of equal slices. Arrays have room for all slices. */
typedef struct groups {
  size_t count;
  size_t *of;    /* the group of each slice */
  size_t *first; /* the first slice of each group */
} groups;

/* Numbers the groups in sorted order. */
static void find_groups(const slices *s, const size_t *order, groups *g) {
  g->count = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (i == 0 || compare_slices(s, order[i - 1], order[i]) != 0)
      g->first[g->count++] = order[i];
    g->of[order[i]] = g->count - 1;
  }
}

/* Renumbers the groups by their first slices. `number` is scratch. */
static void reorder_groups(size_t n, groups *g, size_t *number) {
  size_t next = 0;
  for (size_t i = 0; i < n; i++)
    if (g->first[g->of[i]] == i)
      number[g->of[i]] = next++;
  next = 0;
  for (size_t i = 0; i < n; i++) {
    g->of[i] = number[g->of[i]];
    if (g->of[i] == next)
      g->first[next++] = i;
  }
}

/* ------------------------------------------------------------------ results */

static pln_status put_slices(pln_kernel_call *call, const slices *s,
                             const groups *g, uint32_t rank, int64_t *dims,
                             uint32_t axis) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_strided_result moved;
  dims[axis] = (int64_t)g->count;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, rank, dims,
                                   &moved));
  size_t run = s->inner * moved.size;
  char *to = moved.data;
  for (size_t o = 0; o < s->outer && moved.count; o++)
    for (size_t i = 0; i < g->count; i++, to += run)
      memcpy(to, (const char *)x->data + (o * s->n + g->first[i]) * run, run);
  return pln_strided_result_end(&moved, PLN_OK);
}

/* Makes results 1 to 3: the first slice of each group, the group of each slice,
 * the size of each group. */
static pln_status put_indices(pln_kernel_call *call, const groups *g,
                              size_t n) {
  int64_t *lists[4] = {NULL},
          sizes[] = {0, (int64_t)g->count, (int64_t)n, (int64_t)g->count};
  for (uint32_t i = 1; i < call->n_results && i < 4; i++) {
    void *data;
    PLN_TRY(pln_kernel_result(call, i, PLN_INT64, 1, &sizes[i], &data));
    lists[i] = data;
  }
  for (size_t i = 0; i < g->count && lists[1]; i++)
    lists[1][i] = (int64_t)g->first[i];
  for (size_t i = 0; i < n && lists[2]; i++)
    lists[2][i] = (int64_t)g->of[i];
  for (size_t i = 0; i < n && lists[3]; i++)
    lists[3][g->of[i]]++;
  return PLN_OK;
}

/* `memory`: keys of all elements, then four times `room` numbers. */
static pln_status put_unique(pln_kernel_call *call, slices *s, uint64_t *memory,
                             size_t room, uint32_t axis, uint32_t rank,
                             int64_t *dims) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t *order = (size_t *)(void *)(memory + x->count), *spare = order + room;
  groups g = {.of = spare + room, .first = spare + 2 * room};
  s->keys = memory;
  if (x->dtype == PLN_STRING)
    rank_strings(x, memory, order, spare);
  else
    number_keys(x, memory);
  order = sort_rows(x->engine, compare_slices, s, s->n, order, spare);
  find_groups(s, order, &g);
  if (!pln_kernel_int(call, "sorted", 1))
    reorder_groups(s->n, &g, order);
  PLN_TRY(put_slices(call, s, &g, rank, dims, axis));
  return put_indices(call, &g, s->n);
}

/* Reads the slices along the axis. Without an axis the operand is flattened. */
static pln_status read_slices(const pln_kernel_call *call, slices *s,
                              uint32_t *axis, uint32_t *rank, int64_t *dims) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool flat = !pln_attrs_find(call->engine, call->attrs, "axis");
  int64_t at = pln_kernel_int(call, "axis", 0), count = (int64_t)x->count;
  if (!has_order((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  *rank = flat ? 1 : x->rank;
  *axis = 0;
  if (*rank > PLN_MAX_RANK || (!flat && !pln_kernel_axis(at, *rank, axis)))
    return pln_kernel_refuse(call, "axis %lld is outside of the operand",
                             (long long)at);
  memcpy(dims, flat ? &count : x->dims, *rank * sizeof *dims);
  s->outer = pln_dims_product(dims, 0, *axis);
  s->n = (size_t)dims[*axis];
  s->inner = pln_dims_product(dims, *axis + 1, *rank);
  return PLN_OK;
}

pln_status pln_kernel_unique(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return pln_kernel_relay_unique(call);
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  uint32_t axis = 0, rank = 0;
  slices s = {0};
  size_t bytes;
  PLN_TRY(read_slices(call, &s, &axis, &rank, dims));
  size_t room = x->dtype == PLN_STRING && x->count > s.n ? x->count : s.n;
  if (__builtin_mul_overflow(room, 4 * sizeof *s.keys, &bytes) ||
      __builtin_add_overflow(bytes, x->count * sizeof *s.keys, &bytes) ||
      bytes > SIZE_MAX - sizeof *s.keys)
    return pln_nomem(call->engine);
  bytes += sizeof *s.keys; /* not 0, also for an empty operand */
  uint64_t *memory = pln_mem_new(call->engine, bytes);
  if (!memory)
    return pln_nomem(call->engine);
  pln_status status = put_unique(call, &s, memory, room, axis, rank, dims);
  pln_mem_free(call->engine, memory, bytes);
  return status;
}
