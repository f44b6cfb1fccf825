/* shipped_rules.h: passes that run rules of lua/perilune/rules. */

#ifndef PLN_TRANSFORM_SHIPPED_RULES_H
#define PLN_TRANSFORM_SHIPPED_RULES_H

#include "rule/rule.h"
#include "transform/transform.h"

/* The rules of a pass, with their replacements in C. Borrowed from the
 * engine. */
pln_status pln_shipped_rules(pln_engine *engine, const char *pass,
                             const pln_rule_set **out) PLN_CHECKED;
/* Sets `exact`, `lets` and `only` of the options from the config keys
 * rules.exact, rules.lets and rules.only, and `opset`, unless it is set, from
 * the module. A result for a function that depends on the opset is not kept for
 * other modules. `only` holds the value that options->only points to. */
pln_status pln_run_rule_options(pln_pass_run *run, pln_attr *only,
                                pln_rule_options *options) PLN_CHECKED;
/* Applies the rules of `pass` to a function, and counts what each did in the
 * report of the running pass. `options` says the rest; of the names in its
 * `only` those run that the config key rules.only allows. *out: as of
 * pln_rules_apply. */
pln_status pln_run_shipped_rules(pln_pass_run *run, const char *pass,
                                 const pln_graph *function,
                                 const pln_rule_options *options,
                                 pln_graph **out) PLN_CHECKED;

#endif
