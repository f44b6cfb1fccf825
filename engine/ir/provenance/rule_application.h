/* rule_application.h: rule applications: the named decisions of a pass to
 * change something, how often each rule was applied, and whether it may be
 * applied again.
 *
 * pass/primitive.c announces the running pass; rewrite/rewrite.c and the passes
 * ask before they apply a rule. */

#ifndef PLN_IR_PROVENANCE_RULE_APPLICATION_H
#define PLN_IR_PROVENANCE_RULE_APPLICATION_H

#include "base/base.h"

enum { PLN_HOT_RULES = 64 };

typedef struct pln_rule {
  pln_rule_row row;
  pln_symbol pass, rule;
  const char *key;      /* address of the name at the last request */
  bool again, reported; /* it returned its input unchanged; that was reported */
  pln_symbol function;  /* the function where that happened first, or 0 */
} pln_rule;

/* A running pass; passes that run passes nest. */
typedef struct pln_rule_run {
  pln_symbol pass;
  uint32_t number; /* from 1; 0: no pass is running */
  bool limited;    /* its applications count against the limit */
  uint64_t considered;
  uint64_t before; /* applications requested before the current function */
} pln_rule_run;

/* Limits of an outermost apply: maximum numbers of runs and applications;
 * negative: no limit. */
typedef struct pln_rule_limits {
  int64_t passes, applications;
} pln_rule_limits;

typedef struct pln_applications {
  pln_engine *engine;
  pln_rule_run at;
  /* The latest allowed application; 0: none, or it was refused. */
  pln_symbol rule;
  uint32_t number; /* number within the function's requests; 0: not counted */
  uint32_t shift;  /* offset of run numbers in histories; see */
  pln_rule_limits limits;
  uint32_t runs;          /* runs since the outermost apply began */
  uint64_t left;          /* applications left under the limit */
  bool watched;           /* attempts are counted and timed */
  uint32_t tries, weight; /* attempts in this run; attempts that one timing
                           * represents */
  uint64_t again, unchanged_reported; /* results that were not applications */
  uint32_t n_rules, cap_rules;
  pln_rule *rules;
  uint32_t hot[PLN_HOT_RULES]; /* by pass and text: index + 1 */
} pln_applications;

pln_status pln_applications_new(pln_engine *engine) PLN_CHECKED;
void pln_applications_free(pln_engine *engine);
/* State of a child engine: it continues its parent's run and is watched as the
 * parent is. Nothing is limited in a child. */
pln_status pln_applications_child(pln_engine *child) PLN_CHECKED;
/* The counts of a child since the last call; freed by pln_rule_counts_free.
 * `pln_rule_counts_add` adds them to the parent's. */
typedef struct pln_rule_counts {
  uint32_t runs; /* passes run by passes */
  uint64_t considered, again;
  uint32_t n, capacity;
  pln_rule *rules;
} pln_rule_counts;
void pln_rule_counts_take(pln_engine *child, pln_rule_counts *out);
void pln_rule_counts_free(pln_engine *child, pln_rule_counts *counts);
struct pln_merge;
pln_status pln_rule_counts_add(const struct pln_merge *join,
                               const pln_rule_counts *counts) PLN_CHECKED;
/* True if runs or applications are limited; their order then matters. */
static inline bool pln_rules_limited(const pln_applications *a) {
  return a->limits.passes >= 0 || a->limits.applications >= 0;
}
/* Called at the start of an outermost apply: resets the counts. */
void pln_applications_reset(pln_engine *engine, const pln_rule_limits *limits);
/* True if another pass may run. */
static inline bool pln_run_allowed(const pln_applications *a) {
  return a->limits.passes < 0 || a->runs < a->limits.passes;
}
/* Brackets the body of a pass; *outer is the enclosing run. */
void pln_rule_run_begin(pln_engine *engine, pln_symbol pass,
                        pln_rule_run *outer);
void pln_rule_run_end(pln_engine *engine, const pln_rule_run *outer);
/* Records that a rule returned an equal copy of its node, which is no
 * application. `function`: the function of the node; 0: none. */
pln_status pln_rule_unchanged(pln_engine *engine, const char *rule,
                              pln_symbol function) PLN_CHECKED;
/* At the end of the outermost apply: reports one note per pass and rule that
 * returned equal copies. */
void pln_rules_report(pln_engine *engine);
static inline bool pln_rules_watched(const pln_engine *engine) {
  return engine->applications->watched;
}
/* While rules are watched: pln_rule_clock returns the start time, or 0 for an
 * attempt that is not timed; the other function records the attempt. */
double pln_rule_clock(pln_engine *engine);
pln_status pln_rule_tried(pln_engine *engine, const char *rule, uint64_t times,
                          double began) PLN_CHECKED;

#endif
