/* remove_assume.c: tir.RemoveAssume: removes what a program says of itself by
 * T.assume, and what is left without effect.
 *
 * Run by the executor.
 *
 *     T.assume(A[0] == 5); A[0] = 10   =>   A[0] = 10
 *
 * Semantics: TVM's tir.RemoveAssume: the removal, then tir.RemoveNoOp. */

#include "lower/lower.h"

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_graph *g = ud;
  if (g->nodes[stmt].kind == PLN_EVALUATE &&
      pln_is_call_of(&g->nodes[pln_operand(g, stmt, 0)], "assume"))
    return pln_stmt_no_op(s, node);
  return PLN_OK;
}

pln_status pln_pass_tir_remove_assume(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)g, .leave = leave_stmt};
  pln_graph *function;
  PLN_TRY(pln_stmt_rewrite_function(g, &mutator, &function));
  pln_status status = pln_lower_step(run, pln_pass_tir_remove_no_op, &function);
  if (status == PLN_OK)
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}
