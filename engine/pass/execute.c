/* execute.c: applies a pass to a module: hooks, body, transaction.
 *
 * Called by users through pln_pass_apply, and by sequentials for their
 * elements. What always holds: a failure leaves the module as it was, because
 * modules are never changed and the result is handed over at the very end. */

#include "pass/pass.h"

/* Passes that run passes: no more than this many pln_pass_apply at once, and
 * sequentials and required passes no deeper in one of them. */
enum { MAX_RUNNING = 100, MAX_NESTING = 400 };

static pln_status too_deep(pln_engine *engine, const pln_pass *pass,
                           uint32_t limit) {
  return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                        "pass '%s': passes run passes more than %u deep",
                        pln_pass_name(pass), (unsigned)limit);
}

static pln_status run_body(pln_execution *x, const pln_pass *pass,
                           const pln_module *module, pln_module **out) {
  if (pln_pass_is_sequential(pass)) {
    if (x->depth >= MAX_NESTING)
      return too_deep(x->engine, pass, MAX_NESTING);
    x->depth++;
    pln_status status = pln_run_sequential(x, pass, module, out);
    x->depth--;
    return status;
  }
  PLN_TRY(pln_run_leaf(x, pass, module, out));
  if (*out != module)
    x->version++;
  return PLN_OK;
}

/* With instruments around it. */
static pln_status run_hooked(pln_execution *x, const pln_pass *pass,
                             const pln_module *module, pln_module **out) {
  bool run;
  pln_module *result;
  PLN_TRY(pln_hooks_should_run(x->context, module, pass, &run));
  if (!run) {
    *out = pln_module_retain(module);
    return PLN_OK;
  }
  PLN_TRY(pln_hooks_before(x->context, module, pass));
  PLN_TRY(run_body(x, pass, module, &result));
  pln_status status = pln_hooks_after(x->context, result, pass);
  if (status == PLN_OK)
    *out = result;
  else
    pln_module_release(result);
  return status;
}

pln_status pln_execute(pln_execution *x, const pln_pass *pass,
                       const pln_module *module, pln_module **out) {
  if (!x->context->instruments)
    return run_body(x, pass, module, out);
  return run_hooked(x, pass, module, out);
}

pln_status pln_pass_apply(pln_pass *pass, const pln_module *module,
                          pln_module **out) {
  pln_engine *engine = pass->engine;
  struct pln_registry *r = engine->passes;
  if (pln_module_engine(module) != engine)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "pass '%s': the module belongs to another engine",
                          pln_pass_name(pass));
  if (r->running >= MAX_RUNNING)
    return too_deep(engine, pass, MAX_RUNNING);
  if (!r->running++)
    pln_report_clear(engine);
  pln_execution x = {.engine = engine,
                     .context = pln_context_retain(pln_context_current(engine)),
                     .depth = r->running - 1};
  pln_pass_retain(pass); /* a body may drop the last handle */
  pln_status status = pln_execute(&x, pass, module, out);
  pln_pass_release(pass);
  pln_context_release(x.context);
  pln_mem_free(engine, x.fresh, x.cap_fresh * sizeof *x.fresh);
  r->running--;
  return status;
}
