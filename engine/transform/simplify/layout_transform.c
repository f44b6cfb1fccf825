/* layout_transform.c: rules for layout_transform and transposes beside it.
 *
 * A layout_transform that only permutes axes is a transpose. A permutation
 * before or behind one that splits or joins axes renames its axes. Of two that
 * split or join axes the first says the layout before, the second the layout
 * behind.
 *
 *     layout_transform(transpose(%x, axes=[0, 3, 1, 2]), "NCHW", "NCHW4c")
 *       =>   layout_transform(%x, "NHWC", "NCHW4c")
 *
 * Semantics: TVM SimplifyTranspose, SimplifyNoOpTranspose. */

#include "op/relay/data_layout.h"
#include "transform/simplify/rule.h"

/* What a call does to the axes of its operand: a permutation of them
 * (perm.n > 0), or anything that its layouts say. */
typedef struct axis_change {
  pln_data_layout from, to; /* of a layout_transform */
  pln_permutation perm;
} axis_change;

static bool read_layout(const pln_engine *e, pln_attrs attrs, const char *name,
                        pln_data_layout *out) {
  pln_slice text = pln_attrs_string(e, attrs, name, "");
  return text.size && pln_data_layout_read(text, out);
}

/* The axis of `l` that is axis `i` of `of`, or -1. An axis may have several
 * inner parts of one size: then none is found. */
static int32_t find_same_axis(const pln_data_layout *l,
                              const pln_data_layout *of, int32_t i) {
  int32_t found = -1;
  for (int32_t k = 0; k < l->rank; k++)
    if (l->letter[k] == of->letter[i] && l->factor[k] == of->factor[i]) {
      if (found >= 0)
        return -1;
      found = k;
    }
  return found;
}

/* Sets c->perm if both layouts have the same axes. */
static void find_permutation(axis_change *c) {
  c->perm.n = 0;
  if (c->from.rank != c->to.rank || c->to.rank > PLN_MAX_RANK)
    return;
  for (int32_t i = 0; i < c->to.rank; i++) {
    int32_t k = find_same_axis(&c->from, &c->to, i);
    if (k < 0)
      return;
    c->perm.axes[i] = k;
  }
  c->perm.n = (uint32_t)c->to.rank;
}

static bool read_change(const pln_graph *g, pln_ref node, axis_change *out) {
  const pln_engine *e = g->engine;
  pln_attrs attrs = g->nodes[node].attrs;
  *out = (axis_change){0};
  if (pln_is_call(g, node, PLN_OP_TRANSPOSE))
    return pln_read_permutation(e, attrs, pln_type_rank(e, g->nodes[node].type),
                                &out->perm) &&
           out->perm.n > 0;
  if (!pln_is_call(g, node, PLN_OP_LAYOUT_TRANSFORM) ||
      !read_layout(e, attrs, "src_layout", &out->from) ||
      !read_layout(e, attrs, "dst_layout", &out->to))
    return false;
  find_permutation(out);
  return true;
}

static bool is_same_layout(const pln_data_layout *a, const pln_data_layout *b) {
  bool same = a->rank == b->rank;
  for (int32_t i = 0; same && i < a->rank; i++)
    same = a->letter[i] == b->letter[i] && a->factor[i] == b->factor[i];
  return same;
}

/* The number of elements of a node's tensor; -1 if it is not known. */
static int64_t count_elements(const pln_graph *g, pln_ref node) {
  pln_type type = g->nodes[node].type;
  int32_t rank = pln_type_rank(g->engine, type);
  int64_t n = rank < 0 ? -1 : 1;
  for (int32_t i = 0; i < rank && n >= 0; i++) {
    pln_dim dim = pln_type_dims(g->engine, type)[i];
    if (!PLN_DIM_IS_CONST(dim) || __builtin_mul_overflow(n, dim, &n))
      n = -1;
  }
  return n;
}

static bool have_as_many_elements(const pln_graph *g, pln_ref a, pln_ref b) {
  int64_t n = count_elements(g, a);
  return n >= 0 && n == count_elements(g, b);
}

/* -------------------------------------------------------------------- results
 */

