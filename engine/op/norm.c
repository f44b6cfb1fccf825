/* norm.c: the types of normalisations and dropout. Called through ops.def. */

#include "op/infer.h"

/* One result in inference; in training also mean and variance, and before
 * opset 9 saved ones. */
pln_status pln_infer_batch_norm(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  for (uint32_t i = 1; i < 5; i++)
    if (pln_call_int(call, "spatial", 1))
      PLN_TRY(pln_arg_expect_rank(call, i, 1));
  pln_result_like(call, 0, 0);
  for (uint32_t i = 1; i < pln_call_n_results(call); i++)
    pln_result_like(call, i, 3);
  return PLN_OK;
}

/* Results: normalised, mean, inverse deviation; the last two have extent 1
 * where was averaged. */
pln_status pln_infer_layer_norm(pln_infer *call) {
  pln_shape s;
  int32_t axis;
  int64_t stash = pln_call_int(call, "stash_type", PLN_FLOAT32);
  pln_dtype dtype =
      stash == PLN_BFLOAT16 ? PLN_BFLOAT16 : (pln_dtype)PLN_FLOAT32;
  pln_arg_shape(call, 0, &s);
  pln_result_like(call, 0, 0);
  if (s.rank > 0) {
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", -1), s.rank, &axis));
    for (int32_t i = axis; i < s.rank; i++)
      s.dims[i] = 1;
  }
  PLN_TRY(pln_result_tensor(call, 1, dtype, &s));
  return pln_result_tensor(call, 2, dtype, &s);
}

pln_status pln_infer_dropout(pln_infer *call) {
  pln_result_like(call, 0, 0);
  return pln_result_shaped_like(call, 1, 0, PLN_BOOL);
}
