/* each_function.c: the body of a module pass that transforms each function
 * independently. Functions that passes must skip stay unchanged. */

#include "transform/transform.h"

static pln_status form_all(pln_pass_run *run, pln_form_fn form,
                           pln_graph **results, bool *changed) {
  const pln_module *module = run->module;
  for (uint32_t i = 0; i < module->count; i++) {
    const pln_graph *old = pln_module_function_at(module, i);
    if (pln_pass_applies(old))
      PLN_TRY(form(run, old, &results[i]));
    if (results[i] == old) {
      pln_graph_release(results[i]);
      results[i] = NULL;
    }
    *changed |= results[i] != NULL;
  }
  return PLN_OK;
}

pln_status pln_run_on_functions(pln_pass_run *run, pln_form_fn form) {
  uint32_t n = run->module->count;
  size_t size = (n + (size_t)1) * sizeof(pln_graph *);
  pln_graph **results = pln_mem_zeroed(run->engine, size);
  pln_module *out;
  bool changed = false;
  if (!results)
    return pln_nomem(run->engine);
  pln_status status = form_all(run, form, results, &changed);
  if (status == PLN_OK && changed)
    status = pln_module_replace(run->module, results, &out);
  for (uint32_t i = 0; i < n; i++)
    pln_graph_release(results[i]);
  pln_mem_free(run->engine, results, size);
  if (status == PLN_OK && changed)
    pln_run_set_module(run, out);
  return status;
}
