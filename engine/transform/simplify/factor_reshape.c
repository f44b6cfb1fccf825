/* factor_reshape.c: rules on reshapes and transposes around each other, of
 * reshape(transpose(reshape(x))) two.
 * factor_reshape: if the first reshape merges axes and the last one splits them
 * again, replaces all three by one transpose of the original axes.
 * sink_reshape: if only the last reshape splits axes, splits before the
 * transpose instead, so that the reshape can merge with its neighbours.
 * merge_behind: if a reshape between two transposes only merges axes, merges
 * behind one transpose. */

#include "transform/simplify/rule.h"

/* Axes [first, first + count) of x are merged into one axis; count 0 is an axis
 * of extent 1 that x does not have. */
typedef struct axis_group {
  uint32_t first, count;
} axis_group;

/* Finds the axes from `first` on whose product is `wanted`. */
static pln_status find_group(pln_engine *e, pln_type x, uint32_t first,
                             pln_dim wanted, axis_group *out, bool *found) {
  const pln_dim *dims = pln_type_dims(e, x);
  uint32_t rank = (uint32_t)pln_type_rank(e, x);
  pln_dim product = 1;
  *out = (axis_group){.first = first};
  *found = false;
  for (uint32_t i = first; i < rank && !*found; i++) {
    PLN_TRY(pln_dim_binary(e, PLN_DIM_MUL, product, dims[i], &product));
    if (product == PLN_DIM_UNKNOWN)
      break;
    *found = product == wanted;
    out->count = *found ? i + 1 - first : 0;
  }
  *found = *found || wanted == 1;
  return PLN_OK;
}

/* Finds *n groups, one per axis of `grouped`; *n is 0 if x is not simply
 * grouped. */
static pln_status find_groups(pln_engine *e, pln_type x, pln_type grouped,
                              axis_group *groups, uint32_t *n) {
  int32_t rank = pln_type_rank(e, grouped);
  uint32_t next = 0;
  *n = 0;
  if (rank <= 0 || rank > PLN_MAX_RANK || pln_type_rank(e, x) <= 0 ||
      pln_type_rank(e, x) > PLN_MAX_RANK)
    return PLN_OK;
  for (int32_t i = 0; i < rank; i++) {
    bool found;
    PLN_TRY(find_group(e, x, next, pln_type_dims(e, grouped)[i], &groups[i],
                       &found));
    if (!found)
      return PLN_OK;
    next += groups[i].count;
  }
  if (next == (uint32_t)pln_type_rank(e, x))
    *n = (uint32_t)rank;
  return PLN_OK;
}

static bool is_positive(pln_dim dim) {
  return PLN_DIM_IS_CONST(dim) && dim > 0;
}

/* find_groups where the product of one group is not known to be the extent of
 * its axis. It is, since both shapes have as many elements, if the other axes
 * are grouped and of known extents above 0: those before it, and those behind
 * it, one axis each. */
static pln_status find_rest(pln_engine *e, pln_type x, pln_type grouped,
                            axis_group *groups, uint32_t *n) {
  int32_t rank = pln_type_rank(e, grouped), own = pln_type_rank(e, x), at = 0;
  uint32_t next = 0;
  bool found = true;
  *n = 0;
  if (rank <= 0 || rank > PLN_MAX_RANK || own < rank || own > PLN_MAX_RANK)
    return PLN_OK;
  const pln_dim *dims = pln_type_dims(e, grouped);
  for (; at < rank; at++) {
    PLN_TRY(find_group(e, x, next, dims[at], &groups[at], &found));
    if (!found)
      break;
    if (!is_positive(dims[at]))
      return PLN_OK;
    next += groups[at].count;
  }
  for (int32_t i = rank - 1; i > at; i--) {
    uint32_t last = (uint32_t)(own - rank + i);
    if (last <= next || !is_positive(dims[i]) ||
        pln_type_dims(e, x)[last] != dims[i])
      return PLN_OK;
    groups[i] = (axis_group){.first = last, .count = 1};
  }
  if (at == rank || own - rank + at + 1 <= (int32_t)next)
    return PLN_OK;
  groups[at] = (axis_group){.first = next,
                            .count = (uint32_t)(own - rank + at + 1) - next};
  *n = (uint32_t)rank;
  return PLN_OK;
}

