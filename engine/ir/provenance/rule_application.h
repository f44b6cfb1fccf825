/* rule_application.h: rule applications: what a pass decides to change, by
 * name; how often each rule did, and whether it still may.
 *
 * pass/primitive.c tells which pass runs; rewrite/rewrite.c and the passes ask
 * before they use what a rule gives. */

#ifndef PLN_IR_PROVENANCE_RULE_APPLICATION_H
#define PLN_IR_PROVENANCE_RULE_APPLICATION_H

#include "base/base.h"

enum { PLN_HOT_RULES = 64 };

typedef struct pln_rule {
  pln_rule_row row;
  pln_symbol pass, rule;
  const char *key;      /* the text that it was last asked by */
  bool again, reported; /* it answered with what it was given; a note says so */
  pln_symbol function;  /* where it did first, or 0 */
} pln_rule;

/* A pass at work; passes that run passes nest. */
typedef struct pln_rule_run {
  pln_symbol pass;
  uint32_t number; /* from 1; 0: no pass runs */
  bool limited;    /* its applications count against the limit */
  uint64_t asked;
  uint64_t before; /* asked when the function at work began */
} pln_rule_run;

/* Of the outermost application of a pass: so many runs, and applications, may
 * happen; negative: any number. */
typedef struct pln_rule_limits {
  int64_t passes, applications;
} pln_rule_limits;

typedef struct pln_applications {
  pln_engine *engine;
  pln_rule_run at;
  /* The application asked for last; 0: none, or it was refused. */
  pln_symbol rule;
  uint32_t number; /* of those asked for of a function; 0: not counted */
  uint32_t shift;  /* of the numbers of runs in histories; see
                      pass/pipeline/per_function.c */
  pln_rule_limits limits;
  uint32_t runs;          /* begun since the outermost application did */
  uint64_t left;          /* applications, when there is a limit */
  bool watched;           /* tries are counted and timed */
  uint32_t tries, weight; /* since the run began; that a time stands for */
  uint64_t again, unchanged_reported; /* answers that were no applications */
  uint32_t n_rules, cap_rules;
  pln_rule *rules;
  uint32_t hot[PLN_HOT_RULES]; /* by pass and text: index + 1 */
} pln_applications;

pln_status pln_applications_new(pln_engine *engine) PLN_CHECKED;
void pln_applications_free(pln_engine *engine);
/* A child's: in the run that its parent is at, and watched as that is. Nothing
 * is limited there. */
pln_status pln_applications_child(pln_engine *child) PLN_CHECKED;
/* What a child counted since the last of these calls; freed by
 * pln_rule_counts_free. `pln_rule_counts_add` adds it to the parent's counts.
 */
typedef struct pln_rule_counts {
  uint32_t runs; /* of passes that passes ran */
  uint64_t asked, again;
  uint32_t n, capacity;
  pln_rule *rules;
} pln_rule_counts;
void pln_rule_counts_take(pln_engine *child, pln_rule_counts *out);
void pln_rule_counts_free(pln_engine *child, pln_rule_counts *tally);
struct pln_merge;
pln_status pln_rule_counts_add(const struct pln_merge *join,
                               const pln_rule_counts *tally) PLN_CHECKED;
/* Whether applications or runs are limited: then their order matters. */
static inline bool pln_rules_limited(const pln_applications *a) {
  return a->limits.passes >= 0 || a->limits.applications >= 0;
}
/* At the outermost application of a pass: counts begin anew. */
void pln_applications_reset(pln_engine *engine, const pln_rule_limits *limits);
/* Whether one more pass may run. */
static inline bool pln_run_allowed(const pln_applications *a) {
  return a->limits.passes < 0 || a->runs < a->limits.passes;
}
/* Around the body of a pass; *outer is what ran before. */
void pln_rule_run_begin(pln_engine *engine, pln_symbol pass,
                        pln_rule_run *outer);
void pln_rule_run_end(pln_engine *engine, const pln_rule_run *outer);
/* The rule gave an equal copy of the node it was given, which stands: no
 * application. `function`: whose node, 0: no function's. */
pln_status pln_rule_unchanged(pln_engine *engine, const char *rule,
                              pln_symbol function) PLN_CHECKED;
/* At the end of the outermost application: notes about those rules, one a pass
 * and rule. */
void pln_rules_report(pln_engine *engine);
static inline bool pln_rules_watched(const pln_engine *engine) {
  return engine->applications->watched;
}
/* When rules are watched: the time now, or 0 for a try that is not timed; and a
 * rule was tried, from then on. */
double pln_rule_clock(pln_engine *engine);
pln_status pln_rule_tried(pln_engine *engine, const char *rule, uint64_t times,
                          double began) PLN_CHECKED;

#endif
