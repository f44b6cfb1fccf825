/* fast_math.c: FastMath: replaces exponentials, hyperbolic tangents, error
 * functions and softmaxes by their approximations.
 *
 * Run by the executor, once per function. Requires a verified graph. ONNX has
 * no such operators: functions that came from an ONNX model stay.
 *
 *     nn.softmax(exp(%x), axis=1)   =>   nn.fast_softmax(fast_exp(%x), axis=1)
 *
 * Semantics: TVM FastMath. */

#include "rule/rule.h"
#include "transform/relay_builder.h"

static const struct {
  pln_op exact, fast;
} fast_operators[] = {
    {PLN_OP_EXP, PLN_OP_FAST_EXP},
    {PLN_OP_ERF, PLN_OP_FAST_ERF},
    {PLN_OP_TANH, PLN_OP_FAST_TANH},
    {PLN_OP_SOFTMAX, PLN_OP_FAST_SOFTMAX},
};

static pln_op fast_operator(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(fast_operators); i++)
    if (fast_operators[i].exact == op)
      return fast_operators[i].fast;
  return PLN_OP_NONE;
}

static pln_status replace_by_approximation(void *ud, pln_rewrite *rw,
                                           pln_ref old, pln_ref *node) {
  int64_t *replaced = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  pln_op fast = n->kind == PLN_CALL ? fast_operator(n->data) : PLN_OP_NONE;
  pln_relay_builder r;
  (void)old;
  if (!fast || n->results || n->count != 1 || !pln_call_is_valid(g, *node) ||
      pln_attrs_int(g->engine, n->attrs, "coerce_2d", 0))
    return PLN_OK;
  pln_ref x = pln_operand(g, *node, 0), exact = *node;
  pln_attrs attrs = n->attrs;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref call = pln_relay_call_core(&r, fast, attrs, 1, &x);
  PLN_TRY(pln_relay_finish(&r, "fast_math", call, node));
  *replaced += *node != exact;
  return PLN_OK;
}

pln_status pln_pass_fast_math(pln_pass_run *run) {
  int64_t replaced = 0;
  pln_mutator m = {
      .ud = &replaced, .visit = replace_by_approximation, .keeps_types = true};
  if (pln_function_is_onnx(pln_run_function(run)))
    return PLN_OK;
  PLN_TRY(pln_rewrite_function(run, &m));
  return replaced ? pln_run_count(run, "replaced", replaced) : PLN_OK;
}
