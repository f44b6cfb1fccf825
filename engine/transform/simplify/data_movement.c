/* data_movement.c: rules for transpose, slice and concat. */

#include "transform/simplify/rule.h"

/* Returns operand 0 if `yes`: the call does nothing. */
static pln_status is_operand(const pln_rewrite_context *ctx, bool yes,
                             pln_ref *out) {
  if (yes)
    *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}

/* ----------------------------------------------------------------- transpose
 */

bool pln_read_permutation(const pln_engine *e, pln_attrs attrs, int32_t rank,
                          pln_permutation *out) {
  const pln_attr *perm = pln_attrs_find(e, attrs, "axes");
  if (perm && (perm->kind != PLN_ATTR_INTS || perm->count > PLN_MAX_RANK))
    return false;
  if (!perm && (rank < 0 || rank > PLN_MAX_RANK))
    return false;
  out->n = perm ? perm->count : (uint32_t)rank;
  for (uint32_t i = 0; i < out->n; i++)
    out->axes[i] = perm ? perm->v.ints[i] : (int64_t)(out->n - 1 - i);
  for (uint32_t i = 0; i < out->n; i++)
    if (out->axes[i] < 0 || out->axes[i] >= out->n)
      return false;
  return true;
}

bool pln_permutation_is_identity(const pln_permutation *p) {
  for (uint32_t i = 0; i < p->n; i++)
    if (p->axes[i] != i)
      return false;
  return true;
}

pln_status pln_simplify_same_transpose(pln_rewrite_context *ctx, pln_ref *out) {
  pln_permutation p;
  bool known = pln_read_permutation(ctx->engine, ctx->call.attrs,
                                    pln_arg_rank(&ctx->call, 0), &p);
  return is_operand(ctx, known && pln_permutation_is_identity(&p), out);
}

/* transpose(transpose(x, p), q) => transpose(x, p after q) */
pln_status pln_simplify_merge_transpose(pln_rewrite_context *ctx,
                                        pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref inner = pln_rule_arg(ctx, 0);
  pln_permutation p, q;
  int64_t both[PLN_MAX_RANK];
  if (!pln_is_call(g, inner, PLN_OP_TRANSPOSE))
    return PLN_OK;
  pln_ref x = pln_operand(g, inner, 0);
  int32_t rank = pln_type_rank(ctx->engine, g->nodes[x].type);
  if (rank < 0)
    rank = pln_type_rank(ctx->engine, ctx->type);
  if (!pln_read_permutation(ctx->engine, g->nodes[inner].attrs, rank, &p) ||
      !pln_read_permutation(ctx->engine, ctx->call.attrs, (int32_t)p.n, &q) ||
      p.n != q.n)
    return PLN_OK;
  for (uint32_t i = 0; i < q.n; i++)
    both[i] = p.axes[q.axes[i]];
  return pln_rule_replace_list(ctx, x, PLN_NONE, "axes", q.n, both, out);
}

/* --------------------------------------------------------------------- slice
 */

/* Exporters write these values for "to the end". */
static bool is_to_the_end(pln_dim end) {
  return PLN_DIM_IS_CONST(end) && end >= INT32_MAX;
}

/* Returns true if [start, end) with step 1 is the whole axis. */
static bool is_full(pln_dim extent, pln_dim start, pln_dim end) {
  if (start != 0)
    return false;
  if (is_to_the_end(end) || (end == extent && extent != PLN_DIM_UNKNOWN))
    return true;
  return PLN_DIM_IS_CONST(end) && PLN_DIM_IS_CONST(extent) && end >= extent;
}

