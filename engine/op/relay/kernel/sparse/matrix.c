/* matrix.c: Relay's operators on sparse matrices in CSR form (values, column
 * indices, row starts) or BSR (the values are blocks). Types, and kernels that
 * go through a dense product. Called through ops.def. */

#include "op/kernel/indices.h"
#include "op/relay/kernel/window.h"

/* -------------------------------------------------------------------- types */

/* The number of rows: one less than operand `arg` has elements, times the rows
 * of a block. */
static pln_status sparse_rows(const pln_infer *call, uint32_t values,
                              uint32_t begins, pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  if (pln_arg_rank(call, begins) != 1)
    return PLN_OK;
  PLN_TRY(
      pln_infer_dim(call, PLN_DIM_SUB, pln_arg_dims(call, begins)[0], 1, out));
  if (pln_arg_rank(call, values) >= 2)
    return pln_infer_dim(call, PLN_DIM_MUL, *out, pln_arg_dims(call, values)[1],
                         out);
  if (pln_arg_rank(call, values) < 0)
    *out = PLN_DIM_UNKNOWN;
  return PLN_OK;
}

/* (x, values, columns, begins): x times the transposed sparse matrix; with
 * sparse_lhs, the sparse matrix times the transposed x. */
pln_status pln_infer_sparse_dense(pln_infer *call) {
  bool left = pln_call_int(call, "sparse_lhs", 0) != 0;
  pln_shape x, out;
  pln_dim rows;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  PLN_TRY(pln_arg_expect_rank(call, 2, 1));
  PLN_TRY(pln_arg_expect_rank(call, 3, 1));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 1, 3));
  PLN_TRY(sparse_rows(call, 1, 3, &rows));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, 2);
  out.dims[left] = x.rank == 2 ? x.dims[0] : (pln_dim)PLN_DIM_UNKNOWN;
  out.dims[!left] = rows;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (image, values, columns, begins): as many channels as the block-sparse matrix
 * has rows; the spatial extents stay. */
pln_status pln_infer_sparse_conv_2d(pln_infer *call) {
  bool last = pln_call_string_is(call, "layout", "NHWC", "NHWC");
  pln_shape x;
  pln_dim rows;
  if (!last && !pln_call_string_is(call, "layout", "NHWC", "NCHW"))
    return pln_call_error(call, "layout is neither NHWC nor NCHW");
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 2, 3));
  PLN_TRY(pln_arg_expect_rank(call, 2, 1));
  PLN_TRY(pln_arg_expect_rank(call, 3, 1));
  PLN_TRY(sparse_rows(call, 1, 3, &rows));
  pln_arg_shape(call, 0, &x);
  if (x.rank == 4)
    x.dims[last ? 3 : 1] = rows;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* A square matrix keeps its shape. */
pln_status pln_infer_sparse_transpose(pln_infer *call) {
  for (uint32_t i = 0; i < 3; i++)
    pln_result_like(call, i, i);
  return PLN_OK;
}

/* (indices, values, shape, default): one more row per empty row. */
pln_status pln_infer_sparse_fill_empty_rows(pln_infer *call) {
  pln_shape list, rows;
  pln_shape_ranked(&list, 1);
  pln_shape_ranked(&rows, 2);
  if (pln_arg_rank(call, 0) == 2)
    rows.dims[1] = pln_arg_dims(call, 0)[1];
  PLN_TRY(pln_result_tensor(call, 0, PLN_INT64, &rows));
  PLN_TRY(pln_result_tensor(call, 1, pln_arg_dtype(call, 1), &list));
  return pln_result_tensor(call, 2, PLN_INT64, &list);
}

/* (indices, shape, new shape): indices with as many coordinates as the new
 * shape. */
pln_status pln_infer_sparse_reshape(pln_infer *call) {
  pln_shape indices, shape;
  pln_shape_ranked(&indices, 2);
  pln_shape_ranked(&shape, 1);
  if (pln_arg_rank(call, 0) == 2)
    indices.dims[0] = pln_arg_dims(call, 0)[0];
  if (pln_arg_rank(call, 2) == 1)
    indices.dims[1] = shape.dims[0] = pln_arg_dims(call, 2)[0];
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &indices));
  return pln_result_tensor(call, 1, pln_arg_dtype(call, 2), &shape);
}

/* ------------------------------------------------------------------ kernels */

/* A sparse matrix of blocks of `high` x `wide` values. */
typedef struct sparse {
  const pln_tensor *values, *columns, *begins;
  int64_t high, wide;
} sparse;

static bool read_sparse(const pln_kernel_call *call, sparse *m) {
  const pln_tensor *v = pln_kernel_arg(call, 1);
  *m = (sparse){v, pln_kernel_arg(call, 2), pln_kernel_arg(call, 3), 1, 1};
  if (v->rank > 1)
    m->high = v->dims[1];
  if (v->rank > 2)
    m->wide = v->dims[2];
  return v->rank >= 1 && v->rank <= 3 && m->columns->rank == 1 &&
         m->begins->rank == 1 && m->begins->count > 0 &&
         m->columns->dims[0] == v->dims[0] && m->high > 0 && m->wide > 0 &&
         pln_element_size((pln_dtype)v->dtype) > 0 && v->dtype != PLN_STRING;
}

