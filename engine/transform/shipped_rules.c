/* shipped_rules.c: applies the rules of a pass, as its context says. Called by
 * SimplifyExpr, SimplifyExprPostAlterOp, FuseOnnxOps, and by the binding for
 * pl.why_not. */

#include "transform/shipped_rules.h"

#include "ir/provenance/rule_application.h"
#include "rule/library.h"
#include "transform/simplify/rule.h"

pln_status pln_shipped_rules(pln_engine *engine, const char *pass,
                             const pln_rule_set **out) {
  return pln_library_rules(engine, pass, pln_simplify_find_native, out);
}

pln_status pln_run_rule_options(pln_pass_run *run, pln_attr *only,
                                pln_rule_options *options) {
  pln_attr exact, lets;
  PLN_TRY(pln_context_config_value(run->context, "rules.exact", &exact));
  PLN_TRY(pln_context_config_value(run->context, "rules.lets", &lets));
  PLN_TRY(pln_context_config_value(run->context, "rules.only", only));
  options->exact = exact.v.i != 0;
  options->lets = lets.v.i != 0;
  options->only = only;
  if (options->opset == 0) {
    options->opset = pln_module_opset(run->module);
    options->asks_opset = &run->reads_module;
  }
  return PLN_OK;
}

/* While rules are observed, rules that never matched are reported too. */
static pln_status report_rules(pln_pass_run *run, const pln_rule_set *set,
                               const pln_rule_counter *counts) {
  bool watched = pln_rules_watched(run->engine);
  for (uint32_t i = 0; i < pln_rule_set_count(set); i++) {
    const char *name = pln_rule_set_at(set, i)->name;
    if (watched)
      PLN_TRY(pln_rule_tried(run->engine, name, 0, 0));
    if (counts[i].applied)
      PLN_TRY(pln_run_count(run, name, counts[i].applied));
  }
  return PLN_OK;
}

static pln_status apply_rules(pln_pass_run *run, const pln_rule_set *set,
                              const pln_graph *function,
                              const pln_rule_options *options,
                              pln_graph **out) {
  PLN_TRY(pln_rules_apply(set, function, options, out));
  pln_status status = report_rules(run, set, options->counts);
  if (status != PLN_OK)
    pln_graph_release(*out);
  return status;
}

static bool is_listed(const pln_attr *list, pln_slice name) {
  for (uint32_t i = 0; i < list->count; i++)
    if (pln_slice_equal(list->v.strings[i], name))
      return true;
  return false;
}

/* Names in both lists. A list without names that the set has: no rule runs. */
static void intersect(const pln_attr *own, const pln_attr *only,
                      pln_slice *names, pln_attr *out) {
  *out = (pln_attr){.kind = PLN_ATTR_STRINGS, .v.strings = names};
  for (uint32_t i = 0; i < own->count; i++)
    if (is_listed(only, own->v.strings[i]))
      names[out->count++] = own->v.strings[i];
  if (out->count == 0)
    names[out->count++] = pln_text("");
}

static pln_status apply_counted(pln_pass_run *run, const pln_rule_set *set,
                                const pln_graph *function,
                                pln_rule_options *options, pln_graph **out) {
  size_t size = (pln_rule_set_count(set) + 1) * sizeof *options->counts;
  options->counts = pln_mem_zeroed(run->engine, size);
  if (!options->counts)
    return pln_nomem(run->engine);
  pln_status status = apply_rules(run, set, function, options, out);
  pln_mem_free(run->engine, options->counts, size);
  return status;
}

pln_status pln_run_shipped_rules(pln_pass_run *run, const char *pass,
                                 const pln_graph *function,
                                 const pln_rule_options *options,
                                 pln_graph **out) {
  const pln_rule_set *set;
  pln_rule_options own = *options;
  pln_attr only, both;
  pln_slice *names = NULL;
  size_t size = options->only ? (options->only->count + 1) * sizeof *names : 0;
  PLN_TRY(pln_run_rule_options(run, &only, &own));
  PLN_TRY(pln_shipped_rules(run->engine, pass, &set));
  if (size && !(names = pln_mem_new(run->engine, size)))
    return pln_nomem(run->engine);
  if (names && only.count)
    intersect(options->only, &only, names, &both);
  if (names)
    own.only = only.count ? &both : options->only;
  pln_status status = apply_counted(run, set, function, &own, out);
  pln_mem_free(run->engine, names, size);
  return status;
}