/* Returns true if entry `i` of a slice provably keeps all of its axis. */
static bool axis_is_full(const pln_rewrite_context *ctx, const pln_list *axes,
                         uint32_t i, pln_dim start, pln_dim end) {
  const pln_engine *e = ctx->engine;
  int32_t rank = pln_arg_rank(&ctx->call, 0);
  int64_t axis = axes->given ? pln_list_at(axes, i) : (int64_t)i;
  if (axis < 0 && rank >= 0)
    axis += rank;
  if (axis < 0 || axis >= rank)
    return is_full(PLN_DIM_UNKNOWN, start, end);
  pln_dim extent = pln_arg_dims(&ctx->call, 0)[axis];
  if (is_full(extent, start, end))
    return true;
  return pln_type_rank(e, ctx->type) == rank && extent != PLN_DIM_UNKNOWN &&
         pln_type_dims(e, ctx->type)[axis] == extent;
}

/* A slice that keeps all elements in order. */
pln_status pln_simplify_full_slice(pln_rewrite_context *ctx, pln_ref *out) {
  pln_list starts = pln_arg_list(&ctx->call, 1, "starts");
  pln_list ends = pln_arg_list(&ctx->call, 2, "ends");
  pln_list axes = pln_arg_list(&ctx->call, 3, "axes");
  pln_list steps = pln_arg_list(&ctx->call, 4, NULL);
  if (!starts.given || !starts.sized || !ends.sized ||
      ends.count != starts.count ||
      (axes.given && (!pln_list_known(&axes) || axes.count != starts.count)) ||
      (steps.given && !pln_list_all(&steps, 1)))
    return PLN_OK;
  for (uint32_t i = 0; i < starts.count; i++)
    if (!axis_is_full(ctx, &axes, i, pln_list_at(&starts, i),
                      pln_list_at(&ends, i)))
      return PLN_OK;
  return is_operand(ctx, true, out);
}

/* ------------------------------------------------------------ concat
 */

/* Returns true if operand `i` has extent 0 along the axis. */
static bool is_empty(const pln_rewrite_context *ctx, uint32_t i, int64_t axis) {
  int32_t rank = pln_arg_rank(&ctx->call, i);
  if (axis < 0)
    axis += rank;
  return axis >= 0 && axis < rank && pln_arg_dims(&ctx->call, i)[axis] == 0;
}

/* Counts the operands that are not empty, at least one. */
static uint32_t full_operands(const pln_rewrite_context *ctx, pln_ref *kept) {
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  uint32_t n = 0;
  for (uint32_t i = 0; i < ctx->call.n_args; i++)
    if (!is_empty(ctx, i, axis))
      kept[n++] = pln_rule_arg(ctx, i);
  if (n == 0)
    kept[n++] = pln_rule_arg(ctx, 0);
  return n;
}

static bool any_empty(const pln_rewrite_context *ctx) {
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  for (uint32_t i = 0; i < ctx->call.n_args; i++)
    if (is_empty(ctx, i, axis))
      return true;
  return false;
}

/* concat(x) => x; concat(x, empty, y) => concat(x, y) */
pln_status pln_simplify_single_concat(pln_rewrite_context *ctx, pln_ref *out) {
  uint32_t n = ctx->call.n_args;
  if (n == 1)
    return is_operand(ctx, true, out);
  if (!any_empty(ctx))
    return PLN_OK;
  pln_ref *kept = pln_mem_new(ctx->engine, n * sizeof *kept);
  if (!kept)
    return pln_nomem(ctx->engine);
  uint32_t k = full_operands(ctx, kept);
  pln_status status = PLN_OK;
  if (k == 1)
    *out = kept[0];
  else
    status =
        pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, k, kept, out);
  pln_mem_free(ctx->engine, kept, n * sizeof *kept);
  return status;
}

/* Limit on the operands of a merged concat: merging a chain of concats costs
 * that for each at most. */
enum { MAX_PARTS = 64 };

static bool is_int_vector(const pln_engine *e, pln_type type) {
  pln_dtype dtype = pln_type_dtype(e, type);
  return pln_type_rank(e, type) == 1 &&
         (dtype == PLN_INT64 || dtype == PLN_INT32);
}

/* Returns true if operand `i` is a concat along the same axis that nothing else
 * uses; in shape computations, others may. */
