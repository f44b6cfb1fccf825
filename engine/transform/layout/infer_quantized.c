/* infer_quantized.c: layouts of quantised operators.
 *
 * Called through layouts.def. The tensors have the layouts that they have in
 * the operator without quantisation; scales and zero points are scalars or
 * vectors of channels, whose layout stays.
 *
 *     qnn.add("NHWC" -> "NCHW", "NHWC", scales and zero points)
 *       =>   qnn.add("NCHW", "NCHW", "C", ...)
 *
 * Semantics: TVM's FInferCorrectLayout of each operator. */

#include "transform/layout/infer_layout.h"

/* True if operands [first, end) are scalars. */
static bool are_scalars(const pln_layout_call *call, uint32_t first,
                        uint32_t end) {
  for (uint32_t i = first; i < end; i++)
    if (pln_layout_arg_rank(call, i) != 0)
      return false;
  return true;
}

/* A vector of scales belongs to an axis by number: then nothing moves. */
pln_status pln_layout_qnn_broadcast(pln_layout_call *call) {
  if (call->n != 8 || !are_scalars(call, 2, 6))
    return PLN_OK;
  PLN_TRY(pln_layout_broadcast(call));
  return pln_layout_channels(call, 2);
}

pln_status pln_layout_qnn_conv(pln_layout_call *call) {
  uint32_t n = call->n;
  if (n < 2)
    return PLN_OK;
  call->n = 2;
  pln_status status = pln_layout_conv(call);
  call->n = n;
  PLN_TRY(status);
  return pln_layout_channels(call, 2);
}

/* Operands: tensors, their scales, their zero points, two of the result. */
pln_status pln_layout_qnn_concatenate(pln_layout_call *call) {
  uint32_t n = call->n;
  if (n < 5 || n % 3 != 2)
    return PLN_OK;
  call->n = (n - 2) / 3;
  pln_status status = pln_layout_concatenate(call);
  uint32_t tensors = call->n;
  call->n = n;
  PLN_TRY(status);
  return pln_layout_channels(call, tensors);
}

/* Inner parts stay only where no vector of scales belongs to the axis. *axis:
 * its new number, or -1. */
static pln_status requantized_layout(pln_layout_call *call, bool whole,
                                     int64_t *axis, pln_tensor_layout *out) {
  const pln_layout_table *t = call->table;
  int32_t rank = pln_tensor_layout_rank(t, call->now[0]);
  pln_data_layout axes = {0};
  int32_t at = pln_tensor_layout_map(t, call->old[0], *axis, call->now[0]);
  *axis = -1;
  for (int32_t i = 0; i < rank; i++) {
    pln_layout_axis a = pln_tensor_layout_axis(t, call->now[0], i);
    if (i == at)
      *axis = axes.rank;
    if (a.factor && !whole)
      continue;
    axes.letter[axes.rank] = a.letter;
    axes.factor[axes.rank++] = a.factor;
  }
  return pln_tensor_layout_of(call->table, &axes, out);
}

pln_status pln_layout_requantize(pln_layout_call *call) {
  pln_tensor_layout layout = call->old[0];
  int64_t axis;
  if (call->n != 5)
    return PLN_OK;
  PLN_TRY(pln_layout_int(call, "axis", -1, &axis));
  if (call->now) {
    axis = pln_layout_normal_axis(call, axis);
    PLN_TRY(requantized_layout(call, are_scalars(call, 1, 3), &axis, &layout));
    if (axis < 0)
      return PLN_OK;
    PLN_TRY(pln_layout_set_int(call, "axis", axis));
  }
  call->in[0] = layout;
  pln_layout_set_results(call, layout);
  return pln_layout_channels(call, 1);
}

pln_status pln_layout_qnn_pool(pln_layout_call *call) {
  if (call->n != 5 || !are_scalars(call, 1, 5))
    return PLN_OK;
  PLN_TRY(pln_layout_pool(call));
  return pln_layout_channels(call, 1);
}

pln_status pln_layout_simulated_quantize(pln_layout_call *call) {
  call->in[0] = pln_layout_operand(call, 0);
  pln_layout_set_results(call, call->in[0]);
  return pln_layout_channels(call, 1);
}
