/* rule.c: type and list queries of SimplifyExpr's rules, and how they build
 * nodes. Called by the rules here and by transform/fold/. */

#include "transform/simplify/rule.h"

/* ----------------------------------------------------------- nodes and lists
 */

bool pln_is_call(const pln_graph *graph, pln_ref node, pln_op op) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_CALL && n->data == op && n->results == 0 &&
         pln_op_is_onnx_form(graph, node) && pln_call_is_valid(graph, node);
}

bool pln_list_all(const pln_list *list, int64_t wanted) {
  if (!list->given || !pln_list_known(list))
    return false;
  for (uint32_t i = 0; i < list->count; i++)
    if (pln_list_at(list, i) != wanted)
      return false;
  return true;
}

bool pln_list_read(const pln_list *list, uint32_t max, int64_t *out) {
  if (!list->given || !pln_list_known(list) || list->count > max)
    return false;
  for (uint32_t i = 0; i < list->count; i++)
    out[i] = pln_list_at(list, i);
  return true;
}

void pln_rule_set_call(pln_rewrite_context *ctx, pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(ctx->rw);
  ctx->node = node;
  ctx->type = g->nodes[node].type;
  ctx->call = pln_infer_of(g, node);
}

pln_infer pln_rule_operand(const pln_rewrite_context *ctx, uint32_t i) {
  return pln_infer_of(ctx->call.graph, pln_rule_arg(ctx, i));
}

bool pln_rule_is_only_use(const pln_rewrite_context *ctx, uint32_t i) {
  pln_ref arg = pln_rule_arg(ctx, i);
  return pln_rule_driver_uses(ctx->driver, arg) == 1 &&
         !(ctx->call.graph->nodes[arg].flags & PLN_NODE_KEEP);
}

/* ----------------------------------------------------------------- building */

pln_status pln_rule_build(pln_rewrite_context *ctx, pln_op op, pln_attrs attrs,
                          uint32_t n, const pln_ref *args, pln_ref *out) {
  size_t mark = pln_diag_count(ctx->engine);
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  uint32_t n_results = op == ctx->call.op ? ctx->call.n_results : 0;
  pln_status status = pln_build_call(b, op, attrs, n_results, n, args, out);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(ctx->engine, mark);
  *out = PLN_NONE;
  return PLN_OK;
}

pln_status pln_rule_replace_call(pln_rewrite_context *ctx, pln_op op,
                                 pln_attrs attrs, uint32_t n,
                                 const pln_ref *args, pln_ref *out) {
  PLN_TRY(pln_rule_build(ctx, op, attrs, n, args, out));
  if (*out == PLN_NONE)
    return PLN_OK;
  return pln_keep_type(ctx->rw, *out, ctx->type);
}

pln_status pln_rule_replace_arg(pln_rewrite_context *ctx, uint32_t i,
                                pln_ref arg, pln_ref *out) {
  pln_ref args[8];
  uint32_t n = ctx->call.n_args;
  if (n > PLN_COUNT(args))
    return PLN_OK;
  memcpy(args, ctx->call.args, n * sizeof *args);
  args[i] = arg;
  return pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, n, args,
                               out);
}

static pln_status build_int64(pln_rewrite_context *ctx, uint32_t rank,
                              uint32_t n, const int64_t *ints, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  return b ? pln_build_int64s(b, rank, n, ints, out) : PLN_ERR_NOMEM;
}

pln_status pln_rule_int_vector(pln_rewrite_context *ctx, uint32_t n,
                               const int64_t *ints, pln_ref *out) {
  return build_int64(ctx, 1, n, ints, out);
}

pln_status pln_rule_int_constant(pln_rewrite_context *ctx, int64_t value,
                                 pln_ref *out) {
  return build_int64(ctx, 0, 1, &value, out);
}

pln_status pln_rule_transpose(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                              const int64_t *axes, pln_ref *out) {
  pln_attrs attrs;
  pln_attr perm = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = axes};
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axes"), &perm.name));
  PLN_TRY(pln_attrs_make(ctx->engine, 1, &perm, &attrs));
  return pln_rule_replace_call(ctx, PLN_OP_TRANSPOSE, attrs, 1, &x, out);
}

static pln_status with_attribute(pln_rewrite_context *ctx, pln_ref x,
                                 const char *attr, uint32_t n,
                                 const int64_t *ints, pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints};
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text(attr), &entry.name));
  PLN_TRY(pln_attrs_with(ctx->engine, ctx->call.attrs, &entry, &attrs));
  return pln_rule_replace_call(ctx, ctx->call.op, attrs, 1, &x, out);
}

pln_status pln_rule_replace_list(pln_rewrite_context *ctx, pln_ref x,
                                 uint32_t arg, const char *attr, uint32_t n,
                                 const int64_t *ints, pln_ref *out) {
  pln_ref args[2] = {x};
  if (arg != 1 || pln_arg_absent(&ctx->call, 1))
    return with_attribute(ctx, x, attr, n, ints, out);
  PLN_TRY(pln_rule_int_vector(ctx, n, ints, &args[1]));
  return pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, 2, args,
                               out);
}

bool pln_rule_only_reshapes(const pln_graph *g, pln_ref node) {
  return pln_is_call(g, node, PLN_OP_RESHAPE) ||
         pln_is_call(g, node, PLN_OP_FLATTEN) ||
         pln_is_call(g, node, PLN_OP_SQUEEZE) ||
         pln_is_call(g, node, PLN_OP_UNSQUEEZE);
}
