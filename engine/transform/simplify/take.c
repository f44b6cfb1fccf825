/* take.c: rules for take and for slices of one position. An axis that is
 * removed and restored is kept instead. */

#include "transform/simplify/rule.h"

/* Entry `i` of the axes as an axis of `rank`; -1 if unknown. */
static int64_t axis_at(const pln_list *axes, uint32_t i, int64_t rank) {
  if (!axes->given || i >= axes->count)
    return -1;
  pln_dim axis = pln_list_at(axes, i);
  if (!PLN_DIM_IS_CONST(axis))
    return -1;
  axis += axis < 0 && rank >= 0 ? rank : 0;
  return axis < rank || rank < 0 ? axis : -1;
}

static int64_t drop_taken_axis(const pln_infer *take) {
  int64_t axis = pln_call_int(take, "axis", 0);
  int64_t rank = pln_arg_rank(take, 0);
  axis += axis < 0 && rank >= 0 ? rank : 0;
  return axis < rank || rank < 0 ? axis : -1;
}

static pln_status build_take(pln_rewrite_context *ctx, pln_ref x, pln_ref index,
                             int64_t axis, pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = axis};
  pln_ref args[2] = {x, index};
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_make(ctx->engine, 1, &entry, &attrs));
  return pln_rule_replace_call(ctx, PLN_OP_GATHER, attrs, 2, args, out);
}

/* expand_dims(take(x, 3, axis=1), [1]) => take(x, [3], axis=1), if the take has
 * no other user. */
