/* fold_conv_bias.c: FoldConvBias: makes a constant that is added to a product
 * its bias.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * nn.conv, nn.conv_transpose, nn.gemm and nn.matmul of two matrices that
 * nothing else uses, whose bias is constant or missing; weights may be
 * anything. An nn.matmul becomes an nn.gemm. The constant has one number per
 * channel or one for all, and does not enlarge the result by broadcasting. A
 * subtracted constant is negated.
 *
 *     add(nn.conv(%x, %w), [[[b0]], [[b1]]])   =>   nn.conv(%x, %w, [b0, b1])
 *
 * Two constants are added in double and rounded once. Semantics: ONNX's
 * fuse_add_bias_into_conv. */

#include "transform/fold/fold_weights.h"

/* Channels are on axis 1 of the result of rank `rank`; the axes of the constant
 * are aligned to the last ones. */
static bool is_by_channel(const pln_weight *k, uint32_t rank, size_t n) {
  if (k->rank > rank)
    return false;
  for (uint32_t i = 0; i < k->rank; i++) {
    bool channels = rank - k->rank + i == 1;
    if (k->dims[i] != 1 && !(channels && (size_t)k->dims[i] == n))
      return false;
  }
  return true;
}

/* Reads the addend if it has one number for each of the product's `n`
 * channels. */
static bool read_addend(const pln_fold_candidate *ctx, uint32_t i,
                        pln_ref product, size_t n, pln_weight *out) {
  const pln_graph *g = ctx->at.call.graph;
  pln_type weight = g->nodes[pln_operand(g, product, 1)].type;
  int32_t rank = pln_type_rank(g->engine, weight);
  return n > 0 && pln_weight_read(g, pln_rule_arg(&ctx->at, i), out) &&
         out->dtype == pln_type_dtype(g->engine, ctx->at.type) &&
         is_by_channel(out, (uint32_t)rank, n);
}

static pln_status fold_bias_into(pln_fold_candidate *ctx, uint32_t product_at,
                                 double sign, pln_ref *out) {
  pln_engine *e = ctx->at.engine;
  pln_weight k;
  if (!pln_fold_is_product(ctx, product_at))
    return PLN_OK;
  pln_ref product = pln_rule_arg(&ctx->at, product_at);
  size_t n = pln_fold_channels(ctx, product);
  if (!read_addend(ctx, 1 - product_at, product, n, &k))
    return PLN_OK;
  double *addends = pln_mem_new(e, n * sizeof *addends);
  if (!addends)
    return pln_nomem(e);
  for (size_t i = 0; i < n; i++)
    addends[i] = sign * pln_weight_at(&k, k.count == 1 ? 0 : i);
  pln_status status = pln_fold_affine(ctx, product, NULL, addends, k.node, out);
  pln_mem_free(e, addends, n * sizeof *addends);
  return status;
}

static pln_status fold_add(pln_fold_candidate *ctx, pln_ref *out) {
  PLN_TRY(fold_bias_into(ctx, 0, 1, out));
  return *out == PLN_NONE ? fold_bias_into(ctx, 1, 1, out) : PLN_OK;
}

static pln_status fold_subtract(pln_fold_candidate *ctx, pln_ref *out) {
  return fold_bias_into(ctx, 0, -1, out);
}

pln_status pln_pass_fold_conv_bias(pln_pass_run *run) {
  static const pln_fold_rule_row rows[] = {
      {"add", PLN_OP_ADD, fold_add}, {"subtract", PLN_OP_SUB, fold_subtract}};
  return pln_fold_weights(run, PLN_COUNT(rows), rows, "folded", NULL);
}