static bool is_inner_concat(const pln_rewrite_context *ctx, uint32_t i) {
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  if (!pln_is_call(ctx->call.graph, pln_rule_arg(ctx, i), PLN_OP_CONCAT))
    return false;
  if (is_int_vector(ctx->engine, ctx->type))
    return true;
  pln_infer inner = pln_rule_operand(ctx, i);
  int64_t a = pln_call_int(&ctx->call, "axis", 0);
  int64_t b = pln_call_int(&inner, "axis", 0);
  return rank > 0 && (a < 0 ? a + rank : a) == (b < 0 ? b + rank : b) &&
         pln_rule_is_only_use(ctx, i);
}

/* concat(a, concat(b, c)) => concat(a, b, c) */
pln_status pln_simplify_merge_concat(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref parts[MAX_PARTS];
  uint32_t n = 0, inner = 0;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    pln_ref arg = pln_rule_arg(ctx, i);
    bool joins = is_inner_concat(ctx, i);
    uint32_t count = joins ? g->nodes[arg].count : 1;
    if (count > MAX_PARTS - n)
      return PLN_OK;
    for (uint32_t k = 0; k < count; k++)
      parts[n++] = joins ? pln_operand(g, arg, k) : arg;
    inner += joins;
  }
  if (!inner)
    return PLN_OK;
  return pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, n, parts,
                               out);
}

/* Returns true if `b` begins where `a` ends: both are extents of one tensor. */
static bool follows_extents(const pln_graph *g, pln_ref a, pln_ref b) {
  const pln_engine *e = g->engine;
  const pln_node *n = &g->nodes[a], *m = &g->nodes[b];
  if (!pln_is_call(g, a, PLN_OP_SHAPE) || !pln_is_call(g, b, PLN_OP_SHAPE) ||
      pln_operand(g, a, 0) != pln_operand(g, b, 0) ||
      !pln_attrs_find(e, n->attrs, "end") ||
      pln_type_dtype(e, n->type) != pln_type_dtype(e, m->type))
    return false;
  int64_t end = pln_attrs_int(e, n->attrs, "end", 0);
  return end > 0 && pln_attrs_int(e, n->attrs, "start", 0) >= 0 &&
         end == pln_attrs_int(e, m->attrs, "start", 0);
}

/* Builds shape_of(x, start of a, end of b). */
static pln_status join_extents(pln_rewrite_context *ctx, pln_ref a, pln_ref b,
                               pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->rw);
  pln_attrs attrs = g->nodes[b].attrs;
  pln_ref x = pln_operand(g, a, 0);
  pln_attr start = {
      .kind = PLN_ATTR_INT,
      .v.i = pln_attrs_int(ctx->engine, g->nodes[a].attrs, "start", 0)};
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("start"), &start.name));
  PLN_TRY(pln_attrs_with(ctx->engine, attrs, &start, &attrs));
  return pln_rule_build(ctx, PLN_OP_SHAPE, attrs, 1, &x, out);
}

/* concat(shape_of(x, 0, 2), shape_of(x, 2, 4)) => shape_of(x, 0, 4), also among
 * other operands, if nothing else uses one of them. */
pln_status pln_simplify_join_extents(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref parts[MAX_PARTS], joined;
  uint32_t n = ctx->call.n_args, at = 1;
  if (pln_type_rank(ctx->engine, ctx->type) != 1 || n > MAX_PARTS)
    return PLN_OK;
  memcpy(parts, ctx->call.args, n * sizeof *parts);
  while (at < n && !(follows_extents(g, parts[at - 1], parts[at]) &&
                     (pln_rule_is_only_use(ctx, at - 1) ||
                      pln_rule_is_only_use(ctx, at))))
    at++;
  if (at >= n)
    return PLN_OK;
  PLN_TRY(join_extents(ctx, parts[at - 1], parts[at], &joined));
  if (joined == PLN_NONE)
    return PLN_OK;
  parts[at - 1] = joined;
  memmove(parts + at, parts + at + 1, (n - at - 1) * sizeof *parts);
  return pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, n - 1, parts,
                               out);
}
