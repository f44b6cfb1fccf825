/* dense.c: type inference of Relay's matrix products: dense layers, plain and
 * packed, batched products, and bias_add. Called through ops.def. */

#include "op/infer/matmul.h"
#include "op/relay/data_layout.h"

/* Sums of quantised operands have a wider dtype. */
static pln_status set_dense_result(pln_infer *call, const pln_shape *shape) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  if (call->op == PLN_OP_QNN_BATCH_MATMUL || call->op == PLN_OP_QNN_DENSE_PACK)
    dtype = PLN_INT32;
  return pln_result_tensor(call, 0, pln_call_dtype(call, "out_dtype", dtype),
                           shape);
}

/* The weight has one row per unit; with `transposed` one column. */
static pln_status set_dense_weight_type(pln_infer *call, int64_t units,
                                        pln_dim in, bool transposed) {
  pln_shape w;
  pln_shape_ranked(&w, 2);
  w.dims[transposed] = units;
  w.dims[!transposed] = in;
  return units >= 0 ? pln_set_operand_type(call, 1, pln_arg_dtype(call, 0), &w)
                    : PLN_OK;
}

/* (..., in) times a weight (units, in): (..., units). */
pln_status pln_infer_dense(pln_infer *call) {
  pln_shape x, w;
  int64_t units = pln_call_int(call, "units", -1);
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  if (x.rank < 0)
    return set_dense_result(call, &x);
  pln_dim *last = &x.dims[x.rank - 1];
  PLN_TRY(set_dense_weight_type(call, units, *last, false));
  if (w.rank == 2) {
    PLN_TRY(pln_infer_same_dim(call, 1, last, w.dims[1]));
    *last = w.dims[0];
  } else {
    *last = PLN_DIM_UNKNOWN;
  }
  if (units >= 0)
    PLN_TRY(pln_infer_same_dim(call, 1, last, units));
  return set_dense_result(call, &x);
}

/* The weight has blocks of N in axis 2, whatever layout the attribute names;
 * of rank 2 it has none. */
pln_status pln_infer_dense_pack(pln_infer *call) {
  pln_shape x, w, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 2, 4));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  pln_shape_ranked(&out, 2);
  if (x.rank == 2)
    out.dims[0] = x.dims[0];
  if (w.rank == 2)
    out.dims[1] = w.dims[0];
  else if (w.rank > 2)
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, w.dims[0], w.dims[2], &out.dims[1]));
  return set_dense_result(call, &out);
}

/* (..., in) times a bit-packed weight: (..., units). */
pln_status pln_infer_bitserial_dense(pln_infer *call) {
  pln_shape x;
  int64_t units = pln_call_int(call, "units", -1);
  if (units < 0)
    return pln_call_error(call, "units is missing");
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  if (x.rank > 0)
    x.dims[x.rank - 1] = units;
  return set_dense_result(call, &x);
}

/* Of the last two axes: the contracted one and the one that remains. */
static void matrix_axes(const pln_shape *s, bool transposed, pln_dim *inner,
                        pln_dim *outer, bool left) {
  pln_dim rows = s->dims[s->rank - 2], columns = s->dims[s->rank - 1];
  *inner = left == transposed ? rows : columns;
  *outer = left == transposed ? columns : rows;
}

/* (batch, m, k) times (batch, k, n), each possibly transposed. */
pln_status pln_infer_batch_matmul(pln_infer *call) {
  pln_shape x, y, out;
  pln_dim k, inner;
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &y);
  pln_shape_ranked(&out, 3);
  if (x.rank < 0 || y.rank < 0)
    return set_dense_result(call, &out);
  matrix_axes(&x, pln_call_int(call, "transpose_a", 0) != 0, &k, &out.dims[1],
              true);
  matrix_axes(&y, pln_call_int(call, "transpose_b", 0) != 0, &inner,
              &out.dims[2], false);
  PLN_TRY(pln_infer_same_dim(call, 1, &k, inner));
  PLN_TRY(pln_infer_broadcast_dim(call, 1, x.dims[0], y.dims[0], &out.dims[0]));
  return set_dense_result(call, &out);
}

/* (..., m, k) times a matrix, each possibly transposed. */
pln_status pln_infer_matmul_transposed(pln_infer *call) {
  pln_shape x, y;
  pln_dim k, inner, m, n;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &y);
  if (x.rank < 0)
    return set_dense_result(call, &x);
  matrix_axes(&x, pln_call_int(call, "transpose_a", 0) != 0, &k, &m, true);
  n = pln_call_int(call, "units", PLN_DIM_UNKNOWN);
  bool transposed = pln_call_int(call, "transpose_b", 0) != 0;
  PLN_TRY(set_dense_weight_type(call, pln_call_int(call, "units", -1), k,
                                !transposed));
  if (y.rank == 2) {
    matrix_axes(&y, transposed, &inner, &n, false);
    PLN_TRY(pln_infer_same_dim(call, 1, &k, inner));
  }
  x.dims[x.rank - 2] = m;
  x.dims[x.rank - 1] = n;
  return set_dense_result(call, &x);
}

pln_status pln_infer_bias_add(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0), axis;
  PLN_TRY(pln_arg_expect_rank(call, 1, 1));
  if (rank >= 0) {
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 1), rank, &axis));
    pln_dim extent = pln_arg_dims(call, 0)[axis];
    PLN_TRY(pln_set_operand_vector(call, 1, pln_arg_dtype(call, 0), extent));
    if (pln_arg_rank(call, 1) == 1)
      PLN_TRY(pln_infer_same_dim(call, 1, &extent, pln_arg_dims(call, 1)[0]));
  }
  pln_result_like(call, 0, 0);
  return PLN_OK;
}
