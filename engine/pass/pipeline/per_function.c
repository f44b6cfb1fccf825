/* per_function.c: functions { ... }: runs a list of function passes on one
 * function after the other.
 *
 * Called by execute.c. Invariants: while the list runs, bodies see the module
 * with all its old functions; the results are put together at the end. In
 * provenance the runs of each function are numbered as if that function came
 * first, so that numbers do not depend on the number of threads. */

#include "pass/parallel/parallel.h"

/* The new graph of function `index`, or NULL if nothing changed. */
static pln_status run_list_on(pln_execution *x, const pln_pass *pass,
                              const pln_module *module, uint32_t index,
                              pln_graph **out) {
  pln_graph *old = pln_module_function_at(module, index);
  pln_pass_target s = {pln_module_retain(module), pln_graph_retain(old), index};
  pln_applications *a = x->engine->applications;
  uint32_t shift = a->shift;
  a->shift += a->runs - x->runs;
  pln_status status = pln_run_elements(x, pass, 0, pass->def->n_elements, &s);
  a->shift = shift;
  if (status == PLN_OK && s.function != old)
    *out = pln_graph_retain(s.function);
  pln_pass_target_release(&s);
  return status;
}

/* Runs the list on one function in a child engine. */
static pln_status run_list_in_child(const pln_parallel_job *work,
                                    pln_work_item *item) {
  pln_execution x = {.engine = item->engine,
                     .context = item->context,
                     .position = work->position,
                     .iteration = work->iteration,
                     .depth = work->depth,
                     .runs = work->engine->applications->runs};
  pln_status status =
      run_list_on(&x, work->pass, item->module, item->index, &item->result);
  item->changes = x.version;
  pln_mem_free(x.engine, x.fresh, x.cap_fresh * sizeof *x.fresh);
  pln_idmap_free(x.counts);
  return status;
}

static bool takes_any(const pln_pass *pass, const pln_graph *function) {
  (void)pass;
  (void)function;
  return true;
}

/* Starts worker threads, unless instruments, selectors or the cache must see
 * the runs one by one. */
static pln_status start_workers(const pln_execution *x, const pln_pass *pass,
                                const pln_module *module, pln_parallel **out) {
  *out = NULL;
  if (!pln_pass_is_parallel(pass) || pln_pass_writes_log(pass, x->context) ||
      x->context->counts || x->context->instruments || x->context->limits.cache)
    return PLN_OK;
  const pln_parallel_job work = {.engine = x->engine,
                                 .context = x->context,
                                 .module = module,
                                 .pass = pass,
                                 .depth = x->depth,
                                 .position = x->position,
                                 .iteration = x->iteration,
                                 .takes = takes_any,
                                 .run = run_list_in_child};
  return pln_parallel_run(&work, out);
}

/* Runs the functions that no worker has done. */
static pln_status run_remaining(pln_execution *x, const pln_pass *pass,
                                pln_parallel *parallel,
                                const pln_pass_target *s, pln_graph **results) {
  for (uint32_t i = 0; i < s->module->count; i++) {
    bool taken;
    PLN_TRY(pln_parallel_take(parallel, i, NULL, &results[i], &taken));
    if (taken)
      x->version += pln_parallel_changes(parallel, i);
    else
      PLN_TRY(run_list_on(x, pass, s->module, i, &results[i]));
  }
  return PLN_OK;
}

static pln_status run_on_all(pln_execution *x, const pln_pass *pass,
                             pln_pass_target *s, pln_graph **results) {
  bool changed = false;
  pln_parallel *parallel;
  PLN_TRY(start_workers(x, pass, s->module, &parallel));
  pln_status status = run_remaining(x, pass, parallel, s, results);
  pln_parallel_free(parallel);
  PLN_TRY(status);
  for (uint32_t i = 0; i < s->module->count; i++)
    changed |= results[i] != NULL;
  if (!changed)
    return PLN_OK;
  pln_module *module;
  PLN_TRY(pln_module_replace(s->module, results, &module));
  pln_pass_target_set_module(s, module);
  return PLN_OK;
}

pln_status pln_run_per_function(pln_execution *x, const pln_pass *pass,
                                pln_pass_target *s) {
  uint32_t n = s->module->count, outer = x->runs;
  if (s->function)
    return pln_run_elements(x, pass, 0, pass->def->n_elements, s);
  pln_graph **results = pln_mem_zeroed(x->engine, n * sizeof *results);
  if (n && !results)
    return pln_nomem(x->engine);
  x->runs = x->engine->applications->runs;
  pln_status status = run_on_all(x, pass, s, results);
  x->runs = outer;
  for (uint32_t i = 0; i < n; i++)
    pln_graph_release(results[i]);
  pln_mem_free(x->engine, results, n * sizeof *results);
  return status;
}
