/* primitive.c: runs one primitive pass (module, function or prim_func) and
 * checks its result.
 *
 * Called by execute.c. Invariants: the result is the input module itself when
 * nothing changed, also if the pass returned an equal copy (spans count for
 * passes that declare it, pln_pass_spec.changes_spans); every changed function
 * has been verified; all functions of one run see the old module. */

#include <stdio.h>
#include <time.h>

#include "ir/analysis/features.h"
#include "ir/compare/equal.h"
#include "ir/infer/check_uses.h"
#include "ir/tir/tir.h"
#include "pass/cache/cache.h"
#include "pass/parallel/parallel.h"

/* "pass 'FoldConstant', function @main" */
static size_t write_place(void *ud, char *text, size_t size) {
  const pln_pass_run *run = ud;
  const char *pass = pln_pass_name(run->pass);
  int n;
  if (!run->function)
    n = snprintf(text, size, "pass '%s'", pass);
  else
    n = snprintf(text, size, "pass '%s', function @%s", pass,
                 pln_symbol_text(run->engine, pln_run_name(run)).data);
  return n < 0 ? 0 : (size_t)n;
}

/* ----------------------------------------------------------- which functions
 */

static bool is_loop_level(const pln_graph *g) {
  return g->nodes[g->root].kind == PLN_PRIM_FUNC;
}

/* TVM's AsOptimizableFunctionNode. */
static bool is_passed_over(const pln_graph *g) {
  pln_attrs attrs = pln_node_attrs(g, g->root);
  if (!attrs)
    return false;
  return pln_attrs_int(g->engine, attrs, "SkipOptimization", 0) != 0 ||
         pln_attrs_int(g->engine, attrs, "Extern", 0) != 0 ||
         pln_attrs_find(g->engine, attrs, "Compiler") != NULL;
}

bool pln_pass_applies(const pln_graph *g) {
  return !is_loop_level(g) && !is_passed_over(g);
}

bool pln_primitive_applies(const pln_pass *pass, const pln_graph *g) {
  if (pass->def->kind == PLN_PASS_PRIM_FUNC)
    return is_loop_level(g);
  return pln_pass_applies(g);
}

/* Counter: functions, or modules, that a pass skips for their features. */
#define SKIPPED "skipped for a feature"

/* "dynamic shapes", "refs" and so on: the first feature in `bits`. */
static const char *first_feature(uint32_t bits) {
  uint32_t i = 0;
  while (!(bits >> i & 1))
    i++;
  return pln_feature_names[i];
}

/* *skips: the program has one of the features that the pass does not handle,
 * and is to be left as it is. PLN_ERR_UNSUPPORTED if the pass refuses it. */
static pln_status check_features(pln_pass_run *run, uint32_t features,
                                 bool *skips) {
  uint32_t unhandled = features & run->pass->def->unhandled;
  *skips = unhandled && run->pass->def->skips_unhandled;
  if (*skips)
    return pln_run_count(run, SKIPPED, 1);
  if (!unhandled)
    return PLN_OK;
  return pln_diag_error(run->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "the pass does not handle the feature '%s', which the "
                        "program uses",
                        first_feature(unhandled));
}

static pln_status skips_function(pln_pass_run *run, const pln_graph *function,
                                 bool *skips) {
  uint32_t features = 0;
  *skips = false;
  if (!run->pass->def->unhandled)
    return PLN_OK;
  PLN_TRY(pln_graph_features(function, &features));
  return check_features(run, features, skips);
}

static pln_status skips_module(pln_pass_run *run, bool *skips) {
  uint32_t all = 0, features;
  *skips = false;
  if (!run->pass->def->unhandled)
    return PLN_OK;
  for (uint32_t i = 0; i < run->module->count; i++) {
    PLN_TRY(
        pln_graph_features(pln_module_function_at(run->module, i), &features));
    all |= features;
  }
  return check_features(run, all, skips);
}

/* ---------------------------------------------------------- check the result
 */

