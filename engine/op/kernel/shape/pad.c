/* pad.c: pad, center_crop_pad, trilu, reverse_sequence. Called through
 * ops.def. */

#include "op/infer/window.h"
#include "op/kernel/elementwise/convert.h"
#include "op/kernel/strided.h"

/* ---------------------------------------------------------------- inference */

static pln_status grow_axis(const pln_infer *call, const pln_list *pads,
                            uint32_t i, uint32_t n, pln_dim *dim) {
  pln_dim before = pln_list_at(pads, i), after = pln_list_at(pads, i + n);
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, before, dim));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, after, dim));
  if (PLN_DIM_IS_CONST(*dim) && *dim < 0)
    return pln_call_error(call, "an axis would have extent %lld",
                          (long long)*dim);
  return PLN_OK;
}

static pln_status grow_axes(const pln_infer *call, const pln_list *pads,
                            const pln_list *axes, pln_shape *shape) {
  uint32_t n = axes->given ? axes->count : (uint32_t)shape->rank;
  if (pads->count != 2 * n)
    return pln_call_error(call, "expected %u pads, got %u", 2 * n, pads->count);
  for (uint32_t i = 0; i < n; i++) {
    int32_t axis = (int32_t)i;
    if (axes->given)
      PLN_TRY(pln_call_axis(call, pln_list_at(axes, i), shape->rank, &axis));
    PLN_TRY(grow_axis(call, pads, i, n, &shape->dims[axis]));
  }
  return PLN_OK;
}

uint32_t pln_read_pad_widths(const pln_engine *engine, const pln_attr *a,
                             int64_t *pads) {
  uint32_t n =
      a && a->kind == PLN_ATTR_LIST ? pln_attrs_count(engine, a->v.dict) : 0;
  if (n > PLN_MAX_RANK)
    return 0;
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *pair = pln_attrs_at(engine, a->v.dict, i);
    if (pair->kind != PLN_ATTR_INTS || pair->count != 2)
      return 0;
    pads[i] = pair->v.ints[0];
    pads[i + n] = pair->v.ints[1];
  }
  return 2 * n;
}

/* Reads the attribute pad_width; false if there is none. */
static bool find_widths(const pln_engine *engine, pln_attrs attrs,
                        int64_t *pads, pln_list *out) {
  const pln_attr *a = pln_attrs_find(engine, attrs, "pad_width");
  if (!a)
    return false;
  *out = (pln_list){.given = true, .sized = true, .ints = pads};
  out->count = pln_read_pad_widths(engine, a, pads);
  return true;
}

