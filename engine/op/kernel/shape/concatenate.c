/* concatenate.c: concatenate, split, tile and broadcast_to. Called through
 * ops.def. */

#include "base/thread/thread_pool.h"
#include "op/kernel/strided.h"

/* -------------------------------------------------------------- concatenate */

static pln_status join_shape(const pln_infer *call, uint32_t i, int32_t axis,
                             pln_shape *all) {
  pln_shape one;
  pln_arg_shape(call, i, &one);
  if (one.rank < 0) {
    all->dims[axis] = PLN_DIM_UNKNOWN;
    return PLN_OK;
  }
  if (one.rank != all->rank)
    return pln_arg_error(call, i, "expected rank %d, got %d", all->rank,
                         one.rank);
  for (int32_t k = 0; k < one.rank; k++)
    if (k == axis)
      PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, all->dims[k], one.dims[k],
                            &all->dims[k]));
    else
      PLN_TRY(pln_infer_same_dim(call, i, &all->dims[k], one.dims[k]));
  return PLN_OK;
}

/* Returns the rank of the first operand whose rank is known, or -1. */
static int32_t any_rank(const pln_infer *call) {
  for (uint32_t i = 0; i < call->n_args; i++)
    if (pln_arg_rank(call, i) >= 0)
      return pln_arg_rank(call, i);
  return -1;
}

static pln_status join_values(pln_infer *call) {
  pln_dim elements[PLN_VALUE_MAX];
  uint32_t n = 0;
  for (uint32_t i = 0; i < call->n_args; i++) {
    pln_value value = pln_arg_value(call, i);
    pln_list list = pln_arg_list(call, i, NULL);
    if (!list.sized || list.count > PLN_VALUE_MAX - n)
      return PLN_OK;
    for (uint32_t k = 0; k < list.count; k++)
      elements[n++] =
          value ? pln_value_elements(call->engine, value)[k] : PLN_DIM_UNKNOWN;
  }
  return pln_infer_set_value(call, 1, n, elements);
}

static pln_status infer_joined(pln_infer *call) {
  pln_dtype dtype;
  int32_t axis;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_shape_ranked(&shape, any_rank(call));
  if (shape.rank < 0)
    return pln_result_tensor(call, 0, dtype, &shape);
  if (shape.rank == 0)
    return pln_call_error(call, "scalars cannot be joined");
  PLN_TRY(
      pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
  shape.dims[axis] = 0;
  for (uint32_t i = 0; i < call->n_args; i++)
    PLN_TRY(join_shape(call, i, axis, &shape));
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  return shape.rank == 1 ? join_values(call) : PLN_OK;
}

pln_status pln_infer_concatenate(pln_infer *call) {
  return pln_infer_spread(call, infer_joined);
}

/* Computes the dims of the result; false if the operands do not fit
 * together. */
static bool joined_dims(const pln_kernel_call *call, uint32_t axis,
                        int64_t *dims) {
  const pln_tensor *first = call->args[0];
  memcpy(dims, first->dims, first->rank * sizeof *dims);
  for (uint32_t i = 1; i < call->n_args; i++) {
    const pln_tensor *t = call->args[i];
    if (!t || t->rank != first->rank || t->dtype != first->dtype)
      return false;
    for (uint32_t k = 0; k < t->rank; k++)
      if (k != axis && t->dims[k] != dims[k])
        return false;
    if (__builtin_add_overflow(dims[axis], t->dims[axis], &dims[axis]))
      return false;
  }
  return true;
}

/* A concatenation: threads share the rows of all operands. */
typedef struct joining {
  const pln_kernel_call *call;
  uint32_t axis;
  size_t rows, inner, row; /* inner: bytes inside of the axis; row: of a row of
                              the result */
  char *to;
} joining;

/* Copies rows [begin, end) of operand `i` to where they begin, `to`. */
static void join_rows(const joining *j, uint32_t i, size_t begin, size_t end,
                      char *to) {
  size_t run = (size_t)j->call->args[i]->dims[j->axis] * j->inner, done = 0;
  const char *from = j->call->args[i]->data;
  for (size_t r = begin; r < end && run; r++) {
    if (pln_is_stopped_after(j->call->engine, &done, 1 + run / 8))
      return;
    pln_copy_run(j->call->engine, to + r * j->row, from + r * run, run);
  }
}

/* Rows are counted operand by operand. */
static void join_range(void *ud, size_t begin, size_t end) {
  const joining *j = ud;
  char *to = j->to;
  for (uint32_t i = 0; i < j->call->n_args; i++) {
    size_t first = i * j->rows, last = first + j->rows;
    if (begin < last && first < end)
      join_rows(j, i, begin > first ? begin - first : 0,
                (end < last ? end : last) - first, to);
    to += (size_t)j->call->args[i]->dims[j->axis] * j->inner;
  }
}

/* The bytes that pay for another thread. */
enum { SHARED_WORK = 1 << 18 };

pln_status pln_kernel_concatenate(pln_kernel_call *call) {
  const pln_tensor *first = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  uint32_t axis;
  pln_strided_result moved;
  if (!first || first->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), first->rank, &axis) ||
      !joined_dims(call, axis, dims))
    return pln_kernel_refuse(call, "operands do not match each other");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)first->dtype,
                                   first->rank, dims, &moved));
  size_t inner = pln_dims_product(dims, axis + 1, first->rank) * moved.size;
  joining j = {.call = call,
               .axis = axis,
               .rows = pln_dims_product(dims, 0, axis),
               .inner = inner,
               .row = (size_t)dims[axis] * inner,
               .to = moved.data};
  if (moved.count)
    pln_parallel_ranges(call->engine, j.rows * call->n_args,
                        1 + SHARED_WORK / (j.row / call->n_args + 16),
                        join_range, &j);
  return pln_strided_result_end(&moved, PLN_OK);
}

