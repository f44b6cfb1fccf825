/* qnn_concatenate.c: the kernel of Relay's qnn.concatenate. Called through
 * ops.def; its type is in relay/infer/qnn.c.
 *
 *     qnn.concatenate((x, y), (s, t), (p, q), u, r)
 *         =>   concatenate((qnn.requantize(x, s, p, u, r),
 *                           qnn.requantize(y, t, q, u, r)))
 *
 * Semantics: TVM's QNN canonicalisation. */

#include "op/kernel/composed.h"

/* Tensor i of `n`, with the scale and the zero point of the result. */
static const pln_tensor *requantized(pln_composition *s, uint32_t n,
                                     uint32_t i) {
  const pln_tensor *args[5];
  for (uint32_t k = 0; k < 3; k++)
    args[k] = pln_kernel_arg(s->call, k * n + i);
  args[3] = pln_kernel_arg(s->call, 3 * n);
  args[4] = pln_kernel_arg(s->call, 3 * n + 1);
  if (!args[0])
    return NULL;
  pln_compose_string(s, "out_dtype", pln_dtype_name((pln_dtype)args[0]->dtype));
  return pln_compose_call(s, PLN_OP_QNN_REQUANTIZE, 5, args);
}

/* The operands are the fields of three tuples, and two more. */
pln_status pln_kernel_qnn_concatenate(pln_kernel_call *call) {
  const pln_tensor *parts[PLN_COMPOSITION_TENSORS];
  pln_composition s;
  uint32_t n = (call->n_args - 2) / 3;
  if (call->n_args < 5 || call->n_args % 3 != 2)
    return pln_kernel_refuse(
        call, "the tensors, scales and zero points are not equally many");
  if (n > PLN_COMPOSITION_TENSORS / 2)
    return pln_kernel_refuse(call, "there are more than %d tensors",
                             PLN_COMPOSITION_TENSORS / 2);
  pln_composition_begin(&s, call);
  for (uint32_t i = 0; i < n; i++)
    parts[i] = requantized(&s, n, i);
  pln_compose_forward(&s, "axis");
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_CONCAT, n, parts));
}
