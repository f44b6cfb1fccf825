/* unfold_tensor.c: UnfoldTensor of com.microsoft: the windows along an axis, as
 * a new last axis. Type and kernel. Called through ops.def.
 *
 *     UnfoldTensor<size=2, step=1>([1, 2, 3])   =>   [[1, 2], [2, 3]]
 *
 * Semantics: torch.Tensor.unfold. */

#include "op/kernel/strided.h"

static pln_status read_window(const pln_infer *call, int64_t *size,
                              int64_t *step) {
  *size = pln_call_int(call, "size", 0);
  *step = pln_call_int(call, "step", 1);
  if (*size < 1 || *step < 1 || !PLN_DIM_IS_CONST(*size) ||
      !PLN_DIM_IS_CONST(*step))
    return pln_call_error(call,
                          "size is %lld and step is %lld; both must be "
                          "positive",
                          (long long)*size, (long long)*step);
  return PLN_OK;
}

pln_status pln_infer_unfold_tensor(pln_infer *call) {
  pln_shape shape;
  int64_t size, step;
  int32_t axis;
  PLN_TRY(read_window(call, &size, &step));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, PLN_MAX_RANK - 1));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
  PLN_TRY(
      pln_call_axis(call, pln_call_int(call, "dim", -1), shape.rank, &axis));
  pln_dim *dim = &shape.dims[axis];
  if (PLN_DIM_IS_CONST(*dim) && *dim != PLN_DIM_UNKNOWN && *dim < size)
    return pln_call_error(call, "size %lld exceeds the extent %lld",
                          (long long)size, (long long)*dim);
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *dim, size, dim));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *dim, step, dim));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, 1, dim));
  shape.dims[shape.rank++] = size;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_kernel_unfold_tensor(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t size = pln_kernel_int(call, "size", 0);
  int64_t step = pln_kernel_int(call, "step", 1), dims[PLN_MAX_RANK];
  pln_strided view = {.rank = x->rank + 1u};
  uint32_t axis;
  if (x->rank >= PLN_MAX_RANK || step < 1 || size < 1 ||
      !pln_kernel_axis(pln_kernel_int(call, "dim", -1), x->rank, &axis) ||
      size > x->dims[axis])
    return pln_kernel_refuse(call, "the window does not match the operand");
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  pln_dense_strides(x->rank, x->dims, view.from);
  view.from[x->rank] = view.from[axis];
  dims[axis] = (dims[axis] - size) / step + 1;
  if (__builtin_mul_overflow(view.from[axis], step, &view.from[axis]))
    view.from[axis] = 0; /* there is one window */
  dims[x->rank] = size;
  return pln_strided_result_copy(call, 0, x, x->data, view.rank, dims, &view);
}