/* -------------------------------------------------------------------- stack */

static pln_status infer_stacked(pln_infer *call) {
  pln_dtype dtype;
  int32_t axis;
  pln_shape all, out, one;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_shape_ranked(&all, any_rank(call));
  for (uint32_t i = 0; all.rank >= 0 && i < call->n_args; i++) {
    pln_arg_shape(call, i, &one);
    if (one.rank >= 0)
      PLN_TRY(pln_arg_expect_rank(call, i, all.rank));
    for (int32_t k = 0; k < one.rank; k++)
      PLN_TRY(pln_infer_same_dim(call, i, &all.dims[k], one.dims[k]));
  }
  pln_shape_ranked(&out, all.rank < 0 ? -1 : (int64_t)all.rank + 1);
  if (out.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), out.rank, &axis));
    for (int32_t i = 0; i < out.rank; i++)
      out.dims[i] =
          i == axis ? (pln_dim)call->n_args : all.dims[i - (i > axis)];
  }
  return pln_result_tensor(call, 0, dtype, &out);
}

pln_status pln_infer_stack(pln_infer *call) {
  return pln_infer_spread(call, infer_stacked);
}

/* -------------------------------------------------------------------- split */

/* Returns the extent of part `i` of `n` equal ones; the last is smaller if `n`
 * does not divide the extent. */
static int64_t equal_part(int64_t extent, uint32_t n, uint32_t i) {
  int64_t part = extent / n + (extent % n != 0);
  int64_t begin = part * i;
  return begin >= extent ? 0 : extent - begin < part ? extent - begin : part;
}

static pln_status part_dim(const pln_infer *call, const pln_list *list,
                           pln_dim extent, uint32_t n, uint32_t i,
                           pln_dim *out) {
  if (list->given) {
    *out = pln_list_at(list, i);
    return PLN_OK;
  }
  if (PLN_DIM_IS_CONST(extent)) {
    *out = equal_part(extent, n, i);
    return PLN_OK;
  }
  *out = PLN_DIM_UNKNOWN;
  pln_dim rest;
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORMOD, extent, n, &rest));
  return rest == 0 ? pln_infer_dim(call, PLN_DIM_FLOORDIV, extent, n, out)
                   : PLN_OK;
}

