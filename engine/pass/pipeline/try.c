/* try.c: try { ... } else { ... }: a list of passes that may fail.
 *
 * Called by execute.c. What always holds: a failure leaves the subject as it
 * was before the attempt, and is told as a warning; lack of memory and a run
 * that was stopped are no failures of the passes and are handed on. */

#include "pass/pass.h"

/* What a pass says of a failure is no error any more. */
static void demote_try_failure(pln_engine *engine, size_t mark,
                               pln_status status) {
  pln_diag_demote(engine, mark);
  if (pln_diag_count(engine) == mark)
    pln_diag_warn(engine, NULL, "try: a pass failed: %s",
                  pln_status_text(status));
}

pln_status pln_run_try(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) {
  const pln_pass_def *def = pass->def;
  size_t mark = pln_diag_count(x->engine);
  pln_pass_target try_target = pln_pass_target_copy(s);
  pln_status status = pln_run_elements(x, pass, 0, def->n_body, &try_target);
  if (status == PLN_OK) {
    pln_pass_target_release(s);
    *s = try_target;
    return PLN_OK;
  }
  pln_pass_target_release(&try_target);
  if (status == PLN_ERR_NOMEM || status == PLN_ERR_INTERRUPTED)
    return status;
  demote_try_failure(x->engine, mark, status);
  x->failure_noted = false;
  return pln_run_elements(x, pass, def->n_body, def->n_elements, s);
}