/* Returns false if the graphs have the same kinds node by node but differ in
 * types: the pass only inferred types, and pln_graph_equal ignores inferred
 * types. Returns true in every other case. */
static bool same_types(const pln_graph *a, const pln_graph *b) {
  bool same = true;
  for (pln_ref i = 0; i < a->n_nodes; i++) {
    if (a->nodes[i].kind != b->nodes[i].kind)
      return true;
    same = same && a->nodes[i].type == b->nodes[i].type;
  }
  return same;
}

/* Compares what pln_graph_equal does not: the numbers of nodes and scopes,
 * unused ones included, and inferred types. */
static bool same_extent(const pln_graph *a, const pln_graph *b) {
  return a->n_nodes == b->n_nodes && a->n_scopes == b->n_scopes &&
         same_types(a, b);
}

/* True if a pass whose result includes spans has changed one. */
static bool respanned(const pln_pass_run *run, const pln_graph *old,
                      const pln_graph *result) {
  return run->pass->def->changes_spans && !pln_graph_same_spans(old, result);
}

/* A PrimFunc with other variables is another one (tir.ConvertSSA): equality
 * does not ask which variable it is that a loop binds. */
static bool same_variables(const pln_graph *a, const pln_graph *b) {
  if (a->nodes[a->root].kind != PLN_PRIM_FUNC)
    return true;
  for (pln_ref i = 0; i < a->n_nodes; i++)
    if (a->nodes[i].kind == PLN_VAR && b->nodes[i].kind == PLN_VAR &&
        a->nodes[i].data != b->nodes[i].data)
      return false;
  return true;
}

/* False if the functions are not equal, or not for this pass. */
static bool may_equal(const pln_pass_run *run, const pln_graph *old,
                      const pln_graph *result) {
  return old == result ||
         (same_extent(old, result) && same_variables(old, result) &&
          !respanned(run, old, result));
}

static bool verifies(const pln_pass_run *run, bool changed) {
  return run->context->limits.verify == PLN_VERIFY_ALL ||
         (changed && run->context->limits.verify == PLN_VERIFY_CHANGED);
}

/* Counts an equal copy. The note names the first such function. */
static pln_status count_equal(pln_pass_run *run) {
  if (!run->equal)
    run->equal = pln_run_name(run);
  return pln_run_count(run, PLN_EQUAL_COPY, 1);
}

/* A PrimFunc that had free variables may keep them. */
static pln_status verify_function(const pln_pass_run *run, const pln_graph *old,
                                  const pln_graph *function) {
  bool open;
  PLN_TRY(pln_tir_is_open(old, &open));
  PLN_TRY(open ? pln_graph_verify(function)
               : pln_graph_verify_closed(function));
  PLN_TRY(pln_module_check_names(run->module, function));
  return pln_graph_check_constructors(function, run->module);
}

/* Replaces an equal copy by the old function. */
static pln_status check_function_result(pln_pass_run *run, const pln_graph *old,
                                        pln_graph **result) {
  bool equal = false;
  if (*result == old)
    return verifies(run, false) ? verify_function(run, old, old) : PLN_OK;
  if (verifies(run, true))
    PLN_TRY(verify_function(run, old, *result));
  if (may_equal(run, old, *result))
    PLN_TRY(pln_graph_equal(old, old->root, *result, (*result)->root, false,
                            &equal));
  if (!equal)
    return PLN_OK;
  pln_graph_release(*result);
  *result = pln_graph_retain(old);
  return count_equal(run);
}

static bool may_be_copy(const pln_pass_run *run, const pln_module *result) {
  const pln_module *old = run->module;
  if (old->count != result->count)
    return false;
  for (uint32_t i = 0; i < old->count; i++)
    if (pln_module_name_at(old, i) != pln_module_name_at(result, i) ||
        !may_equal(run, pln_module_function_at(old, i),
                   pln_module_function_at(result, i)))
      return false;
  return true;
}

