/* pad.c: rules for nn.pad.
 *
 * A pad moves behind an operator that only inserts or removes axes of extent
 * 1, where the window behind it may take the padding (FoldExplicitPadding)
 * and the reshape may meet another one:
 *
 *     expand_dims(nn.pad(x, [0, 3, 0, 3]), [1])
 *       =>   nn.pad(expand_dims(x, [1]), [0, 0, 3, 0, 0, 3]) */

#include "transform/simplify/rule.h"

/* What is behind the pad: pads and extents of the operand by axis of the new
 * result, whose axes are the old ones and some of extent 1. */
typedef struct moved_pad {
  uint32_t rank;
  int64_t pads[2 * PLN_MAX_RANK];
  pln_dim dims[PLN_MAX_RANK];
} moved_pad;

static bool is_unpadded(const pln_list *pads, uint32_t axis, uint32_t rank) {
  return pln_list_at(pads, axis) == 0 && pln_list_at(pads, axis + rank) == 0;
}

static void place_axis(moved_pad *out, uint32_t to, const pln_infer *pad,
                       const pln_list *pads, uint32_t from) {
  uint32_t n = pads->count / 2;
  out->pads[to] = pln_list_at(pads, from);
  out->pads[to + out->rank] = pln_list_at(pads, from + n);
  out->dims[to] = pln_arg_dims(pad, 0)[from];
}

/* Finds the axes of the pad's result among those of the call's; false if they
 * differ by more than unpadded axes of extent 1. */
static bool find_moved(const pln_rewrite_context *ctx, const pln_infer *pad,
                       const pln_list *pads, moved_pad *out) {
  pln_type type = ctx->call.graph->nodes[pln_rule_arg(ctx, 0)].type;
  uint32_t n = pads->count / 2, i = 0;
  const pln_dim *inner = pln_type_dims(ctx->engine, type);
  const pln_dim *outer = pln_type_dims(ctx->engine, ctx->type);
  for (uint32_t k = 0; k < out->rank; k++) {
    while (i < n && inner[i] == 1 && outer[k] != 1 && is_unpadded(pads, i, n))
      i++;
    if (i < n && inner[i] == outer[k] && inner[i] != PLN_DIM_UNKNOWN)
      place_axis(out, k, pad, pads, i++);
    else if (outer[k] == 1)
      out->dims[k] = 1;
    else
      return false;
  }
  for (; i < n; i++)
    if (inner[i] != 1 || !is_unpadded(pads, i, n))
      return false;
  return true;
}

static bool read_moved(const pln_rewrite_context *ctx, const pln_infer *pad,
                       moved_pad *out) {
  pln_list pads = pln_arg_list(pad, 1, "pads");
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  int32_t from = pln_arg_rank(pad, 0);
  if (rank < 0 || rank > PLN_MAX_RANK || from < 0 || from > PLN_MAX_RANK ||
      !pads.given || !pln_list_known(&pads) ||
      pads.count != 2 * (uint32_t)from || !pln_arg_absent(pad, 3))
    return false;
  *out = (moved_pad){.rank = (uint32_t)rank};
  return find_moved(ctx, pad, &pads, out);
}

/* Builds the pad on x, in place of the call. */
static pln_status build_moved(pln_rewrite_context *ctx, const pln_infer *pad,
                              const moved_pad *moved, pln_ref x, pln_ref *out) {
  pln_ref args[3] = {x, PLN_NONE, PLN_NONE};
  pln_attrs attrs = pad->attrs;
  uint32_t n = pad->n_args;
  if (pln_arg_absent(pad, 1)) {
    pln_attr pads = {
        .kind = PLN_ATTR_INTS, .count = 2 * moved->rank, .v.ints = moved->pads};
    PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("pads"), &pads.name));
    PLN_TRY(pln_attrs_with(ctx->engine, attrs, &pads, &attrs));
    n = 1;
  } else {
    args[2] = n > 2 ? pad->args[2] : PLN_NONE;
    n = n > 3 ? 3 : n;
    PLN_TRY(pln_rule_int_vector(ctx, 2 * moved->rank, moved->pads, &args[1]));
  }
  return pln_rule_replace_call(ctx, PLN_OP_PAD, attrs, n, args, out);
}

/* reshape(nn.pad(x)) => nn.pad(reshape(x)), also for squeeze and
 * expand_dims. */
pln_status pln_simplify_pad_behind(pln_rewrite_context *ctx, pln_ref *out) {
  pln_ref x;
  moved_pad moved;
  if (!pln_is_call(ctx->call.graph, pln_rule_arg(ctx, 0), PLN_OP_PAD) ||
      !pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_infer pad = pln_rule_operand(ctx, 0);
  if (!read_moved(ctx, &pad, &moved))
    return PLN_OK;
  PLN_TRY(pln_rule_reshape(ctx, pad.args[0], moved.rank, moved.dims, &x));
  if (x == PLN_NONE)
    return PLN_OK;
  pad = pln_infer_of(pln_rewrite_graph(ctx->rw), pln_rule_arg(ctx, 0));
  return build_moved(ctx, &pad, &moved, x, out);
}
