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

static pln_status infer_blocks(pln_infer *call, bool to_space) {
  pln_shape shape;
  int64_t b;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(read_blocksize(call, &b));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank != 4)
    pln_shape_ranked(&shape, 4);
  pln_dim *grown = to_space ? &shape.dims[2] : &shape.dims[1];
  uint32_t n_grown = to_space ? 2 : 1;
  pln_dim *cut = to_space ? &shape.dims[1] : &shape.dims[2];
  for (uint32_t i = 0; i < 3 - n_grown; i++)
    PLN_TRY(divide_dim(call, &cut[i], to_space ? b * b : b));
  for (uint32_t i = 0; i < n_grown; i++)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, grown[i], to_space ? b : b * b,
                          &grown[i]));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* The type for layouts other than NCHW: only the rank is inferred. */
static pln_status other_layout(pln_infer *call) {
  pln_shape out;
  pln_shape_ranked(&out, 4);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_depth_to_space(pln_infer *call) {
  if (!pln_call_string_is(call, "layout", "NCHW", "NCHW"))
    return other_layout(call);
  return infer_blocks(call, true);
}

pln_status pln_infer_space_to_depth(pln_infer *call) {
  if (!pln_call_string_is(call, "layout", "NCHW", "NCHW"))
    return other_layout(call);
  return infer_blocks(call, false);
}

static bool blocksize_of(const pln_kernel_call *call, int64_t *b) {
  *b = pln_kernel_int(call, "block_size", 0);
  return *b > 0 && *b < 1 << 20 && pln_kernel_arg(call, 0)->rank == 4;
}

/* depth_to_space: N (b b C) H W becomes N C (H b) (W b); in mode CRD channels
 * are the outermost of the three. */
pln_status pln_kernel_depth_to_space(pln_kernel_call *call) {
  if (!pln_kernel_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_kernel_refuse(call, "channels are not axis 1");
  static const uint32_t depth_first[6] = {0, 3, 4, 1, 5, 2};
  static const uint32_t column_first[6] = {0, 1, 4, 2, 5, 3};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const int64_t *d = x->dims;
  int64_t b;
  if (!blocksize_of(call, &b) || d[1] % (b * b))
    return pln_kernel_refuse(call, "the blocksize does not match");
  bool crd = pln_kernel_string_is(call, "mode", "DCR", "CRD");
  int64_t c = d[1] / (b * b);
  int64_t dcr_dims[6] = {d[0], b, b, c, d[2], d[3]};
  int64_t crd_dims[6] = {d[0], c, b, b, d[2], d[3]};
  int64_t out[4] = {d[0], c, d[2] * b, d[3] * b};
  return permuted(call, x, 6, crd ? crd_dims : dcr_dims,
                  crd ? column_first : depth_first, 4, out);
}

/* space_to_depth: N C (H b) (W b) becomes N (b b C) H W; in mode CRD channels
 * are the outermost of the three. */
pln_status pln_kernel_space_to_depth(pln_kernel_call *call) {
  if (!pln_kernel_string_is(call, "layout", "NCHW", "NCHW"))
    return pln_kernel_refuse(call, "channels are not axis 1");
  static const uint32_t depth_first[6] = {0, 3, 5, 1, 2, 4};
  static const uint32_t column_first[6] = {0, 1, 3, 5, 2, 4};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const int64_t *d = x->dims;
  int64_t b;
  if (!blocksize_of(call, &b) || d[2] % b || d[3] % b)
    return pln_kernel_refuse(call, "the blocksize does not match");
  bool crd = pln_kernel_string_is(call, "mode", "DCR", "CRD");
  int64_t dims[6] = {d[0], d[1], d[2] / b, b, d[3] / b, b};
  int64_t out[4] = {d[0], d[1] * b * b, d[2] / b, d[3] / b};
  return permuted(call, x, 6, dims, crd ? column_first : depth_first, 4, out);
}
