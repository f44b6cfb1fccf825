/* fold_explicit_padding.c: FoldExplicitPadding: folds a zero nn.pad into the
 * padding attribute of a convolution or pooling.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * an nn.pad with mode "constant", value 0 and constant non-negative pads on
 * spatial axes only, that feeds an nn.conv or nn.avg_pool. Other users keep the
 * nn.pad. For pooling, zeros must count as elements, or be made to count
 * without changing another window; ceil_mode must be off and the padding
 * smaller than the window. Never applied to nn.max_pool: its own padding counts
 * as -infinity, not 0.
 *
 *     nn.conv(nn.pad(%x, [0, 0, 1, 1, 0, 0, 1, 1]), %w)
 *       =>   nn.conv(%x, %w, pads=[1, 1, 1, 1])
 *
 * Semantics: TVM FoldExplicitPadding, ONNX's fuse_pad_into_conv and
 * fuse_pad_into_pool. */

#include "transform/fold/fold_relay_padding.h"
#include "transform/fold/weight.h"
#include "transform/simplify/rule.h"

/* Limits on spatial axes and on the padding of one axis. */
enum { MAX_SPACE = 8, MOST = 1 << 24 };

/* Padding before each spatial axis, then after each. */
typedef struct padding {
  uint32_t space;
  int64_t pads[2 * MAX_SPACE];
} padding;

/* ------------------------------------------------------------------- nn.pad
 */

/* The value is an operand, or an attribute before opset 11; the default is
 * 0. */
static bool pads_with_zero(const pln_infer *pad) {
  pln_weight value;
  if (!pln_call_string_is(pad, "pad_mode", "constant", "constant"))
    return false;
  if (pln_arg_absent(pad, 2))
    return pln_attrs_float(pad->engine, pad->attrs, "value", 0) == 0;
  return pln_weight_read(pad->graph, pad->args[2], &value) &&
         value.count == 1 && pln_weight_at(&value, 0) == 0;
}

/* Maps entry `i` of the pads to a spatial axis; false for batch and channel
 * axes. */
static bool axis_of(const pln_list *axes, uint32_t i, int64_t rank,
                    int64_t *out) {
  int64_t axis = axes->given ? pln_list_at(axes, i) : (int64_t)i;
  *out = axis + (axis < 0 ? rank : 0) - 2;
  return *out >= 0 && *out < rank - 2;
}

static bool read_pads(const pln_list *pads, const pln_list *axes, int64_t rank,
                      padding *out) {
  bool seen[MAX_SPACE] = {false};
  uint32_t n = pads->count / 2;
  for (uint32_t i = 0; i < n; i++) {
    int64_t before = pln_list_at(pads, i), after = pln_list_at(pads, i + n);
    int64_t axis;
    if (before == 0 && after == 0)
      continue;
    if (before < 0 || after < 0 || before > MOST || after > MOST ||
        !axis_of(axes, i, rank, &axis) || seen[axis])
      return false;
    seen[axis] = true;
    out->pads[axis] = before;
    out->pads[axis + out->space] = after;
  }
  return true;
}

static bool read_pad(const pln_graph *g, pln_ref node, padding *out) {
  if (!pln_is_call(g, node, PLN_OP_PAD) || g->nodes[node].count < 1)
    return false;
  pln_infer pad = pln_infer_of(g, node);
  pln_list pads = pln_arg_list(&pad, 1, "pads");
  pln_list axes = pln_arg_list(&pad, 3, NULL);
  int64_t rank = pln_arg_rank(&pad, 0);
  if (!pads.given || !pln_list_known(&pads) || !pads_with_zero(&pad))
    return false;
  if (rank < 0 && !axes.given)
    rank = pads.count / 2;
  uint32_t n = axes.given ? axes.count : (uint32_t)rank;
  if (rank < 3 || rank > MAX_SPACE + 2 || pads.count != 2 * n ||
      (axes.given && !pln_list_known(&axes)))
    return false;
  *out = (padding){.space = (uint32_t)rank - 2};
  return read_pads(&pads, &axes, rank, out);
}

/* ------------------------------------------------------------------ windows
 */

/* Adds the call's own padding; *own is true if it has any. */
static bool add_own(const pln_infer *call, padding *p, bool *own) {
  uint32_t n;
  const int64_t *ints = pln_call_ints(call, "pads", &n);
  *own = false;
  if (pln_call_string_is(call, "auto_pad", "NOTSET", "VALID"))
    return true;
  if (!pln_call_string_is(call, "auto_pad", "NOTSET", "NOTSET"))
    return false;
  if (!ints || n == 0)
    return true;
  for (uint32_t i = 0; i < n && n == 2 * p->space; i++) {
    if (ints[i] < 0 || ints[i] > MOST)
      return false;
    *own |= ints[i] != 0;
    p->pads[i] += ints[i];
  }
  return n == 2 * p->space;
}

