/* qnn_legalize_ops.c: qnn.Legalize: replaces quantised operators by what
 * targets compute better.
 *
 * Run by the executor, once per function. Requires a verified graph. Functions
 * of one operand become tables, if their scales and zero points are constants;
 * the operands of transposed convolutions become integers of 16 bits. Operands
 * of convolutions and dense products get the dtypes that the context's target
 * multiplies fast (target_features.h), or whole vectors of channels
 * (qnn_align_channels.h). The attribute FTVMQnnLegalize of an
 * operator takes the place of the replacement here.
 *
 *     qnn.exp(%x, s, z, t, y)   =>
 *     take(table, reinterpret(%x, uint8), axis=0, mode="fast")
 *
 * Semantics: TVM qnn.Legalize (legalizations.py). */

#include <math.h>

#include "transform/quantize/lookup_table.h"
#include "transform/quantize/qnn_align_channels.h"
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

/* ------------------------------------------------ products, by the target */

/* x - zero as int16; a vector belongs to the outputs of the weights. */
static pln_ref shift_weights(pln_qnn_call *q) {
  pln_slice layout =
      pln_attrs_string(q->r.engine, q->attrs, "kernel_layout", "OIHW");
  const char *o = layout.size ? memchr(layout.data, 'O', layout.size) : NULL;
  bool conv = q->op == PLN_OP_QNN_CONV_2D;
  pln_relay_attr axis = pln_relay_int("axis", conv && o ? o - layout.data : 0);
  if (pln_qnn_rank(q, q->args[3]) == 0)
    return shift_operand(q, 1);
  pln_ref args[2] = {pln_qnn_cast(q, q->args[1], PLN_INT16)};
  pln_ref zero = pln_qnn_cast(q, q->args[3], PLN_INT16);
  args[1] = pln_qnn_unary(q, PLN_OP_NEG, zero);
  return pln_relay_call_with(&q->r, PLN_OP_BIAS_ADD, 1, &axis, 2, args);
}

static pln_ref multiply_int16(pln_qnn_call *q) {
  pln_op op = q->op == PLN_OP_QNN_DENSE ? PLN_OP_DENSE : PLN_OP_CONV_2D;
  if (pln_qnn_rank(q, q->args[2]) != 0)
    return PLN_NONE;
  pln_ref args[2] = {shift_operand(q, 0)};
  args[1] = shift_weights(q);
  return pln_relay_call_core(&q->r, op, q->attrs, 2, args);
}

/* Operand `i` and its zero point as the other dtype of 8 bits. */
static void shift_by_128(pln_qnn_call *q, uint32_t i) {
  bool is_signed = pln_qnn_dtype(q, q->args[i]) == PLN_INT8;
  double shift = is_signed ? 128 : -128;
  pln_ref zero = q->args[i + 2];
  pln_ref x = pln_qnn_cast(q, q->args[i], PLN_INT32);
  x = pln_qnn_binary(q, PLN_OP_ADD, x, pln_qnn_scalar(q, PLN_INT32, shift));
  q->args[i] = pln_qnn_cast(q, x, is_signed ? PLN_UINT8 : PLN_INT8);
  if (pln_qnn_is_scalar(q, zero))
    q->args[i + 2] =
        pln_qnn_scalar(q, PLN_INT32, pln_qnn_scalar_value(q, zero) + shift);
  else
    q->args[i + 2] = pln_qnn_binary(q, PLN_OP_ADD, zero,
                                    pln_qnn_scalar(q, PLN_INT32, shift));
}

/* The same product of operands of these dtypes. */
static pln_ref multiply_as(pln_qnn_call *q, pln_dtype x, pln_dtype w) {
  const pln_dtype wanted[2] = {x, w};
  bool changed = false;
  for (uint32_t i = 0; i < 2; i++) {
    pln_dtype dtype = pln_qnn_dtype(q, q->args[i]);
    if (dtype == wanted[i] || (dtype != PLN_INT8 && dtype != PLN_UINT8))
      continue;
    shift_by_128(q, i);
    changed = true;
  }
  if (!changed)
    return PLN_NONE;
  return pln_relay_call_core(&q->r, q->op, q->attrs, 6, q->args);
}

static bool is_depthwise(const pln_qnn_call *q) {
  int64_t groups = pln_attrs_int(q->r.engine, q->attrs, "groups", 1);
  return groups > 1 &&
         groups == pln_attrs_int(q->r.engine, q->attrs, "channels", -1);
}

static pln_product_operands wanted_operands(const pln_qnn_call *q) {
  pln_slice layout =
      pln_attrs_string(q->r.engine, q->attrs, "data_layout", "NCHW");
  if (q->op == PLN_OP_QNN_DENSE)
    return q->target.dense;
  if (q->target.nhwc_is_same && pln_slice_is(layout, "NHWC") &&
      !is_depthwise(q))
    return PLN_OPERANDS_SAME;
  return q->target.conv_2d;
}

static pln_ref multiply_for_target(pln_qnn_call *q) {
  pln_dtype w = pln_qnn_dtype(q, q->args[1]);
  if (q->n_args != 6)
    return PLN_NONE;
  switch (wanted_operands(q)) {
  case PLN_OPERANDS_INT16: return multiply_int16(q);
  case PLN_OPERANDS_UINT8_INT8: return multiply_as(q, PLN_UINT8, PLN_INT8);
  case PLN_OPERANDS_INT8: return multiply_as(q, PLN_INT8, PLN_INT8);
  case PLN_OPERANDS_SAME: return multiply_as(q, w, w);
  case PLN_OPERANDS_ALIGNED: return pln_qnn_align_channels(q);
  case PLN_OPERANDS_ANY: break;
  }
  return PLN_NONE;
}

static pln_qnn_replace_fn find_legalization(pln_op op) {
  switch (op) {
  case PLN_OP_QNN_CONV_2D_TRANSPOSE: return convolve_transposed;
  case PLN_OP_QNN_CONV_2D:
  case PLN_OP_QNN_DENSE: return multiply_for_target;
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
