/* join_heads.c: a rule on concatenations of feature maps that are reshaped to
 * rows, as detectors do with the results of their heads: the maps are joined
 * first, so that one transpose moves the channels of all of them.
 *
 *     concatenate(reshape(transpose(%x, axes=[0, 2, 3, 1]), [0, 2400, 4]),
 *                 reshape(transpose(%y, axes=[0, 2, 3, 1]), [0, 600, 4]),
 *                 reshape(transpose(%z, axes=[0, 2, 3, 1]), [0, 150, 4]),
 *                 axis=1)
 *       =>   reshape(transpose(concatenate(reshape(%x, [0, 24, 400]), ..,
 *                    axis=2), axes=[0, 2, 1]), [0, 3150, 4])
 *
 * A map of one pixel needs no transpose. The rule applies if fewer calls are
 * left. */

#include "transform/simplify/rule.h"

enum { MAX_HEADS = 64 };

/* What all operands of a concatenation have in common, and each of them. */
typedef struct head_rows {
  pln_dim batch, channels, columns;
  uint32_t n, n_transposes;
  struct {
    pln_ref map;
    pln_dim pixels;
  } heads[MAX_HEADS];
} head_rows;

/* The product of the extents from number `first` on; 0: not known. */
static pln_dim pixels_of(const pln_dim *dims, int32_t first, int32_t rank) {
  pln_dim n = 1;
  for (int32_t i = first; i < rank; i++) {
    if (!PLN_DIM_IS_CONST(dims[i]) || dims[i] < 1 || n > INT32_MAX / dims[i])
      return 0;
    n *= dims[i];
  }
  return n;
}

/* Returns true if axis 1 moves behind all others. */
static bool moves_channels(const pln_rewrite_context *ctx, pln_ref node) {
  pln_infer call = pln_infer_of(ctx->call.graph, node);
  pln_list axes = pln_arg_list(&call, 1, "axes");
  uint32_t rank = axes.count;
  if (!pln_list_known(&axes) || rank < 3 || pln_list_at(&axes, 0) != 0 ||
      pln_list_at(&axes, rank - 1) != 1)
    return false;
  for (uint32_t i = 1; i + 1 < rank; i++)
    if (pln_list_at(&axes, i) != (pln_dim)i + 1)
      return false;
  return true;
}

/* The map that a reshape takes, and whether a transpose stands between. */
static bool find_map(const pln_rewrite_context *ctx, pln_ref reshape,
                     pln_ref *map, bool *transposed) {
  const pln_graph *g = ctx->call.graph;
  if (!pln_is_call(g, reshape, PLN_OP_RESHAPE) ||
      pln_rule_driver_uses(ctx->driver, reshape) != 1)
    return false;
  *map = pln_operand(g, reshape, 0);
  *transposed = pln_is_call(g, *map, PLN_OP_TRANSPOSE);
  if (!*transposed)
    return true;
  if (pln_rule_driver_uses(ctx->driver, *map) != 1 ||
      !moves_channels(ctx, *map))
    return false;
  *map = pln_operand(g, *map, 0);
  return true;
}

/* Adds an operand of the concatenation; false if it has not the form. */
static bool add_head(const pln_rewrite_context *ctx, head_rows *h,
                     pln_ref node) {
  const pln_graph *g = ctx->call.graph;
  const pln_engine *e = ctx->engine;
  bool transposed;
  pln_ref map;
  if (!find_map(ctx, node, &map, &transposed))
    return false;
  pln_type type = g->nodes[map].type, rows = g->nodes[node].type;
  int32_t rank = pln_type_rank(e, type);
  if (rank < 3 || pln_type_rank(e, rows) != 3)
    return false;
  const pln_dim *dims = pln_type_dims(e, type), *to = pln_type_dims(e, rows);
  pln_dim pixels = pixels_of(dims, 2, rank), elements;
  if (h->n == 0) {
    h->batch = dims[0];
    h->channels = dims[1];
    h->columns = to[2];
  }
  h->heads[h->n].map = map;
  h->heads[h->n++].pixels = pixels;
  h->n_transposes += transposed;
  return pixels > 0 && (transposed || pixels == 1) && dims[0] == h->batch &&
         to[0] == h->batch && dims[1] == h->channels && to[2] == h->columns &&
         PLN_DIM_IS_CONST(h->channels) &&
         !__builtin_mul_overflow(pixels, h->channels, &elements) &&
         pixels_of(to, 1, 3) == elements;
}

static bool read_heads(const pln_rewrite_context *ctx, head_rows *h) {
  const pln_graph *g = ctx->call.graph;
  uint32_t n = ctx->call.n_args;
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  if (n < 2 || n > MAX_HEADS || (axis != 1 && axis != -2) ||
      pln_type_rank(ctx->engine, ctx->type) != 3 ||
      g->nodes[pln_rule_arg(ctx, 0)].kind != PLN_CALL)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!add_head(ctx, h, pln_rule_arg(ctx, i)))
      return false;
  bool splits = h->channels != h->columns;
  return h->batch != PLN_DIM_UNKNOWN && PLN_DIM_IS_CONST(h->channels) &&
         PLN_DIM_IS_CONST(h->columns) && h->columns > 0 &&
         h->channels % h->columns == 0 && h->n_transposes > 1u + splits;
}

/* concatenate(reshape(map, [batch, channels, pixels]), .., axis=2). */
static pln_status build_maps(pln_rewrite_context *ctx, const head_rows *h,
                             pln_ref *out) {
  pln_ref args[MAX_HEADS];
  pln_attr axis = {.kind = PLN_ATTR_INT, .v.i = 2};
  pln_attrs attrs;
  *out = PLN_NONE;
  for (uint32_t i = 0; i < h->n; i++) {
    pln_dim dims[3] = {h->batch, h->channels, h->heads[i].pixels};
    PLN_TRY(pln_rule_reshape(ctx, h->heads[i].map, 3, dims, &args[i]));
    if (args[i] == PLN_NONE)
      return PLN_OK;
  }
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &axis.name));
  PLN_TRY(pln_attrs_with(ctx->engine, ctx->call.attrs, &axis, &attrs));
  return pln_rule_build(ctx, PLN_OP_CONCAT, attrs, h->n, args, out);
}

/* See the head of the file. */
pln_status pln_simplify_join_heads(pln_rewrite_context *ctx, pln_ref *out) {
  static const int64_t axes[3] = {0, 2, 1};
  head_rows h = {.n = 0};
  pln_rewrite_context inner = *ctx;
  pln_ref joined;
  inner.type = 0;
  if (!read_heads(ctx, &h))
    return PLN_OK;
  PLN_TRY(build_maps(&inner, &h, &joined));
  if (joined != PLN_NONE)
    PLN_TRY(pln_rule_transpose(&inner, joined, 3, axes, &joined));
  if (joined != PLN_NONE && h.channels != h.columns)
    PLN_TRY(pln_rule_reshape(&inner, joined, 3,
                             pln_type_dims(ctx->engine, ctx->type), &joined));
  if (joined == PLN_NONE)
    return PLN_OK;
  *out = joined;
  return pln_keep_type(ctx->rw, joined, ctx->type);
}
