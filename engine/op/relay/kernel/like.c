/* like.c: Relay's operators that give an operand the shape of another operand
 * or a dynamic shape. Types and kernels. Called through ops.def. */

#include "op/kernel/composed.h"

/* The shape of operand 1, the dtype of operand 0. */
pln_status pln_infer_shape_like(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 1, pln_arg_dtype(call, 0));
}

/* The leading elements of the listed axes, or of all axes of operand 1, up to
 * operand 1's extents. */
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

/* A shape with as many axes as operand `arg` has elements, all unknown. */
static void ranked_by(const pln_infer *call, uint32_t arg, pln_shape *out) {
  pln_dim n = PLN_DIM_UNKNOWN;
  if (pln_arg_rank(call, arg) == 1)
    n = pln_arg_dims(call, arg)[0];
  pln_shape_ranked(out, PLN_DIM_IS_CONST(n) && n >= 0 ? n : -1);
}

/* Summed to a shape, from the attribute or operand 1. */
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

/* Axes that the operand `begin` has no element for stay whole. */
pln_status pln_infer_dyn_slice(pln_infer *call) {
  pln_shape out;
  pln_list begin = pln_arg_list(call, 1, NULL);
  pln_arg_shape(call, 0, &out);
  for (int32_t i = 0; i < out.rank; i++)
    if (!begin.sized || (uint32_t)i < begin.count)
      out.dims[i] = PLN_DIM_UNKNOWN;
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

/* (new elements, buffer): the type of the buffer. */
pln_status pln_infer_fifo_buffer(pln_infer *call) {
  pln_result_like(call, 0, 1);
  return PLN_OK;
}

/* A loss is a scalar. */
pln_status pln_infer_loss_scalar(pln_infer *call) {
  return pln_result_scalar(call, 0, pln_arg_dtype(call, 0));
}

/* The operand, and a mask like it. */
pln_status pln_infer_dropout_raw(pln_infer *call) {
  pln_result_like(call, 0, 0);
  pln_result_like(call, 1, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------ kernels */

static pln_status refuse_shape(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "the shapes do not match each other");
}

static bool same_dims(const pln_tensor *x, uint32_t rank, const int64_t *dims) {
  return x->rank == rank &&
         (rank == 0 || memcmp(x->dims, dims, rank * sizeof *dims) == 0);
}

pln_status pln_kernel_broadcast_to_like(pln_kernel_call *call) {
  const pln_tensor *like = pln_kernel_arg(call, 1);
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *y =
      pln_compose_binary(&s, PLN_OP_EXPAND, pln_kernel_arg(call, 0),
                         pln_compose_vector(&s, like->rank, like->dims));
  if (y && !same_dims(y, like->rank, like->dims))
    pln_composition_refuse(&s, "the shapes do not match each other");
  return pln_composition_finish(&s, y);
}

/* Sums over the leading axes that the shape lacks, and over axes where its
 * extent is 1. */
static pln_status collapse(pln_kernel_call *call, uint32_t rank,
                           const int64_t *dims) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t axes[PLN_MAX_RANK];
  uint32_t n = 0;
  if (x->rank > PLN_MAX_RANK || rank > x->rank)
    return refuse_shape(call);
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t want = i < x->rank - rank ? 1 : dims[i - (x->rank - rank)];
    if (want != x->dims[i] && want != 1)
      return refuse_shape(call);
    if (want != x->dims[i] || i < x->rank - rank)
      axes[n++] = i;
  }
  pln_composition s;
  pln_composition_begin(&s, call);
  if (n) {
    pln_compose_ints(&s, "axes", n, axes);
    x = pln_compose_unary(&s, PLN_OP_REDUCE_SUM, x);
  }
  return pln_composition_finish(&s, pln_compose_reshape(&s, x, rank, dims));
}

pln_status pln_kernel_collapse_sum_like(pln_kernel_call *call) {
  const pln_tensor *like = pln_kernel_arg(call, 1);
  return collapse(call, like->rank, like->dims);
}

pln_status pln_kernel_collapse_sum_to(pln_kernel_call *call) {
  pln_list list = pln_kernel_list(call, 1, "shape");
  int64_t dims[PLN_MAX_RANK];
  if (list.count > PLN_MAX_RANK)
    return refuse_shape(call);
  for (uint32_t i = 0; i < list.count; i++)
    if ((dims[i] = pln_list_at(&list, i)) < 0)
      return refuse_shape(call);
  return collapse(call, list.count, dims);
}

/* Elements [from, to) along `n` axes. */
static const pln_tensor *slice_axes(pln_composition *s, const pln_tensor *x,
                                    uint32_t n, const int64_t *axes,
                                    const int64_t *from, const int64_t *to) {
  const pln_tensor *args[4] = {x, pln_compose_vector(s, n, from),
                               pln_compose_vector(s, n, to),
                               pln_compose_vector(s, n, axes)};
  return n ? pln_compose_call(s, PLN_OP_SLICE, 4, args) : x;
}

pln_status pln_kernel_slice_like(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  pln_list list = pln_kernel_list(call, PLN_NONE, "axes");
  int64_t axes[PLN_MAX_RANK], from[PLN_MAX_RANK] = {0}, to[PLN_MAX_RANK];
  uint32_t n = list.count ? list.count : y->rank, axis;
  pln_composition s;
  if (n > PLN_MAX_RANK)
    return refuse_shape(call);
  for (uint32_t i = 0; i < n; i++) {
    if (!pln_kernel_axis(list.count ? list.ints[i] : i, x->rank, &axis) ||
        axis >= y->rank || y->dims[axis] > x->dims[axis])
      return refuse_shape(call);
    axes[i] = axis;
    to[i] = y->dims[axis];
  }
  pln_composition_begin(&s, call);
  return pln_composition_finish(&s, slice_axes(&s, x, n, axes, from, to));
}

/* (new elements, buffer): shifts the buffer by the number of new elements. */
pln_status pln_kernel_fifo_buffer(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  const pln_tensor *args[2] = {y, x};
  uint32_t axis;
  pln_composition s;
  if (x->rank != y->rank ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis))
    return refuse_shape(call);
  int64_t axes[] = {axis}, from[] = {x->dims[axis]}, to[] = {INT64_MAX};
  pln_composition_begin(&s, call);
  pln_compose_int(&s, "axis", axis);
  const pln_tensor *both = pln_compose_call(&s, PLN_OP_CONCAT, 2, args);
  return pln_composition_finish(&s, slice_axes(&s, both, 1, axes, from, to));
}

pln_status pln_kernel_reinterpret(pln_kernel_call *call) {
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_compose_int(&s, "to", pln_dtype_find(name));
  return pln_composition_finish(
      &s, pln_compose_unary(&s, PLN_OP_BIT_CAST, pln_kernel_arg(call, 0)));
}
