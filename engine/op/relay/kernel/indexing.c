/* indexing.c: kernels of Relay's operators on indices: argwhere, unravel_index,
 * invert_permutation, searchsorted, sparse_to_dense, sequence_mask, adv_index;
 * setting slices and diagonals; dilation, sliding windows and meshgrid. Called
 * through ops.def; types are in relay/infer/index.c, that of adv_index is here.
 */

#include "op/kernel/composed.h"
#include "op/kernel/indices.h"
#include "op/kernel/strided.h"

static pln_status refuse_operands(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "the operands do not match each other");
}

/* ------------------------------------------------------------------ indices */

pln_status pln_kernel_argwhere(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *columns =
      pln_compose_unary(&s, PLN_OP_NON_ZERO, pln_kernel_arg(call, 0));
  return pln_composition_finish(
      &s, pln_compose_cast(&s, pln_compose_unary(&s, PLN_OP_TRANSPOSE, columns),
                           PLN_INT32));
}

/* The coordinates of each flat index, last axis fastest; false if one is out of
 * range. */
static bool unravel(const pln_tensor *indices, uint32_t rank,
                    const int64_t *shape, int64_t *out) {
  const int64_t *in = indices->data;
  bool good = true;
  for (size_t i = 0; i < indices->count; i++) {
    int64_t rest = in[i];
    for (uint32_t k = rank; k-- > 0; rest /= shape[k])
      out[k * indices->count + i] = rest % shape[k];
    good &= rest == 0 && in[i] >= 0;
  }
  return good;
}

/* (indices, shape) */
pln_status pln_kernel_unravel_index(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list shape = pln_kernel_list(call, 1, NULL);
  int64_t extents[PLN_MAX_RANK], dims[PLN_MAX_RANK];
  pln_tensor *out = NULL;
  pln_composition s;
  if (shape.count > PLN_MAX_RANK || x->rank >= PLN_MAX_RANK)
    return refuse_operands(call);
  for (uint32_t i = 0; i < shape.count; i++)
    if ((extents[i] = pln_list_at(&shape, i)) < 1)
      return refuse_operands(call);
  dims[0] = shape.count;
  memcpy(dims + 1, x->dims, x->rank * sizeof *dims);
  pln_composition_begin(&s, call);
  const pln_tensor *in = pln_compose_cast(&s, x, PLN_INT64);
  if (in)
    s.status = pln_tensor_new(call->engine, PLN_INT64, x->rank + 1, dims, &out);
  const pln_tensor *places = pln_compose_own(&s, out);
  if (places && !unravel(in, shape.count, extents, pln_tensor_writable(out)))
    pln_composition_refuse(&s, "an index lies outside of the shape");
  return pln_composition_finish(
      &s, pln_compose_cast(&s, places, (pln_dtype)x->dtype));
}

/* The position of each index; false unless each index occurs once. */
static bool invert(const pln_tensor *x, int64_t *out) {
  const int64_t *in = x->data;
  for (size_t i = 0; i < x->count; i++)
    out[i] = -1;
  for (size_t i = 0; i < x->count; i++) {
    if (in[i] < 0 || in[i] >= (int64_t)x->count || out[in[i]] >= 0)
      return false;
    out[in[i]] = (int64_t)i;
  }
  return true;
}

pln_status pln_kernel_invert_permutation(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_tensor *out = NULL;
  pln_composition s;
  if (x->rank != 1)
    return refuse_operands(call);
  pln_composition_begin(&s, call);
  const pln_tensor *in = pln_compose_cast(&s, x, PLN_INT64);
  if (in)
    s.status = pln_tensor_new(call->engine, PLN_INT64, 1, x->dims, &out);
  const pln_tensor *places = pln_compose_own(&s, out);
  if (places && !invert(in, pln_tensor_writable(out)))
    pln_composition_refuse(&s, "the operand is not a permutation");
  return pln_composition_finish(
      &s, pln_compose_cast(&s, places, (pln_dtype)x->dtype));
}

/* ------------------------------------------------------------- searchsorted */

/* Binary search: how many of `n` sorted numbers are less, or with `right` not
 * greater. */