static pln_status check_parts(const pln_infer *call, const pln_list *list,
                              uint32_t n, pln_dim extent) {
  pln_dim sum = 0;
  if (!list->given || !list->sized)
    return PLN_OK;
  if (list->count != n)
    return pln_call_error(call, "%u parts are given for %u results",
                          list->count, n);
  if (!PLN_DIM_IS_CONST(extent) || !pln_list_known(list))
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++) {
    if (pln_list_at(list, i) < 0)
      return pln_call_error(call, "part %u is negative", i);
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, sum, pln_list_at(list, i), &sum));
  }
  if (sum == extent)
    return PLN_OK;
  return pln_call_error(call, "the parts do not make an extent of %lld",
                        (long long)extent);
}

/* Computes the extents of the parts in Relay's form, from the bounds between
 * them, or from their number, which must divide the extent. False if
 * invalid. */
static bool relay_parts(const pln_list *bounds, pln_dim extent, uint32_t n,
                        pln_dim *parts) {
  pln_dim begin = 0;
  if (!bounds->ints || bounds->count + 1 != n || n > PLN_VALUE_MAX)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    pln_dim end = i + 1 < n ? bounds->ints[i] : extent;
    bool known = PLN_DIM_IS_CONST(end) && end != PLN_DIM_UNKNOWN;
    if (known && (end < begin || (PLN_DIM_IS_CONST(extent) && end > extent)))
      return false;
    parts[i] = known ? end - begin : PLN_DIM_UNKNOWN;
    begin = known ? end : begin;
  }
  return true;
}

/* Converts Relay's attribute to a list of extents; `given` if it is a list of
 * bounds. */
static pln_status relay_split(const pln_infer *call, pln_dim extent, uint32_t n,
                              pln_dim *parts, pln_list *list) {
  const pln_attr *a =
      pln_attrs_find(call->engine, call->attrs, "indices_or_sections");
  if (a && a->kind == PLN_ATTR_INT && PLN_DIM_IS_CONST(extent) && a->v.i > 0 &&
      extent % a->v.i != 0)
    return pln_call_error(call, "an extent of %lld does not divide by %lld",
                          (long long)extent, (long long)a->v.i);
  if (!a || a->kind != PLN_ATTR_INTS)
    return PLN_OK;
  pln_list bounds = pln_arg_list(call, PLN_NONE, "indices_or_sections");
  if (!relay_parts(&bounds, extent, n, parts))
    return pln_call_error(call, "the bounds do not make %u parts", n);
  *list = (pln_list){.given = true, .sized = true, .count = n, .dims = parts};
  return PLN_OK;
}

pln_status pln_infer_split(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "split");
  pln_dim parts[PLN_VALUE_MAX];
  pln_dtype dtype = pln_arg_dtype(call, 0);
  uint32_t n = pln_call_n_results(call);
  pln_shape shape;
  int32_t axis = 0;
  pln_arg_shape(call, 0, &shape);
  if (shape.rank >= 0)
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
  pln_dim extent = shape.rank >= 0 ? shape.dims[axis] : PLN_DIM_UNKNOWN;
  PLN_TRY(relay_split(call, extent, n, parts, &list));
  PLN_TRY(check_parts(call, &list, n, extent));
  for (uint32_t i = 0; i < n; i++) {
    if (shape.rank >= 0)
      PLN_TRY(part_dim(call, &list, extent, n, i, &shape.dims[axis]));
    PLN_TRY(pln_result_tensor(call, i, dtype, &shape));
  }
  return PLN_OK;
}

