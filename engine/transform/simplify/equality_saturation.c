/* equality_saturation.c: EqualitySaturation: the cheapest program that rules
 * give, in whatever order and directions they are applied; and
 * GraphSubstitution, which makes one application.
 *
 * Run by the executor, once per function. Requires a verified graph. The rules
 * are those of the option `rules`, the generated ones of
 * lua/perilune/rules/substitution, and the exact ones of SimplifyExpr. What
 * is replaced are the results of scopes, and what they are computed of; nodes
 * that a let or a call with effects uses stay as they are.
 *
 *     (x * 2) / 2   =>   x     with ?x * ?a / ?b <=> ?x * (?a / ?b)
 *
 * Semantics: rule/egraph/saturate.h. */

#include "rule/egraph/saturate.h"
#include "transform/shipped_rules.h"
#include "transform/simplify/call_cost.h"

typedef struct saturation_run {
  pln_pass_run *run;
  pln_rule_set *own; /* NULL: no rules are given */
  const pln_rule_set *sets[3];
  pln_saturate_options options;
  pln_saturate_report report;
} saturation_run;

/* ---------------------------------------------------------------- the options
 */

static pln_status add_rule(saturation_run *s, pln_slice text) {
  pln_engine *e = s->run->engine;
  size_t size = text.size + 1;
  char *copy = pln_mem_new(e, size);
  if (!copy)
    return pln_nomem(e);
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  pln_rule_info info = {.text = copy, .grows = true};
  pln_status status = pln_rule_set_add_equation(s->own, &info, NULL);
  pln_mem_free(e, copy, size);
  return status;
}

static pln_status read_rules(saturation_run *s) {
  pln_attr rules = {0};
  (void)pln_run_option(s->run, "rules", &rules);
  if (!rules.count)
    return PLN_OK;
  PLN_TRY(pln_rule_set_new(s->run->engine, "EqualitySaturation", &s->own));
  for (uint32_t i = 0; i < rules.count; i++)
    PLN_TRY(add_rule(s, rules.v.strings[i]));
  PLN_TRY(pln_rule_set_compile(s->own));
  s->sets[s->options.n_sets++] = s->own;
  return PLN_OK;
}

static pln_ecost_kind read_cost(pln_slice name) {
  static const char *const names[] = {"nodes", "flops", "bytes", "time"};
  uint32_t i = 0;
  while (i + 1 < PLN_COUNT(names) && !pln_slice_is(name, names[i]))
    i++;
  return (pln_ecost_kind)i;
}

static void read_limits(saturation_run *s) {
  pln_saturate_options *o = &s->options;
  pln_attr seconds = {0};
  (void)pln_run_option(s->run, "time_limit", &seconds);
  pln_slice cost = pln_run_string(s->run, "cost");
  o->cost = read_cost(cost);
  o->cost_fn = pln_slice_is(cost, "measured") ? pln_call_cost : NULL;
  o->node_limit = (uint32_t)pln_run_int(s->run, "node_limit");
  o->iter_limit = (uint32_t)pln_run_int(s->run, "iter_limit");
  o->k_multi = (uint32_t)pln_run_int(s->run, "k_multi");
  o->seconds = seconds.v.f;
}

static pln_status use_rules_of(saturation_run *s, const char *option,
                               const char *pass) {
  if (!pln_run_int(s->run, option))
    return PLN_OK;
  return pln_shipped_rules(s->run->engine, pass, &s->sets[s->options.n_sets++]);
}

/* Generated rules may round otherwise, unless the context wants exact ones. */
static pln_status read_options(saturation_run *s, pln_attr *only) {
  pln_saturate_options *o = &s->options;
  o->sets = s->sets;
  PLN_TRY(pln_run_rule_options(s->run, only, &o->rules));
  bool exact = o->rules.exact;
  o->rules.exact = o->rules.lenient = true;
  PLN_TRY(read_rules(s));
  if (!exact)
    o->inexact_sets = 1u << o->n_sets;
  PLN_TRY(use_rules_of(s, "generated_rules", "GraphSubstitution"));
  if (!pln_run_int(s->run, "generated_rules"))
    o->inexact_sets = 0;
  return use_rules_of(s, "shipped_rules", "SimplifyExpr");
}

/* ----------------------------------------------------------------- the report
 */

static pln_status count(saturation_run *s, const char *key, uint64_t n) {
  return n ? pln_run_count(s->run, key, (int64_t)n) : PLN_OK;
}

static pln_status report_search(saturation_run *s) {
  static const char *const stops[] = {"saturated", "stopped by iter_limit",
                                      "stopped by node_limit",
                                      "stopped by time_limit"};
  const pln_saturate_report *r = &s->report;
  PLN_TRY(count(s, "e-nodes", r->e_nodes));
  PLN_TRY(count(s, "e-classes", r->e_classes));
  PLN_TRY(count(s, "iterations", r->iterations));
  PLN_TRY(count(s, "rules", r->rules));
  PLN_TRY(count(s, "rules tried", r->rules_tried));
  PLN_TRY(count(s, "matches", r->matches));
  PLN_TRY(count(s, "refused", r->refused));
  if (s->options.once)
    return count(s, "applications", r->applications);
  for (uint32_t i = 0; i < PLN_COUNT(stops); i++)
    PLN_TRY(count(s, stops[i], r->stopped[i]));
  return PLN_OK;
}

/* The rules whose calls were taken. */
static pln_status report_rules(saturation_run *s) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < s->options.n_sets; i++)
    for (uint32_t k = 0; k < pln_rule_set_count(s->sets[i]); k++, at++)
      PLN_TRY(
          count(s, pln_rule_set_at(s->sets[i], k)->name, s->report.taken[at]));
  return PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status saturate(saturation_run *s) {
  pln_engine *e = s->run->engine;
  pln_graph *out;
  size_t n = 1;
  for (uint32_t i = 0; i < s->options.n_sets; i++)
    n += pln_rule_set_count(s->sets[i]);
  s->report.taken = pln_mem_zeroed(e, n * sizeof *s->report.taken);
  if (!s->report.taken)
    return pln_nomem(e);
  pln_status status = pln_rules_saturate(pln_run_function(s->run), &s->options,
                                         &s->report, &out);
  if (status == PLN_OK) {
    pln_run_set_function(s->run, out);
    status = report_search(s);
  }
  if (status == PLN_OK)
    status = report_rules(s);
  pln_mem_free(e, s->report.taken, n * sizeof *s->report.taken);
  return status;
}

static pln_status run_saturation(saturation_run *s) {
  pln_attr only;
  pln_status status = read_options(s, &only);
  if (status == PLN_OK && s->options.n_sets)
    status = saturate(s);
  pln_rule_set_free(s->own);
  return status;
}

pln_status pln_pass_equality_saturation(pln_pass_run *run) {
  saturation_run s = {.run = run};
  read_limits(&s);
  return run_saturation(&s);
}

/* GraphSubstitution: one application of one of the rules. Its number counts
 * those that can be made, in the order in which the matcher finds them; the
 * report says how many there are. A step of pl.tune.backtracking_search. */
pln_status pln_pass_graph_substitution(pln_pass_run *run) {
  saturation_run s = {.run = run};
  s.options.once = true;
  s.options.at = (uint64_t)pln_run_int(run, "at");
  s.options.node_limit = UINT32_MAX;
  s.options.k_multi = 1;
  return run_saturation(&s);
}
