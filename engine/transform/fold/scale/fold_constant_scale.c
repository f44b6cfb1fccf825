/* fold_constant_scale.c: FoldConstantScale: moves constant factors into the
 * weights of products.
 *
 * Run by the executor, once per function. Requires a verified graph. A factor
 * behind a product (nn.conv, nn.conv_transpose, nn.gemm, nn.matmul) scales its
 * weight and bias; one number for all elements may also stand behind operators
 * that move data, constants that are added and, if it is positive, relu. A
 * number that multiplies the data operand of a product, directly or further up,
 * scales its weight. Everything on the way must have no other use.
 *
 *     multiply(transpose(add(nn.matmul(%x, W), b)), 2f)
 *       =>   transpose(add(nn.matmul(%x, W * 2), b * 2))
 *     nn.matmul(multiply(multiply(%x, 0.5f), %y), W)
 *       =>   nn.matmul(multiply(%x, %y), W * 0.5)
 *
 * Weights are computed in double and rounded once, so results differ by
 * rounding unless the factor is a power of two. Semantics: TVM FoldScaleAxis,
 * backward and forward; ONNX Runtime ConvMulFusion. */

#include <math.h>

#include "ir/rewrite/rewrite.h"
#include "transform/fold/fold_weights.h"
#include "transform/fold/scale/scale_paths.h"

enum { MAX_CHAIN = 16, MAX_ARGS = 8 };

/* Calls from the root, which is not among them, towards the operands; each is
 * operand `arg` of the one before. */
typedef struct call_chain {
  uint32_t n;
  struct {
    pln_ref node;
    uint32_t arg;
  } links[MAX_CHAIN];
} call_chain;

/* ------------------------------------------------------------------- chains
 */

static pln_scope scope_of_node(const pln_rewrite *rw, pln_ref node) {
  return rw->b ? rw->b->node_scope[node] : pln_graph_scope_of(rw->old, node);
}

/* Returns true for a plain call that nothing else uses, in the root's scope. */
static bool is_link(const pln_fold_candidate *ctx, pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data && n->results == 0 &&
         n->count <= MAX_ARGS && !(n->flags & PLN_NODE_KEEP) &&
         ctx->uses->now[node] == 1 && pln_op_is_onnx_form(g, node) &&
         pln_call_is_valid(g, node) &&
         scope_of_node(ctx->at.rw, node) ==
             scope_of_node(ctx->at.rw, ctx->at.node);
}

static bool add_link(const pln_fold_candidate *ctx, call_chain *c, pln_ref user,
                     uint32_t arg) {
  pln_ref node = pln_operand(pln_rewrite_graph(ctx->at.rw), user, arg);
  if (c->n == MAX_CHAIN || !is_link(ctx, node))
    return false;
  c->links[c->n].node = node;
  c->links[c->n++].arg = arg;
  return true;
}

static bool moves_data(pln_op op) {
  return op == PLN_OP_TRANSPOSE || op == PLN_OP_RESHAPE ||
         op == PLN_OP_SQUEEZE || op == PLN_OP_UNSQUEEZE || op == PLN_OP_FLATTEN;
}

static bool is_linear(pln_op op) {
  return op == PLN_OP_CONV || op == PLN_OP_CONV_TRANSPOSE ||
         op == PLN_OP_GEMM || op == PLN_OP_MAT_MUL;
}

/* ------------------------------------------------------------------- factors
 */

/* Reads the only element of constant operand `i`. */
static bool read_scalar(const pln_graph *g, pln_ref node, uint32_t i,
                        double *out) {
  pln_weight w;
  return i < g->nodes[node].count &&
         pln_weight_read(g, pln_operand(g, node, i), &w) && w.count == 1 &&
         (*out = pln_weight_at(&w, 0), isfinite(*out) && *out != 0);
}

/* Reads a multiplication or division by one number, which leaves the shape as
 * it is, or a negation; *x is the other operand. */
static bool read_factor(const pln_graph *g, pln_ref node, uint32_t *x,
                        double *factor) {
  const pln_node *n = &g->nodes[node];
  if (n->data == PLN_OP_NEG && n->count == 1) {
    *x = 0;
    *factor = -1;
    return true;
  }
  if ((n->data != PLN_OP_MUL && n->data != PLN_OP_DIV) || n->count != 2)
    return false;
  bool second = read_scalar(g, node, 1, factor);
  if (!second && (n->data == PLN_OP_DIV || !read_scalar(g, node, 0, factor)))
    return false;
  *x = second ? 0 : 1;
  if (n->data == PLN_OP_DIV)
    *factor = 1 / *factor;
  pln_type type = g->nodes[pln_operand(g, node, *x)].type;
  return isfinite(*factor) && pln_type_rank(g->engine, type) >= 0 &&
         pln_type_rank(g->engine, type) == pln_type_rank(g->engine, n->type) &&
         pln_type_dtype(g->engine, type) == pln_type_dtype(g->engine, n->type);
}