static pln_status split_part(pln_kernel_call *call, uint32_t i, uint32_t axis,
                             int64_t begin, int64_t extent) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  pln_strided view = {.rank = x->rank};
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  pln_dense_strides(x->rank, x->dims, view.from);
  dims[axis] = extent;
  const char *from = (const char *)x->data;
  if (x->count)
    from += begin * view.from[axis] *
            (int64_t)pln_element_size((pln_dtype)x->dtype);
  return pln_strided_result_copy(call, i, x, from, x->rank, dims, &view);
}

pln_status pln_kernel_split(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "split");
  const pln_attr *a =
      pln_attrs_find(call->engine, call->attrs, "indices_or_sections");
  uint32_t axis;
  int64_t begin = 0;
  if (x->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis) ||
      (list.given && list.count != call->n_results))
    return pln_kernel_refuse(call, "the parts do not match the operand");
  pln_dim parts[PLN_VALUE_MAX];
  if (a && a->kind == PLN_ATTR_INTS) {
    pln_list bounds = pln_kernel_list(call, PLN_NONE, "indices_or_sections");
    if (!relay_parts(&bounds, x->dims[axis], call->n_results, parts))
      return pln_kernel_refuse(call, "the parts do not match the operand");
    list = (pln_list){
        .given = true, .sized = true, .count = call->n_results, .ints = parts};
  }
  for (uint32_t i = 0; i < call->n_results; i++) {
    int64_t part = list.given ? pln_list_at(&list, i)
                              : equal_part(x->dims[axis], call->n_results, i);
    if (part < 0 || part > x->dims[axis] - begin)
      return pln_kernel_refuse(call, "the parts do not match the operand");
    PLN_TRY(split_part(call, i, axis, begin, part));
    begin += part;
  }
  if (begin != x->dims[axis])
    return pln_kernel_refuse(call, "the parts do not match the operand");
  return PLN_OK;
}

/* --------------------------------------------------------------------- tile */

/* Relay's reps, an attribute, may be shorter or longer than the rank: missing
 * leading ones are 1, as in NumPy. */
static pln_status tile_by_reps(pln_infer *call, const pln_list *reps) {
  pln_shape in, out;
  pln_arg_shape(call, 0, &in);
  int64_t rank = reps->count;
  rank = in.rank > rank ? in.rank : rank;
  pln_shape_ranked(&out, in.rank < 0 ? -1 : rank);
  for (int32_t i = 0; i < out.rank; i++) {
    int64_t axis = (int64_t)i - (out.rank - in.rank);
    int64_t at = (int64_t)i - (out.rank - (int64_t)reps->count);
    pln_dim n = at >= 0 ? pln_list_at(reps, (uint32_t)at) : 1;
    if (PLN_DIM_IS_CONST(n) && n < 0)
      return pln_call_error(call, "repeat %lld is negative", (long long)n);
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, axis >= 0 ? in.dims[axis] : 1, n,
                          &out.dims[i]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_tile(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "reps");
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  if (pln_arg_absent(call, 1) && list.given)
    return tile_by_reps(call, &list);
  if (!list.given)
    return pln_call_error(call, "repeats are missing");
  if (shape.rank >= 0 && list.sized && list.count != (uint32_t)shape.rank)
    return pln_arg_error(call, 1, "expected %d repeats, got %u", shape.rank,
                         list.count);
  for (int32_t i = 0; i < shape.rank; i++) {
    pln_dim n = list.sized ? pln_list_at(&list, (uint32_t)i) : PLN_DIM_UNKNOWN;
    if (PLN_DIM_IS_CONST(n) && n < 0)
      return pln_arg_error(call, 1, "repeat %lld is negative", (long long)n);
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, shape.dims[i], n, &shape.dims[i]));
  }
  if (shape.rank < 0 && list.sized)
    pln_shape_ranked(&shape, list.count);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* Splits each axis in two: the repeats, with stride 0 in the operand, and the
 * axis itself. */
