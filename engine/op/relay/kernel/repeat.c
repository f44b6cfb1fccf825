/* repeat.c: repeat and reverse along an axis. Types and kernels. Called through
 * ops.def. */

#include "op/kernel/strided.h"

pln_status pln_infer_repeat(pln_infer *call) {
  pln_shape shape;
  int32_t axis = 0;
  int64_t n = pln_call_int(call, "repeats", 1);
  pln_arg_shape(call, 0, &shape);
  if (n < 1)
    return pln_call_error(call, "%lld repeats", (long long)n);
  if (shape.rank > 0 && !pln_call_has(call, "axis")) {
    PLN_TRY(pln_infer_product(call, shape.dims, 0, shape.rank, &shape.dims[0]));
    shape.rank = 1;
  }
  if (shape.rank > 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, shape.dims[axis], n,
                          &shape.dims[axis]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* Splits the axis in two; the second has stride 0 in the operand. */
static void repeat_view(const pln_tensor *x, uint32_t axis, int64_t n,
                        pln_strided *view) {
  int64_t steps[PLN_MAX_RANK];
  pln_dense_strides(x->rank, x->dims, steps);
  *view = (pln_strided){.rank = x->rank + 1};
  for (uint32_t i = 0, k = 0; i < x->rank; i++) {
    view->dims[k] = x->dims[i];
    view->from[k++] = steps[i];
    if (i != axis)
      continue;
    view->dims[k] = n;
    view->from[k++] = 0;
  }
  pln_dense_strides(view->rank, view->dims, view->to);
}

pln_status pln_kernel_repeat(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK], n = pln_kernel_int(call, "repeats", 1);
  bool flat = !pln_kernel_list(call, PLN_NONE, "axis").given;
  uint32_t axis;
  pln_strided view;
  pln_strided_result moved;
  if (flat && x->rank > 1)
    return pln_kernel_refuse(call, "an axis is missing");
  if (x->rank + 1 >= PLN_MAX_RANK || n < 1 ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis))
    return pln_kernel_refuse(call, "the repeats do not match the operand");
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  if (__builtin_mul_overflow(dims[axis], n, &dims[axis]))
    return pln_kernel_refuse(call, "the repeats are out of range");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank, dims,
                                   &moved));
  repeat_view(x, axis, n, &view);
  if (moved.count)
    pln_strided_copy(call->engine, moved.data, x->data, moved.size, &view);
  return pln_strided_result_end(&moved, PLN_OK);
}

pln_status pln_infer_reverse(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0), axis;
  if (rank > 0)
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 0), rank, &axis));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

pln_status pln_kernel_reverse(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  uint32_t axis;
  pln_strided view = {.rank = x->rank};
  if (x->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis))
    return pln_kernel_refuse(call, "the axis does not match the operand");
  pln_dense_strides(x->rank, x->dims, view.from);
  int64_t last = x->dims[axis] > 0 ? x->dims[axis] - 1 : 0;
  const char *from = x->data;
  if (x->count)
    from +=
        last * view.from[axis] * (int64_t)pln_element_size((pln_dtype)x->dtype);
  view.from[axis] = -view.from[axis];
  return pln_strided_result_copy(call, 0, x, from, x->rank, x->dims, &view);
}
