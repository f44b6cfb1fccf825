/* quantize.c: the types of quantised operators. Called through ops.def. */

#include "op/linear.h"
#include "op/window.h"

static pln_dtype output_dtype(const pln_infer *call, pln_dtype fallback) {
  int64_t dtype = pln_call_int(call, "output_dtype", 0);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype : fallback;
}

/* The dtype is the zero point's, else the attribute's, else uint8. */
pln_status pln_infer_quantize_linear(pln_infer *call) {
  pln_dtype dtype = output_dtype(call, PLN_UINT8);
  if (!pln_arg_absent(call, 2))
    dtype = pln_arg_dtype(call, 2);
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_dequantize_linear(pln_infer *call) {
  pln_dtype dtype = output_dtype(call, pln_arg_dtype(call, 1));
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_dynamic_quantize_linear(pln_infer *call) {
  PLN_TRY(pln_result_shaped_like(call, 0, 0, PLN_UINT8));
  PLN_TRY(pln_result_scalar(call, 1, PLN_FLOAT32));
  return pln_result_scalar(call, 2, PLN_UINT8);
}

/* (x, scale, zero, w, scale, zero, scale of y, zero of y, bias). */
pln_status pln_infer_qlinear_conv(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_conv_shape(call, 0, 3, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 7), &shape);
}

pln_status pln_infer_qlinear_matmul(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 3, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 7), &shape);
}

pln_status pln_infer_conv_integer(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_conv_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, PLN_INT32, &shape);
}

pln_status pln_infer_matmul_integer(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, PLN_INT32, &shape);
}
