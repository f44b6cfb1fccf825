/* commute.c: rules that exchange an operator with one that moves elements, so
 * that the latter cancels out or merges with another one. */

#include "transform/simplify/rule.h"

enum { MAX_OPERANDS = 16 };

static uint32_t uses_of(const pln_rewrite_context *ctx, pln_ref node) {
  return pln_rule_driver_uses(ctx->driver, node);
}

/* ---------------------------------------------------------- split, transpose
 */

/* Finds for each axis of x the number of axes of `split` that it was split
 * into; false if the shapes differ otherwise. */
static bool find_split_axes(pln_engine *e, pln_type x, pln_type split,
                            uint32_t *counts) {
  int32_t rank = pln_type_rank(e, x), parts = pln_type_rank(e, split), at = 0;
  if (rank < 1 || rank > PLN_MAX_RANK || parts <= rank || parts > PLN_MAX_RANK)
    return false;
  for (int32_t i = 0; i < rank; i++) {
    pln_dim product = 1, wanted = pln_type_dims(e, x)[i];
    counts[i] = 0;
    while (at < parts && (counts[i] == 0 || product != wanted)) {
      if (pln_dim_binary(e, PLN_DIM_MUL, product, pln_type_dims(e, split)[at],
                         &product) != PLN_OK)
        return false;
      counts[i]++;
      at++;
    }
    if (counts[i] == 0 || product != wanted || wanted == PLN_DIM_UNKNOWN)
      return false;
  }
  return at == parts;
}

/* The permutation of the axes of x; false if it separates the parts of one. */
static bool permute_whole_axes(const pln_attr *perm, uint32_t rank,
                               const uint32_t *counts, int64_t *axes) {
  uint32_t first[PLN_MAX_RANK], at = 0, n = 0;
  for (uint32_t i = 0; i < rank; i++) {
    first[i] = at;
    at += counts[i];
  }
  if (!perm || perm->kind != PLN_ATTR_INTS || perm->count != at)
    return false;
  for (uint32_t k = 0; k < at; n++) {
    uint32_t axis = 0;
    while (axis < rank && first[axis] != perm->v.ints[k])
      axis++;
    if (axis == rank)
      return false;
    for (uint32_t j = 0; j < counts[axis]; j++, k++)
      if (k >= at || perm->v.ints[k] != first[axis] + j)
        return false;
    axes[n] = axis;
  }
  return n == rank;
}

/* reshape(transpose(reshape(x, [N, 6, 4, H, W]), [0, 3, 4, 1, 2]), [N, -1, 4])
 * => reshape(transpose(x, [0, 2, 3, 1]), [N, -1, 4]): the axis that is split
 * moves as a whole. */
pln_status pln_simplify_split_behind(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_engine *e = ctx->engine;
  pln_ref move = pln_rule_arg(ctx, 0);
  uint32_t counts[PLN_MAX_RANK];
  int64_t axes[PLN_MAX_RANK];
  if (!pln_is_call(g, move, PLN_OP_TRANSPOSE) || !pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_ref inner = pln_operand(g, move, 0);
  if (!pln_rule_only_reshapes(g, inner) || uses_of(ctx, inner) != 1)
    return PLN_OK;
  pln_ref x = pln_operand(g, inner, 0);
  int32_t rank = pln_type_rank(e, g->nodes[x].type);
  int32_t result = pln_type_rank(e, ctx->type);
  if (result < 1 || result > PLN_MAX_RANK ||
      !find_split_axes(e, g->nodes[x].type, g->nodes[inner].type, counts) ||
      !permute_whole_axes(pln_attrs_find(e, g->nodes[move].attrs, "axes"),
                          (uint32_t)rank, counts, axes))
    return PLN_OK;
  pln_type type = ctx->type;
  pln_attrs attrs;
  pln_attr perm = {
      .kind = PLN_ATTR_INTS, .count = (uint32_t)rank, .v.ints = axes};
  PLN_TRY(pln_symbol_intern(e, pln_text("axes"), &perm.name));
  PLN_TRY(pln_attrs_make(e, 1, &perm, &attrs));
  PLN_TRY(pln_rule_build(ctx, PLN_OP_TRANSPOSE, attrs, 1, &x, &x));
  if (x == PLN_NONE)
    return PLN_OK;
  return pln_rule_reshape(ctx, x, (uint32_t)result, pln_type_dims(e, type),
                          out);
}

/* -------------------------------------------------------- around elementwise
 */

/* The operand of an elementwise call that is reshaped, if all others are single
 * numbers; -1: there is none. */
static int32_t reshaped_operand(const pln_rewrite_context *ctx, pln_ref node) {
  const pln_graph *g = ctx->call.graph;
  const pln_node *n = &g->nodes[node];
  int32_t found = -1;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref arg = pln_operand(g, node, i);
    if (pln_rule_only_reshapes(g, arg) && found < 0 && uses_of(ctx, arg) == 1)
      found = (int32_t)i;
    else if (pln_type_rank(ctx->engine, g->nodes[arg].type) != 0)
      return -1;
  }
  return found;
}

static bool is_elementwise(const pln_rewrite_context *ctx, pln_ref node) {
  const pln_graph *g = ctx->call.graph;
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data && n->count <= 3 &&
         pln_is_call(g, node, n->data) && n->data != PLN_OP_EXPAND &&
         (pln_op_row(ctx->engine, n->data)->traits &
          (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST)) != 0;
}