static int64_t rank_of(const double *row, int64_t n, double value, bool right) {
  int64_t begin = 0, end = n;
  while (begin < end) {
    int64_t middle = begin + (end - begin) / 2;
    if (right ? row[middle] <= value : row[middle] < value)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

static void search(const pln_tensor *sorted, const pln_tensor *values,
                   bool right, int64_t *out) {
  const double *rows = sorted->data, *x = values->data;
  int64_t n = sorted->dims[sorted->rank - 1];
  size_t m = values->rank ? (size_t)values->dims[values->rank - 1] : 1;
  for (size_t i = 0; i < values->count; i++) {
    const double *row = sorted->rank == 1 ? rows : rows + i / m * (size_t)n;
    out[i] = rank_of(row, n, x[i], right);
  }
}

/* Returns true if there is one sorted row for all, or one per row of the
 * values. */
static bool rows_agree(const pln_tensor *sorted, const pln_tensor *values) {
  if (sorted->rank == 1)
    return true;
  if (sorted->rank != values->rank || sorted->rank == 0)
    return false;
  for (uint32_t i = 0; i + 1 < sorted->rank; i++)
    if (sorted->dims[i] != values->dims[i])
      return false;
  return true;
}

/* Integers above 2^53 are not exact in double. */
static bool is_exact(const pln_tensor *x) {
  return x->dtype != PLN_INT64 && x->dtype != PLN_UINT64;
}

pln_status pln_kernel_searchsorted(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_INT32;
  pln_tensor *out = NULL;
  pln_composition s;
  if (!rows_agree(a, b))
    return refuse_operands(call);
  if (!is_exact(a) || !is_exact(b))
    return pln_kernel_no_dtype(call, (pln_dtype)a->dtype);
  pln_composition_begin(&s, call);
  const pln_tensor *rows = pln_compose_cast(&s, a, PLN_FLOAT64);
  const pln_tensor *values = pln_compose_cast(&s, b, PLN_FLOAT64);
  if (values)
    s.status = pln_tensor_new(call->engine, PLN_INT64, b->rank, b->dims, &out);
  const pln_tensor *places = pln_compose_own(&s, out);
  if (places)
    search(rows, values, pln_kernel_int(call, "right", 0) != 0,
           pln_tensor_writable(out));
  return pln_composition_finish(&s, pln_compose_cast(&s, places, dtype));
}

/* ---------------------------------------------------------- sparse_to_dense */

/* A dense tensor being filled with sparse values. */
typedef struct sparse_indices {
  const pln_tensor *indices, *values, *others; /* others may be NULL */
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
} sparse_indices;

/* Checks that there are as many indices, of `n` coordinates each, as values, or
 * one value for all. */
static bool is_sparse(const sparse_indices *x, size_t *count, uint32_t *n) {
  const pln_tensor *i = x->indices, *v = x->values;
  *count = i->rank ? (size_t)i->dims[0] : 1;
  *n = i->rank == 2 ? (uint32_t)i->dims[1] : 1;
  return i->rank <= 2 && *n == x->rank && v->rank <= 1 &&
         (v->count == *count || v->rank == 0) && v->dtype != PLN_STRING &&
         (!x->others ||
          (x->others->count == 1 && x->others->dtype == v->dtype));
}

static bool scatter(const sparse_indices *x, size_t count, char *out) {
  size_t size = pln_element_size((pln_dtype)x->values->dtype);
  for (size_t i = 0; i < count; i++) {
    int64_t at = 0, index;
    for (uint32_t k = 0; k < x->rank; k++) {
      if (!pln_index_at(x->indices, i * x->rank + k, x->dims[k], &index))
        return false;
      at = at * x->dims[k] + index;
    }
    memcpy(out + (size_t)at * size,
           (const char *)x->values->data + (x->values->rank ? i * size : 0),
           size);
  }
  return true;
}

static pln_status make_dense(pln_kernel_call *call, const sparse_indices *x) {
  size_t count, size = pln_element_size((pln_dtype)x->values->dtype);
  uint32_t n;
  void *data;
  if (!is_sparse(x, &count, &n))
    return refuse_operands(call);
  if (size == 0 || x->values->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->values->dtype);
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)x->values->dtype, x->rank,
                            x->dims, &data));
  if (x->others)
    pln_fill(call->engine, data, call->results[0]->count, x->others->data,
             size);
  if (scatter(x, count, data))
    return PLN_OK;
  pln_tensor_release(call->results[0]);
  call->results[0] = NULL;
  return pln_kernel_refuse(call, "an index lies outside of the shape");
}

