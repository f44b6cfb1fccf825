/* canonicalize_ops.c: CanonicalizeOps: writes nn.bias_add as an addition of the
 * bias with new axes.
 *
 * Run by the executor, once per function. Requires a verified graph. A call
 * whose first operand has an unknown rank stays.
 *
 *     nn.bias_add(%x, %b)   =>   add(%x, expand_dims(%b, axis=1,
 * num_newaxis=2))
 *
 * Semantics: TVM CanonicalizeOps. */

#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/relay_builder.h"

/* The axis along which the bias is added; -1: unknown. */
static int32_t bias_axis(const pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0);
  int64_t axis = pln_call_int(call, "axis", 1);
  axis += axis < 0 ? rank : 0;
  return rank > 0 && axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

static pln_status replace_bias_add(void *ud, pln_rewrite *rw, pln_ref old,
                                   pln_ref *node) {
  int64_t *replaced = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  pln_relay_builder r;
  (void)old;
  if (n->kind != PLN_CALL || n->data != PLN_OP_BIAS_ADD ||
      !pln_call_is_valid(g, *node))
    return PLN_OK;
  pln_infer call = pln_infer_of(g, *node);
  pln_ref x = call.args[0], bias = call.args[1], before = *node;
  int32_t rank = pln_arg_rank(&call, 0), axis = bias_axis(&call);
  if (axis < 0)
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, rw));
  bias = pln_relay_along_axis(&r, bias, rank, axis);
  pln_ref sum = pln_relay_call(&r, PLN_OP_ADD, 2, x, bias);
  PLN_TRY(pln_relay_finish(&r, "bias_add", sum, node));
  *replaced += *node != before;
  return PLN_OK;
}

pln_status pln_pass_canonicalize_ops(pln_pass_run *run) {
  int64_t replaced = 0;
  pln_mutator m = {
      .ud = &replaced, .visit = replace_bias_add, .keeps_types = true};
  PLN_TRY(pln_rewrite_function(run, &m));
  return replaced ? pln_run_count(run, "replaced", replaced) : PLN_OK;
}