/* ------------------------------------------------------------------ building
 */

/* A constant times the factor; PLN_NONE if it cannot be made. */
static pln_status scale_constant(pln_fold_candidate *ctx, pln_ref constant,
                                 double factor, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  pln_scaled_constant row = {.constant = constant,
                             .scope = scope_of_node(ctx->at.rw, ctx->at.node),
                             .factor = factor};
  pln_weight w;
  *out = pln_scaled_constants_find(ctx->scaled, &row);
  if (*out != PLN_NONE)
    return PLN_OK;
  if (!pln_weight_read(g, constant, &w) || w.count == 0 ||
      (!ctx->halves && pln_dtype_is_half(w.dtype)))
    return PLN_OK;
  pln_channels all = {.outer = 1, .channels = 1, .inner = w.count, .group = 1};
  size_t bytes = pln_weight_scaled_bytes(&w, 1, &factor);
  size_t freed = ctx->uses->now[constant] == 1 ? w.bytes : 0;
  if (bytes > PLN_BUDGET_MAX || !pln_budget_allows(ctx->budget, bytes, freed))
    return PLN_OK;
  PLN_TRY(pln_weight_scale(ctx->at.rw, &w, &all, &factor, out));
  row.scaled = *out;
  return *out == PLN_NONE ? PLN_OK
                          : pln_scaled_constants_add(ctx->scaled, &row);
}

/* Builds `node` with operands from `args`, which replace its own. */
static pln_status rebuild_call(pln_fold_candidate *ctx, pln_ref node,
                               const pln_ref *args, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(ctx->at.rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node n = b->graph->nodes[node];
  pln_builder_origin(b, b->graph->origin[node]);
  return pln_build_call(b, n.data, n.attrs, 0, n.count, args, out);
}

static void copy_args(const pln_graph *g, pln_ref node, pln_ref *args) {
  for (uint32_t i = 0; i < g->nodes[node].count; i++)
    args[i] = pln_operand(g, node, i);
}

/* Builds a product whose weight, and with `bias` also its bias, is scaled. */
static pln_status scale_product(pln_fold_candidate *ctx, pln_ref product,
                                pln_ref data, double factor, bool bias,
                                pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  uint32_t n = g->nodes[product].count;
  pln_ref args[MAX_ARGS];
  copy_args(g, product, args);
  bool has_bias = n > 2 && g->nodes[args[2]].kind != PLN_ABSENT;
  args[0] = data;
  PLN_TRY(scale_constant(ctx, args[1], factor, &args[1]));
  if (args[1] != PLN_NONE && bias && has_bias)
    PLN_TRY(scale_constant(ctx, args[2], factor, &args[2]));
  *out = PLN_NONE;
  if (args[1] == PLN_NONE || (has_bias && args[2] == PLN_NONE))
    return PLN_OK;
  return rebuild_call(ctx, product, args, out);
}

/* Builds link `i` on a new operand; constants that are added are scaled. */
static pln_status rebuild_link(pln_fold_candidate *ctx, const call_chain *c,
                               uint32_t i, double factor, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  pln_ref old = c->links[i].node, args[MAX_ARGS];
  uint32_t arg = c->links[i + 1].arg;
  bool adds =
      g->nodes[old].data == PLN_OP_ADD || g->nodes[old].data == PLN_OP_SUB;
  copy_args(g, old, args);
  args[arg] = *node;
  if (adds && factor != 1)
    PLN_TRY(scale_constant(ctx, args[1 - arg], factor, &args[1 - arg]));
  *node = PLN_NONE;
  if (adds && args[1 - arg] == PLN_NONE)
    return PLN_OK;
  return rebuild_call(ctx, old, args, node);
}

/* Asks the rule limits, and moves the uses from the old calls to the new
 * ones. */
static pln_status replace_chain(pln_fold_candidate *ctx, const call_chain *c,
                                pln_ref first, pln_ref *out) {
  bool allowed = false;
  if (*out == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(ctx->at.rw, ctx->rule, &allowed));
  if (!allowed) {
    *out = PLN_NONE;
    return PLN_OK;
  }
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  PLN_TRY(pln_use_counts_change(ctx->uses, g, ctx->at.node, -1));
  for (uint32_t i = 0; i < c->n; i++)
    PLN_TRY(pln_use_counts_change(ctx->uses, g, c->links[i].node, -1));
  for (pln_ref i = first; i < g->n_nodes; i++)
    PLN_TRY(pln_use_counts_change(ctx->uses, g, i, 1));
  return pln_keep_type(ctx->at.rw, *out, ctx->at.type);
}

static pln_ref next_new_node(const pln_fold_candidate *ctx) {
  pln_builder *b = pln_rewrite_builder(ctx->at.rw);
  return b ? b->graph->n_nodes : PLN_NONE;
}

/* ------------------------------------------------------------------ backward
 */

/* Follows operand `x` of the factor to a product with a constant weight. */
static bool find_product(const pln_fold_candidate *ctx, uint32_t x,
                         double factor, call_chain *c) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  pln_ref user = ctx->at.node;
  for (uint32_t arg = x; add_link(ctx, c, user, arg);) {
    user = c->links[c->n - 1].node;
    pln_op op = g->nodes[user].data;
    if (is_linear(op))
      return g->nodes[user].count >= 2 &&
             g->nodes[pln_operand(g, user, 1)].kind == PLN_CONSTANT;
    arg = 0;
    if (op == PLN_OP_ADD &&
        g->nodes[pln_operand(g, user, 0)].kind == PLN_CONSTANT)
      arg = 1;
    else if ((op == PLN_OP_ADD || op == PLN_OP_SUB) &&
             g->nodes[pln_operand(g, user, 1)].kind != PLN_CONSTANT)
      return false;
    else if (op != PLN_OP_ADD && op != PLN_OP_SUB && !moves_data(op) &&
             !(op == PLN_OP_RELU && factor > 0))
      return false;
  }
  return false;
}