static pln_status check_module_result(pln_pass_run *run, pln_module **result) {
  bool equal = false;
  if (*result == run->module)
    return verifies(run, false) ? pln_module_verify_result(*result, run->module)
                                : PLN_OK;
  if (verifies(run, true))
    PLN_TRY(pln_module_verify_result(*result, run->module));
  if (may_be_copy(run, *result))
    PLN_TRY(pln_module_equal(run->module, *result, &equal));
  if (!equal)
    return PLN_OK;
  pln_module_release(*result);
  *result = pln_module_retain(run->module);
  return count_equal(run);
}

/* ------------------------------------------------------------------ running */

static pln_status foreign(const pln_pass_run *run, const char *what) {
  return pln_diag_error(run->engine, PLN_ERR_ARGUMENT, NULL,
                        "the %s that it gives belongs to another engine", what);
}

static pln_status run_module(pln_pass_run *run, pln_module **out) {
  PLN_TRY(run->pass->def->run(run));
  if (run->new_module && run->new_module->engine != run->engine)
    return foreign(run, "module");
  if (!run->new_module)
    run->new_module = pln_module_retain(run->module);
  PLN_TRY(check_module_result(run, &run->new_module));
  *out = run->new_module;
  run->new_module = NULL;
  return PLN_OK;
}

/* Takes the result that a worker thread computed, if it succeeded. */
static pln_status take_parallel_result(pln_pass_run *run, const pln_graph *old,
                                       bool *taken, pln_graph **out) {
  *out = NULL;
  PLN_TRY(pln_parallel_take(run->parallel, run->index, run, out, taken));
  if (*taken && !*out)
    *out = pln_graph_retain(old);
  return PLN_OK;
}

static pln_status run_function(pln_pass_run *run, const pln_graph *old,
                               pln_graph **out) {
  bool taken;
  PLN_TRY(take_parallel_result(run, old, &taken, out));
  if (taken)
    return PLN_OK;
  PLN_TRY(pln_poll(run->engine));
  PLN_TRY(run->pass->def->run(run));
  if (run->remove) {
    PLN_TRY(pln_run_drop(run, run->index));
    *out = pln_graph_retain(old);
    return PLN_OK;
  }
  if (run->new_function && run->new_function->engine != run->engine)
    return foreign(run, "function");
  if (!run->new_function)
    run->new_function = pln_graph_retain(old);
  PLN_TRY(check_function_result(run, old, &run->new_function));
  *out = run->new_function;
  run->new_function = NULL;
  return PLN_OK;
}

static pln_status run_either(pln_pass_run *run, const pln_pass_target *in,
                             pln_pass_target *out) {
  *out = (pln_pass_target){0};
  return in->function ? run_function(run, in->function, &out->function)
                      : run_module(run, &out->module);
}

/* Returns the cached result; runs the body and caches its result if there is
 * none. */
static pln_status run_or_find(pln_pass_run *run, const pln_pass_target *in,
                              pln_pass_target *out) {
  bool found;
  pln_cache_mark mark;
  if (!pln_cache_works(run))
    return run_either(run, in, out);
  PLN_TRY(pln_cache_find(run, in, &found, out));
  if (found)
    return PLN_OK;
  pln_cache_begin(run, &mark);
  PLN_TRY(run_either(run, in, out));
  pln_status status = pln_cache_keep(run, &mark, in, out);
  if (status != PLN_OK)
    pln_pass_target_release(out);
  return status;
}

static pln_status module_pass(pln_pass_run *run, pln_module **out) {
  bool skips;
  PLN_TRY(skips_module(run, &skips));
  if (skips) {
    *out = pln_module_retain(run->module);
    return PLN_OK;
  }
  pln_pass_target result, in = {.module = (pln_module *)(uintptr_t)run->module};
  PLN_TRY(run_or_find(run, &in, &result));
  *out = result.module;
  return PLN_OK;
}