static bool read_extents(const pln_list *shape, sparse_indices *x) {
  x->rank = shape->count;
  for (uint32_t i = 0; i < shape->count && i < PLN_MAX_RANK; i++)
    if ((x->dims[i] = pln_list_at(shape, i)) < 0)
      return false;
  return shape->count <= PLN_MAX_RANK;
}

/* (indices, values, default value); attribute output_shape, or operand 1 in the
 * dyn. form */
pln_status pln_kernel_sparse_to_dense(pln_kernel_call *call) {
  bool dynamic = call->op == PLN_OP_DYN_SPARSE_TO_DENSE;
  pln_list shape =
      pln_kernel_list(call, dynamic ? 1 : PLN_NONE, "output_shape");
  sparse_indices x = {.indices = pln_kernel_arg(call, 0),
                      .values = pln_kernel_arg(call, dynamic ? 2 : 1),
                      .others = pln_kernel_arg(call, dynamic ? 3 : 2)};
  if (!read_extents(&shape, &x))
    return refuse_operands(call);
  return make_dense(call, &x);
}

/* ------------------------------------------------------------ sequence_mask */

/* 0, 1, ... along one of two axes. */
static const pln_tensor *count_along(pln_composition *s, int64_t extent,
                                     uint32_t rank, uint32_t axis) {
  int64_t dims[PLN_MAX_RANK];
  const pln_tensor *args[3] = {pln_compose_scalar(s, PLN_INT64, 0),
                               pln_compose_scalar(s, PLN_INT64, (double)extent),
                               pln_compose_scalar(s, PLN_INT64, 1)};
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = i == axis ? extent : 1;
  return pln_compose_reshape(s, pln_compose_call(s, PLN_OP_RANGE, 3, args),
                             rank, dims);
}

/* (data, lengths): time is axis 0 or 1, the batch is the other one. */
pln_status pln_kernel_sequence_mask(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *l = pln_kernel_arg(call, 1);
  int64_t axis = pln_kernel_int(call, "axis", 0), dims[PLN_MAX_RANK];
  pln_composition s;
  if (x->rank < 2 || x->rank > PLN_MAX_RANK || l->rank != 1 || axis < 0 ||
      axis > 1 || l->dims[0] != x->dims[1 - axis])
    return refuse_operands(call);
  for (uint32_t i = 0; i < x->rank; i++)
    dims[i] = i == 1 - axis ? l->dims[0] : 1;
  pln_composition_begin(&s, call);
  const pln_tensor *lengths = pln_compose_reshape(
      &s, pln_compose_cast(&s, l, PLN_INT64), x->rank, dims);
  const pln_tensor *times =
      count_along(&s, x->dims[axis], x->rank, (uint32_t)axis);
  const pln_tensor *args[3] = {
      pln_compose_binary(&s, PLN_OP_LESS, times, lengths), x,
      pln_compose_scalar(&s, (pln_dtype)x->dtype,
                         pln_kernel_float(call, "mask_value", 0))};
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_WHERE, 3, args));
}

/* ---------------------------------------------------------------- adv_index */

static pln_status infer_indexed(pln_infer *call) {
  pln_shape data, out;
  uint32_t n = call->n_args;
  pln_arg_shape(call, 0, &data);
  PLN_TRY(pln_args_broadcast(call, 1, n, &out));
  if (data.rank >= 0 && n - 1 > (uint32_t)data.rank)
    return pln_call_error(call, "%u tensors of indices for %d axes", n - 1,
                          data.rank);
  if (data.rank < 0 || out.rank < 0 || data.rank + out.rank > PLN_MAX_RANK)
    pln_shape_unknown(&out);
  for (int32_t i = (int32_t)n - 1; out.rank >= 0 && i < data.rank; i++)
    out.dims[out.rank++] = data.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* A tuple (data, indices...): indices of the first axes, broadcast. */
pln_status pln_infer_adv_index(pln_infer *call) {
  return pln_infer_spread(call, infer_indexed);
}

/* An index broadcast to `like`, with a trailing axis. */
static const pln_tensor *cast_index_like(pln_composition *s,
                                         const pln_tensor *index,
                                         const pln_tensor *like) {
  int64_t dims[PLN_MAX_RANK];
  const pln_tensor *x = pln_compose_binary(
      s, PLN_OP_ADD, pln_compose_cast(s, index, PLN_INT64), like);
  if (x && x->rank >= PLN_MAX_RANK)
    pln_composition_refuse(s, "the indices have too many axes");
  if (s->status != PLN_OK)
    return NULL;
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank] = 1;
  return pln_compose_reshape(s, x, x->rank + 1, dims);
}

