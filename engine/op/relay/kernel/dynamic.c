/* dynamic.c: Relay's operators with dynamic shapes, which take operands
 * instead of attributes. Kernels call those of ONNX's operators, which take
 * operands as well; types of dyn.squeeze, dyn.expand_dims, dyn.one_hot and
 * dyn.sparse_to_dense. Called through ops.def; the other types are in
 * like.c. */

#include "op/kernel/composed.h"

/* -------------------------------------------------------------------- types */

/* The operand's rank plus `n`. */
static pln_status with_axes(pln_infer *call, int64_t n) {
  int64_t rank = pln_arg_rank(call, 0);
  pln_shape out;
  pln_shape_ranked(&out, rank >= 0 && rank + n >= 0 && rank + n <= PLN_MAX_RANK
                             ? rank + n
                             : -1);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Operand 1 lists the axes to remove. */
pln_status pln_infer_dyn_squeeze(pln_infer *call) {
  pln_list axes = pln_arg_list(call, 1, NULL);
  return with_axes(call, axes.sized && axes.count <= PLN_MAX_RANK
                             ? -(int64_t)axes.count
                             : INT32_MIN);
}

pln_status pln_infer_dyn_expand_dims(pln_infer *call) {
  int64_t n = pln_call_int(call, "num_newaxis", 1);
  if (n < 0 || n > PLN_MAX_RANK)
    return pln_call_error(call, "%lld new axes", (long long)n);
  return with_axes(call, n);
}

/* (indices, on, off, depth): the shape of the indices, and an axis more. */
pln_status pln_infer_dyn_one_hot(pln_infer *call) {
  pln_dtype dtype = pln_call_dtype(call, "dtype", pln_arg_dtype(call, 1));
  pln_shape in, out;
  int32_t axis;
  pln_arg_shape(call, 0, &in);
  if (in.rank < 0 || in.rank >= PLN_MAX_RANK) {
    pln_shape_unknown(&out);
    return pln_result_tensor(call, 0, dtype, &out);
  }
  pln_shape_ranked(&out, in.rank + 1);
  PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", -1), out.rank, &axis));
  for (int32_t i = 0; i < in.rank; i++)
    out.dims[i + (i >= axis)] = in.dims[i];
  return pln_result_tensor(call, 0, dtype, &out);
}

/* (indices, shape, values, other elements) */
pln_status pln_infer_dyn_sparse_to_dense(pln_infer *call) {
  pln_list shape = pln_arg_list(call, 1, NULL);
  pln_shape out;
  pln_shape_ranked(&out, shape.sized && shape.count <= PLN_MAX_RANK
                             ? (int64_t)shape.count
                             : -1);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 2), &out);
}

/* ------------------------------------------------------------------ kernels */

/* Operand `i` cast to int64. */
static const pln_tensor *whole(pln_composition *s, uint32_t i) {
  return pln_compose_cast(s, pln_kernel_arg(s->call, i), PLN_INT64);
}

/* (x, begin, end, strides) */
pln_status pln_kernel_dyn_strided_slice(pln_kernel_call *call) {
  pln_composition s;
  if (!pln_kernel_string_is(call, "slice_mode", "end", "end"))
    return pln_kernel_refuse(call, "slice_mode is not computed");
  pln_composition_begin(&s, call);
  const pln_tensor *args[5] = {pln_kernel_arg(call, 0), whole(&s, 1),
                               whole(&s, 2), NULL, whole(&s, 3)};
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_SLICE, 5, args));
}

