/* fold_batch_norm.c: folds a batch normalisation into the weights of the
 * product that feeds it.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * nn.conv, nn.conv_transpose, nn.gemm and nn.matmul of two matrices with
 * constant weight and bias that nothing else uses, when mean, variance, scale
 * and bias are constants and the normalisation is in inference mode, by
 * channel, with a single result. A product without bias gets one; an nn.matmul
 * becomes an nn.gemm.
 *
 *     nn.batch_norm(nn.conv(%x, w, b), s, o, m, v)
 *       =>   nn.conv(%x, w * f, (b - m) * f + o),   f = s / sqrt(v + epsilon)
 *
 * Constants are computed in double and rounded once, so results differ from the
 * original model by rounding. A weight with other users is copied only within
 * the budget (eval/budget.c). Factors and weights must be finite. Weights of
 * float16 and bfloat16 are not folded unless the option halves=true is given,
 * because the extra rounding is visible in the results.
 *
 * Semantics: TVM FoldScaleAxis after SimplifyInference, ONNX's
 * fuse_bn_into_conv. */

#include <math.h>

#include "transform/fold/fold_weights.h"

enum { SCALE = 1, BIAS, MEAN, VARIANCE, N_OPERANDS };

/* Returns true in inference mode by channel: the given mean and variance are
 * used. */
static bool is_inference(const pln_rewrite_context *at) {
  return pln_call_int(&at->call, "training_mode", 0) == 0 &&
         pln_call_int(&at->call, "spatial", 1) == 1;
}

/* Reads n numbers, one per channel, from each operand. */
static bool read_operands(const pln_rewrite_context *at, size_t n,
                          pln_weight *operands) {
  for (uint32_t i = SCALE; i < N_OPERANDS; i++) {
    pln_weight *w = &operands[i];
    if (!pln_weight_read(at->call.graph, pln_rule_arg(at, i), w) ||
        w->rank != 1 || w->count != n)
      return false;
  }
  return true;
}

/* Returns false if a channel's factor or addend is not finite. */
static bool find_affine(const pln_rewrite_context *at,
                        const pln_weight *operands, size_t n, double *factors,
                        double *addends) {
  double epsilon = pln_attrs_float(at->engine, at->call.attrs, "epsilon", 1e-5);
  for (size_t i = 0; i < n; i++) {
    double spread = pln_weight_at(&operands[VARIANCE], i) + epsilon;
    factors[i] = pln_weight_at(&operands[SCALE], i) / sqrt(spread);
    addends[i] = pln_weight_at(&operands[BIAS], i) -
                 pln_weight_at(&operands[MEAN], i) * factors[i];
    if (!(spread > 0) || !isfinite(factors[i]) || !isfinite(addends[i]))
      return false;
  }
  return true;
}

static pln_status fold_batch_norm_into(pln_fold_candidate *ctx, pln_ref *out) {
  pln_weight operands[N_OPERANDS];
  pln_rewrite_context *at = &ctx->at;
  if (!is_inference(at) || !pln_fold_is_product(ctx, 0))
    return PLN_OK;
  pln_ref product = pln_rule_arg(at, 0);
  size_t n = pln_fold_channels(ctx, product);
  if (!n || !read_operands(at, n, operands))
    return PLN_OK;
  double *factors = pln_mem_new(at->engine, 2 * n * sizeof *factors);
  if (!factors)
    return pln_nomem(at->engine);
  pln_status status = PLN_OK;
  if (find_affine(at, operands, n, factors, factors + n))
    status = pln_fold_affine(ctx, product, factors, factors + n,
                             operands[BIAS].node, out);
  pln_mem_free(at->engine, factors, 2 * n * sizeof *factors);
  return status;
}

pln_status pln_pass_fold_batch_norm(pln_pass_run *run) {
  static const pln_fold_rule_row row = {"fold", PLN_OP_BATCH_NORMALIZATION,
                                        fold_batch_norm_into};
  return pln_fold_weights(run, 1, &row, "folded", NULL);
}
