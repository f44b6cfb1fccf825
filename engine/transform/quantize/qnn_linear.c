/* qnn_linear.c: replacements of the conversions qnn.quantize, qnn.dequantize
 * and qnn.requantize, and of functions that are computed through floats. Called
 * through the table of canonicalize_ops.c.
 *
 *     qnn.quantize(%x, s, z)   =>   cast(clip(round(%x / s) + z), int8)
 *
 * Semantics: TVM's QuantizeLower, DequantizeLower, RequantizeQnnCanonicalize
 * and QNN_UNARY_OP_DEFAULT_CANONICALIZATION. */

#include <float.h>

#include "transform/quantize/qnn_call.h"

/* A scale or zero point of the call, with axes appended if it is a vector. */
static pln_ref along_operand(pln_qnn_call *q, pln_ref node) {
  int32_t rank = pln_qnn_rank(q, q->args[0]);
  if (pln_qnn_rank(q, node) == 0)
    return node;
  return pln_qnn_along_axis(q, node, rank, pln_qnn_axis(q, "axis", rank));
}

static pln_dtype result_dtype(const pln_qnn_call *q) {
  return pln_type_dtype(q->r.engine, q->type);
}

pln_ref pln_qnn_quantize(pln_qnn_call *q) {
  if (pln_qnn_rank(q, q->args[0]) < 0 || pln_qnn_rank(q, q->args[1]) < 0 ||
      pln_qnn_rank(q, q->args[2]) < 0)
    return PLN_NONE;
  pln_ref scale = along_operand(q, q->args[1]);
  pln_ref zero = along_operand(q, q->args[2]);
  pln_ref x = pln_qnn_binary(q, PLN_OP_DIV, q->args[0], scale);
  x = pln_qnn_unary(q, PLN_OP_ROUND, x);
  x = pln_qnn_binary(q, PLN_OP_ADD, x, pln_qnn_cast(q, zero, PLN_FLOAT32));
  return pln_qnn_convert(q, x, result_dtype(q));
}

pln_ref pln_qnn_dequantize(pln_qnn_call *q) {
  pln_dtype dtype = result_dtype(q);
  if (pln_qnn_rank(q, q->args[0]) < 0 || pln_qnn_rank(q, q->args[1]) < 0 ||
      pln_qnn_rank(q, q->args[2]) < 0)
    return PLN_NONE;
  pln_ref scale = along_operand(q, q->args[1]);
  pln_ref zero = along_operand(q, q->args[2]);
  pln_ref x = pln_qnn_cast(q, q->args[0], PLN_INT32);
  x = pln_qnn_binary(q, PLN_OP_SUB, x, zero);
  x = pln_qnn_cast(q, x, PLN_FLOAT32);
  x = pln_qnn_binary(q, PLN_OP_MUL, x, scale);
  if (dtype == PLN_FLOAT32)
    return x;
  /* The greatest float16. */
  return pln_qnn_cast(q, pln_qnn_clip(q, x, -65504, 65504), dtype);
}

/* The attributes that are given take precedence over the config. */
static bool read_modes(const pln_qnn_call *q, pln_requantize *p) {
  pln_engine *e = q->r.engine;
  pln_slice rounding = pln_attrs_string(e, q->attrs, "rounding", "None");
  pln_slice compute = pln_attrs_string(e, q->attrs, "compute_dtype", "None");
  if (!pln_slice_is(rounding, "None"))
    p->nearest = pln_slice_is(rounding, "TONEAREST");
  if (!pln_slice_is(compute, "None"))
    p->compute = pln_dtype_find(compute);
  bool known = p->nearest || pln_slice_is(rounding, "UPWARD") ||
               pln_slice_is(rounding, "None");
  return known && (p->compute == PLN_INT64 || p->compute == PLN_FLOAT32 ||
                   p->compute == PLN_FLOAT64);
}

pln_ref pln_qnn_requantize(pln_qnn_call *q) {
  pln_requantize p =
      pln_qnn_requantize_to(q, q->args[0], q->args[1], q->args[2], q->args[3],
                            q->args[4], result_dtype(q));
  p.axis = pln_attrs_int(q->r.engine, q->attrs, "axis", -1);
  return read_modes(q, &p) ? pln_qnn_build_requantize(q, &p) : PLN_NONE;
}

/* ------------------------------------------------------------------ functions
 */

static pln_ref hardswish(pln_qnn_call *q, pln_ref x) {
  pln_ref three = pln_qnn_scalar(q, PLN_FLOAT32, 3);
  pln_ref six = pln_qnn_scalar(q, PLN_FLOAT32, 6);
  pln_ref y = pln_qnn_binary(q, PLN_OP_ADD, x, three);
  y = pln_qnn_binary(q, PLN_OP_MUL, x, pln_qnn_clip(q, y, 0, 6));
  return pln_qnn_binary(q, PLN_OP_DIV, y, six);
}

static pln_ref float_function(pln_qnn_call *q, pln_ref x) {
  switch (q->op) {
  case PLN_OP_QNN_TANH: return pln_qnn_unary(q, PLN_OP_TANH, x);
  case PLN_OP_QNN_EXP: return pln_qnn_unary(q, PLN_OP_EXP, x);
  case PLN_OP_QNN_SQRT: return pln_qnn_unary(q, PLN_OP_SQRT, x);
  case PLN_OP_QNN_RSQRT: return pln_qnn_unary(q, PLN_OP_RSQRT, x);
  case PLN_OP_QNN_ERF: return pln_qnn_unary(q, PLN_OP_ERF, x);
  case PLN_OP_QNN_SIGMOID: return pln_qnn_unary(q, PLN_OP_SIGMOID, x);
  case PLN_OP_QNN_LOG: return pln_qnn_unary(q, PLN_OP_LOG, x);
  case PLN_OP_QNN_ABS: return pln_qnn_unary(q, PLN_OP_ABS, x);
  default: return hardswish(q, x);
  }
}

static pln_ref convert(pln_qnn_call *q, pln_op op, pln_ref x, pln_ref scale,
                       pln_ref zero, pln_dtype dtype) {
  pln_ref args[3] = {x, scale, zero};
  pln_relay_attr attrs[] = {
      {"out_dtype",
       {.kind = PLN_ATTR_STRING, .v.s = pln_text(pln_dtype_name(dtype))}},
      pln_relay_int("axis", -1)};
  return pln_relay_call_with(&q->r, op, 2, attrs, 3, args);
}

/* The conversions stay operators of their own, as in TVM. */
pln_ref pln_qnn_function(pln_qnn_call *q) {
  pln_ref x = convert(q, PLN_OP_QNN_DEQUANTIZE, q->args[0], q->args[1],
                      q->args[2], PLN_FLOAT32);
  return convert(q, PLN_OP_QNN_QUANTIZE, float_function(q, x), q->args[3],
                 q->args[4], pln_qnn_dtype(q, q->args[0]));
}
