/* matmul.c: type inference of matrix products, also for quantised ones
 * (kernel/quantize/matmul.c). Called through ops.def. */

#include "op/infer/matmul.h"

/* A vector is a row on the left and a column on the right. */
static void as_matrix(pln_shape *s, bool left) {
  if (s->rank != 1)
    return;
  s->rank = 2;
  s->dims[1] = left ? s->dims[0] : 1;
  s->dims[0] = left ? 1 : s->dims[0];
}

pln_status pln_infer_multiply_shapes(const pln_infer *call, uint32_t b_arg,
                                     pln_shape *a, pln_shape *b,
                                     pln_shape *out) {
  bool row = a->rank == 1, column = b->rank == 1;
  as_matrix(a, true);
  as_matrix(b, false);
  pln_dim m = a->dims[a->rank - 2], n = b->dims[b->rank - 1];
  PLN_TRY(pln_infer_same_dim(call, b_arg, &a->dims[a->rank - 1],
                             b->dims[b->rank - 2]));
  a->rank -= 2;
  b->rank -= 2;
  *out = *a;
  PLN_TRY(pln_infer_broadcast_shape(call, b_arg, out, b));
  if (out->rank > PLN_MAX_RANK - 2) {
    pln_shape_unknown(out);
    return PLN_OK;
  }
  if (!row)
    out->dims[out->rank++] = m;
  if (!column)
    out->dims[out->rank++] = n;
  return PLN_OK;
}

pln_status pln_infer_product_shape(const pln_infer *call, uint32_t a_arg,
                                   uint32_t b_arg, pln_shape *out) {
  pln_shape a, b;
  pln_arg_shape(call, a_arg, &a);
  pln_arg_shape(call, b_arg, &b);
  PLN_TRY(pln_arg_expect_rank_within(call, a_arg, 1, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank_within(call, b_arg, 1, INT32_MAX));
  pln_shape_unknown(out);
  if (a.rank < 0 || b.rank < 0)
    return PLN_OK;
  return pln_infer_multiply_shapes(call, b_arg, &a, &b, out);
}

pln_status pln_infer_matmul(pln_infer *call) {
  if (pln_call_has(call, "transpose_a") || pln_call_has(call, "transpose_b") ||
      pln_call_has(call, "units"))
    return pln_infer_matmul_transposed(call);
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, pln_call_dtype(call, "out_dtype", dtype),
                           &shape);
}

pln_status pln_infer_gemm_shape(const pln_infer *call, uint32_t a_arg,
                                uint32_t b_arg, pln_shape *out) {
  pln_shape a, b;
  PLN_TRY(pln_arg_expect_rank(call, a_arg, 2));
  PLN_TRY(pln_arg_expect_rank(call, b_arg, 2));
  pln_arg_shape(call, a_arg, &a);
  pln_arg_shape(call, b_arg, &b);
  pln_shape_ranked(out, 2);
  int ta = pln_call_int(call, "transA", 0) != 0;
  int tb = pln_call_int(call, "transB", 0) != 0;
  if (a.rank == 2)
    out->dims[0] = a.dims[ta];
  if (b.rank == 2)
    out->dims[1] = b.dims[!tb];
  return a.rank == 2 && b.rank == 2
             ? pln_infer_same_dim(call, b_arg, &a.dims[!ta], b.dims[tb])
             : PLN_OK;
}

pln_status pln_infer_gemm(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  PLN_TRY(pln_infer_gemm_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}