static void put_block(const sparse *m, int64_t block, int64_t row, int64_t at,
                      int64_t width, char *out) {
  size_t size = pln_element_size((pln_dtype)m->values->dtype);
  const char *from = m->values->data;
  for (int64_t k = 0; k < m->high; k++)
    memcpy(out + (size_t)((row * m->high + k) * width + at * m->wide) * size,
           from + (size_t)((block * m->high + k) * m->wide) * size,
           (size_t)m->wide * size);
}

/* Returns false if row starts decrease or a column is out of range. */
static bool spread_out(const sparse *m, int64_t width, char *out) {
  int64_t n = m->columns->dims[0], rows = (int64_t)m->begins->count - 1;
  for (int64_t r = 0; r < rows; r++) {
    int64_t begin, end, at;
    if (!pln_index_at(m->begins, (size_t)r, n + 1, &begin) ||
        !pln_index_at(m->begins, (size_t)r + 1, n + 1, &end) || begin > end)
      return false;
    for (int64_t i = begin; i < end; i++) {
      if (!pln_index_at(m->columns, (size_t)i, width / m->wide, &at))
        return false;
      put_block(m, i, r, at, width, out);
    }
  }
  return true;
}

/* The dense matrix, `width` columns wide. */
static const pln_tensor *written_out(pln_composition *s, const sparse *m,
                                     int64_t width) {
  int64_t dims[2] = {0, width};
  pln_tensor *t = NULL;
  if (width % m->wide ||
      __builtin_mul_overflow((int64_t)m->begins->count - 1, m->high, &dims[0]))
    pln_composition_refuse(s, "the blocks do not match the operand");
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, (pln_dtype)m->values->dtype, 2,
                               dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  if (kept && !spread_out(m, width, pln_tensor_writable(t)))
    pln_composition_refuse(s, "an index lies outside of the matrix");
  return s->status == PLN_OK ? kept : NULL;
}

pln_status pln_kernel_sparse_dense(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  sparse m;
  pln_composition s;
  if (x->rank != 2 || !read_sparse(call, &m))
    return pln_kernel_refuse(call, "the matrix is not valid");
  pln_composition_begin(&s, call);
  const pln_tensor *w = written_out(&s, &m, x->dims[1]);
  bool left = pln_kernel_int(call, "sparse_lhs", 0) != 0;
  pln_compose_int(&s, "transB", 1);
  return pln_composition_finish(
      &s, pln_compose_binary(&s, PLN_OP_GEMM, left ? w : x, left ? x : w));
}

/* (image, values, columns, begins). The rows of the matrix are filters: of
 * windows with channels last for NHWC, and first for NCHW. Pads keep the
 * extents. Blocks without an axis of columns are one column wide. */
pln_status pln_kernel_sparse_conv_2d(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool last = pln_kernel_string_is(call, "layout", "NHWC", "NHWC");
  const char *layout = last ? "NHWC" : "NCHW", *kernel = last ? "OHWI" : "OIHW";
  int64_t window[2], pads[4];
  sparse m;
  pln_composition s;
  if (!read_sparse(call, &m) || m.values->rank == 1 || x->rank != 4 ||
      !pln_relay_ints(call, "kernel_size", 2, 1, window) || window[0] < 1 ||
      window[1] < 1 || window[0] > INT16_MAX || window[1] > INT16_MAX)
    return pln_kernel_refuse(call, "the matrix or the window is not valid");
  int64_t channels = x->dims[last ? 3 : 1], width;
  if (__builtin_mul_overflow(channels, window[0] * window[1], &width))
    return pln_kernel_refuse(call, "the window is too large");
  for (uint32_t i = 0; i < 4; i++)
    pads[i] = (window[i % 2] - (i < 2)) / 2;
  pln_composition_begin(&s, call);
  const pln_tensor *w = written_out(&s, &m, width);
  int64_t filters = w ? w->dims[0] : 0;
  const int64_t dims[2][4] = {{filters, channels, window[0], window[1]},
                              {filters, window[0], window[1], channels}};
  w = pln_compose_reshape(&s, w, 4, dims[last]);
  w = pln_compose_layout(&s, w, pln_text(kernel), pln_text("OIHW"));
  x = pln_compose_layout(&s, x, pln_text(layout), pln_text("NCHW"));
  pln_compose_ints(&s, "pads", 4, pads);
  const pln_tensor *y = pln_compose_binary(&s, PLN_OP_CONV, x, w);
  return pln_composition_finish(
      &s, pln_compose_layout(&s, y, pln_text("NCHW"), pln_text(layout)));
}

/* (x, values, columns, begins) */
pln_status pln_kernel_sparse_add(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  sparse m;
  pln_composition s;
  if (x->rank != 2 || !read_sparse(call, &m) ||
      x->dims[0] / m.high != (int64_t)m.begins->count - 1 ||
      x->dims[0] % m.high)
    return pln_kernel_refuse(call, "the matrix is not valid");
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s,
      pln_compose_binary(&s, PLN_OP_ADD, x, written_out(&s, &m, x->dims[1])));
}