/* The type of nn.mirror_pad, and of nn.pad in Relay's form: (data, value). */
pln_status pln_infer_mirror_pad(pln_infer *call) {
  int64_t widths[2 * PLN_MAX_RANK];
  pln_list pads, axes = {.sized = true};
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  if (!find_widths(call->engine, call->attrs, widths, &pads))
    return pln_call_error(call, "pad_width is missing");
  if (shape.rank >= 0)
    PLN_TRY(grow_axes(call, &pads, &axes, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_pad(pln_infer *call) {
  if (pln_call_has(call, "pad_width"))
    return pln_infer_mirror_pad(call);
  PLN_TRY(pln_infer_expect_integers(call, 1));
  PLN_TRY(pln_infer_expect_integers(call, 3));
  pln_list pads = pln_arg_list(call, 1, "pads");
  pln_list axes = pln_arg_list(call, 3, NULL);
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  if (!pads.given)
    return pln_call_error(call, "pads are missing");
  bool usable = pads.sized && axes.sized && pln_list_known(&axes);
  if (shape.rank >= 0 && usable)
    PLN_TRY(grow_axes(call, &pads, &axes, &shape));
  else
    pln_shape_ranked(&shape, shape.rank);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_center_crop_pad(pln_infer *call) {
  pln_list target = pln_arg_list(call, 1, NULL);
  pln_list axes = pln_arg_list(call, PLN_NONE, "axes");
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  if (shape.rank >= 0 && target.sized) {
    uint32_t n = axes.given ? axes.count : (uint32_t)shape.rank;
    if (target.count != n)
      return pln_arg_error(call, 1, "expected %u extents, got %u", n,
                           target.count);
    for (uint32_t i = 0; i < n; i++) {
      int32_t axis = (int32_t)i;
      if (axes.given)
        PLN_TRY(pln_call_axis(call, pln_list_at(&axes, i), shape.rank, &axis));
      shape.dims[axis] = pln_list_at(&target, i);
      if (PLN_DIM_IS_CONST(shape.dims[axis]) && shape.dims[axis] < 0)
        return pln_arg_error(call, 1, "extent %lld is negative",
                             (long long)shape.dims[axis]);
    }
  } else {
    pln_shape_ranked(&shape, shape.rank);
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_trilu(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, PLN_MAX_RANK));
  return pln_infer_identity_type(call);
}

pln_status pln_infer_reverse_sequence(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, PLN_MAX_RANK));
  PLN_TRY(pln_arg_expect_rank(call, 1, 1));
  return pln_infer_identity_type(call);
}

/* --------------------------------------------------------------------- pad */

/* The padding before and after each axis. */
typedef struct border {
  int64_t before[PLN_MAX_RANK], after[PLN_MAX_RANK];
  int64_t dims[PLN_MAX_RANK]; /* of the result */
} border;

static bool read_border(const pln_tensor *x, const pln_list *pads,
                        const pln_list *axes, border *out) {
  uint32_t n = axes->given ? axes->count : x->rank;
  memset(out->before, 0, sizeof out->before);
  memset(out->after, 0, sizeof out->after);
  if (x->rank > PLN_MAX_RANK || pads->count != 2 * n)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t axis = i;
    if (axes->given && !pln_kernel_axis(pln_list_at(axes, i), x->rank, &axis))
      return false;
    out->before[axis] = pln_list_at(pads, i);
    out->after[axis] = pln_list_at(pads, i + n);
  }
  return true;
}

/* Computes the dims of the result; false if one is negative or too large. */
static bool grow(const pln_tensor *x, border *b) {
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t sum;
    if (b->before[i] == INT64_MIN || b->after[i] == INT64_MIN ||
        __builtin_add_overflow(x->dims[i], b->before[i], &sum) ||
        __builtin_add_overflow(sum, b->after[i], &b->dims[i]) || b->dims[i] < 0)
      return false;
  }
  return true;
}

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Describes the part of the operand that lies inside the result as a strided
 * view from *from to *to; false if there is none. */
static bool inner_view(const pln_tensor *x, const border *b, pln_strided *view,
                       int64_t *to, int64_t *from) {
  *to = *from = 0;
  view->rank = x->rank;
  pln_dense_strides(x->rank, b->dims, view->to);
  pln_dense_strides(x->rank, x->dims, view->from);
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t cut = most(0, -b->before[i]);
    view->dims[i] = x->dims[i] - cut - most(0, -b->after[i]);
    if (view->dims[i] <= 0)
      return false;
    *to += most(0, b->before[i]) * view->to[i];
    *from += cut * view->from[i];
  }
  return true;
}

static pln_status pad_constant(pln_kernel_call *call, const border *b,
                               const void *element) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  static const char zero[16];
  pln_strided view;
  pln_strided_result moved;
  int64_t to, from;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   b->dims, &moved));
  pln_fill(call->engine, moved.data, moved.count, element ? element : zero,
           moved.size);
  int64_t size = (int64_t)moved.size;
  if (moved.count && x->count && inner_view(x, b, &view, &to, &from))
    pln_strided_copy(call->engine, (char *)moved.data + to * size,
                     (const char *)x->data + from * size, moved.size, &view);
  return pln_strided_result_end(&moved, PLN_OK);
}

/* SYMMETRIC repeats the outermost element, REFLECT does not. */
typedef enum edge { EDGE, REFLECT, SYMMETRIC, WRAP } edge;

/* Returns the index of the element that is copied to position `at`, which may
 * lie outside of the operand. */
static int64_t inside(edge how, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent)
    return at;
  if (how == EDGE || extent == 1)
    return at < 0 ? 0 : extent - 1;
  int64_t period = how == SYMMETRIC ? 2 * extent : 2 * (extent - 1);
  int64_t rest = at % period;
  rest += rest < 0 ? period : 0;
  return rest < extent ? rest : period - rest - (how == SYMMETRIC);
}