/* Returns true for a permutation of n axes; a file may contain anything. */
static bool is_permutation(const pln_attr *perm, uint32_t n) {
  bool seen[PLN_MAX_RANK] = {false};
  if (!perm || perm->kind != PLN_ATTR_INTS || perm->count != n)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = perm->v.ints[i];
    if (axis < 0 || axis >= n || seen[axis])
      return false;
    seen[axis] = true;
  }
  return true;
}

/* The permutation of the axes of x that moves the groups; false if the extents
 * differ from the result's. */
static bool permute_grouped_axes(const pln_engine *e, pln_type x,
                                 pln_type result, uint32_t n,
                                 const axis_group *groups, const int64_t *perm,
                                 int64_t *axes) {
  uint32_t k = 0;
  if (pln_type_rank(e, result) != pln_type_rank(e, x))
    return false;
  for (uint32_t i = 0; i < n; i++) {
    const axis_group *g = &groups[perm[i]];
    for (uint32_t j = 0; j < g->count; j++, k++) {
      axes[k] = g->first + j;
      if (pln_type_dims(e, result)[k] != pln_type_dims(e, x)[axes[k]])
        return false;
    }
  }
  return true;
}

/* reshape(transpose(reshape(x, [N*4, S, 16]), [0, 2, 1]), [N, 4, 16, S]) =>
 * transpose(x, [0, 1, 3, 2]), for x: (N, 4, S, 16). Other operators that keep
 * the order of elements count as reshapes too. */
pln_status pln_simplify_factor_reshape(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_engine *e = ctx->engine;
  pln_ref move = pln_rule_arg(ctx, 0);
  axis_group groups[PLN_MAX_RANK];
  int64_t axes[PLN_MAX_RANK];
  uint32_t n;
  if (!pln_is_call(g, move, PLN_OP_TRANSPOSE))
    return PLN_OK;
  pln_ref inner = pln_operand(g, move, 0);
  if (!pln_rule_only_reshapes(g, inner))
    return PLN_OK;
  const pln_attr *perm = pln_attrs_find(e, g->nodes[move].attrs, "axes");
  pln_ref x = pln_operand(g, inner, 0);
  pln_type type = g->nodes[x].type;
  PLN_TRY(find_groups(e, type, g->nodes[inner].type, groups, &n));
  if (!n || !is_permutation(perm, n) ||
      !permute_grouped_axes(e, type, ctx->type, n, groups, perm->v.ints, axes))
    return PLN_OK;
  return pln_rule_transpose(ctx, x, (uint32_t)pln_type_rank(e, type), axes,
                            out);
}

/* The extents to split x into, and the permutation of the split axes. */
typedef struct split_parts {
  uint32_t n;
  pln_dim dims[PLN_MAX_RANK];
  int64_t axes[PLN_MAX_RANK];
} split_parts;

/* groups[j] lists the axes of the result that come from axis j of the
 * transposed tensor, which is axis perm[j] of its operand. */
static void find_parts(const pln_dim *result, uint32_t n,
                       const axis_group *groups, const int64_t *perm,
                       split_parts *out) {
  uint32_t first[PLN_MAX_RANK], k = 0;
  out->n = 0;
  for (uint32_t axis = 0; axis < n; axis++)
    for (uint32_t j = 0; j < n; j++) {
      if (perm[j] != axis)
        continue;
      first[j] = out->n;
      for (uint32_t t = 0; t < groups[j].count; t++)
        out->dims[out->n++] = result[groups[j].first + t];
    }
  for (uint32_t j = 0; j < n; j++)
    for (uint32_t t = 0; t < groups[j].count; t++)
      out->axes[k++] = first[j] + t;
}

