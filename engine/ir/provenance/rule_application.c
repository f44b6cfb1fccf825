/* rule_application.c: counts rule applications by pass and rule, and refuses
 * them past a limit. Called by passes, through pln_rule_apply, and by the
 * executor.
 *
 * Invariant: the same passes on the same module request the same applications
 * in the same order, so a limit of k allows the first k of them (used by
 * bisect). */

#include "ir/provenance/rule_application.h"

#include "ir/merge_ids.h"

pln_status pln_applications_new(pln_engine *engine) {
  pln_applications *a = pln_mem_zeroed(engine, sizeof *a);
  if (!a)
    return pln_nomem(engine);
  a->engine = engine;
  a->limits = (pln_rule_limits){-1, -1};
  engine->applications = a;
  return PLN_OK;
}

void pln_applications_free(pln_engine *engine) {
  pln_applications *a = engine->applications;
  if (!a)
    return;
  pln_mem_free(engine, a->rules, a->cap_rules * sizeof *a->rules);
  pln_mem_free(engine, a, sizeof *a);
  engine->applications = NULL;
}

/* --------------------------------------------------------------------- runs */

void pln_applications_reset(pln_engine *engine, const pln_rule_limits *limits) {
  pln_applications *a = engine->applications;
  a->limits = *limits;
  a->left = limits->applications < 0 ? 0 : (uint64_t)limits->applications;
  a->runs = 0;
  a->watched = false;
  a->n_rules = 0;
  a->again = a->unchanged_reported = 0;
  memset(a->hot, 0, sizeof a->hot);
}

/* A limit of applications applies to the last allowed run or, without a limit
 * of runs, to all runs together. */
void pln_rule_run_begin(pln_engine *engine, pln_symbol pass,
                        pln_rule_run *outer) {
  pln_applications *a = engine->applications;
  *outer = a->at;
  a->at = (pln_rule_run){.pass = pass, .number = ++a->runs};
  a->tries = 0;
  a->at.limited = a->limits.applications >= 0 &&
                  (a->limits.passes < 0 || a->limits.passes == a->runs);
  a->rule = 0;
}

void pln_rule_run_end(pln_engine *engine, const pln_rule_run *outer) {
  engine->applications->at = *outer;
  engine->applications->rule = 0;
}

/* --------------------------------------------------------------------- rows */

static uint32_t *hot_slot(pln_applications *a, const char *rule) {
  uintptr_t h = (uintptr_t)rule;
  return &a->hot[(h ^ h >> 6 ^ a->at.pass) % PLN_HOT_RULES];
}

static pln_status add_rule(pln_applications *a, const char *rule) {
  pln_rule r = {.pass = a->at.pass};
  PLN_TRY(pln_symbol_intern(a->engine, pln_text(rule), &r.rule));
  r.row.pass = pln_symbol_text(a->engine, r.pass).data;
  r.row.rule = pln_symbol_text(a->engine, r.rule).data;
  r.row.last = PLN_NONE;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->rules, &a->cap_rules,
                       (size_t)a->n_rules + 1, sizeof *a->rules));
  a->rules[a->n_rules++] = r;
  return PLN_OK;
}

/* A rule is identified by its text. The text's address is stable while a pass
 * runs, so comparing addresses is the fast path. */
static pln_status find_rule(pln_applications *a, const char *rule,
                            pln_rule **out) {
  uint32_t *slot = hot_slot(a, rule);
  uint32_t i = *slot - 1;
  if (!*slot || a->rules[i].key != rule || a->rules[i].pass != a->at.pass) {
    for (i = 0; i < a->n_rules; i++)
      if (a->rules[i].pass == a->at.pass && !strcmp(a->rules[i].row.rule, rule))
        break;
    if (i == a->n_rules)
      PLN_TRY(add_rule(a, rule));
    a->rules[i].key = rule;
    *slot = i + 1;
  }
  *out = &a->rules[i];
  return PLN_OK;
}

/* ------------------------------------------------------------- applications */

/* Applications outside passes are not counted. */
pln_status pln_rule_apply(pln_engine *engine, const char *rule, pln_ref node,
                          bool *allowed) {
  pln_applications *a = engine->applications;
  pln_rule *r;
  *allowed = true;
  a->rule = 0;
  a->number = 0;
  if (!a->at.number)
    return pln_symbol_intern(engine, pln_text(rule), &a->rule);
  PLN_TRY(find_rule(a, rule, &r));
  a->at.considered++;
  *allowed = !a->at.limited || a->left > 0;
  if (!*allowed) {
    r->row.refused++;
    return PLN_OK;
  }
  a->left -= a->at.limited;
  r->row.applied++;
  r->row.last = node;
  a->rule = r->rule;
  uint64_t number = a->at.considered - a->at.before;
  a->number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
  return PLN_OK;
}

/* The note is reported at the end, because functions may be processed in
 * several threads. */