/* WRAP: what a negative width cuts off is not repeated. */
static int64_t wrapped(int64_t at, int64_t low, int64_t n) {
  int64_t rest = (at - low) % n;
  return low + rest + (rest < 0 ? n : 0);
}

/* Copies n elements of a row of the operand, at the offsets in `map`. */
#define TAKE(type)                                                \
  do {                                                            \
    for (int64_t k = 0; k < n; k++)                               \
      memcpy(to + k * (int64_t)sizeof(type),                      \
             row + map[k] * (int64_t)sizeof(type), sizeof(type)); \
  } while (0)
static void copy_mapped_row(char *to, const char *row, const int64_t *map,
                            int64_t n, size_t size) {
  switch (size) {
  case 4: TAKE(uint32_t); break;
  case 8: TAKE(uint64_t); break;
  default:
    for (int64_t k = 0; k < n; k++)
      memcpy(to + k * (int64_t)size, row + map[k] * (int64_t)size, size);
  }
}

/* Finds the range of the last axis that is copied contiguously from the
 * operand. */
static void find_middle(const pln_tensor *x, const border *b, int64_t *begin,
                        int64_t *end) {
  uint32_t last = x->rank - 1;
  int64_t extent = b->dims[last], stop = b->before[last] + x->dims[last];
  *begin = b->before[last] < 0        ? 0
           : b->before[last] > extent ? extent
                                      : b->before[last];
  *end = stop > extent ? extent : stop < *begin ? *begin : stop;
}

/* Copies row by row. `maps` lists, axis after axis, the offsets of the
 * operand's elements. */
static void pad_mapped(const pln_tensor *x, const border *b, size_t size,
                       const int64_t *maps, char *to) {
  int64_t at[PLN_MAX_RANK] = {0}, begin, end;
  const int64_t *map[PLN_MAX_RANK];
  uint32_t last = x->rank - 1;
  find_middle(x, b, &begin, &end);
  for (uint32_t i = 0; i < x->rank; i++) {
    map[i] = maps;
    maps += b->dims[i];
  }
  size_t rows = pln_dims_product(b->dims, 0, last);
  for (size_t r = 0; r < rows; r++, to += (size_t)b->dims[last] * size) {
    const char *row = x->data;
    for (uint32_t i = 0; i < last; i++)
      row += (size_t)map[i][at[i]] * size;
    copy_mapped_row(to, row, map[last], begin, size);
    if (end > begin)
      memcpy(to + (size_t)begin * size, row + (size_t)map[last][begin] * size,
             (size_t)(end - begin) * size);
    copy_mapped_row(to + (size_t)end * size, row, map[last] + end,
                    b->dims[last] - end, size);
    for (uint32_t i = last; i-- > 0;) {
      if (++at[i] < b->dims[i])
        break;
      at[i] = 0;
    }
  }
}

/* The positions [low, low + n) of axis `i` that are left. */
static int64_t n_left(const pln_tensor *x, const border *b, uint32_t i,
                      int64_t *low) {
  *low = most(0, -b->before[i]);
  return x->dims[i] - most(0, -b->after[i]) - *low;
}

static bool leaves_nothing(const pln_tensor *x, const border *b) {
  int64_t low;
  for (uint32_t i = 0; i < x->rank; i++)
    if (n_left(x, b, i, &low) <= 0)
      return true;
  return false;
}

static void make_maps(const pln_tensor *x, const border *b, edge how,
                      int64_t *maps) {
  int64_t steps[PLN_MAX_RANK], low;
  pln_dense_strides(x->rank, x->dims, steps);
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t n = n_left(x, b, i, &low);
    for (int64_t k = 0; k < b->dims[i]; k++) {
      int64_t at = k - b->before[i];
      *maps++ = steps[i] * (how == WRAP ? wrapped(at, low, n)
                                        : inside(how, at, x->dims[i]));
    }
  }
}

