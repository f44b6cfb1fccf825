/* try.c: try { ... } else { ... }: runs a list of passes that may fail; if one
 * fails, restores the target and runs the else list.
 *
 * Called by execute.c. Invariants: after a failure the target is as it was
 * before the body, and the failure is reported as a warning. Lack of memory and
 * an interrupt are not failures of a pass: they are returned. */

#include "pass/pass.h"

/* Turns the errors reported since `mark` into warnings. */
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