/* *out is the new graph of function `index`, or NULL if it is unchanged. */
static pln_status one_function(pln_pass_run *run, uint32_t index,
                               const pln_graph *old, pln_graph **out) {
  pln_pass_target result, in = {.function = (pln_graph *)(uintptr_t)old};
  pln_rule_run *at = &run->engine->applications->at;
  bool skips;
  run->index = index;
  run->function = old;
  at->before = at->considered;
  *out = NULL;
  if (!pln_primitive_applies(run->pass, old))
    return PLN_OK;
  PLN_TRY(skips_function(run, old, &skips));
  if (skips)
    return PLN_OK;
  PLN_TRY(run_or_find(run, &in, &result));
  if (result.function != old)
    *out = result.function;
  else
    pln_graph_release(result.function);
  return PLN_OK;
}

/* Infers the callers of changed functions again. A caller whose own signature
 * changes puts its callers on the list too. Each caller inferred again is
 * verified. Effects only grow: a caller may keep an effect that its callee has
 * lost. */
static pln_status retype_callers(const pln_module *module,
                                 pln_graph *const *results, pln_module *copy) {
  bool *replaced = pln_mem_new(copy->engine, copy->count);
  if (!replaced)
    return pln_nomem(copy->engine);
  for (uint32_t i = 0; i < copy->count; i++)
    replaced[i] = results[i] != NULL;
  pln_status status = pln_module_reinfer_callers(copy, module, replaced);
  for (uint32_t i = 0; i < copy->count && status == PLN_OK; i++)
    if (replaced[i] && !results[i])
      status = pln_module_verify_function(copy, i);
  pln_mem_free(copy->engine, replaced, copy->count);
  return status;
}

/* Callers are inferred again only if a signature changed or an effect grew. */
static pln_status put_results(const pln_module *module,
                              pln_graph *const *results, pln_module *copy) {
  bool concerns = false;
  for (uint32_t i = 0; i < module->count; i++) {
    if (!results[i])
      continue;
    const pln_graph *old = pln_module_function_at(module, i), *new = results[i];
    concerns |= pln_signature(old) != pln_signature(new) ||
                pln_node_call_effect(&old->nodes[old->root]) <
                    pln_node_call_effect(&new->nodes[new->root]);
    PLN_TRY(pln_module_set(copy, pln_module_name_at(module, i), new));
  }
  if (concerns)
    PLN_TRY(retype_callers(module, results, copy));
  for (uint32_t i = 0; i < module->count; i++)
    if (results[i])
      PLN_TRY(pln_module_check_globals(copy, i));
  return PLN_OK;
}

pln_status pln_module_replace(const pln_module *module,
                              pln_graph *const *functions, pln_module **out) {
  pln_module *copy;
  PLN_TRY(pln_module_copy(module, &copy));
  pln_status status = put_results(module, functions, copy);
  if (status == PLN_OK)
    *out = copy;
  else
    pln_module_release(copy);
  return status;
}

/* Exits the contexts that a body entered and did not exit, innermost first. */
static pln_status leave_contexts(const pln_context_stack *stack, uint32_t n,
                                 pln_status status) {
  while (stack->n > n) {
    pln_status left = pln_context_exit(stack->entered[stack->n - 1]);
    if (status == PLN_OK)
      status = left;
  }
  return status;
}

/* Runs the pass on one function in a child engine and hands over its counters.
 */
static pln_status run_function_in_child(const pln_parallel_job *work,
                                        pln_work_item *share) {
  pln_pass_run run = {.engine = share->engine,
                      .pass = pln_pass_clone_of(share->engine, work->pass),
                      .context = share->context,
                      .module = share->module};
  const pln_graph *old = pln_module_function_at(share->module, share->index);
  pln_diag_place(share->engine, (pln_place){write_place, &run});
  pln_status status = one_function(&run, share->index, old, &share->result);
  status = leave_contexts(share->engine->passes->stack, 0, status);
  pln_diag_place(share->engine, (pln_place){0});
  share->removed = run.removed != NULL;
  share->reads_module = run.reads_module;
  share->counters = run.counters;
  share->n_counters = run.n_counters;
  share->cap_counters = run.cap_counters;
  run.cap_counters = 0;
  run.counters = NULL;
  pln_run_free(&run);
  return status;
}

