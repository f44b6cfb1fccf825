/* loss.c: the types of losses. Called through ops.def. */

#include "op/infer.h"

static pln_status result_loss(pln_infer *call) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  if (pln_call_string_is(call, "reduction", "mean", "none"))
    return pln_result_shaped_like(call, 0, 1, dtype);
  return pln_result_scalar(call, 0, dtype);
}

pln_status pln_infer_nll_loss(pln_infer *call) {
  return result_loss(call);
}

pln_status pln_infer_softmax_cross_entropy(pln_infer *call) {
  PLN_TRY(result_loss(call));
  pln_result_like(call, 1, 0);
  return PLN_OK;
}