/* expand_dims(multiply(squeeze(x, [1]), 2), [1]) => multiply(x, 2), if x has
 * the shape of the result. */
pln_status pln_simplify_reshape_around(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref call = pln_rule_arg(ctx, 0), args[3];
  if (!pln_rule_is_only_use(ctx, 0) || !is_elementwise(ctx, call))
    return PLN_OK;
  int32_t i = reshaped_operand(ctx, call);
  if (i < 0)
    return PLN_OK;
  const pln_node n = g->nodes[call];
  memcpy(args, g->operands + n.first, n.count * sizeof *args);
  args[i] = pln_operand(g, args[i], 0);
  pln_type type = g->nodes[args[i]].type;
  if (pln_type_rank(ctx->engine, type) < 0 ||
      pln_type_rank(ctx->engine, type) !=
          pln_type_rank(ctx->engine, ctx->type) ||
      !pln_same_shape_by_count(ctx->engine, ctx->type, type))
    return PLN_OK;
  return pln_rule_replace_call(ctx, n.data, n.attrs, n.count, args, out);
}

/* -------------------------------------------------------------- concatenate
 */

/* concatenate(split(x).0, split(x).1) => x, all parts along the same axis. */
pln_status pln_simplify_rejoin(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref split = PLN_NONE;
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  int64_t rank = pln_type_rank(ctx->engine, ctx->type);
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    const pln_node *field = &g->nodes[pln_rule_arg(ctx, i)];
    if (field->kind != PLN_TUPLE_GET_ITEM || field->data != i)
      return PLN_OK;
    pln_ref tuple = g->operands[field->first];
    if (i > 0 && tuple != split)
      return PLN_OK;
    split = tuple;
  }
  const pln_node *n = split == PLN_NONE ? NULL : &g->nodes[split];
  if (!n || n->kind != PLN_CALL || n->data != PLN_OP_SPLIT || rank < 1 ||
      n->results != ctx->call.n_args || !pln_op_is_onnx_form(g, split) ||
      !pln_call_is_valid(g, split))
    return PLN_OK;
  int64_t own = pln_attrs_int(ctx->engine, n->attrs, "axis", 0);
  if ((own < 0 ? own + rank : own) == (axis < 0 ? axis + rank : axis))
    *out = pln_operand(g, split, 0);
  return PLN_OK;
}

/* The axis that all operands get; -1 if they do not. */
static int64_t common_new_axis(const pln_rewrite_context *ctx) {
  const pln_graph *g = ctx->call.graph;
  int64_t rank = pln_type_rank(ctx->engine, ctx->type), common = -1, axis;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    if (!pln_is_call(g, pln_rule_arg(ctx, i), PLN_OP_UNSQUEEZE) ||
        !pln_rule_is_only_use(ctx, i))
      return -1;
    pln_infer call = pln_rule_operand(ctx, i);
    pln_list axes = pln_arg_list(&call, 1, "axes");
    if (axes.count != 1 || !pln_list_read(&axes, 1, &axis))
      return -1;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || (i > 0 && axis != common))
      return -1;
    common = axis;
  }
  return common;
}

/* Returns true if every operand had the extent 1 on the axis before the new
 * one. */
static bool are_columns(const pln_rewrite_context *ctx, int64_t new_axis) {
  for (uint32_t i = 0; i < ctx->call.n_args; i++)
    if (new_axis < 1 || pln_arg_dims(&ctx->call, i)[new_axis - 1] != 1)
      return false;
  return true;
}

/* concatenate(expand_dims(x, [2]), expand_dims(y, [2]), axis=1) =>
 * expand_dims(concatenate(x, y, axis=1), [2]). Along the new axis itself:
 * => expand_dims(concatenate(x, y, axis=1), [1]) if x and y have the extent 1
 * on axis 1. */
pln_status pln_simplify_join_inside(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref args[MAX_OPERANDS], joined;
  uint32_t n = ctx->call.n_args;
  int64_t rank = pln_type_rank(ctx->engine, ctx->type);
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  if (n < 2 || n > MAX_OPERANDS || rank < 2)
    return PLN_OK;
  int64_t added = common_new_axis(ctx);
  axis += axis < 0 ? rank : 0;
  if (added < 0 || axis < 0 || axis >= rank ||
      (axis == added && !are_columns(ctx, added)))
    return PLN_OK;
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = axis - (axis >= added)};
  added -= axis == added;
  pln_attrs attrs;
  pln_ref node = pln_rule_arg(ctx, 0);
  for (uint32_t i = 0; i < n; i++)
    args[i] = pln_operand(g, pln_rule_arg(ctx, i), 0);
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_with(ctx->engine, ctx->call.attrs, &entry, &attrs));
  PLN_TRY(pln_rule_build(ctx, PLN_OP_CONCAT, attrs, n, args, &joined));
  if (joined == PLN_NONE)
    return PLN_OK;
  pln_rewrite_context inner = *ctx;
  pln_rule_set_call(&inner, node);
  inner.type = ctx->type;
  return pln_rule_replace_list(&inner, joined, 1, "axes", 1, &added, out);
}