/* Collects results in module order, whichever thread computed them. */
static pln_status each_function(pln_pass_run *run, pln_graph **results,
                                bool *changed) {
  for (uint32_t i = 0; i < run->module->count; i++) {
    const pln_graph *old = pln_module_function_at(run->module, i);
    PLN_TRY(one_function(run, i, old, &results[i]));
    *changed |= results[i] != NULL;
  }
  return PLN_OK;
}

/* Removes the marked functions from *module. It fails if a remaining function
 * refers to one of them. */
static pln_status drop_removed(const pln_pass_run *run, pln_module **module) {
  pln_module *whole = *module;
  pln_status status = pln_module_drop(whole, run->removed, module);
  pln_module_release(whole);
  if (status != PLN_OK || run->context->limits.verify == PLN_VERIFY_NONE)
    return status;
  status = pln_module_verify_result(*module, run->module);
  if (status != PLN_OK)
    pln_module_release(*module);
  return status;
}

/* Starts worker threads for the functions whose results are not in the cache.
 */
static pln_status start_workers(pln_pass_run *run) {
  uint32_t n = run->module->count;
  pln_parallel_job work = {.engine = run->engine,
                           .context = run->context,
                           .module = run->module,
                           .pass = run->pass,
                           .takes = pln_primitive_applies,
                           .run = run_function_in_child};
  if (!pln_pass_is_parallel(run->pass) ||
      pln_pass_writes_log(run->pass, run->context))
    return PLN_OK;
  if (!pln_cache_works(run) || run->context->limits.threads == 1)
    return pln_parallel_run(&work, &run->parallel);
  bool *done = pln_mem_new(run->engine, n * sizeof *done);
  if (n && !done)
    return pln_nomem(run->engine);
  for (uint32_t i = 0; i < n; i++)
    done[i] = pln_cache_may_have(
        run,
        &(pln_pass_target){.function = pln_module_function_at(run->module, i)});
  work.done = done;
  pln_status status = pln_parallel_run(&work, &run->parallel);
  pln_mem_free(run->engine, done, n * sizeof *done);
  return status;
}

static pln_status all_functions(pln_pass_run *run, pln_graph **results,
                                pln_module **out) {
  bool changed = false;
  PLN_TRY(start_workers(run));
  pln_status status = each_function(run, results, &changed);
  pln_parallel_free(run->parallel);
  run->parallel = NULL;
  PLN_TRY(status);
  run->function = NULL; /* from here on messages name callers themselves */
  if (changed)
    PLN_TRY(pln_module_replace(run->module, results, out));
  else
    *out = pln_module_retain(run->module);
  return run->removed ? drop_removed(run, out) : PLN_OK;
}

/* True if all functions of the module are of the other level. */
static bool applies_to_none(const pln_pass_run *run) {
  const pln_module *m = run->module;
  if (run->pass->def->kind == PLN_PASS_PRIM_FUNC)
    return m->n_prim_funcs == 0;
  return m->n_prim_funcs == m->count;
}

static pln_status function_pass(pln_pass_run *run, pln_module **out) {
  pln_graph *few[8] = {NULL};
  pln_graph **results = few;
  uint32_t n = run->module->count;
  if (applies_to_none(run)) {
    *out = pln_module_retain(run->module);
    return PLN_OK;
  }
  if (n > PLN_COUNT(few))
    results = pln_mem_zeroed(run->engine, n * sizeof *results);
  if (!results)
    return pln_nomem(run->engine);
  pln_status status = all_functions(run, results, out);
  for (uint32_t i = 0; i < n; i++)
    pln_graph_release(results[i]);
  if (results != few)
    pln_mem_free(run->engine, results, n * sizeof *results);
  return status;
}

