/* broadcast.c: rules for broadcast_to: replaces computed target shapes by
 * constants, and drops broadcasts that the next operator does itself. */

#include "transform/simplify/rule.h"

/* The extent of operand 0 that is aligned with element `i` of a list of `n`; 1
 * if the operand has no such axis. */
static pln_dim own_extent(const pln_rewrite_context *ctx, uint32_t n,
                          uint32_t i) {
  int64_t rank = pln_arg_rank(&ctx->call, 0);
  int64_t axis = rank - (int64_t)n + i;
  return axis < 0 ? 1 : pln_arg_dims(&ctx->call, 0)[axis];
}

/* broadcast_to(x, [N, 8, S]) => broadcast_to(x, [1, 8, 1]) if x has the extents
 * N and S there. The computation of the shape becomes dead. */
pln_status pln_simplify_fold_broadcast_shape(pln_rewrite_context *ctx,
                                             pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_list list = pln_arg_list(&ctx->call, 1, NULL);
  int64_t shape[PLN_MAX_RANK];
  pln_ref args[2] = {pln_rule_arg(ctx, 0)};
  if (g->nodes[pln_rule_arg(ctx, 1)].kind == PLN_CONSTANT || !list.given ||
      !list.sized || list.count > PLN_MAX_RANK ||
      pln_arg_rank(&ctx->call, 0) < 0)
    return PLN_OK;
  for (uint32_t i = 0; i < list.count; i++) {
    pln_dim dim = pln_list_at(&list, i);
    if (dim == PLN_DIM_UNKNOWN)
      return PLN_OK;
    if (!PLN_DIM_IS_CONST(dim) && dim != own_extent(ctx, list.count, i))
      return PLN_OK;
    shape[i] = PLN_DIM_IS_CONST(dim) ? dim : 1;
  }
  PLN_TRY(pln_rule_int_vector(ctx, list.count, shape, &args[1]));
  return pln_rule_replace_call(ctx, PLN_OP_EXPAND, ctx->call.attrs, 2, args,
                               out);
}

/* The extent of a type that is broadcast to `rank` axes. */
static pln_dim broadcast_extent(const pln_engine *e, pln_type type,
                                int64_t rank, int64_t axis) {
  int64_t own = pln_type_rank(e, type), at = axis - rank + own;
  if (own < 0)
    return PLN_DIM_UNKNOWN;
  return at < 0 ? 1 : pln_type_dims(e, type)[at];
}

/* pln_rule_covers with an operand of type `other`; 0: of rank 0. */
static bool covers_with(const pln_rewrite_context *ctx, uint32_t i,
                        pln_type other) {
  const pln_engine *e = ctx->engine;
  int64_t rank = pln_type_rank(e, ctx->type);
  if (rank < 0 || (other && pln_type_rank(e, other) < 0))
    return false;
  for (int64_t axis = 0; axis < rank; axis++) {
    pln_dim dim = pln_type_dims(e, ctx->type)[axis];
    bool covered =
        dim == 1 || (other && broadcast_extent(e, other, rank, axis) == dim);
    for (uint32_t k = 0; k < ctx->call.n_args && !covered; k++)
      covered = k != i && broadcast_extent(e, pln_arg_type(&ctx->call, k), rank,
                                           axis) == dim;
    if (!covered || dim == PLN_DIM_UNKNOWN)
      return false;
  }
  return true;
}

bool pln_rule_covers(const pln_rewrite_context *ctx, uint32_t i, pln_ref x) {
  pln_type type = ctx->call.graph->nodes[x].type;
  return type && covers_with(ctx, i, type);
}

/* Returns true if another operand than `i` has the shape of the result. */
static bool has_full_operand(const pln_rewrite_context *ctx, uint32_t i) {
  for (uint32_t k = 0; k < ctx->call.n_args; k++)
    if (k != i &&
        pln_same_extents(ctx->engine, pln_arg_type(&ctx->call, k), ctx->type))
      return true;
  return false;
}

/* Returns true if the call has the same shape with a scalar in place of operand
 * `i`. */
static bool others_span(const pln_rewrite_context *ctx, uint32_t i) {
  return has_full_operand(ctx, i) || covers_with(ctx, i, 0);
}

/* Returns true if the call has the same shape with `x` in place of operand
 * `i`. */
static bool spans_without(const pln_rewrite_context *ctx, uint32_t i,
                          pln_ref x) {
  return has_full_operand(ctx, i) || pln_rule_covers(ctx, i, x);
}

/* add(x, broadcast_to(y, s)) => add(x, y) if that has the same shape; for every
 * broadcasting operator. */
pln_status pln_simplify_drop_broadcast(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    pln_ref arg = pln_rule_arg(ctx, i);
    if (pln_is_call(g, arg, PLN_OP_EXPAND) &&
        spans_without(ctx, i, pln_operand(g, arg, 0)))
      return pln_rule_replace_arg(ctx, i, pln_operand(g, arg, 0), out);
  }
  return PLN_OK;
}

pln_status pln_rule_fill(pln_rewrite *rw, pln_ref fill, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_attr *value =
      pln_attrs_find(g->engine, g->nodes[fill].attrs, "value");
  static const float zero = 0;
  const void *data = &zero;
  pln_dtype dtype = PLN_FLOAT32;
  pln_tensor *scalar;
  if (value && (value->kind != PLN_ATTR_TENSOR || value->v.tensor->count != 1))
    return PLN_OK;
  if (value) {
    dtype = (pln_dtype)value->v.tensor->dtype;
    PLN_TRY(pln_tensor_data(value->v.tensor, &data));
  }
  if (dtype == PLN_STRING)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_tensor_splat(g->engine, dtype, 0, NULL, data, &scalar));
  pln_status status = pln_build_constant(b, scalar, out);
  pln_tensor_release(scalar);
  return status;
}

/* minimum(x, constant_of_shape(s, value=15)) => minimum(x, 15) if that has the
 * same shape; for every broadcasting operator. */
pln_status pln_simplify_drop_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref scalar = PLN_NONE;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    pln_ref arg = pln_rule_arg(ctx, i);
    if (!pln_is_call(g, arg, PLN_OP_CONSTANT_OF_SHAPE) || !others_span(ctx, i))
      continue;
    PLN_TRY(pln_rule_fill(ctx->rw, arg, &scalar));
    if (scalar == PLN_NONE)
      return PLN_OK;
    pln_rule_set_call(ctx, ctx->node);
    return pln_rule_replace_arg(ctx, i, scalar, out);
  }
  return PLN_OK;
}
