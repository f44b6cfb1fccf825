/* qnn_legalize_ops.c: qnn.Legalize: replaces quantised operators by what
 * targets compute better.
 *
 * Run by the executor, once per function. Requires a verified graph. Functions
 * of one operand become tables, if their scales and zero points are constants;
 * the operands of transposed convolutions become integers of 16 bits. The
 * attribute FTVMQnnLegalize of an operator takes the place of the replacement
 * here.
 *
 *     qnn.exp(%x, s, z, t, y)   =>
 *     take(table, reinterpret(%x, uint8), axis=0, mode="fast")
 *
 * Semantics: TVM qnn.Legalize (legalizations.py). */

#include <math.h>

#include "transform/quantize/lookup_table.h"
#include "transform/quantize/qnn_legalize.h"

static pln_ref look_up(pln_qnn_call *q) {
  pln_dtype dtype = pln_qnn_dtype(q, q->args[0]);
  for (uint32_t i = 1; i < 5; i++)
    if (!pln_qnn_is_scalar(q, q->args[i]))
      return PLN_NONE;
  pln_lookup_table table = {
      .op = q->op,
      .from = dtype,
      .to = dtype,
      .scale = (float)pln_qnn_scalar_value(q, q->args[1]),
      .zero = (int32_t)pln_qnn_scalar_value(q, q->args[2]),
      .out_scale = (float)pln_qnn_scalar_value(q, q->args[3]),
      .out_zero = (int32_t)pln_qnn_scalar_value(q, q->args[4])};
  if (!pln_lookup_table_exists(&table))
    return PLN_NONE;
  return pln_build_lookup(&q->r, &table, q->args[0]);
}

/* x - zero as int16; a vector is subtracted along axis 1. */
static pln_ref shift_operand(pln_qnn_call *q, uint32_t i) {
  pln_ref zero = q->args[i + 2];
  pln_ref x = pln_qnn_cast(q, q->args[i], PLN_INT16);
  bool scalar = pln_qnn_rank(q, zero) == 0;
  zero = pln_qnn_cast(q, zero, PLN_INT16);
  if (scalar)
    return pln_qnn_binary(q, PLN_OP_SUB, x, zero);
  return pln_qnn_binary(q, PLN_OP_BIAS_ADD, x,
                        pln_qnn_unary(q, PLN_OP_NEG, zero));
}

static pln_ref convolve_transposed(pln_qnn_call *q) {
  pln_ref args[2] = {shift_operand(q, 0)};
  args[1] = shift_operand(q, 1);
  return pln_relay_call_core(&q->r, PLN_OP_CONV_2D_TRANSPOSE, q->attrs, 2,
                             args);
}

static pln_qnn_replace_fn find_legalization(pln_op op) {
  switch (op) {
  case PLN_OP_QNN_CONV_2D_TRANSPOSE: return convolve_transposed;
  case PLN_OP_QNN_TANH:
  case PLN_OP_QNN_EXP:
  case PLN_OP_QNN_SQRT:
  case PLN_OP_QNN_RSQRT:
  case PLN_OP_QNN_ERF:
  case PLN_OP_QNN_SIGMOID:
  case PLN_OP_QNN_HARDSWISH:
  case PLN_OP_QNN_LOG:
  case PLN_OP_QNN_ABS: return look_up;
  default: return NULL;
  }
}

pln_status pln_pass_qnn_legalize(pln_pass_run *run) {
  return pln_qnn_legalize(run, "FTVMQnnLegalize", find_legalization);
}
