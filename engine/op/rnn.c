/* rnn.c: the types of recurrent layers and of attention. Called through
 * ops.def. */

#include "op/infer.h"

/* The extents of a recurrent layer. */
typedef struct layer {
  pln_dim time, batch, directions, hidden;
} layer;

static void read_layer(const pln_infer *call, bool batch_first, layer *l) {
  pln_shape x, r;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 2, &r);
  l->time = x.rank == 3 ? x.dims[batch_first] : (pln_dim)PLN_DIM_UNKNOWN;
  l->batch = x.rank == 3 ? x.dims[!batch_first] : (pln_dim)PLN_DIM_UNKNOWN;
  bool both = pln_call_string_is(call, "direction", "forward", "bidirectional");
  l->directions = both ? 2 : 1;
  l->hidden = r.rank == 3 ? r.dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  int64_t hidden = pln_call_int(call, "hidden_size", -1);
  if (hidden >= 0)
    l->hidden = hidden;
}

/* Results: the states of all steps, the last ones, and of LSTM the cells. */
pln_status pln_infer_rnn(pln_infer *call) {
  bool batch_first = pln_call_int(call, "layout", 0) != 0;
  pln_dtype dtype;
  layer l;
  for (uint32_t i = 0; i < 3; i++)
    PLN_TRY(pln_arg_expect_rank(call, i, 3));
  PLN_TRY(pln_args_one_dtype(call, 0, 4, &dtype));
  read_layer(call, batch_first, &l);
  pln_shape all = {4, {l.time, l.directions, l.batch, l.hidden}};
  pln_shape last = {3, {l.directions, l.batch, l.hidden}};
  if (batch_first) {
    all = (pln_shape){4, {l.batch, l.time, l.directions, l.hidden}};
    last = (pln_shape){3, {l.batch, l.directions, l.hidden}};
  }
  PLN_TRY(pln_result_tensor(call, 0, dtype, &all));
  PLN_TRY(pln_result_tensor(call, 1, dtype, &last));
  return pln_result_tensor(call, 2, dtype, &last);
}

/* --------------------------------------------------------------- attention */

/* Query, key or value as (batch, heads, steps, size), whether it comes so or
 * as (batch, steps, heads * size). */
static pln_status read_heads(const pln_infer *call, uint32_t arg,
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

/* What is remembered of keys or values: those of the past, then these. */
static pln_status with_past(const pln_infer *call, uint32_t arg,
                            pln_shape *now) {
  if (pln_arg_absent(call, arg))
    return PLN_OK;
  pln_shape past;
  pln_arg_shape(call, arg, &past);
  pln_dim steps = past.rank == 4 ? past.dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  return pln_infer_dim(call, PLN_DIM_ADD, steps, now->dims[2], &now->dims[2]);
}

/* Operands: query, key, value, mask, past key, past value. Results: the sum,
 * present key and value, the product of query and key. */
pln_status pln_infer_attention(pln_infer *call) {
  pln_shape q, k, v;
  pln_dtype dtype = pln_arg_dtype(call, 0);
  PLN_TRY(read_heads(call, 0, "q_num_heads", &q));
  PLN_TRY(read_heads(call, 1, "kv_num_heads", &k));
  PLN_TRY(read_heads(call, 2, "kv_num_heads", &v));
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