static pln_status pad_around(pln_kernel_call *call, const border *b, edge how) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_strided_result moved;
  size_t n = 0;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   b->dims, &moved));
  if (moved.count == 0)
    return pln_strided_result_end(&moved, PLN_OK);
  if (x->count == 0 || (how == WRAP && leaves_nothing(x, b)))
    return pln_strided_result_end(
        &moved, pln_kernel_refuse(call, "the tensor to pad is empty"));
  for (uint32_t i = 0; i < x->rank; i++)
    n += (size_t)b->dims[i];
  int64_t *maps = pln_mem_new(call->engine, n * sizeof *maps);
  if (!maps && n)
    return pln_strided_result_end(&moved, pln_nomem(call->engine));
  make_maps(x, b, how, maps);
  if (x->rank == 0)
    memcpy(moved.data, x->data, moved.size);
  else
    pad_mapped(x, b, moved.size, maps, moved.data);
  pln_mem_free(call->engine, maps, n * sizeof *maps);
  return pln_strided_result_end(&moved, PLN_OK);
}

/* Returns the padding element, or NULL. A value of another dtype, as the float
 * of the attribute, is converted to the operand's in *store. */
static const void *pad_element(const pln_kernel_call *call, bool relay,
                               uint64_t *store) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *v = pln_kernel_arg(call, relay ? 1 : 2);
  double value = pln_kernel_float(call, "value", 0);
  pln_conversion c = {.from = v ? (pln_dtype)v->dtype : PLN_FLOAT64,
                      .to = (pln_dtype)x->dtype};
  if (v && v->count != 1)
    return NULL;
  if (v && v->dtype == x->dtype)
    return v->data;
  if (!v && value == 0)
    return store;
  if (!pln_convertible(c.from) || !pln_convertible(c.to))
    return NULL;
  return pln_convert(&c, v ? v->data : &value, 1, store) == PLN_CONVERTED
             ? store
             : NULL;
}

pln_status pln_kernel_pad(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t widths[2 * PLN_MAX_RANK];
  pln_list pads, axes = pln_kernel_list(call, 3, NULL);
  uint64_t store[2] = {0, 0};
  border b;
  bool relay = find_widths(call->engine, call->attrs, widths, &pads);
  if (!relay)
    pads = pln_kernel_list(call, 1, "pads");
  if (!read_border(x, &pads, &axes, &b) || !grow(x, &b))
    return pln_kernel_refuse(call, "the pads do not match the operand");
  if (pln_kernel_string_is(call, "pad_mode", "constant", "edge"))
    return pad_around(call, &b, EDGE);
  if (pln_kernel_string_is(call, "pad_mode", "constant", "reflect"))
    return pad_around(call, &b, REFLECT);
  if (pln_kernel_string_is(call, "pad_mode", "constant", "wrap"))
    return pad_around(call, &b, WRAP);
  const void *element = pad_element(call, relay, store);
  if (!element ||
      !pln_kernel_string_is(call, "pad_mode", "constant", "constant"))
    return pln_kernel_refuse(call, "this mode or value is not implemented");
  return pad_constant(call, &b, element);
}

/* Returns true if no border is wider than what it mirrors. */
static bool mirrors(const pln_tensor *x, const border *b, bool symmetric) {
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t width = most(b->before[i], b->after[i]);
    if (width > 0 && width > x->dims[i] - !symmetric)
      return false;
  }
  return true;
}

pln_status pln_kernel_mirror_pad(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t widths[2 * PLN_MAX_RANK];
  pln_list pads, axes = {.sized = true};
  bool symmetric = pln_kernel_string_is(call, "mode", "SYMMETRIC", "SYMMETRIC");
  border b;
  if (!symmetric && !pln_kernel_string_is(call, "mode", "", "REFLECT"))
    return pln_kernel_refuse(call, "this mode is not implemented");
  if (!find_widths(call->engine, call->attrs, widths, &pads) ||
      !read_border(x, &pads, &axes, &b) || !grow(x, &b) ||
      !mirrors(x, &b, symmetric))
    return pln_kernel_refuse(call, "the widths do not match the operand");
  return pad_around(call, &b, symmetric ? SYMMETRIC : REFLECT);
}

/* ----------------------------------------------------------- center_crop_pad
 */