pln_status pln_rule_unchanged(pln_engine *engine, const char *rule,
                              pln_symbol function) {
  pln_applications *a = engine->applications;
  pln_rule *r;
  if (!a->at.number)
    return PLN_OK;
  PLN_TRY(find_rule(a, rule, &r));
  a->again++;
  if (r->again)
    return PLN_OK;
  r->again = true;
  r->function = function;
  return PLN_OK;
}

static void note_unchanged_answers(pln_engine *engine, pln_rule *r) {
  const char *function =
      r->function ? pln_symbol_text(engine, r->function).data : "";
  pln_diag_note(engine, NULL,
                "pass '%s'%s%s: rule '%s' returned an equal copy of its node; "
                "the node is left unchanged",
                r->row.pass, r->function ? ", function @" : "", function,
                r->row.rule);
  r->reported = true;
}

void pln_rules_report(pln_engine *engine) {
  pln_applications *a = engine->applications;
  for (uint32_t i = 0; i < a->n_rules && a->again > a->unchanged_reported; i++)
    if (a->rules[i].again && !a->rules[i].reported)
      note_unchanged_answers(engine, &a->rules[i]);
  a->unchanged_reported = a->again;
}

/* ----------------------------------------------------------------- children */

pln_status pln_applications_child(pln_engine *child) {
  const pln_applications *from = child->parent->applications;
  PLN_TRY(pln_applications_new(child));
  child->applications->at = from->at;
  child->applications->at.considered = 0;
  child->applications->at.before = 0;
  child->applications->watched = from->watched;
  return PLN_OK;
}

void pln_rule_counts_take(pln_engine *child, pln_rule_counts *out) {
  pln_applications *a = child->applications;
  *out = (pln_rule_counts){a->runs,    a->at.considered, a->again,
                           a->n_rules, a->cap_rules,     a->rules};
  a->again = 0;
  a->runs = a->n_rules = a->cap_rules = 0;
  a->at.considered = 0;
  a->rules = NULL;
  memset(a->hot, 0, sizeof a->hot);
}

void pln_rule_counts_free(pln_engine *child, pln_rule_counts *counts) {
  pln_mem_free(child, counts->rules, counts->capacity * sizeof *counts->rules);
}

static pln_status add_rule_counts(pln_applications *a, const pln_merge *join,
                                  const pln_rule *from) {
  pln_rule *r;
  a->at.pass = pln_merged_id(&join->symbols, from->pass);
  pln_symbol rule = pln_merged_id(&join->symbols, from->rule);
  PLN_TRY(find_rule(a, pln_symbol_text(a->engine, rule).data, &r));
  r->row.tried += from->row.tried;
  r->row.applied += from->row.applied;
  r->row.refused += from->row.refused;
  r->row.seconds += from->row.seconds;
  if (from->row.applied)
    r->row.last = from->row.last;
  if (from->again && !r->again)
    r->function = pln_merged_id(&join->symbols, from->function);
  r->again = r->again || from->again;
  return PLN_OK;
}

pln_status pln_rule_counts_add(const pln_merge *join,
                               const pln_rule_counts *counts) {
  pln_applications *a = join->parent->applications;
  pln_symbol pass = a->at.pass;
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < counts->n && status == PLN_OK; i++)
    status = add_rule_counts(a, join, &counts->rules[i]);
  a->at.pass = pass;
  a->at.considered += counts->considered;
  a->runs += counts->runs;
  a->again += counts->again;
  return status;
}

/* --------------------------------------------------------------- statistics */

void pln_rule_watch(pln_engine *engine) {
  engine->applications->watched = true;
}

/* The first attempts of a run are all timed; later ones are sampled and
 * weighted, because reading the clock costs more than most attempts. */
double pln_rule_clock(pln_engine *engine) {
  enum { ALL = 256, EACH = 64 };
  pln_applications *a = engine->applications;
  if (!a->watched)
    return 0;
  uint32_t n = a->tries++;
  a->weight = n < ALL ? 1 : EACH;
  return n < ALL || n % EACH == 0 ? pln_seconds_now() : 0;
}

pln_status pln_rule_tried(pln_engine *engine, const char *rule, uint64_t times,
                          double began) {
  pln_applications *a = engine->applications;
  pln_rule *r;
  if (!a->watched || !a->at.number)
    return PLN_OK;
  PLN_TRY(find_rule(a, rule, &r));
  r->row.tried += times;
  if (began > 0)
    r->row.seconds += a->weight * (pln_seconds_now() - began);
  return PLN_OK;
}

uint32_t pln_rule_count(const pln_engine *engine) {
  return engine->applications->n_rules;
}

/* An application counts as an attempt even when rules are not watched. */
const pln_rule_row *pln_rule_at(const pln_engine *engine, uint32_t index) {
  pln_applications *a = engine->applications;
  if (index >= a->n_rules)
    return NULL;
  pln_rule_row *row = &a->rules[index].row;
  if (row->tried < row->applied + row->refused)
    row->tried = row->applied + row->refused;
  return row;
}