pln_status pln_simplify_take_vector(pln_rewrite_context *ctx, pln_ref *out) {
  pln_ref node = pln_rule_arg(ctx, 0), index;
  pln_list axes = pln_arg_list(&ctx->call, 1, "axes");
  int64_t at;
  if (!pln_is_call(ctx->call.graph, node, PLN_OP_GATHER) || axes.count != 1)
    return PLN_OK;
  pln_infer take = pln_rule_operand(ctx, 0);
  const pln_tensor *t = pln_arg_tensor(&take, 1);
  int64_t rank = pln_arg_rank(&take, 0);
  if (!t || t->rank != 0 || !pln_tensor_int(t, 0, &at) || rank < 0 ||
      drop_taken_axis(&take) < 0 ||
      axis_at(&axes, 0, rank) != drop_taken_axis(&take))
    return PLN_OK;
  if (!pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_ref x = take.args[0];
  int64_t axis = drop_taken_axis(&take);
  PLN_TRY(pln_rule_int_vector(ctx, 1, &at, &index));
  return build_take(ctx, x, index, axis, out);
}

/* take(transpose(x, [2, 0, 1]), 3, axis=0) => take(x, 3, axis=2), if the
 * remaining axes stay in order. */
pln_status pln_simplify_take_through_transpose(pln_rewrite_context *ctx,
                                               pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref move = pln_rule_arg(ctx, 0);
  int64_t axis = drop_taken_axis(&ctx->call), last = -1;
  if (!pln_is_call(g, move, PLN_OP_TRANSPOSE) || axis < 0 ||
      pln_arg_rank(&ctx->call, 1) != 0)
    return PLN_OK;
  const pln_attr *perm =
      pln_attrs_find(ctx->engine, g->nodes[move].attrs, "axes");
  if (!perm || perm->kind != PLN_ATTR_INTS || axis >= perm->count)
    return PLN_OK;
  for (uint32_t i = 0; i < perm->count; i++) {
    if (i != axis && perm->v.ints[i] <= last)
      return PLN_OK;
    last = i != axis ? perm->v.ints[i] : last;
  }
  return build_take(ctx, pln_operand(g, move, 0), pln_rule_arg(ctx, 1),
                    perm->v.ints[axis], out);
}

/* take(x, [0, 1, ..., n - 1]) => x if x has the extent n there. */
pln_status pln_simplify_take_all(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_infer *call = &ctx->call;
  int64_t axis = drop_taken_axis(call), rank = pln_arg_rank(call, 0);
  pln_list indices = pln_arg_list(call, 1, NULL);
  const pln_tensor *t = pln_arg_tensor(call, 1);
  if (axis < 0 || rank < 0 || !t || t->rank != 1 || !pln_list_known(&indices) ||
      pln_arg_dims(call, 0)[axis] != (pln_dim)indices.count)
    return PLN_OK;
  for (uint32_t i = 0; i < indices.count; i++) {
    pln_dim at = pln_list_at(&indices, i);
    if (at != i && at != (int64_t)i - (int64_t)indices.count)
      return PLN_OK;
  }
  *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}

/* Returns true if a slice takes one position of one axis. */
static bool is_one_position(const pln_infer *slice, int64_t *axis,
                            int64_t *at) {
  pln_list starts = pln_arg_list(slice, 1, "starts");
  pln_list ends = pln_arg_list(slice, 2, "ends");
  pln_list axes = pln_arg_list(slice, 3, "axes");
  pln_list steps = pln_arg_list(slice, 4, NULL);
  int64_t rank = pln_arg_rank(slice, 0);
  if (!pln_list_known(&starts) || !pln_list_known(&ends) || rank < 0 ||
      starts.count != 1 || ends.count != 1 ||
      (steps.given && !pln_list_all(&steps, 1)))
    return false;
  pln_dim start = pln_list_at(&starts, 0), end = pln_list_at(&ends, 0);
  *axis = axes.given ? axis_at(&axes, 0, rank) : 0;
  *at = start;
  if (*axis < 0 || (axes.given && axes.count != 1))
    return false;
  return start == -1 ? end >= INT32_MAX : end == start + 1;
}

/* A part of a Split, of one position: the tensor that is split, the axis and
 * the position. */
static bool is_split_position(const pln_rewrite_context *ctx, pln_ref part,
                              pln_ref *x, int64_t *axis, int64_t *at) {
  const pln_graph *g = ctx->call.graph;
  if (g->nodes[part].kind != PLN_TUPLE_GET_ITEM)
    return false;
  pln_ref split = pln_operand(g, part, 0);
  if (g->nodes[split].kind != PLN_CALL ||
      g->nodes[split].data != PLN_OP_SPLIT || !pln_op_is_onnx_form(g, split) ||
      !pln_call_is_valid(g, split))
    return false;
  pln_infer call = pln_infer_of(g, split);
  uint32_t index = g->nodes[part].data;
  *x = call.args[0];
  *axis = pln_call_int(&call, "axis", 0);
  *axis += *axis < 0 ? pln_arg_rank(&call, 0) : 0;
  *at = 0;
  for (uint32_t i = 0; i <= index; i++) {
    pln_type type = pln_type_part_at(ctx->engine, g->nodes[split].type, i);
    if (*axis < 0 || *axis >= pln_type_rank(ctx->engine, type))
      return false;
    pln_dim extent = pln_type_dims(ctx->engine, type)[*axis];
    if (!PLN_DIM_IS_CONST(extent) || (i == index && extent != 1))
      return false;
    *at += i < index ? extent : 0;
  }
  return true;
}

/* squeeze(split(x, [1, 1], axis=1).1, [1]) => take(x, 1, axis=1). In models of
 * ONNX, where exporters write it so. Not of the last axis: SlicesToSplit makes
 * a Split of takes by merging their axis with the next one. */
static pln_status take_part(pln_rewrite_context *ctx, int64_t removed,
                            pln_ref *out) {
  pln_ref x, index;
  int64_t axis, at;
  if (!pln_function_is_onnx(pln_rewrite_old(ctx->rw)) ||
      !is_split_position(ctx, pln_rule_arg(ctx, 0), &x, &axis, &at) ||
      removed != axis || axis + 1 == pln_arg_rank(&ctx->call, 0))
    return PLN_OK;
  PLN_TRY(pln_rule_int_constant(ctx, at, &index));
  return build_take(ctx, x, index, axis, out);
}

/* squeeze(strided_slice(x, [3], [4], [1]), [1]) => take(x, 3, axis=1), if the
 * slice has no other user. */
pln_status pln_simplify_take_one(pln_rewrite_context *ctx, pln_ref *out) {
  pln_ref node = pln_rule_arg(ctx, 0), index;
  pln_list axes = pln_arg_list(&ctx->call, 1, "axes");
  int64_t axis, at;
  if (axes.count != 1)
    return PLN_OK;
  if (!pln_is_call(ctx->call.graph, node, PLN_OP_SLICE))
    return take_part(ctx, axis_at(&axes, 0, pln_arg_rank(&ctx->call, 0)), out);
  pln_infer slice = pln_rule_operand(ctx, 0);
  if (!is_one_position(&slice, &axis, &at) ||
      axis_at(&axes, 0, pln_arg_rank(&slice, 0)) != axis)
    return PLN_OK;
  if (!pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_ref x = slice.args[0];
  PLN_TRY(pln_rule_int_constant(ctx, at, &index));
  return build_take(ctx, x, index, axis, out);
}