/* Zeros of the shape that all indices broadcast to. */
static const pln_tensor *common(pln_composition *s) {
  const pln_tensor *zero = pln_compose_scalar(s, PLN_INT64, 0), *all = zero;
  for (uint32_t i = 1; i < s->call->n_args; i++) {
    const pln_tensor *x =
        pln_compose_cast(s, pln_kernel_arg(s->call, i), PLN_INT64);
    all = pln_compose_binary(s, PLN_OP_ADD, all,
                             pln_compose_binary(s, PLN_OP_MUL, x, zero));
  }
  return all;
}

pln_status pln_kernel_adv_index(pln_kernel_call *call) {
  const pln_tensor *columns[8];
  uint32_t n = call->n_args;
  pln_composition s;
  if (n < 2 || n - 1 > PLN_COUNT(columns))
    return pln_kernel_refuse(call, "so many indices are not computed");
  pln_composition_begin(&s, call);
  const pln_tensor *zeros = common(&s);
  for (uint32_t i = 1; i < n; i++)
    columns[i - 1] = cast_index_like(&s, pln_kernel_arg(call, i), zeros);
  pln_compose_int(&s, "axis", -1);
  const pln_tensor *rows = pln_compose_call(&s, PLN_OP_CONCAT, n - 1, columns);
  return pln_composition_finish(
      &s,
      pln_compose_binary(&s, PLN_OP_GATHER_ND, pln_kernel_arg(call, 0), rows));
}

/* ------------------------------------------------------------------- slices */

/* Integer i of operand `arg`, or `other` if it has fewer. */
static bool bound_at(const pln_kernel_call *call, uint32_t arg, uint32_t i,
                     int64_t other, int64_t *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  *out = other;
  return !t || i >= t->count || pln_tensor_int(t, i, out);
}

static int64_t clamp_index(int64_t at, int64_t extent) {
  at += at < 0 ? extent : 0;
  return at < 0 ? 0 : at > extent ? extent : at;
}

/* The slice from begin to end by strides as a view of the copy; false if the
 * update has another shape. */
static bool slice_view(const pln_kernel_call *call, pln_strided *view,
                       int64_t *offset) {
  const pln_tensor *x = call->args[0], *v = call->args[1];
  *offset = 0;
  view->rank = x->rank;
  pln_dense_strides(x->rank, x->dims, view->to);
  pln_dense_strides(v->rank, v->dims, view->from);
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t begin, end, step;
    if (!bound_at(call, 2, i, 0, &begin) ||
        !bound_at(call, 3, i, x->dims[i], &end) ||
        !bound_at(call, 4, i, 1, &step) || step < 1)
      return false;
    begin = clamp_index(begin, x->dims[i]);
    end = clamp_index(end, x->dims[i]);
    view->dims[i] = end > begin ? (end - begin - 1) / step + 1 : 0;
    if (view->dims[i] != v->dims[i])
      return false;
    *offset += begin * view->to[i];
    view->to[i] = view->dims[i] > 1 ? view->to[i] * step : 0;
  }
  return true;
}

/* (data, update, begin, end, strides) */
pln_status pln_kernel_strided_set(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *v = call->args[1];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  pln_strided view;
  int64_t offset;
  void *data;
  if (size == 0 || x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank > PLN_MAX_RANK || v->rank != x->rank || v->dtype != x->dtype ||
      !slice_view(call, &view, &offset))
    return refuse_operands(call);
  PLN_TRY(
      pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, x->dims, &data));
  if (x->count)
    PLN_TRY(pln_copy_bytes(call->engine, data, x->data, x->count * size));
  if (v->count)
    pln_strided_copy(call->engine, (char *)data + (size_t)offset * size,
                     v->data, size, &view);
  return PLN_OK;
}

