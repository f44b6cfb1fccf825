/* reduce.c: type inference of reductions and of operators along one axis.
 * Called through ops.def. The kernels are in kernel/reduce/ and
 * kernel/norm/softmax.c. */

#include "op/infer/infer.h"

/* Marks the axes of the list; PLN_ERR_TYPE if one is out of range. */
static pln_status mark_axes(const pln_infer *call, const pln_list *axes,
                            int32_t rank, bool *reduced) {
  memset(reduced, 0, PLN_MAX_RANK * sizeof *reduced);
  for (uint32_t i = 0; i < axes->count; i++) {
    int32_t axis;
    PLN_TRY(pln_call_axis(call, pln_list_at(axes, i), rank, &axis));
    reduced[axis] = true;
  }
  for (int32_t i = 0; i < rank && pln_call_int(call, "exclude", 0); i++)
    reduced[i] = !reduced[i];
  return PLN_OK;
}

static void drop_axes(const pln_shape *in, const bool *reduced, bool keep,
                      pln_shape *out) {
  out->rank = 0;
  for (int32_t i = 0; i < in->rank; i++)
    if (!reduced[i])
      out->dims[out->rank++] = in->dims[i];
    else if (keep)
      out->dims[out->rank++] = 1;
}

/* If the reduced axes are unknown, at most the rank is known. */
static void some_axes(const pln_shape *in, const pln_list *axes, bool keep,
                      bool exclude, pln_shape *out) {
  if (keep)
    pln_shape_ranked(out, in->rank);
  else if (axes->sized && axes->count && axes->count <= (uint32_t)in->rank &&
           !exclude)
    pln_shape_ranked(out, in->rank - (int32_t)axes->count);
  else
    pln_shape_unknown(out);
}

static pln_status value_of_reduction(pln_infer *call) {
  switch (call->op) {
  case PLN_OP_REDUCE_SUM: return pln_infer_value_reduce(call, PLN_DIM_ADD);
  case PLN_OP_REDUCE_PROD: return pln_infer_value_reduce(call, PLN_DIM_MUL);
  case PLN_OP_REDUCE_MIN: return pln_infer_value_reduce(call, PLN_DIM_MIN);
  case PLN_OP_REDUCE_MAX: return pln_infer_value_reduce(call, PLN_DIM_MAX);
  default: return PLN_OK;
  }
}

static pln_status reduce_axes(pln_infer *call, const pln_list *axes,
                              const pln_shape *in, bool keep) {
  pln_shape out;
  bool reduced[PLN_MAX_RANK];
  if (axes->count == 0)
    memset(reduced, true, sizeof reduced);
  else
    PLN_TRY(mark_axes(call, axes, in->rank, reduced));
  drop_axes(in, reduced, keep, &out);
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return in->rank <= 1 ? value_of_reduction(call) : PLN_OK;
}

pln_status pln_infer_reduce(pln_infer *call) {
  pln_list axes = pln_arg_list(call, 1, "axes");
  bool keep = pln_call_int(call, "keepdims", 1) != 0;
  bool none = axes.sized && axes.count == 0;
  pln_shape in, out;
  pln_arg_shape(call, 0, &in);
  if (none && pln_call_int(call, "noop_with_empty_axes", 0)) {
    pln_result_like(call, 0, 0);
    return PLN_OK;
  }
  if (in.rank >= 0 && pln_list_known(&axes))
    return reduce_axes(call, &axes, &in, keep);
  if (in.rank >= 0)
    some_axes(&in, &axes, keep, pln_call_int(call, "exclude", 0) != 0, &out);
  else
    pln_shape_ranked(&out, none && !keep ? 0 : -1);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Relay's `all`, `any` and `variance`, whose operand 1 is the mean: axes are
 * never arguments. */
pln_status pln_infer_reduce_axis(pln_infer *call) {
  pln_list axes = pln_arg_list(call, PLN_NONE, "axis");
  bool keep = pln_call_int(call, "keepdims", 0) != 0;
  pln_shape in, out;
  pln_arg_shape(call, 0, &in);
  if (in.rank >= 0)
    return reduce_axes(call, &axes, &in, keep);
  pln_shape_ranked(&out, !axes.given && !keep ? 0 : -1);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Marks the reduced axes of an operand of rank `rank`. ONNX's form names one
 * axis, Relay's any number; none in Relay's means all. */
static pln_status mark_arg_axes(const pln_infer *call, int32_t rank,
                                bool *reduced) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "axis");
  static const int64_t first = 0;
  pln_list axes = {.sized = true, .count = 1, .ints = &first};
  memset(reduced, true, PLN_MAX_RANK * sizeof *reduced);
  if (a && a->kind == PLN_ATTR_NONE)
    return PLN_OK;
  if (a)
    axes = pln_arg_list(call, PLN_NONE, "axis");
  return mark_axes(call, &axes, rank, reduced);
}

pln_status pln_infer_arg_reduce(pln_infer *call) {
  pln_shape in, out;
  bool reduced[PLN_MAX_RANK];
  int64_t named = pln_call_int(call, "index_dtype", PLN_INT64);
  pln_dtype dtype = named == PLN_INT32 ? PLN_INT32 : PLN_INT64;
  pln_arg_shape(call, 0, &in);
  pln_shape_unknown(&out);
  if (in.rank < 0)
    return pln_result_tensor(call, 0, dtype, &out);
  /* a scalar counts as one axis here */
  int32_t rank = in.rank ? in.rank : 1;
  PLN_TRY(mark_arg_axes(call, rank, reduced));
  drop_axes(&in, reduced, pln_call_int(call, "keepdims", 1) != 0, &out);
  return pln_result_tensor(call, 0, dtype, &out);
}

pln_status pln_infer_softmax(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0), axis;
  /* taken as a matrix, `axis` may equal the rank */
  int32_t end = pln_call_int(call, "coerce_2d", 0) ? rank + 1 : rank;
  if (rank > 0)
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", -1), end, &axis));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}
