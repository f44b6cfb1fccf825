/* dropout.c: nn.dropout: its operand in inference. In training its result is
 * random, which is refused. Called through ops.def. */

#include "op/kernel.h"

pln_status pln_infer_dropout(pln_infer *call) {
  pln_result_like(call, 0, 0);
  return pln_result_shaped_like(call, 1, 0, PLN_BOOL);
}

/* Training is asked for by the third operand, and drops nothing at ratio 0. */
static bool trains(const pln_kernel_call *call) {
  const pln_tensor *ratio = pln_kernel_arg(call, 1);
  const pln_tensor *training = pln_kernel_arg(call, 2);
  static const char zero[8];
  if (!training || (training->dtype == PLN_BOOL && training->count == 1 &&
                    *(const uint8_t *)training->data == 0))
    return false;
  size_t size = ratio ? pln_element_size((pln_dtype)ratio->dtype) : 0;
  return !(ratio && ratio->count == 1 && size > 0 && size <= sizeof zero &&
           !memcmp(ratio->data, zero, size));
}

pln_status pln_kernel_dropout(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  void *mask;
  if (trains(call))
    return pln_kernel_refuse(call, "training is random");
  if (call->n_results > 1) {
    PLN_TRY(pln_kernel_result(call, 1, PLN_BOOL, x->rank, x->dims, &mask));
    if (x->count)
      memset(mask, 1, x->count);
  }
  pln_kernel_same(call, 0, x);
  return PLN_OK;
}
