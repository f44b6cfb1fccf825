/* reduce.c: rules for reductions. */

#include "transform/simplify/rule.h"

static bool is_reduction(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data && n->results == 0 &&
         (pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_REDUCE) != 0 &&
         pln_call_is_valid(g, node);
}

/* Marks the axes that a reduction removes: those of its list, or argmax's one;
 * all if it has none. */
static bool find_axes(const pln_infer *call, int64_t rank, bool *gone) {
  pln_list axes = pln_arg_list(call, 1, "axes");
  bool one = call->op == PLN_OP_ARG_MAX || call->op == PLN_OP_ARG_MIN;
  if (!one && (!axes.given || axes.count == 0)) {
    memset(gone, true, (size_t)rank);
    return !axes.given && !pln_call_int(call, "noop_with_empty_axes", 0);
  }
  for (uint32_t i = 0; i < (one ? 1 : axes.count); i++) {
    pln_dim axis = one ? pln_call_int(call, "axis", 0) : pln_list_at(&axes, i);
    if (!PLN_DIM_IS_CONST(axis) || axis < -rank || axis >= rank)
      return false;
    gone[axis < 0 ? axis + rank : axis] = true;
  }
  return true;
}

/* Returns true if the call's shape is the operand's with 1 on the reduced
 * axes. */
static bool puts_axes_back(const pln_rewrite_context *ctx,
                           const pln_infer *reduction) {
  bool gone[PLN_MAX_RANK] = {false};
  int64_t rank = pln_arg_rank(reduction, 0);
  if (rank < 1 || rank > PLN_MAX_RANK ||
      pln_type_rank(ctx->engine, ctx->type) != rank ||
      !find_axes(reduction, rank, gone))
    return false;
  const pln_dim *dims = pln_type_dims(ctx->engine, ctx->type);
  for (int64_t i = 0; i < rank; i++) {
    pln_dim extent = gone[i] ? 1 : pln_arg_dims(reduction, 0)[i];
    if (dims[i] != extent || extent == PLN_DIM_UNKNOWN)
      return false;
  }
  return true;
}

/* Returns true if the call's shape is the operand's without the reduced
 * axes. */
static bool leaves_axes_out(const pln_rewrite_context *ctx,
                            const pln_infer *reduction) {
  bool gone[PLN_MAX_RANK] = {false};
  int64_t rank = pln_arg_rank(reduction, 0), n = 0;
  if (rank < 1 || rank > PLN_MAX_RANK || !find_axes(reduction, rank, gone))
    return false;
  int64_t left = pln_type_rank(ctx->engine, ctx->type);
  for (int64_t i = 0; i < rank; i++) {
    pln_dim extent = pln_arg_dims(reduction, 0)[i];
    if (gone[i])
      continue;
    if (n >= left || extent == PLN_DIM_UNKNOWN ||
        pln_type_dims(ctx->engine, ctx->type)[n++] != extent)
      return false;
  }
  return n == left;
}

static pln_status reduce_with(pln_rewrite_context *ctx,
                              const pln_infer *reduction, int64_t keepdims,
                              pln_ref *out) {
  pln_ref args[2];
  pln_attrs attrs;
  pln_attr keep = {.kind = PLN_ATTR_INT, .v.i = keepdims};
  memcpy(args, reduction->args, reduction->n_args * sizeof *args);
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("keepdims"), &keep.name));
  PLN_TRY(pln_attrs_with(ctx->engine, reduction->attrs, &keep, &attrs));
  return pln_rule_replace_call(ctx, reduction->op, attrs, reduction->n_args,
                               args, out);
}

/* The operand is a reduction of the form that the rules below change, and
 * nothing else uses it. */
static bool reduces_once(const pln_rewrite_context *ctx, int64_t keepdims,
                         pln_infer *reduction) {
  if (!is_reduction(ctx->call.graph, pln_rule_arg(ctx, 0)) ||
      !pln_rule_is_only_use(ctx, 0))
    return false;
  *reduction = pln_rule_operand(ctx, 0);
  return pln_call_int(reduction, "keepdims", 1) == keepdims &&
         !pln_call_int(reduction, "exclude", 0) && reduction->n_args <= 2;
}

/* expand_dims(sum(x, [1], keepdims=0), [1]) => sum(x, [1], keepdims=1), for
 * every reduction and every operator that restores the axes. */
pln_status pln_simplify_keep_axes(pln_rewrite_context *ctx, pln_ref *out) {
  pln_infer reduction;
  if (!reduces_once(ctx, 0, &reduction) || !puts_axes_back(ctx, &reduction))
    return PLN_OK;
  return reduce_with(ctx, &reduction, 1, out);
}

/* reshape(mean(x, [2, 3], keepdims=1), [0, -1]) => mean(x, [2, 3], keepdims=0)
 * for x: (N, C, H, W), every reduction and every operator that removes the
 * axes. */
pln_status pln_simplify_drop_axes(pln_rewrite_context *ctx, pln_ref *out) {
  pln_infer reduction;
  if (!reduces_once(ctx, 1, &reduction) || !leaves_axes_out(ctx, &reduction))
    return PLN_OK;
  return reduce_with(ctx, &reduction, 0, out);
}

/* Reductions that map a single element to itself. */
static bool keeps_single(pln_op op) {
  return op == PLN_OP_REDUCE_SUM || op == PLN_OP_REDUCE_MEAN ||
         op == PLN_OP_REDUCE_PROD || op == PLN_OP_REDUCE_MAX ||
         op == PLN_OP_REDUCE_MIN;
}

/* sum(x, [1], keepdims=1) => x if x has the extent 1 there. */
pln_status pln_simplify_reduce_single(pln_rewrite_context *ctx, pln_ref *out) {
  bool gone[PLN_MAX_RANK] = {false};
  int64_t rank = pln_arg_rank(&ctx->call, 0);
  if (!keeps_single(ctx->call.op) || rank < 1 || rank > PLN_MAX_RANK ||
      pln_call_int(&ctx->call, "keepdims", 1) == 0 ||
      !find_axes(&ctx->call, rank, gone))
    return PLN_OK;
  for (int64_t i = 0; i < rank; i++)
    if (gone[i] && pln_arg_dims(&ctx->call, 0)[i] != 1)
      return PLN_OK;
  *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}