/* Diagonals k1 to k2 of matrices (above the main one positive), stored as rows
 * of `width` elements, the uppermost first. */
typedef struct diagonals {
  int64_t rows, columns, k1, k2, width;
  bool upper_right, lower_right; /* whether short ones are aligned to the right
                                    end of the row */
} diagonals;

static int64_t length_of(const diagonals *d, int64_t k) {
  int64_t rows = d->rows + (k < 0 ? k : 0);
  int64_t columns = d->columns - (k > 0 ? k : 0);
  return rows < columns ? rows : columns;
}

static void set_diagonals(const diagonals *d, size_t size, const char *from,
                          char *matrix) {
  for (int64_t k = d->k1; k <= d->k2; k++) {
    int64_t n = length_of(d, k), row = k < 0 ? -k : 0, column = k > 0 ? k : 0;
    bool right = (k >= 0 && d->upper_right) || (k <= 0 && d->lower_right);
    int64_t at = (d->k2 - k) * d->width + (right ? d->width - n : 0);
    for (int64_t i = 0; i < n; i++)
      memcpy(matrix + (size_t)((row + i) * d->columns + column + i) * size,
             from + (size_t)(at + i) * size, size);
  }
}

/* The longest diagonal fills its row. Several diagonals have an axis of their
 * own. */
static bool read_diagonals(const pln_kernel_call *call, diagonals *d) {
  const pln_tensor *x = call->args[0], *v = call->args[1];
  if (x->rank < 2 || x->dtype != v->dtype)
    return false;
  *d = (diagonals){.rows = x->dims[x->rank - 2],
                   .columns = x->dims[x->rank - 1],
                   .k1 = pln_kernel_int(call, "k1", 0),
                   .k2 = pln_kernel_int(call, "k2", 0)};
  d->upper_right = pln_kernel_int(call, "super_diag_right_align", 1) != 0;
  d->lower_right = pln_kernel_int(call, "sub_diag_right_align", 0) != 0;
  if (d->k1 > d->k2 || d->k1 <= -d->rows || d->k2 >= d->columns)
    return false;
  bool many = d->k2 > d->k1;
  if (v->rank != x->rank - 1 + many || v->rank == 0)
    return false;
  d->width = v->dims[v->rank - 1];
  for (int64_t k = d->k1; k <= d->k2; k++)
    if (length_of(d, k) > d->width)
      return false;
  for (uint32_t i = 0; i + 2 < x->rank; i++)
    if (x->dims[i] != v->dims[i])
      return false;
  return !many || v->dims[v->rank - 2] == d->k2 - d->k1 + 1;
}

/* (matrices, diagonals) */
pln_status pln_kernel_matrix_set_diag(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *v = call->args[1];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  diagonals d;
  void *data;
  if (size == 0 || x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!read_diagonals(call, &d))
    return refuse_operands(call);
  PLN_TRY(
      pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, x->dims, &data));
  if (x->count == 0)
    return PLN_OK;
  PLN_TRY(pln_copy_bytes(call->engine, data, x->data, x->count * size));
  size_t plane = (size_t)(d.rows * d.columns), n = x->count / plane;
  for (size_t i = 0; i < n; i++)
    set_diagonals(&d, size, (const char *)v->data + i * (v->count / n) * size,
                  (char *)data + i * plane * size);
  return PLN_OK;
}

/* Attribute dilation_value as a scalar of that dtype. */
static const pln_tensor *gap_value(pln_composition *s, pln_dtype dtype) {
  return pln_compose_scalar(s, dtype,
                            pln_kernel_float(s->call, "dilation_value", 0));
}

