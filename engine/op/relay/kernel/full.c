/* full.c: Relay's constant tensors (zeros, ones, full), with a shape from an
 * attribute or of an operand. Types and kernels. Called through ops.def.
 * Results are splats. */

#include "op/kernel/elementwise/convert.h"

/* The shape in attribute `shape`, or the value of operand `arg`. */
static pln_status requested_shape(const pln_infer *call, uint32_t arg,
                                  pln_shape *out) {
  pln_list list = pln_arg_list(call, arg, "shape");
  pln_shape_ranked(out, list.given && list.sized ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < out->rank; i++) {
    out->dims[i] = pln_list_at(&list, (uint32_t)i);
    if (PLN_DIM_IS_CONST(out->dims[i]) && out->dims[i] < 0)
      return pln_call_error(call, "extent %lld is negative",
                            (long long)out->dims[i]);
  }
  return PLN_OK;
}

/* zeros, ones */
pln_status pln_infer_filled(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(requested_shape(call, 0, &shape));
  return pln_result_tensor(call, 0, pln_call_dtype(call, "dtype", PLN_FLOAT32),
                           &shape);
}

/* Operand 0 is the value. */
pln_status pln_infer_full(pln_infer *call) {
  pln_shape shape;
  pln_dtype dtype = pln_call_dtype(call, "dtype", pln_arg_dtype(call, 0));
  PLN_TRY(pln_arg_expect_rank(call, 0, 0));
  PLN_TRY(requested_shape(call, 1, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}

pln_status pln_infer_full_like(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank(call, 1, 0));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------ kernels */

enum { MAX_BYTES = 16 }; /* of an element */

/* Stores the number one as that dtype; false for unsupported dtypes. */
static bool one_of(pln_dtype dtype, void *out) {
  int64_t one = 1;
  pln_conversion c = {.from = PLN_INT64, .to = dtype};
  return pln_convertible(dtype) &&
         pln_convert(&c, &one, 1, out) == PLN_CONVERTED;
}

static pln_status splat(pln_kernel_call *call, pln_dtype dtype, uint32_t rank,
                        const int64_t *dims, bool ones) {
  unsigned char element[MAX_BYTES] = {0};
  if (!dtype || dtype == PLN_STRING || (ones && !one_of(dtype, element)))
    return pln_kernel_no_dtype(call, dtype);
  return pln_tensor_splat(call->engine, dtype, rank, dims, element,
                          call->results);
}

/* zeros_like, ones_like */
pln_status pln_kernel_filled_like(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  return splat(call, (pln_dtype)x->dtype, x->rank, x->dims,
               call->op == PLN_OP_ONES_LIKE);
}

/* Reads the target shape; false if it is invalid. */
static bool read_shape(const pln_kernel_call *call, uint32_t arg,
                       uint32_t *rank, int64_t *dims) {
  pln_list list = pln_kernel_list(call, arg, "shape");
  *rank = list.count;
  if (!list.given || list.count > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < list.count; i++) {
    dims[i] = pln_list_at(&list, i);
    if (!PLN_DIM_IS_CONST(dims[i]) || dims[i] < 0)
      return false;
  }
  return true;
}

static pln_dtype requested_dtype(const pln_kernel_call *call, pln_dtype other) {
  pln_slice s = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  return s.size ? pln_dtype_find(s) : other;
}

pln_status pln_kernel_filled(pln_kernel_call *call) {
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank;
  if (!read_shape(call, 0, &rank, dims))
    return pln_kernel_refuse(call, "there is no such shape");
  return splat(call, requested_dtype(call, PLN_FLOAT32), rank, dims,
               call->op == PLN_OP_ONES || call->op == PLN_OP_DYN_ONES);
}

static pln_status make_full_tensor(pln_kernel_call *call,
                                   const pln_tensor *value, uint32_t rank,
                                   const int64_t *dims) {
  if (value->count != 1)
    return pln_kernel_refuse(call, "the value is not a scalar");
  return pln_tensor_splat(call->engine, (pln_dtype)value->dtype, rank, dims,
                          value->data, call->results);
}

pln_status pln_kernel_full(pln_kernel_call *call) {
  const pln_tensor *value = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank;
  if (!read_shape(call, 1, &rank, dims))
    return pln_kernel_refuse(call, "there is no such shape");
  if (requested_dtype(call, (pln_dtype)value->dtype) != (pln_dtype)value->dtype)
    return pln_kernel_refuse(call, "a value of another dtype");
  return make_full_tensor(call, value, rank, dims);
}

pln_status pln_kernel_full_like(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *value = pln_kernel_arg(call, 1);
  if (value->dtype != x->dtype)
    return pln_kernel_refuse(call, "a value of another dtype");
  return make_full_tensor(call, value, x->rank, x->dims);
}
