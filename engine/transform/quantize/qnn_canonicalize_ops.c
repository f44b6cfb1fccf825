/* qnn_canonicalize_ops.c: qnn.CanonicalizeOps: replaces quantised operators by
 * operators of integers.
 *
 * Run by the executor, once per function. Requires a verified graph. A call
 * stays if its scales are not constant where they have to be, or if its shapes
 * are not known. The attribute FTVMQnnCanonicalize of an operator takes the
 * place of the replacement here. The config keys relay.qnn.requantize.rounding
 * and compute_dtype say how numbers are scaled.
 *
 *     qnn.requantize(%x, 0.5f, 0, 0.25f, 3)   =>
 *     cast(clip(add(3, fixed_point_multiply(cast(%x, int32)))), int8)
 *
 * Semantics: TVM qnn.CanonicalizeOps. */

#include "transform/quantize/qnn_legalize.h"

static pln_qnn_replace_fn find_replacement(pln_op op) {
  switch (op) {
  case PLN_OP_QNN_QUANTIZE: return pln_qnn_quantize;
  case PLN_OP_QNN_DEQUANTIZE: return pln_qnn_dequantize;
  case PLN_OP_QNN_REQUANTIZE: return pln_qnn_requantize;
  case PLN_OP_QNN_CONV_2D: return pln_qnn_conv_2d;
  case PLN_OP_QNN_DENSE: return pln_qnn_dense;
  case PLN_OP_QNN_BATCH_MATMUL: return pln_qnn_batch_matmul;
  case PLN_OP_QNN_CONCATENATE: return pln_qnn_concatenate;
  case PLN_OP_QNN_LEAKY_RELU: return pln_qnn_leaky_relu;
  case PLN_OP_QNN_SOFTMAX: return pln_qnn_softmax;
  case PLN_OP_QNN_AVG_POOL_2D: return pln_qnn_avg_pool;
  case PLN_OP_QNN_ADD:
  case PLN_OP_QNN_SUBTRACT: return pln_qnn_add;
  case PLN_OP_QNN_MUL: return pln_qnn_multiply;
  case PLN_OP_QNN_TANH:
  case PLN_OP_QNN_EXP:
  case PLN_OP_QNN_SQRT:
  case PLN_OP_QNN_RSQRT:
  case PLN_OP_QNN_ERF:
  case PLN_OP_QNN_SIGMOID:
  case PLN_OP_QNN_HARDSWISH:
  case PLN_OP_QNN_LOG:
  case PLN_OP_QNN_ABS: return pln_qnn_function;
  default: return NULL;
  }
}

pln_status pln_pass_qnn_canonicalize_ops(pln_pass_run *run) {
  return pln_qnn_legalize(run, "FTVMQnnCanonicalize", find_replacement);
}
