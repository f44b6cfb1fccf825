/* sequential.c: runs the elements of a sequential that the context enables,
 * each after what it requires. Called by execute.c. */

#include "pass/pass.h"

/* Runs the pass on *module, which is owned, and replaces it. */
static pln_status step(pln_execution *x, const pln_pass *pass,
                       pln_module **module) {
  pln_module *next;
  if (pass->def->n_required)
    PLN_TRY(pln_run_required(x, pass, module));
  PLN_TRY(pln_execute(x, pass, *module, &next));
  pln_module_release(*module);
  *module = next;
  return PLN_OK;
}

pln_status pln_run_sequential(pln_execution *x, const pln_pass *pass,
                              const pln_module *module, pln_module **out) {
  const pln_pass_def *def = pass->def;
  pln_module *current = pln_module_retain(module);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < def->n_elements && status == PLN_OK; i++)
    if (pln_context_enables(x->context, def->elements[i]))
      status = step(x, def->elements[i], &current);
  if (status == PLN_OK)
    *out = current;
  else
    pln_module_release(current);
  return status;
}