pln_status pln_kernel_tile(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "reps");
  int64_t dims[PLN_MAX_RANK], steps[PLN_MAX_RANK];
  pln_strided view = {.rank = 2 * x->rank};
  pln_strided_result moved;
  if (x->rank > PLN_MAX_RANK || list.count != x->rank)
    return pln_kernel_refuse(call, "the repeats do not match the operand");
  pln_dense_strides(x->rank, x->dims, steps);
  for (uint32_t i = 0; i < x->rank; i++) {
    view.dims[2 * i] = pln_list_at(&list, i);
    view.dims[2 * i + 1] = x->dims[i];
    view.from[2 * i] = 0;
    view.from[2 * i + 1] = steps[i];
    if (view.dims[2 * i] < 0 ||
        __builtin_mul_overflow(view.dims[2 * i], x->dims[i], &dims[i]))
      return pln_kernel_refuse(call, "a repeat is out of range");
  }
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank, dims,
                                   &moved));
  pln_dense_strides(view.rank, view.dims, view.to);
  if (moved.count)
    pln_strided_copy(call->engine, moved.data, x->data, moved.size, &view);
  return pln_strided_result_end(&moved, PLN_OK);
}

/* -------------------------------------------------------------- broadcast_to
 */

static pln_status pass_value(pln_infer *call) {
  pln_value value = pln_arg_value(call, 0);
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  if (!value || rank < 0 || rank > 1)
    return PLN_OK;
  pln_dim n = rank ? pln_type_dims(call->engine, call->results[0])[0] : 1;
  uint32_t count = pln_value_count(call->engine, value);
  if (!PLN_DIM_IS_CONST(n) || n < 0 || n > PLN_VALUE_MAX ||
      (count != 1 && count != (uint32_t)n))
    return PLN_OK;
  pln_dim elements[PLN_VALUE_MAX];
  const pln_dim *from = pln_value_elements(call->engine, value);
  for (pln_dim i = 0; i < n; i++)
    elements[i] = from[count == 1 ? 0 : i];
  return pln_infer_set_value(call, (uint32_t)rank, (uint32_t)n, elements);
}

pln_status pln_infer_broadcast_to(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "shape");
  pln_shape shape, requested;
  if (!list.given)
    return pln_call_error(call, "the shape is missing");
  pln_arg_shape(call, 0, &shape);
  pln_shape_ranked(&requested, list.sized ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < requested.rank; i++) {
    requested.dims[i] = pln_list_at(&list, (uint32_t)i);
    if (PLN_DIM_IS_CONST(requested.dims[i]) && requested.dims[i] < 0)
      return pln_arg_error(call, 1, "extent %lld is negative",
                           (long long)requested.dims[i]);
  }
  PLN_TRY(pln_infer_broadcast_shape(call, 1, &shape, &requested));
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape));
  return pass_value(call);
}

/* Computes the dims of the result and the strides of the operand; false if they
 * do not broadcast. */
static bool broadcast_view(const pln_tensor *x, const pln_list *list,
                           uint32_t rank, int64_t *dims, int64_t *from) {
  int64_t steps[PLN_MAX_RANK];
  pln_dense_strides(x->rank, x->dims, steps);
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t back = rank - i;
    int64_t own = back <= x->rank ? x->dims[x->rank - back] : 1;
    int64_t requested =
        back <= list->count ? pln_list_at(list, list->count - back) : 1;
    if (requested < 0 || (own != requested && own != 1 && requested != 1))
      return false;
    dims[i] = own == 1 ? requested : own;
    from[i] = own == 1 ? 0 : steps[x->rank - back];
  }
  return true;
}

pln_status pln_kernel_broadcast_to(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "shape");
  uint32_t rank = list.count > x->rank ? list.count : x->rank;
  int64_t dims[PLN_MAX_RANK];
  pln_strided view;
  if (!list.given)
    return pln_kernel_refuse(call, "the shape is missing");
  if (rank > PLN_MAX_RANK || !broadcast_view(x, &list, rank, dims, view.from))
    return pln_kernel_refuse(call, "the shape does not match the operand");
  return pln_strided_result_copy(call, 0, x, x->data, rank, dims, &view);
}