static pln_status replace_with_layouts(pln_rewrite_context *ctx, pln_ref x,
                                       const pln_data_layout *from,
                                       const pln_data_layout *to,
                                       pln_ref *out) {
  static const char *const names[2] = {"dst_layout", "src_layout"};
  const pln_data_layout *layouts[2] = {to, from};
  char text[2][PLN_LAYOUT_TEXT];
  pln_attr entries[2];
  pln_attrs attrs;
  pln_data_layout again;
  for (int i = 0; i < 2; i++) {
    pln_slice s = pln_data_layout_write(layouts[i], text[i]);
    if (!pln_data_layout_read(s, &again))
      return PLN_OK;
    entries[i] = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = s};
    PLN_TRY(
        pln_symbol_intern(ctx->engine, pln_text(names[i]), &entries[i].name));
  }
  PLN_TRY(pln_attrs_make(ctx->engine, 2, entries, &attrs));
  return pln_rule_replace_call(ctx, PLN_OP_LAYOUT_TRANSFORM, attrs, 1, &x, out);
}

/* Axis i of the result is axis first[second[i]] of x. */
static pln_status replace_with_transpose(pln_rewrite_context *ctx, pln_ref x,
                                         const pln_permutation *first,
                                         const pln_permutation *second,
                                         pln_ref *out) {
  pln_permutation both = {.n = second->n};
  for (uint32_t i = 0; i < both.n; i++)
    both.axes[i] = first->axes[second->axes[i]];
  if (!pln_permutation_is_identity(&both))
    return pln_rule_transpose(ctx, x, both.n, both.axes, out);
  *out = x;
  return PLN_OK;
}

/* ---------------------------------------------------------------------- rules
 */

/* A permutation before: axis i of c->from is axis perm[i] of x. */
static pln_status absorb_before(pln_rewrite_context *ctx, pln_ref x,
                                const pln_permutation *perm,
                                const axis_change *c, pln_ref *out) {
  pln_data_layout from = c->from;
  for (uint32_t i = 0; i < perm->n; i++) {
    from.letter[perm->axes[i]] = c->from.letter[i];
    from.factor[perm->axes[i]] = c->from.factor[i];
  }
  return replace_with_layouts(ctx, x, &from, &c->to, out);
}

/* A permutation behind: axis i of the result is axis perm[i] of c->to. */
static pln_status absorb_behind(pln_rewrite_context *ctx, pln_ref x,
                                const axis_change *c,
                                const pln_permutation *perm, pln_ref *out) {
  pln_data_layout to = c->to;
  for (uint32_t i = 0; i < perm->n; i++) {
    to.letter[i] = c->to.letter[perm->axes[i]];
    to.factor[i] = c->to.factor[perm->axes[i]];
  }
  return replace_with_layouts(ctx, x, &c->from, &to, out);
}

/* Two changes of layout. Neither may fill up a block. */
static pln_status join_layouts(pln_rewrite_context *ctx, pln_ref x,
                               const axis_change *first,
                               const axis_change *second, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref between = pln_rule_arg(ctx, 0);
  if (!is_same_layout(&first->to, &second->from) ||
      !have_as_many_elements(g, x, between) ||
      !have_as_many_elements(g, x, ctx->node))
    return PLN_OK;
  if (!is_same_layout(&first->from, &second->to))
    return replace_with_layouts(ctx, x, &first->from, &second->to, out);
  *out = x;
  return PLN_OK;
}

pln_status pln_simplify_same_layout(pln_rewrite_context *ctx, pln_ref *out) {
  axis_change c;
  if (read_change(ctx->call.graph, ctx->node, &c) &&
      is_same_layout(&c.from, &c.to))
    *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}

pln_status pln_simplify_merge_layout(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref inner = pln_rule_arg(ctx, 0);
  axis_change first, second;
  if (!read_change(g, inner, &first) || !read_change(g, ctx->node, &second))
    return PLN_OK;
  pln_ref x = pln_operand(g, inner, 0);
  uint32_t n = first.perm.n, m = second.perm.n;
  if (n && m)
    return n == m
               ? replace_with_transpose(ctx, x, &first.perm, &second.perm, out)
               : PLN_OK;
  if (n)
    return (int32_t)n == second.from.rank
               ? absorb_before(ctx, x, &first.perm, &second, out)
               : PLN_OK;
  if (m)
    return (int32_t)m == first.to.rank
               ? absorb_behind(ctx, x, &first, &second.perm, out)
               : PLN_OK;
  return join_layouts(ctx, x, &first, &second, out);
}