/* Writes elements at `strides` with the value between them. */
static pln_status dilate_elements(pln_kernel_call *call,
                                  const pln_list *strides,
                                  const pln_tensor *value) {
  const pln_tensor *x = call->args[0];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  int64_t dims[PLN_MAX_RANK];
  pln_strided view = {.rank = x->rank};
  void *data;
  for (uint32_t i = 0; i < x->rank; i++) {
    view.dims[i] = x->dims[i];
    if (strides->ints[i] < 1 ||
        __builtin_mul_overflow(x->dims[i] - 1, strides->ints[i], &dims[i]) ||
        __builtin_add_overflow(dims[i], 1, &dims[i]) || x->dims[i] < 1)
      return pln_kernel_refuse(call, "the strides do not match the operand");
  }
  PLN_TRY(pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, dims, &data));
  pln_fill(call->engine, data, call->results[0]->count, value->data, size);
  pln_dense_strides(x->rank, x->dims, view.from);
  pln_dense_strides(x->rank, dims, view.to);
  for (uint32_t i = 0; i < x->rank; i++)
    view.to[i] = x->dims[i] > 1 ? view.to[i] * strides->ints[i] : 0;
  pln_strided_copy(call->engine, data, x->data, size, &view);
  return PLN_OK;
}

pln_status pln_kernel_dilate(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list strides = pln_kernel_list(call, PLN_NONE, "strides");
  pln_composition s;
  if (pln_element_size((pln_dtype)x->dtype) == 0 || x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank > PLN_MAX_RANK || strides.count != x->rank)
    return pln_kernel_refuse(call, "the strides do not match the operand");
  pln_composition_begin(&s, call);
  const pln_tensor *value = gap_value(&s, (pln_dtype)x->dtype);
  if (value)
    s.status = dilate_elements(call, &strides, value);
  return pln_composition_end(&s);
}

/* Windows over the axes from `axis` on, at `strides`. */
pln_status pln_kernel_sliding_window(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list window = pln_kernel_list(call, PLN_NONE, "window_shape");
  pln_list strides = pln_kernel_list(call, PLN_NONE, "strides");
  int64_t dims[PLN_MAX_RANK], steps[PLN_MAX_RANK];
  pln_strided view;
  uint32_t axis;
  if (x->rank > PLN_MAX_RANK / 2 ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis) ||
      window.count != x->rank - axis || strides.count != window.count)
    return refuse_operands(call);
  pln_dense_strides(x->rank, x->dims, steps);
  memcpy(view.from, steps, x->rank * sizeof *steps);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  view.rank = x->rank + window.count;
  for (uint32_t i = 0; i < window.count; i++) {
    int64_t size = window.ints[i], by = strides.ints[i];
    if (size < 1 || by < 1 || size > x->dims[axis + i])
      return refuse_operands(call);
    dims[axis + i] = (x->dims[axis + i] - size) / by + 1;
    dims[x->rank + i] = size;
    view.from[axis + i] = dims[axis + i] > 1 ? steps[axis + i] * by : 0;
    view.from[x->rank + i] = steps[axis + i];
  }
  memcpy(view.dims, dims, view.rank * sizeof *dims);
  return pln_strided_result_copy(call, 0, x, x->data, view.rank, dims, &view);
}

/* ----------------------------------------------------------------- meshgrid */

/* The axis of the grid along which vector `i` runs. */
static uint32_t grid_axis_of(const pln_kernel_call *call, uint32_t i) {
  bool swapped = call->n_args > 1 && i < 2 &&
                 pln_kernel_string_is(call, "indexing", "ij", "xy");
  return swapped ? 1 - i : i;
}

pln_status pln_kernel_meshgrid(pln_kernel_call *call) {
  uint32_t rank = call->n_args;
  int64_t dims[PLN_MAX_RANK];
  if (rank < 1 || rank > PLN_MAX_RANK || call->n_results != rank)
    return refuse_operands(call);
  for (uint32_t i = 0; i < rank; i++) {
    const pln_tensor *x = pln_kernel_arg(call, i);
    if (!x || x->rank > 1)
      return refuse_operands(call);
    dims[grid_axis_of(call, i)] = x->rank ? x->dims[0] : 1;
  }
  for (uint32_t i = 0; i < rank; i++) {
    const pln_tensor *x = pln_kernel_arg(call, i);
    pln_strided view = {.rank = rank};
    view.from[grid_axis_of(call, i)] = 1;
    PLN_TRY(pln_strided_result_copy(call, i, x, x->data, rank, dims, &view));
  }
  return PLN_OK;
}