/* ------------------------------------------------------------------- report */

static uint32_t count_nodes(const pln_module *module) {
  uint64_t n = module->n_nodes;
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static pln_status report_primitive_run(const pln_execution *x,
                                       const pln_pass_run *run, double begin,
                                       bool changed, uint32_t nodes) {
  pln_report_row row = {.pass = pln_pass_name(run->pass),
                        .changed = changed,
                        .depth = x->depth,
                        .nodes = nodes,
                        .run = run->number,
                        .applications = x->engine->applications->at.considered};
  PLN_TRY(pln_run_counts(run, &row.counts));
  if (run->equal)
    row.equal = pln_symbol_text(run->engine, run->equal).data;
  row.seconds = pln_seconds_now() - begin;
  return pln_report_add(run->engine, &row);
}

static uint32_t target_nodes(const pln_pass_target *s) {
  return s->function ? s->function->n_nodes : count_nodes(s->module);
}

/* Runs the body; replaces the target's module or function if it changed. */
static pln_status run_body(pln_pass_run *run, pln_pass_target *s) {
  pln_module *module = NULL;
  pln_graph *function = NULL;
  pln_pass_kind kind = (pln_pass_kind)run->pass->def->kind;
  if (kind == PLN_PASS_MODULE && s->function)
    return pln_diag_error(run->engine, PLN_ERR_ARGUMENT, NULL,
                          "pass '%s' is a module pass; functions{...} takes "
                          "passes over functions",
                          pln_pass_name(run->pass));
  if (s->function) {
    PLN_TRY(one_function(run, s->index, s->function, &function));
    if (function)
      pln_pass_target_set_function(s, function);
    return PLN_OK;
  }
  PLN_TRY(kind == PLN_PASS_MODULE ? module_pass(run, &module)
                                  : function_pass(run, &module));
  pln_pass_target_set_module(s, module);
  return PLN_OK;
}

/* Runs the body within the limits of the context. */
static pln_status run_guarded(pln_pass_run *run, const pln_pass_target *before,
                              pln_pass_target *s) {
  const pln_limits *limits = &run->context->limits;
  size_t mark = pln_diag_count(run->engine);
  pln_guard outer;
  PLN_TRY(pln_poll(run->engine));
  PLN_TRY(pln_guard_begin(run->engine, limits, &outer));
  pln_status status = run_body(run, s);
  PLN_TRY(pln_guard_end(run->engine, &outer, mark, status));
  if (!limits->nodes && limits->growth <= 0)
    return PLN_OK;
  run->function = s->function; /* messages name this function */
  return pln_limits_check(run->engine, limits, target_nodes(before),
                          target_nodes(s));
}

pln_status pln_run_primitive(pln_execution *x, const pln_pass *pass,
                             pln_pass_target *s) {
  pln_pass_target before = pln_pass_target_copy(s);
  pln_pass_run run = {.engine = x->engine,
                      .pass = pln_pass_clone_of(x->engine, pass),
                      .context = x->context,
                      .module = before.module,
                      .per_function = before.function != NULL};
  double begin = pln_seconds_now();
  pln_rule_run outer;
  pln_rule_run_begin(x->engine, pass->name, &outer);
  run.number = x->engine->applications->at.number;
  const pln_context_stack *stack = x->engine->passes->stack;
  uint32_t entered = stack->n;
  pln_place place = pln_diag_place(x->engine, (pln_place){write_place, &run});
  pln_status status = run_guarded(&run, &before, s);
  status = leave_contexts(stack, entered, status);
  pln_diag_place(x->engine, place);
  bool changed = !pln_pass_target_same(&before, s);
  x->version += changed;
  if (status == PLN_OK)
    status = report_primitive_run(x, &run, begin, changed, target_nodes(s));
  pln_rule_run_end(x->engine, &outer);
  pln_run_free(&run);
  pln_pass_target_release(&before);
  return status;
}
