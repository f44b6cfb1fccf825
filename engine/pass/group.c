/* group.c: functions { ... }: takes each function through a list of function
 * passes before it goes on to the next.
 *
 * Called by execute.c. What always holds: while the group runs, bodies see the
 * module with all its old functions; results are put together at the end. */

#include "pass/pass.h"

/* The new function of row `index`, or NULL when nothing changed. */
static pln_status one(pln_execution *x, const pln_pass *pass,
                      pln_module *module, uint32_t index, pln_graph **out) {
  pln_graph *old = pln_module_function(module, index);
  pln_subject s = {pln_module_retain(module), pln_graph_retain(old), index};
  pln_status status = pln_run_elements(x, pass, 0, pass->def->n_elements, &s);
  if (status == PLN_OK && s.function != old)
    *out = pln_graph_retain(s.function);
  pln_subject_drop(&s);
  return status;
}

static pln_status all(pln_execution *x, const pln_pass *pass, pln_subject *s,
                      pln_graph **results) {
  bool changed = false;
  for (uint32_t i = 0; i < s->module->count; i++) {
    PLN_TRY(one(x, pass, s->module, i, &results[i]));
    changed |= results[i] != NULL;
  }
  if (!changed)
    return PLN_OK;
  pln_module *module;
  PLN_TRY(pln_module_replace(s->module, results, &module));
  pln_subject_set_module(s, module);
  return PLN_OK;
}

pln_status pln_run_group(pln_execution *x, const pln_pass *pass,
                         pln_subject *s) {
  uint32_t n = s->module->count;
  if (s->function)
    return pln_run_elements(x, pass, 0, pass->def->n_elements, s);
  pln_graph **results = pln_mem_zeroed(x->engine, n * sizeof *results);
  if (n && !results)
    return pln_nomem(x->engine);
  pln_status status = all(x, pass, s, results);
  for (uint32_t i = 0; i < n; i++)
    pln_graph_release(results[i]);
  pln_mem_free(x->engine, results, n * sizeof *results);
  return status;
}
