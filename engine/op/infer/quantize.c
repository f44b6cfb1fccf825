/* quantize.c: type inference of quantised operators. Called through ops.def. */

#include "op/infer/matmul.h"
#include "op/infer/window.h"

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
