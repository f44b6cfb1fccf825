/* qnn.c: type inference of Relay's quantised operators. Called through ops.def;
 * the kernels are in relay/kernel/qnn.c and conv.c. */

#include "op/infer/infer.h"

static pln_status as_dtype(pln_infer *call, pln_dtype fallback) {
  return pln_result_shaped_like(call, 0, 0,
                                pln_call_dtype(call, "out_dtype", fallback));
}

pln_status pln_infer_qnn_quantize(pln_infer *call) {
  return as_dtype(call, PLN_INT8);
}

pln_status pln_infer_qnn_dequantize(pln_infer *call) {
  return as_dtype(call, PLN_FLOAT32);
}

/* (lhs, rhs, scales and zero points): the operands broadcast. */
pln_status pln_infer_qnn_broadcast(pln_infer *call) {
  pln_shape shape;
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_args_broadcast(call, 0, 2, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* (..., in) times a weight (units, in). */
pln_status pln_infer_qnn_dense(pln_infer *call) {
  pln_shape x, w;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  if (x.rank > 0)
    x.dims[x.rank - 1] =
        w.rank == 2 ? w.dims[0] : pln_call_int(call, "units", PLN_DIM_UNKNOWN);
  return pln_result_tensor(call, 0,
                           pln_call_dtype(call, "out_dtype", PLN_INT32), &x);
}

/* The number of fields of a tuple; -1: its type is unknown, or another. */
static int64_t fields_of(const pln_infer *call, uint32_t i) {
  pln_type type = pln_arg_type(call, i);
  return pln_type_get_kind(call->engine, type) == PLN_TYPE_TUPLE
             ? (int64_t)pln_type_n_parts(call->engine, type)
             : -1;
}

/* (tensors, their scales, their zero points, scale, zero point): the tensors
 * concatenated. */
pln_status pln_infer_qnn_concatenate(pln_infer *call) {
  if (call->fields)
    return PLN_OK;
  int64_t n = fields_of(call, 0);
  for (uint32_t i = 1; i < 3; i++)
    if (n >= 0 && fields_of(call, i) >= 0 && fields_of(call, i) != n)
      return pln_arg_error(call, i, "expected %lld fields, got %lld",
                           (long long)n, (long long)fields_of(call, i));
  pln_infer joined = *call;
  joined.n_args = 1;
  joined.operands = NULL;
  return pln_infer_concatenate(&joined);
}
