/* attention.c: type inference of attention. Called through ops.def; the kernel
 * is kernel/attention/attention.c. */

#include "op/infer/infer.h"

/* Query, key or value as (batch, heads, steps, size), from that form or from
 * (batch, steps, heads * size). */
static pln_status infer_attention_heads(const pln_infer *call, uint32_t arg,
                                        const char *heads, pln_shape *out) {
  pln_shape x;
  int64_t n = pln_call_int(call, heads, 0);
  PLN_TRY(pln_arg_expect_rank_within(call, arg, 3, 4));
  pln_arg_shape(call, arg, &x);
  pln_shape_ranked(out, 4);
  if (x.rank == 4)
    *out = x;
  if (x.rank != 3)
    return PLN_OK;
  out->dims[0] = x.dims[0];
  out->dims[2] = x.dims[1];
  if (n < 1)
    return PLN_OK;
  out->dims[1] = n;
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, x.dims[2], n, &out->dims[3]);
}

/* Keys or values with the past ones prepended. */
static pln_status with_past(const pln_infer *call, uint32_t arg,
                            pln_shape *now) {
  if (pln_arg_absent(call, arg))
    return PLN_OK;
  pln_shape past;
  pln_arg_shape(call, arg, &past);
  pln_dim steps = past.rank == 4 ? past.dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  return pln_infer_dim(call, PLN_DIM_ADD, steps, now->dims[2], &now->dims[2]);
}

/* Operands: query, key, value, mask, past key, past value. Results: output,
 * present key, present value, the product of query and key. */
pln_status pln_infer_attention(pln_infer *call) {
  pln_shape q, k, v;
  pln_dtype dtype = pln_arg_dtype(call, 0);
  PLN_TRY(infer_attention_heads(call, 0, "q_num_heads", &q));
  PLN_TRY(infer_attention_heads(call, 1, "kv_num_heads", &k));
  PLN_TRY(infer_attention_heads(call, 2, "kv_num_heads", &v));
  PLN_TRY(with_past(call, 4, &k));
  PLN_TRY(with_past(call, 5, &v));
  pln_shape out = {4, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]}};
  pln_shape scores = {4, {q.dims[0], q.dims[1], q.dims[2], k.dims[2]}};
  if (pln_arg_rank(call, 0) == 3) {
    out = (pln_shape){3, {q.dims[0], q.dims[2], 0}};
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, q.dims[1], v.dims[3], &out.dims[2]));
  } else if (pln_arg_rank(call, 0) < 0) {
    pln_shape_unknown(&out);
  }
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  PLN_TRY(pln_result_tensor(call, 1, pln_arg_dtype(call, 1), &k));
  PLN_TRY(pln_result_tensor(call, 2, pln_arg_dtype(call, 2), &v));
  return pln_result_tensor(call, 3, dtype, &scores);
}
