/* thread_sync.c: tir.ThreadSync: barriers between the accesses of threads to
 * memory that they share.
 *
 * Run by the executor, with the option storage_scope. sync_plan.c says before
 * which statements a barrier stands.
 *
 *     S[threadIdx_x] = A[threadIdx_x]
 *     B[threadIdx_x] = S[63 - threadIdx_x]
 *     =>
 *     S[threadIdx_x] = A[threadIdx_x]
 *     T.tvm_storage_sync("shared")
 *     B[threadIdx_x] = S[63 - threadIdx_x]
 *
 * Semantics: TVM's tir.ThreadSync. Barriers of all blocks of a grid (for the
 * storage scope global) need functions of a device's runtime, and waits for
 * asynchronous copies need such copies: both are refused. */

#include "lower/emit.h"
#include "lower/thread/sync_plan.h"

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_sync_plan *plan = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref pair[2], scope;
  if (!plan->before[stmt])
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, &pair[1]));
  scope = pln_emit_string(&e, plan->scope);
  pair[0] = pln_emit_evaluate(&e, pln_emit_call(&e, "tvm_storage_sync",
                                                pln_emit_type(&e, PLN_INT32), 1,
                                                &scope));
  PLN_TRY(e.status);
  return pln_stmt_seq(s, 2, pair, node);
}

static pln_status check_supported(const pln_sync_plan *plan) {
  const pln_graph *g = plan->g;
  if (plan->count > 0 && pln_slice_is(plan->scope, "global"))
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.ThreadSync: a barrier for the storage scope "
                          "'global' needs a device's runtime");
  if (!pln_slice_is(plan->scope, "shared"))
    return PLN_OK;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_ATTR_STMT &&
        pln_slice_is(
            pln_attrs_string(g->engine, g->nodes[ref].attrs, "attr_key", ""),
            "async_wait_queue_scope"))
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.ThreadSync: the function has an AttrStmt of "
                            "'async_wait_queue_scope', which is not lowered "
                            "here");
  return PLN_OK;
}

pln_status pln_pass_tir_thread_sync(pln_pass_run *run) {
  pln_sync_plan plan;
  pln_stmt_mutator mutator = {.ud = &plan, .leave = leave_stmt};
  pln_status status = pln_sync_plan_make(&plan, pln_run_function(run),
                                         pln_run_string(run, "storage_scope"));
  if (status == PLN_OK)
    status = check_supported(&plan);
  if (status == PLN_OK && plan.count > 0)
    status = pln_lower_function(run, &mutator);
  pln_sync_plan_free(&plan);
  return status;
}
