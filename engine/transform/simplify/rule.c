/* rule.c: type and list queries of SimplifyExpr's rules, and how they build
 * nodes. Called by the rules here and by transform/fold/. */

#include "transform/simplify/rule.h"

/* -------------------------------------------------------------------- types */

/* Returns true for tensors of equal, known dtype and rank. */
static bool same_tensor_type(const pln_engine *e, pln_type a, pln_type b) {
  return pln_type_get_kind(e, a) == PLN_TYPE_TENSOR &&
         pln_type_get_kind(e, b) == PLN_TYPE_TENSOR && pln_type_dtype(e, a) &&
         pln_type_dtype(e, a) == pln_type_dtype(e, b) &&
         pln_type_rank(e, a) >= 0 && pln_type_rank(e, a) == pln_type_rank(e, b);
}

bool pln_same_shape(const pln_engine *engine, pln_type a, pln_type b) {
  if (!same_tensor_type(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++)
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

/* With equal products, one dim is determined by the others unless one of those
 * is 0. */
bool pln_same_shape_by_count(const pln_engine *engine, pln_type a, pln_type b) {
  if (!same_tensor_type(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  int open = 0;
  bool positive = true;
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++) {
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      open++;
    else
      positive &= pln_dim_lower_bound(engine, x[i]) > 0;
  }
  return open == 0 || (open == 1 && positive);
}

/* ----------------------------------------------------------- nodes and lists
 */

static bool has_operands(const pln_graph *g, const pln_node *n) {
  int32_t least = pln_op_row(g->engine, n->data)->min_args;
  if ((int64_t)n->count < least)
    return false;
  for (int32_t i = 0; i < least; i++)
    if (g->nodes[g->operands[n->first + (uint32_t)i]].kind == PLN_ABSENT)
      return false;
  return true;
}

bool pln_call_is_valid(const pln_graph *graph, pln_ref call) {
  return graph->typed_from[call] != PLN_TYPED_REFUSED &&
         has_operands(graph, &graph->nodes[call]);
}

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
  const pln_node *n = &g->nodes[node];
  ctx->node = node;
  ctx->type = n->type;
  ctx->call = (pln_infer){.engine = ctx->engine,
                          .graph = g,
                          .args = g->operands + n->first,
                          .n_args = n->count,
                          .op = n->data,
                          .attrs = n->attrs,
                          .n_results = n->results};
}

pln_infer pln_rule_operand(const pln_rewrite_context *ctx, uint32_t i) {
  const pln_graph *g = ctx->call.graph;
  const pln_node *n = &g->nodes[pln_rule_arg(ctx, i)];
  return (pln_infer){.engine = ctx->engine,
                     .graph = g,
                     .args = pln_operands(g, n),
                     .n_args = n->count,
                     .op = n->data,
                     .attrs = n->attrs,
                     .n_results = n->results};
}

pln_status pln_rule_is_only_use(pln_rewrite_context *ctx, uint32_t i,
                                bool *out) {
  const pln_graph *old = pln_rewrite_old(ctx->rw);
  const pln_node *n = &old->nodes[ctx->old];
  *out = false;
  if (!ctx->uses->old)
    PLN_TRY(pln_use_counts_begin(ctx->uses, old));
  if (n->kind != PLN_CALL || i >= n->count)
    return PLN_OK;
  pln_ref before = pln_operand(old, ctx->old, i);
  *out = pln_rewrite_image(ctx->rw, before) == pln_rule_arg(ctx, i) &&
         ctx->uses->old[before] == 1 &&
         !(old->nodes[before].flags & PLN_NODE_KEEP);
  return PLN_OK;
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
  int64_t dims[1] = {n};
  pln_tensor *tensor;
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_tensor_from_bytes(ctx->engine, PLN_INT64, rank, dims, ints,
                                n * sizeof *ints, &tensor));
  pln_status status = pln_build_constant(b, tensor, out);
  pln_tensor_release(tensor);
  return status;
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
