/* unit_axes.c: the rule unit_transpose: a reshape, flatten or squeeze behind a
 * transpose that moves only axes of extent 1 past others reads the operand of
 * the transpose, which has the same elements in the same order. */

#include "transform/simplify/rule.h"

/* Returns true if the axes whose extent is not known to be 1 stay in order. */
static bool moves_units_only(const pln_permutation *p, const pln_dim *dims) {
  int64_t last = -1;
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t axis = p->axes[i];
    if (dims[axis] == 1)
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

/* reshape(transpose(x, [0, 3, 1, 2])) => reshape(x), if x is (n, 1, 1, c). */
pln_status pln_simplify_unit_transpose(pln_rewrite_context *ctx, pln_ref *out) {
  pln_permutation p;
  const pln_graph *g = ctx->call.graph;
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  if (!pln_is_call(g, pln_rule_arg(ctx, 0), PLN_OP_TRANSPOSE) || rank < 0 ||
      rank > PLN_MAX_RANK)
    return PLN_OK;
  pln_infer moved = pln_rule_operand(ctx, 0);
  int32_t own = pln_arg_rank(&moved, 0);
  if (!pln_read_permutation(ctx->engine, moved.attrs, own, &p) ||
      own != (int32_t)p.n || !moves_units_only(&p, pln_arg_dims(&moved, 0)))
    return PLN_OK;
  const pln_dim *dims = rank ? pln_type_dims(ctx->engine, ctx->type) : NULL;
  return pln_rule_reshape(ctx, moved.args[0], (uint32_t)rank, dims, out);
}