/* reshape(transpose(reshape(x, [17, N*4, 16]), [1, 0, 2]), [N, 4, 17, 16]) =>
 * transpose(reshape(x, [17, N, 4, 16]), [1, 2, 0, 3]), if the transpose has no
 * other user. */
pln_status pln_simplify_sink_reshape(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_engine *e = ctx->engine;
  pln_ref move = pln_rule_arg(ctx, 0), x;
  axis_group groups[PLN_MAX_RANK];
  split_parts p;
  uint32_t n;
  if (!pln_is_call(g, move, PLN_OP_TRANSPOSE) ||
      !pln_rule_only_reshapes(g, pln_operand(g, move, 0)))
    return PLN_OK;
  const pln_attr *perm = pln_attrs_find(e, g->nodes[move].attrs, "axes");
  PLN_TRY(find_groups(e, ctx->type, g->nodes[move].type, groups, &n));
  if (!n)
    PLN_TRY(find_rest(e, ctx->type, g->nodes[move].type, groups, &n));
  if (!n || !is_permutation(perm, n))
    return PLN_OK;
  if (!pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  find_parts(pln_type_dims(e, ctx->type), n, groups, perm->v.ints, &p);
  x = pln_operand(g, pln_operand(g, move, 0), 0);
  PLN_TRY(pln_rule_reshape(ctx, x, p.n, p.dims, &x));
  return x == PLN_NONE ? PLN_OK : pln_rule_transpose(ctx, x, p.n, p.axes, out);
}

/* The permutation that moves x's axes by `first` and then the groups of them by
 * `then`. */
static void permute_groups(uint32_t n, const axis_group *groups,
                           const int64_t *first, const int64_t *then,
                           int64_t *axes) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < groups[then[i]].count; j++)
      axes[k++] = first[groups[then[i]].first + j];
}

/* transpose(reshape(transpose(x, [2, 0, 1, 3]), [0, 0, 64]), [1, 0, 2]) =>
 * reshape(transpose(x, [0, 2, 1, 3]), [0, 0, 64]), for x: (N, 2, S, 32), if
 * nothing else uses what is between. */
pln_status pln_simplify_merge_behind(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_engine *e = ctx->engine;
  pln_ref merged = pln_rule_arg(ctx, 0);
  axis_group groups[PLN_MAX_RANK];
  int64_t axes[PLN_MAX_RANK];
  pln_dim dims[PLN_MAX_RANK];
  uint32_t n;
  if (!pln_rule_only_reshapes(g, merged) || !pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_ref moved = pln_operand(g, merged, 0);
  if (!pln_is_call(g, moved, PLN_OP_TRANSPOSE) ||
      pln_rule_driver_uses(ctx->driver, moved) != 1)
    return PLN_OK;
  const pln_attr *first = pln_attrs_find(e, g->nodes[moved].attrs, "axes");
  const pln_attr *then = pln_attrs_find(e, ctx->call.attrs, "axes");
  pln_ref x = pln_operand(g, moved, 0);
  uint32_t rank = (uint32_t)pln_type_rank(e, g->nodes[moved].type);
  PLN_TRY(
      find_groups(e, g->nodes[moved].type, g->nodes[merged].type, groups, &n));
  if (!n || !is_permutation(first, rank) || !is_permutation(then, n) ||
      pln_type_rank(e, ctx->type) != (int32_t)n)
    return PLN_OK;
  permute_groups(n, groups, first->v.ints, then->v.ints, axes);
  memcpy(dims, pln_type_dims(e, ctx->type), n * sizeof *dims);
  pln_rewrite_context inner = *ctx;
  inner.type = 0;
  PLN_TRY(pln_rule_transpose(&inner, x, rank, axes, &x));
  return x == PLN_NONE ? PLN_OK : pln_rule_reshape(ctx, x, n, dims, out);
}
