/* reduce_branching.c: tir.ReduceBranchingThroughOvercompute: runs one branch in
 * any case, where that changes nothing.
 *
 * Run by the executor.
 *
 *     for i in range(16): if i > 0: A[0] = A[0] + i * i
 *         =>   for i in range(16): A[0] = A[0] + i * i
 *
 * Semantics: TVM's tir.ReduceBranchingThroughOvercompute. With the config key
 * use_dataflow_analysis also stores count that store what the elements hold, or
 * what is overwritten before anything reads it (../dataflow/). */

#include "lower/dataflow/dataflow.h"
#include "lower/lower.h"

static int general_of(const pln_buffer_flow *flow, pln_ref stmt) {
  return flow->g->nodes[stmt].kind == PLN_IF_THEN_ELSE ? flow->general[stmt]
                                                       : -1;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  int general = general_of(ud, stmt);
  (void)s;
  *skip = general >= 0 && (uint32_t)general != k;
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  int general = general_of(ud, stmt);
  if (general >= 0)
    *node = pln_stmt_body(s, (uint32_t)general);
  return PLN_OK;
}

pln_status pln_pass_tir_reduce_branching(pln_pass_run *run) {
  const pln_graph *function = pln_run_function(run);
  pln_buffer_flow flow;
  int64_t dataflow;
  PLN_TRY(pln_lower_config(
      run, "tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis",
      &dataflow));
  if (!pln_has_kind(function, PLN_IF_THEN_ELSE))
    return PLN_OK;
  PLN_TRY(pln_buffer_flow_find_general(function, dataflow != 0, &flow));
  pln_stmt_mutator mutator = {
      .ud = &flow, .enter_body = enter_body, .leave = leave_stmt};
  pln_status status = pln_lower_function(run, &mutator);
  pln_buffer_flow_free(&flow);
  return status;
}
