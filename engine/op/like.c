/* like.c: operands brought to the shape of another one or to a shape that is
 * given, and shapes that only a run tells: the types of Relay's operators of
 * the kind. Called through ops.def. */

#include "op/infer.h"

/* The shape is that of operand 1, the dtype the operand's own. */
pln_status pln_infer_shape_like(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 1, pln_arg_dtype(call, 0));
}

/* The first elements of the axes that are named, or of all that operand 1
 * has: as many as it has. */
pln_status pln_infer_slice_like(pln_infer *call) {
  pln_list axes = pln_arg_list(call, PLN_NONE, "axes");
  pln_shape x, like;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &like);
  if (x.rank >= 0 && like.rank < 0)
    pln_shape_ranked(&x, x.rank);
  bool all = !axes.given || axes.count == 0;
  uint32_t n = all ? (uint32_t)(like.rank < 0 ? 0 : like.rank) : axes.count;
  if (x.rank < 0 || like.rank < 0)
    n = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t axis;
    PLN_TRY(
        pln_call_axis(call, all ? i : pln_list_at(&axes, i), x.rank, &axis));
    if (axis >= like.rank)
      return pln_arg_error(call, 1, "has no axis %d", axis);
    pln_dim a = x.dims[axis], b = like.dims[axis];
    if (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b) && b > a)
      return pln_arg_error(call, 1, "axis %d is longer than operand 0's", axis);
    x.dims[axis] = b;
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* As many axes as operand `arg` has elements, of extents that nobody knows. */
static void ranked_by(const pln_infer *call, uint32_t arg, pln_shape *out) {
  pln_dim n = PLN_DIM_UNKNOWN;
  if (pln_arg_rank(call, arg) == 1)
    n = pln_arg_dims(call, arg)[0];
  pln_shape_ranked(out, PLN_DIM_IS_CONST(n) && n >= 0 ? n : -1);
}

/* Summed to a shape: the attribute, or else operand 1. */
pln_status pln_infer_collapse_sum_to(pln_infer *call) {
  pln_list list = pln_arg_list(call, PLN_NONE, "shape");
  if (!list.given)
    list = pln_arg_list(call, 1, NULL);
  pln_shape out;
  pln_shape_ranked(&out, list.given && list.sized ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < out.rank; i++)
    out.dims[i] = pln_list_at(&list, (uint32_t)i);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* dyn.reshape, dyn.broadcast_to: operand 1 is the shape. */
pln_status pln_infer_dyn_shape(pln_infer *call) {
  pln_shape out;
  ranked_by(call, 1, &out);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_dyn_full(pln_infer *call) {
  pln_shape out;
  ranked_by(call, 1, &out);
  return pln_result_tensor(
      call, 0, pln_call_dtype(call, "dtype", pln_arg_dtype(call, 0)), &out);
}

pln_status pln_infer_dyn_slice(pln_infer *call) {
  pln_shape out;
  pln_shape_ranked(&out, pln_arg_rank(call, 0));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_dyn_tile(pln_infer *call) {
  pln_shape out;
  int32_t rank = pln_arg_rank(call, 0);
  ranked_by(call, 1, &out);
  if (rank < 0 || out.rank < 0)
    pln_shape_unknown(&out);
  else if (rank > out.rank)
    pln_shape_ranked(&out, rank);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* dyn.zeros, dyn.ones: operand 0 is the shape. */
pln_status pln_infer_dyn_filled(pln_infer *call) {
  pln_shape out;
  ranked_by(call, 0, &out);
  return pln_result_tensor(call, 0, pln_call_dtype(call, "dtype", PLN_FLOAT32),
                           &out);
}

pln_status pln_infer_reinterpret(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 0,
                                pln_call_dtype(call, "dtype", PLN_DTYPE_NONE));
}

/* (new elements, buffer): the buffer. */
pln_status pln_infer_fifo_buffer(pln_infer *call) {
  pln_result_like(call, 0, 1);
  return PLN_OK;
}

/* A loss is one number. */
pln_status pln_infer_loss_scalar(pln_infer *call) {
  return pln_result_scalar(call, 0, pln_arg_dtype(call, 0));
}

/* The operand, and a mask like it. */
pln_status pln_infer_dropout_raw(pln_infer *call) {
  pln_result_like(call, 0, 0);
  pln_result_like(call, 1, 0);
  return PLN_OK;
}