/* (x, reps): the shorter one of shape and reps is extended by leading ones. */
pln_status pln_kernel_dyn_tile(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t n = pln_kernel_arg(call, 1)->count;
  int64_t ones[PLN_MAX_RANK], dims[PLN_MAX_RANK];
  pln_composition s;
  if (n > PLN_MAX_RANK || x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "there are too many repetitions");
  uint32_t rank = n > x->rank ? (uint32_t)n : x->rank;
  for (uint32_t i = 0; i < rank; i++) {
    ones[i] = 1;
    dims[i] = i < rank - x->rank ? 1 : x->dims[i - (rank - x->rank)];
  }
  pln_composition_begin(&s, call);
  const pln_tensor *reps[2] = {pln_compose_vector(&s, rank - (uint32_t)n, ones),
                               whole(&s, 1)};
  return pln_composition_finish(
      &s, pln_compose_binary(&s, PLN_OP_TILE,
                             pln_compose_reshape(&s, x, rank, dims),
                             pln_compose_call(&s, PLN_OP_CONCAT, 2, reps)));
}

/* (x, axes) */
pln_status pln_kernel_dyn_squeeze(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(&s, pln_compose_binary(&s, PLN_OP_SQUEEZE,
                                                       pln_kernel_arg(call, 0),
                                                       whole(&s, 1)));
}

/* (x, axis): the axis is a position in the result. */
pln_status pln_kernel_dyn_expand_dims(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *a = pln_kernel_arg(call, 1);
  int64_t n = pln_kernel_int(call, "num_newaxis", 1), at;
  int64_t dims[PLN_MAX_RANK];
  pln_composition s;
  if (n < 0 || n > PLN_MAX_RANK - (int64_t)x->rank || a->count != 1 ||
      !pln_tensor_int(a, 0, &at))
    return pln_kernel_refuse(call, "the axis is not valid");
  at += at < 0 ? (int64_t)x->rank + 1 : 0;
  if (at < 0 || at > (int64_t)x->rank)
    return pln_kernel_refuse(call, "the axis is not valid");
  for (uint32_t i = 0, k = 0; i < x->rank + (uint32_t)n; i++)
    dims[i] = i >= at && i < at + n ? 1 : x->dims[k++];
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s, pln_compose_reshape(&s, x, x->rank + (uint32_t)n, dims));
}

/* (indices, on, off, depth) */
pln_status pln_kernel_dyn_one_hot(pln_kernel_call *call) {
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 2)};
  const pln_tensor *d = pln_kernel_arg(call, 3);
  int64_t depth;
  pln_composition s;
  if (d->count != 1 || !pln_tensor_int(d, 0, &depth))
    return pln_kernel_refuse(call, "the depth is not valid");
  pln_composition_begin(&s, call);
  pln_compose_int(&s, "depth", depth);
  pln_compose_int(&s, "axis", pln_kernel_int(call, "axis", -1));
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_ONE_HOT, 3, args));
}

/* (x, widths, value): a pair of widths per axis. */
pln_status pln_kernel_dyn_pad(pln_kernel_call *call) {
  const pln_tensor *widths = pln_kernel_arg(call, 1);
  pln_slice mode =
      pln_attrs_string(call->engine, call->attrs, "pad_mode", "constant");
  bool known = pln_slice_is(mode, "constant") || pln_slice_is(mode, "edge") ||
               pln_slice_is(mode, "reflect");
  pln_composition s;
  if (widths->rank != 2 || widths->dims[1] != 2 || !known)
    return pln_kernel_refuse(call, "the widths or the mode are not valid");
  int64_t flat[] = {2 * widths->dims[0]};
  pln_composition_begin(&s, call);
  const pln_tensor *transposed =
      pln_compose_unary(&s, PLN_OP_TRANSPOSE, whole(&s, 1));
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0),
                               pln_compose_reshape(&s, transposed, 1, flat),
                               pln_kernel_arg(call, 2)};
  pln_compose_string(&s, "pad_mode",
                     pln_slice_is(mode, "constant") ? "constant"
                     : pln_slice_is(mode, "edge")   ? "edge"
                                                    : "reflect");
  return pln_composition_finish(&s, pln_compose_call(&s, PLN_OP_PAD, 3, args));
}

/* vm.reshape_tensor: (x, shape) */
pln_status pln_kernel_reshape_tensor(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(&s, pln_compose_binary(&s, PLN_OP_RESHAPE,
                                                       pln_kernel_arg(call, 0),
                                                       whole(&s, 1)));
}
