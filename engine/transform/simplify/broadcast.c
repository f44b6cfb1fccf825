/* broadcast.c: rules for broadcast_to: replaces computed target shapes by
 * constants, and drops broadcasts that the next operator does itself. Fills are
 * in fill.c. */

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

/* The positions x of take(w, broadcast_to(x, s), axis=0) for a constant w with
 * rows; PLN_NONE for other nodes. */
static pln_ref broadcast_positions(const pln_graph *g, pln_ref node) {
  if (!pln_is_call(g, node, PLN_OP_GATHER) ||
      pln_attrs_int(g->engine, g->nodes[node].attrs, "axis", 0) != 0 ||
      pln_attrs_int(g->engine, g->nodes[node].attrs, "batch_dims", 0) != 0)
    return PLN_NONE;
  pln_ref w = pln_operand(g, node, 0), i = pln_operand(g, node, 1);
  return g->nodes[w].kind == PLN_CONSTANT &&
                 pln_type_rank(g->engine, g->nodes[w].type) == 2 &&
                 pln_is_call(g, i, PLN_OP_EXPAND)
             ? pln_operand(g, i, 0)
             : PLN_NONE;
}

/* add(x, take(w, broadcast_to(i, s), axis=0)) => add(x, take(w, i, axis=0)) if
 * x has the shape of the result. Positions outside of the table then count also
 * where s makes the result empty. */
pln_status pln_simplify_rows_of_broadcast(pln_rewrite_context *ctx,
                                          pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    pln_ref rows = pln_rule_arg(ctx, i), args[2];
    if ((args[1] = broadcast_positions(g, rows)) == PLN_NONE ||
        !pln_rule_is_only_use(ctx, i) || !has_full_operand(ctx, i))
      continue;
    pln_attrs attrs = g->nodes[rows].attrs;
    args[0] = pln_operand(g, rows, 0);
    PLN_TRY(pln_rule_build(ctx, PLN_OP_GATHER, attrs, 2, args, &rows));
    if (rows == PLN_NONE)
      return PLN_OK;
    pln_rule_set_call(ctx, ctx->node);
    return pln_rule_replace_arg(ctx, i, rows, out);
  }
  return PLN_OK;
}