/* No runtime accepts padding as large as the window. */
static bool is_smaller_than_window(const pln_infer *call, const padding *p) {
  uint32_t n;
  const int64_t *window = pln_call_ints(call, "kernel_shape", &n);
  if (!window || n != p->space)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (p->pads[i] >= window[i] || p->pads[i + n] >= window[i])
      return false;
  return true;
}

/* The average includes the zeros of the nn.pad, so it must include all
 * padding. */
static bool is_exact(const pln_infer *call, const padding *p, bool own) {
  if (call->op == PLN_OP_CONV)
    return true;
  return !pln_call_int(call, "ceil_mode", 0) &&
         (!own || pln_call_int(call, "count_include_pad", 0) == 1) &&
         is_smaller_than_window(call, p);
}

static pln_status with_padding(const pln_rewrite_context *ctx, const padding *p,
                               pln_attrs *out) {
  pln_engine *e = ctx->engine;
  pln_attr pads = {
      .kind = PLN_ATTR_INTS, .count = 2 * p->space, .v.ints = p->pads};
  pln_attr all = {.kind = PLN_ATTR_INT, .v.i = 1};
  PLN_TRY(pln_symbol_intern(e, pln_text("pads"), &pads.name));
  PLN_TRY(pln_symbol_intern(e, pln_text("count_include_pad"), &all.name));
  PLN_TRY(pln_attrs_without(e, ctx->call.attrs, "auto_pad", out));
  PLN_TRY(pln_attrs_with(e, *out, &pads, out));
  if (ctx->call.op == PLN_OP_CONV)
    return PLN_OK;
  return pln_attrs_with(e, *out, &all, out);
}

static pln_status fold_pad_into_window(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref pad = pln_rule_arg(ctx, 0);
  pln_ref args[3];
  uint32_t n = ctx->call.n_args;
  padding p;
  bool own;
  pln_attrs attrs;
  if (n > PLN_COUNT(args) || !read_pad(g, pad, &p) ||
      !add_own(&ctx->call, &p, &own) || !is_exact(&ctx->call, &p, own))
    return PLN_OK;
  memcpy(args, ctx->call.args, n * sizeof *args);
  args[0] = pln_operand(g, pad, 0);
  PLN_TRY(with_padding(ctx, &p, &attrs));
  return pln_rule_replace_call(ctx, ctx->call.op, attrs, n, args, out);
}

/* -------------------------------------------------------------------- sweep
 */

typedef struct fold_padding_rewrite {
  pln_engine *engine;
  int64_t folded;
} fold_padding_rewrite;

static bool slides(const pln_engine *e, const pln_graph *g, pln_ref node) {
  return (pln_is_call(g, node, PLN_OP_CONV) ||
          pln_is_call(g, node, PLN_OP_AVERAGE_POOL)) &&
         (int64_t)g->nodes[node].count >=
             pln_op_row(e, g->nodes[node].data)->min_args;
}

/* Repeats, because an nn.pad may feed another nn.pad. */
static pln_status fold_padding_node(void *ud, pln_rewrite *rw, pln_ref old,
                                    pln_ref *node) {
  fold_padding_rewrite *s = ud;
  pln_rewrite_context ctx = {.engine = s->engine, .rw = rw, .old = old};
  bool allowed = pln_rewrite_graph(rw)->nodes[*node].kind == PLN_CALL;
  while (allowed) {
    pln_ref found = PLN_NONE;
    double began = pln_rule_clock(s->engine);
    pln_rule_set_call(&ctx, *node);
    PLN_TRY(slides(s->engine, ctx.call.graph, *node)
                ? fold_pad_into_window(&ctx, &found)
                : pln_fold_relay_padding(&ctx, &found));
    PLN_TRY(pln_rule_tried(s->engine, "fold", 1, began));
    allowed = false;
    if (found == PLN_NONE)
      return PLN_OK;
    PLN_TRY(pln_rewrite_apply(rw, "fold", &allowed));
    if (!allowed)
      return PLN_OK;
    *node = found;
    s->folded++;
  }
  return PLN_OK;
}

pln_status pln_pass_fold_explicit_padding(pln_pass_run *run) {
  fold_padding_rewrite s = {.engine = pln_run_engine(run)};
  pln_mutator m = {.ud = &s, .visit = fold_padding_node, .keeps_types = true};
  PLN_TRY(pln_rewrite_function(run, &m));
  return s.folded ? pln_run_count(run, "folded", s.folded) : PLN_OK;
}
