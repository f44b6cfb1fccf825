/* transpose.c: transpose, depth_to_space, space_to_depth. Called through
 * ops.def. */

#include "op/kernel/shape/transpose.h"
#include "op/kernel/strided.h"

/* ---------------------------------------------------------------- transpose */

/* Reads the permutation: the given axes, or all axes in reverse order. False if
 * they are no permutation. */
static bool read_perm(const int64_t *given, uint32_t count, uint32_t rank,
                      uint32_t *perm) {
  bool seen[PLN_MAX_RANK] = {false};
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = rank - 1 - i;
  if (!given)
    return true;
  if (count != rank)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    if (given[i] < 0 || given[i] >= (int64_t)rank || seen[given[i]])
      return false;
    seen[given[i]] = true;
    perm[i] = (uint32_t)given[i];
  }
  return true;
}

static pln_status transpose_value(pln_infer *call, const pln_shape *in,
                                  const pln_shape *out, const uint32_t *perm) {
  pln_dim strides[PLN_MAX_RANK], permuted_strides[PLN_MAX_RANK];
  if (!pln_infer_value_strides(call, strides))
    return PLN_OK;
  for (int32_t i = 0; i < in->rank; i++)
    permuted_strides[i] = strides[perm[i]];
  return pln_infer_value_strided(call, out, 0, permuted_strides);
}

pln_status pln_infer_transpose(pln_infer *call) {
  uint32_t count, perm[PLN_MAX_RANK];
  const int64_t *given = pln_call_ints(call, "axes", &count);
  pln_shape in, out;
  pln_arg_shape(call, 0, &in);
  pln_shape_ranked(&out, in.rank < 0 && given ? (int64_t)count : in.rank);
  if (in.rank >= 0 && !read_perm(given, count, (uint32_t)in.rank, perm))
    return pln_call_error(call, "axes is not a permutation of %d axes",
                          in.rank);
  for (int32_t i = 0; i < in.rank; i++)
    out.dims[i] = in.dims[perm[i]];
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  if (in.rank < 0 || call->n_results)
    return PLN_OK;
  return transpose_value(call, &in, &out, perm);
}

static pln_status permuted(pln_kernel_call *call, const pln_tensor *x,
                           uint32_t rank, const int64_t *in_dims,
                           const uint32_t *perm, uint32_t out_rank,
                           const int64_t *out_dims) {
  pln_strided view = {.rank = rank};
  int64_t steps[PLN_STRIDED_RANK], dims[PLN_STRIDED_RANK];
  pln_strided_result moved;
  pln_dense_strides(rank, in_dims, steps);
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = view.dims[i] = in_dims[perm[i]];
    view.from[i] = steps[perm[i]];
  }
  pln_dense_strides(rank, dims, view.to);
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, out_rank,
                                   out_dims, &moved));
  pln_strided_copy(call->engine, moved.data, x->data, moved.size, &view);
  return pln_strided_result_end(&moved, PLN_OK);
}

bool pln_transpose_order(const pln_engine *engine, pln_attrs attrs,
                         uint32_t rank, uint32_t *axes) {
  const pln_attr *a = pln_attrs_find(engine, attrs, "axes");
  bool given = a && a->kind == PLN_ATTR_INTS;
  return rank <= PLN_MAX_RANK &&
         read_perm(given ? a->v.ints : NULL, given ? a->count : 0, rank, axes);
}

pln_status pln_kernel_transpose(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  uint32_t perm[PLN_MAX_RANK];
  int64_t dims[PLN_MAX_RANK];
  if (!pln_transpose_order(call->engine, call->attrs, x->rank, perm))
    return pln_kernel_refuse(call, "axes is not a permutation");
  for (uint32_t i = 0; i < x->rank; i++)
    dims[i] = x->dims[perm[i]];
  return permuted(call, x, x->rank, x->dims, perm, x->rank, dims);
}

/* ------------------------------------------- depth_to_space, space_to_depth */

static pln_status read_blocksize(const pln_infer *call, int64_t *b) {
  *b = pln_call_int(call, "block_size", 0);
  if (*b > 0 && *b < 1 << 20)
    return PLN_OK;
  return pln_call_error(call, "blocksize %lld is out of range", (long long)*b);
}

static pln_status divide_dim(const pln_infer *call, pln_dim *dim, int64_t by) {
  if (PLN_DIM_IS_CONST(*dim) && *dim % by)
    return pln_arg_error(call, 0, "extent %lld does not divide by %lld",
                         (long long)*dim, (long long)by);
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, *dim, by, dim);
}

static pln_status infer_blocks(pln_infer *call, bool to_space, uint32_t channel,
                               uint32_t height) {
  pln_shape shape;
  int64_t b;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(read_blocksize(call, &b));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank != 4)
    pln_shape_ranked(&shape, 4);
  pln_dim *grown = &shape.dims[to_space ? height : channel];
  uint32_t n_grown = to_space ? 2 : 1;
  pln_dim *cut = &shape.dims[to_space ? channel : height];
  for (uint32_t i = 0; i < 3 - n_grown; i++)
    PLN_TRY(divide_dim(call, &cut[i], to_space ? b * b : b));
  for (uint32_t i = 0; i < n_grown; i++)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, grown[i], to_space ? b : b * b,
                          &grown[i]));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* Of layouts other than NCHW and NHWC only the rank of the result is known. */