pln_status pln_kernel_center_crop_pad(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list target = pln_kernel_list(call, 1, NULL);
  pln_list axes = pln_kernel_list(call, PLN_NONE, "axes");
  border b = {.before = {0}};
  uint32_t n = axes.given ? axes.count : x->rank;
  if (x->rank > PLN_MAX_RANK || target.count != n)
    return pln_kernel_refuse(call, "the shape does not match the operand");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t axis = i;
    int64_t extent = pln_list_at(&target, i);
    if (extent < 0 ||
        (axes.given && !pln_kernel_axis(pln_list_at(&axes, i), x->rank, &axis)))
      return pln_kernel_refuse(call, "the shape does not match the operand");
    int64_t more = extent - x->dims[axis];
    b.before[axis] = more / 2;
    b.after[axis] = more - more / 2;
  }
  if (!grow(x, &b))
    return pln_kernel_refuse(call, "the result is too large");
  return pad_constant(call, &b, NULL);
}

/* -------------------------------------------------------------------- trilu */

/* Finds the columns [*from, *to) of a row that are kept. */
static void kept_columns(bool upper, int64_t row, int64_t k, int64_t columns,
                         int64_t *from, int64_t *to) {
  int64_t edge_at;
  if (__builtin_add_overflow(row, k, &edge_at))
    edge_at = k < 0 ? -1 : columns;
  if (!upper && edge_at < columns)
    edge_at++; /* the diagonal itself is kept on both sides */
  edge_at = edge_at < 0 ? 0 : edge_at > columns ? columns : edge_at;
  *from = upper ? edge_at : 0;
  *to = upper ? columns : edge_at;
}

pln_status pln_kernel_trilu(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, NULL);
  bool upper = pln_kernel_int(call, "upper", 1) != 0;
  int64_t k = list.count ? pln_list_at(&list, 0) : 0;
  size_t size = pln_element_size((pln_dtype)x->dtype);
  void *data;
  if (size == 0 || x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2)
    return pln_kernel_refuse(call, "a matrix is expected");
  PLN_TRY(
      pln_kernel_result(call, 0, (pln_dtype)x->dtype, x->rank, x->dims, &data));
  int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  size_t all = x->count ? x->count / (size_t)columns : 0, done = 0;
  for (size_t r = 0; r < all; r++) {
    PLN_TRY(pln_poll_after(call->engine, &done, (size_t)columns));
    int64_t from, to;
    kept_columns(upper, (int64_t)(r % (size_t)rows), k, columns, &from, &to);
    size_t at = (r * (size_t)columns + (size_t)from) * size;
    if (to > from)
      memcpy((char *)data + at, (const char *)x->data + at,
             (size_t)(to - from) * size);
  }
  return PLN_OK;
}

/* --------------------------------------------------------- reverse_sequence */

pln_status pln_kernel_reverse_sequence(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *n = pln_kernel_arg(call, 1);
  int64_t batch_axis = pln_kernel_int(call, "batch_axis", 1);
  int64_t time_axis = pln_kernel_int(call, "time_axis", 0);
  if (x->rank < 2 || batch_axis + time_axis != 1 || batch_axis < 0 ||
      time_axis < 0 || n->rank != 1 || n->dims[0] != x->dims[batch_axis])
    return pln_kernel_refuse(call, "the lengths do not match the operand");
  pln_strided_result moved;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   x->dims, &moved));
  size_t inner = pln_dims_product(x->dims, 2, x->rank) * moved.size;
  size_t steps[2] = {(size_t)x->dims[1] * inner, inner};
  for (int64_t b = 0; b < x->dims[batch_axis] && x->count; b++) {
    int64_t length;
    if (!pln_tensor_int(n, (size_t)b, &length) || length < 0 ||
        length > x->dims[time_axis])
      return pln_strided_result_end(&moved, pln_kernel_undefined(call));
    for (int64_t t = 0; t < x->dims[time_axis]; t++) {
      int64_t source = t < length ? length - 1 - t : t;
      size_t base = (size_t)b * steps[batch_axis];
      memcpy((char *)moved.data + base + (size_t)t * steps[time_axis],
             (const char *)x->data + base + (size_t)source * steps[time_axis],
             inner);
    }
  }
  return pln_strided_result_end(&moved, PLN_OK);
}
