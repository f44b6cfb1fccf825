/* rnn.c: the rule for recurrent layers. */

#include "transform/fold/weight.h"
#include "transform/simplify/rule.h"

/* Operand indices of the initial states. */
enum { INITIAL_H = 5, INITIAL_C, MAX_ARGS = 8 };
/* limits on followed chains and on scanned elements */
enum { MAX_LOOK = 8, MAX_ELEMENTS = 1 << 16 };

/* Returns true if every element of the result is one of operand 0. */
static bool only_moves(const pln_graph *g, pln_ref node) {
  return pln_is_call(g, node, PLN_OP_RESHAPE) ||
         pln_is_call(g, node, PLN_OP_SQUEEZE) ||
         pln_is_call(g, node, PLN_OP_UNSQUEEZE) ||
         pln_is_call(g, node, PLN_OP_TRANSPOSE) ||
         pln_is_call(g, node, PLN_OP_SLICE) ||
         pln_is_call(g, node, PLN_OP_EXPAND) ||
         pln_is_call(g, node, PLN_OP_TILE);
}

/* A filled tensor is judged by its fill value; its extents do not matter. */
static bool fills_with_zero(const pln_graph *g, pln_ref node) {
  const pln_attr *value =
      pln_attrs_find(g->engine, g->nodes[node].attrs, "value");
  double number;
  return !value ||
         (value->kind == PLN_ATTR_TENSOR && value->v.tensor->count == 1 &&
          pln_weight_number(value->v.tensor, &number) && number == 0);
}

static bool is_zero(const pln_graph *g, pln_ref node) {
  pln_weight w;
  for (int i = 0; i < MAX_LOOK && only_moves(g, node); i++)
    node = pln_operand(g, node, 0);
  if (pln_is_call(g, node, PLN_OP_CONSTANT_OF_SHAPE))
    return fills_with_zero(g, node);
  if (g->nodes[node].kind != PLN_CONSTANT || !pln_weight_read(g, node, &w) ||
      (!w.splat && w.count > MAX_ELEMENTS))
    return false;
  for (size_t i = 0; i < (w.splat ? 1 : w.count); i++)
    if (pln_weight_at(&w, i) != 0)
      return false;
  return true;
}

/* lstm(x, w, r, b, lengths, zeros, zeros) => lstm(x, w, r, b, lengths): missing
 * states are zero. */
pln_status pln_simplify_zero_state(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref args[MAX_ARGS], absent = PLN_NONE;
  uint32_t n = ctx->call.n_args, zeros = 0;
  if (n <= INITIAL_H || n > MAX_ARGS)
    return PLN_OK;
  for (uint32_t i = INITIAL_H; i <= INITIAL_C && i < n; i++)
    zeros += !pln_arg_absent(&ctx->call, i) && is_zero(g, ctx->call.args[i]);
  if (!zeros)
    return PLN_OK;
  memcpy(args, ctx->call.args, n * sizeof *args);
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_build_absent(b, &absent));
  for (uint32_t i = INITIAL_H; i <= INITIAL_C && i < n; i++)
    if (is_zero(b->graph, args[i]))
      args[i] = absent;
  while (b->graph->nodes[args[n - 1]].kind == PLN_ABSENT)
    n--;
  return pln_rule_replace_call(ctx, ctx->call.op, ctx->call.attrs, n, args,
                               out);
}