static pln_status infer_moved_blocks(pln_infer *call, bool to_space) {
  pln_shape out;
  if (pln_call_string_is(call, "layout", "NCHW", "NCHW"))
    return infer_blocks(call, to_space, 1, 2);
  if (pln_call_string_is(call, "layout", "NCHW", "NHWC"))
    return infer_blocks(call, to_space, 3, 1);
  pln_shape_ranked(&out, 4);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_depth_to_space(pln_infer *call) {
  return infer_moved_blocks(call, true);
}

pln_status pln_infer_space_to_depth(pln_infer *call) {
  return infer_moved_blocks(call, false);
}

static bool blocksize_of(const pln_kernel_call *call, int64_t *b) {
  *b = pln_kernel_int(call, "block_size", 0);
  return *b > 0 && *b < 1 << 20 && pln_kernel_arg(call, 0)->rank == 4;
}

/* What the kernels need: the operand, the blocksize, extents by meaning. */
typedef struct block_move {
  const pln_tensor *x;
  int64_t b, n, c, h, w;
  bool channels_last, column_first;
} block_move;

static pln_status read_block_move(pln_kernel_call *call, block_move *m) {
  m->x = pln_kernel_arg(call, 0);
  m->channels_last = pln_kernel_string_is(call, "layout", "NCHW", "NHWC");
  if (!m->channels_last &&
      !pln_kernel_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_kernel_refuse(call, "the layout is neither NCHW nor NHWC");
  if (!blocksize_of(call, &m->b))
    return pln_kernel_refuse(call, "the blocksize does not match");
  m->column_first = pln_kernel_string_is(call, "mode", "DCR", "CRD");
  const int64_t *d = m->x->dims;
  m->n = d[0];
  m->c = d[m->channels_last ? 3 : 1];
  m->h = d[m->channels_last ? 1 : 2];
  m->w = d[m->channels_last ? 2 : 3];
  return PLN_OK;
}

/* depth_to_space: N (b b C) H W becomes N C (H b) (W b), and N H W (b b C)
 * becomes N (H b) (W b) C; in mode CRD channels are the outermost of the
 * three. */
pln_status pln_kernel_depth_to_space(pln_kernel_call *call) {
  static const uint32_t depth_first[6] = {0, 3, 4, 1, 5, 2};
  static const uint32_t column_first[6] = {0, 1, 4, 2, 5, 3};
  static const uint32_t last_depth_first[6] = {0, 1, 3, 2, 4, 5};
  static const uint32_t last_column_first[6] = {0, 1, 4, 2, 5, 3};
  block_move m;
  PLN_TRY(read_block_move(call, &m));
  int64_t b = m.b, c = m.c / (b * b);
  if (m.c % (b * b))
    return pln_kernel_refuse(call, "the blocksize does not match");
  int64_t first[6] = {m.n, b, b, c, m.h, m.w};
  int64_t column[6] = {m.n, c, b, b, m.h, m.w};
  int64_t out[4] = {m.n, c, m.h * b, m.w * b};
  if (!m.channels_last)
    return permuted(call, m.x, 6, m.column_first ? column : first,
                    m.column_first ? column_first : depth_first, 4, out);
  int64_t last[6] = {m.n, m.h, m.w, b, b, c};
  int64_t last_column[6] = {m.n, m.h, m.w, c, b, b};
  int64_t last_out[4] = {m.n, m.h * b, m.w * b, c};
  return permuted(call, m.x, 6, m.column_first ? last_column : last,
                  m.column_first ? last_column_first : last_depth_first, 4,
                  last_out);
}

/* space_to_depth: N C (H b) (W b) becomes N (b b C) H W, and N (H b) (W b) C
 * becomes N H W (b b C); in mode CRD channels are the outermost of the
 * three. */
pln_status pln_kernel_space_to_depth(pln_kernel_call *call) {
  static const uint32_t depth_first[6] = {0, 3, 5, 1, 2, 4};
  static const uint32_t column_first[6] = {0, 1, 3, 5, 2, 4};
  static const uint32_t last_depth_first[6] = {0, 1, 3, 2, 4, 5};
  static const uint32_t last_column_first[6] = {0, 1, 3, 5, 2, 4};
  block_move m;
  PLN_TRY(read_block_move(call, &m));
  int64_t b = m.b, h = m.h / b, w = m.w / b;
  if (m.h % b || m.w % b)
    return pln_kernel_refuse(call, "the blocksize does not match");
  int64_t dims[6] = {m.n, m.c, h, b, w, b};
  int64_t out[4] = {m.n, m.c * b * b, h, w};
  if (!m.channels_last)
    return permuted(call, m.x, 6, dims,
                    m.column_first ? column_first : depth_first, 4, out);
  int64_t last[6] = {m.n, h, b, w, b, m.c};
  int64_t last_out[4] = {m.n, h, w, m.c * b * b};
  return permuted(call, m.x, 6, last,
                  m.column_first ? last_column_first : last_depth_first, 4,
                  last_out);
}
