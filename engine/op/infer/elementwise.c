/* elementwise.c: type inference of elementwise operators: with broadcasting,
 * unary, comparisons. Called through ops.def. The kernels are in
 * kernel/elementwise/. */

#include "op/infer/infer.h"

/* --------------------------------------------------------- several operands */

static pln_status value_of_two(pln_infer *call) {
  switch (call->op) {
  case PLN_OP_ADD: return pln_infer_value_binary(call, PLN_DIM_ADD);
  case PLN_OP_SUB: return pln_infer_value_binary(call, PLN_DIM_SUB);
  case PLN_OP_MUL: return pln_infer_value_binary(call, PLN_DIM_MUL);
  case PLN_OP_DIV: return pln_infer_value_binary(call, PLN_DIM_TRUNCDIV);
  case PLN_OP_MOD: return pln_infer_value_mod(call);
  default: return PLN_OK;
  }
}

/* Before opset 7 operand 1 could be aligned to the axes from `axis` on. */
static pln_status broadcast_of_two(const pln_infer *call, pln_shape *shape) {
  if (!pln_call_has(call, "axis"))
    return pln_args_broadcast(call, 0, 2, shape);
  pln_arg_shape(call, 0, shape);
  return PLN_OK;
}

pln_status pln_infer_broadcast(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(broadcast_of_two(call, &shape));
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  return value_of_two(call);
}

pln_status pln_infer_power(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(broadcast_of_two(call, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_variadic(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  PLN_TRY(pln_args_broadcast(call, 0, call->n_args, &shape));
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  switch (call->op) {
  case PLN_OP_MAX: return pln_infer_value_variadic(call, PLN_DIM_MAX);
  case PLN_OP_MIN: return pln_infer_value_variadic(call, PLN_DIM_MIN);
  case PLN_OP_SUM: return pln_infer_value_variadic(call, PLN_DIM_ADD);
  default: return PLN_OK;
  }
}

static pln_status value_of_order(pln_infer *call) {
  switch (call->op) {
  case PLN_OP_EQUAL: return pln_infer_value_compare(call, PLN_ORDER_EQUAL);
  case PLN_OP_LESS: return pln_infer_value_compare(call, PLN_ORDER_LESS);
  case PLN_OP_LESS_OR_EQUAL:
    return pln_infer_value_compare(call, PLN_ORDER_LESS_EQUAL);
  case PLN_OP_GREATER: return pln_infer_value_compare(call, PLN_ORDER_GREATER);
  case PLN_OP_GREATER_OR_EQUAL:
    return pln_infer_value_compare(call, PLN_ORDER_GREATER_EQUAL);
  default: return PLN_OK;
  }
}

pln_status pln_infer_compare(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(broadcast_of_two(call, &shape));
  PLN_TRY(pln_result_tensor(call, 0, PLN_BOOL, &shape));
  return value_of_order(call);
}

/* ONNX's logic operators take booleans, and TVM lowers no others. */
pln_status pln_infer_logic(pln_infer *call) {
  pln_shape shape;
  for (uint32_t i = 0; i < call->n_args; i++) {
    pln_dtype dtype = pln_arg_dtype(call, i);
    if (dtype && dtype != PLN_BOOL)
      return pln_arg_error(call, i, "expected bool, got %s",
                           pln_dtype_name(dtype));
  }
  if (call->n_args == 1)
    return pln_infer_unary(call);
  PLN_TRY(broadcast_of_two(call, &shape));
  return pln_result_tensor(call, 0, PLN_BOOL, &shape);
}

/* -------------------------------------------------------------- one operand */

pln_status pln_infer_unary(pln_infer *call) {
  pln_result_like(call, 0, 0);
  return call->op == PLN_OP_NEG ? pln_infer_value_negative(call) : PLN_OK;
}

pln_status pln_infer_predicate(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 0, PLN_BOOL);
}

pln_status pln_infer_clip(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 0, 1));
  PLN_TRY(pln_arg_expect_rank_within(call, 2, 0, 1));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

/* The slope broadcasts to operand 0, not the other way round. */
/* In Relay's form there is a slope for each index of an axis. */
pln_status pln_infer_prelu(pln_infer *call) {
  pln_dtype dtype;
  if (pln_call_has(call, "axis"))
    PLN_TRY(
        pln_set_operand_channels(call, 1, 2, pln_call_int(call, "axis", 1)));
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}
