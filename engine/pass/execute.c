/* execute.c: applies a pass to a module: hooks, body, transaction.
 *
 * Called by users through pln_pass_apply, and by sequentials for their
 * elements. Invariant: a failed application leaves no trace, because modules
 * are immutable and the result is returned only at the end. */

#include "ir/provenance/rule_application.h"
#include "pass/parallel/parallel.h"

/* Bounds the C stack: pln_pass_apply calls nested in passes that run passes,
 * and the depth of sequentials and required passes within one application. */
enum { MAX_RUNNING = 100, MAX_NESTING = 400 };

static pln_status too_deep(pln_engine *engine, const pln_pass *pass,
                           uint32_t limit) {
  return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                        "pass '%s': passes run passes more than %u deep",
                        pln_pass_name(pass), (unsigned)limit);
}

static pln_status run_form(pln_execution *x, const pln_pass *pass,
                           pln_pass_target *s) {
  switch ((pln_combinator)pass->def->form) {
  case PLN_COMBINATOR_FIXPOINT: return pln_run_fixpoint(x, pass, s);
  case PLN_COMBINATOR_TRY: return pln_run_try(x, pass, s);
  case PLN_COMBINATOR_PER_FUNCTION: return pln_run_per_function(x, pass, s);
  case PLN_COMBINATOR_NONE:
  case PLN_COMBINATOR_SEQUENTIAL:
  case PLN_COMBINATOR_IF_CHANGED: break;
  }
  return pln_run_elements(x, pass, 0, pass->def->n_elements, s);
}

static pln_status run_body(pln_execution *x, const pln_pass *pass,
                           pln_pass_target *s) {
  if (!pln_pass_is_sequential(pass))
    return pln_run_primitive(x, pass, s);
  if (x->depth >= MAX_NESTING)
    return too_deep(x->engine, pass, MAX_NESTING);
  x->depth++;
  pln_status status = run_form(x, pass, s);
  x->depth--;
  return status;
}

/* Hooks get the module. Inside functions{..} it contains the current function
 * as it is now. */
static pln_status run_after(pln_execution *x, const pln_pass *pass,
                            const pln_pass_target *s) {
  pln_module *module;
  PLN_TRY(pln_pass_target_module(s, &module));
  pln_status status = pln_hooks_after(x->context, module, pass);
  pln_module_release(module);
  return status;
}

static pln_status run_before(pln_execution *x, const pln_pass *pass,
                             const pln_pass_target *s, bool *run) {
  pln_module *module;
  PLN_TRY(pln_pass_target_module(s, &module));
  pln_status status = pln_hooks_should_run(x->context, module, pass, run);
  if (status == PLN_OK && *run)
    status = pln_hooks_before(x->context, module, pass);
  pln_module_release(module);
  return status;
}

/* Returns true for a run beyond `bisect.passes`, the limit set by a search for
 * the failing pass. */
static bool is_past(const pln_execution *x, const pln_pass *pass) {
  return !pln_pass_is_sequential(pass) &&
         !pln_run_allowed(x->engine->applications);
}

pln_status pln_execute(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) {
  bool run;
  if (is_past(x, pass))
    return PLN_OK;
  if (!x->context->instruments)
    return run_body(x, pass, s);
  PLN_TRY(run_before(x, pass, s, &run));
  if (!run)
    return PLN_OK;
  PLN_TRY(run_body(x, pass, s));
  return run_after(x, pass, s);
}

static void begin_outermost(pln_engine *engine) {
  pln_report_clear(engine);
  pln_failure_clear(engine);
  pln_applications_reset(engine, &pln_context_current(engine)->limits.rules);
}

/* Reports notes on runs that succeeded but did not do what the pass declares.
 */
static void report_notes(pln_engine *engine) {
  if (engine->passes->running > 1 || engine->parent)
    return;
  pln_report_note_copies(engine);
  pln_rules_report(engine);
}

pln_status pln_pass_apply(pln_pass *pass, const pln_module *module,
                          pln_module **out) {
  pln_engine *engine = pass->engine;
  struct pln_registry *r = engine->passes;
  if (pln_module_engine(module) != engine)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "pass '%s': the module belongs to another engine",
                          pln_pass_name(pass));
  if (r->closed)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "pass '%s': %s",
                          pln_pass_name(pass), r->closed);
  if (r->running >= MAX_RUNNING)
    return too_deep(engine, pass, MAX_RUNNING);
  if (!r->running++)
    begin_outermost(engine);
  pln_stoppable_begin(engine);
  pln_execution x = {.engine = engine,
                     .context = pln_context_retain(pln_context_current(engine)),
                     .depth = r->running - 1};
  pln_pass_target s = {.module = pln_module_retain(module)};
  pln_pass_retain(pass); /* the body may release the last handle */
  pln_pass_target before = pln_pass_target_copy(&s);
  pln_status status = pln_execute(&x, pass, &s);
  if (status == PLN_OK)
    *out = pln_module_retain(s.module);
  else
    pln_position_note_failure(&x, pass, &before);
  if (status == PLN_ERR_NOMEM)
    pln_cache_clear(engine); /* frees the memory that the cache holds */
  else if (status == PLN_OK)
    report_notes(engine);
  pln_pass_release(pass);
  pln_pass_target_release(&before);
  pln_pass_target_release(&s);
  pln_context_release(x.context);
  pln_mem_free(engine, x.fresh, x.cap_fresh * sizeof *x.fresh);
  pln_idmap_free(x.counts);
  pln_stoppable_end(engine);
  if (!--r->running) {
    pln_thread_pool_free(r->thread_pool);
    r->thread_pool = NULL;
  }
  return status;
}