static pln_status fold_backward(pln_fold_candidate *ctx, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  call_chain c = {0};
  uint32_t x;
  double factor;
  if (!read_factor(g, ctx->at.node, &x, &factor) ||
      !find_product(ctx, x, factor, &c))
    return PLN_OK;
  pln_ref first = next_new_node(ctx), node;
  if (first == PLN_NONE)
    return PLN_ERR_NOMEM;
  g = pln_rewrite_graph(ctx->at.rw);
  pln_ref product = c.links[c.n - 1].node;
  PLN_TRY(scale_product(ctx, product, pln_operand(g, product, 0), factor, true,
                        &node));
  for (uint32_t i = c.n - 1; node != PLN_NONE && i-- > 0;)
    PLN_TRY(rebuild_link(ctx, &c, i, factor, &node));
  *out = node;
  return replace_chain(ctx, &c, first, out);
}

/* ------------------------------------------------------------------- forward
 */

/* Follows the data operand of a product to a factor: through operators that
 * move data, and through products and quotients of elements. */
static bool find_factor(const pln_fold_candidate *ctx, call_chain *c,
                        uint32_t *x, double *factor) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  pln_ref user = ctx->at.node;
  for (uint32_t arg = 0; add_link(ctx, c, user, arg);) {
    user = c->links[c->n - 1].node;
    pln_op op = g->nodes[user].data;
    if (read_factor(g, user, x, factor))
      return true;
    arg = 0;
    if (op == PLN_OP_MUL) {
      pln_ref second = pln_operand(g, user, 1);
      uint32_t other;
      double number;
      arg = is_link(ctx, second) && read_factor(g, second, &other, &number);
    } else if (op != PLN_OP_DIV && !moves_data(op)) {
      return false;
    }
  }
  return false;
}

static pln_status fold_forward(pln_fold_candidate *ctx, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  call_chain c = {0};
  uint32_t x;
  double factor;
  if (ctx->at.call.n_args < 2 || ctx->at.call.n_results ||
      g->nodes[pln_rule_arg(&ctx->at, 1)].kind != PLN_CONSTANT ||
      !find_factor(ctx, &c, &x, &factor))
    return PLN_OK;
  pln_ref first = next_new_node(ctx), node;
  if (first == PLN_NONE)
    return PLN_ERR_NOMEM;
  g = pln_rewrite_graph(ctx->at.rw);
  node = pln_operand(g, c.links[c.n - 1].node, x);
  for (uint32_t i = c.n - 1; node != PLN_NONE && i-- > 0;)
    PLN_TRY(rebuild_link(ctx, &c, i, 1, &node));
  PLN_TRY(scale_product(ctx, ctx->at.node, node, factor, false, out));
  return replace_chain(ctx, &c, first, out);
}

pln_status pln_pass_fold_constant_scale(pln_pass_run *run) {
  static const pln_fold_rule_row rows[] = {
      {"multiply", PLN_OP_MUL, fold_backward},
      {"divide", PLN_OP_DIV, fold_backward},
      {"negative", PLN_OP_NEG, fold_backward},
      {"conv", PLN_OP_CONV, fold_forward},
      {"gemm", PLN_OP_GEMM, fold_forward},
      {"matmul", PLN_OP_MAT_MUL, fold_forward}};
  return pln_fold_weights(run, PLN_COUNT(rows), rows, "folded",
                          pln_fold_scale_paths);
}
