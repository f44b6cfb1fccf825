/* mat_mul_add_to_gemm.c: MatMulAddToGemm: fuses a matrix product and an
 * addition into one gemm.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * an nn.matmul of two float matrices, or an nn.gemm without addend, that
 * nothing else uses. The addend need not be constant; it has at most two axes
 * and provably broadcasts to the product.
 *
 *     add(nn.matmul(%a, %b), %c)   =>   nn.gemm(%a, %b, %c)
 *
 * In every opset, gemm supports the float dtypes that matmul supports. Integer
 * products are not fused, because few runtimes have an integer gemm. Semantics:
 * ONNX's fuse_matmul_add_bias_into_gemm. */

#include "transform/fold/fold_weights.h"

static bool is_matrix(const pln_graph *g, pln_ref node) {
  pln_type type = g->nodes[node].type;
  return pln_type_rank(g->engine, type) == 2 &&
         pln_dtype_is_float(pln_type_dtype(g->engine, type));
}

static bool is_plain_product(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  bool adds =
      n->count > 2 && g->nodes[pln_operand(g, node, 2)].kind != PLN_ABSENT;
  return (n->data == PLN_OP_MAT_MUL || n->data == PLN_OP_GEMM) &&
         n->count >= 2 && !adds && pln_op_is_onnx_form(g, node) &&
         is_matrix(g, pln_operand(g, node, 0)) &&
         is_matrix(g, pln_operand(g, node, 1)) && is_matrix(g, node);
}

/* Returns true if each extent of `c` is 1 or that of the product. */
static bool broadcasts(const pln_engine *e, pln_type c, pln_type product) {
  int32_t rank = pln_type_rank(e, c);
  if (rank < 0 || rank > 2 ||
      pln_type_dtype(e, c) != pln_type_dtype(e, product))
    return false;
  const pln_dim *dims = pln_type_dims(e, c);
  const pln_dim *wanted = pln_type_dims(e, product) + 2 - rank;
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] != 1 && (dims[i] != wanted[i] || dims[i] == PLN_DIM_UNKNOWN))
      return false;
  return true;
}

static pln_status build_gemm(pln_fold_candidate *ctx, pln_ref product,
                             pln_ref c, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(ctx->at.rw);
  if (!b)
    return PLN_ERR_NOMEM;
  const pln_graph *g = b->graph;
  pln_ref args[3] = {pln_operand(g, product, 0), pln_operand(g, product, 1), c};
  bool plain = g->nodes[product].data == PLN_OP_MAT_MUL;
  pln_attrs attrs = plain ? 0 : g->nodes[product].attrs;
  PLN_TRY(pln_attrs_without(ctx->at.engine, attrs, "beta", &attrs));
  PLN_TRY(pln_rule_replace_call(&ctx->at, PLN_OP_GEMM, attrs, 3, args, out));
  return pln_fold_replace(ctx, product, out);
}

static pln_status fold_add_into_gemm(pln_fold_candidate *ctx, uint32_t i,
                                     pln_ref *out) {
  const pln_graph *g = ctx->at.call.graph;
  pln_ref product = pln_rule_arg(&ctx->at, i);
  pln_ref c = pln_rule_arg(&ctx->at, 1 - i);
  if (!pln_fold_is_only_use(ctx, i) || !is_plain_product(g, product) ||
      !broadcasts(g->engine, g->nodes[c].type, g->nodes[product].type))
    return PLN_OK;
  return build_gemm(ctx, product, c, out);
}

static pln_status fold_add(pln_fold_candidate *ctx, pln_ref *out) {
  PLN_TRY(fold_add_into_gemm(ctx, 0, out));
  return *out == PLN_NONE ? fold_add_into_gemm(ctx, 1, out) : PLN_OK;
}

pln_status pln_pass_mat_mul_add_to_gemm(pln_pass_run *run) {
  static const pln_fold_rule_row row = {"fold", PLN_OP_ADD, fold_add};
  return pln_fold_weights(run, 1, &row, "folded", NULL);
}
