/* rule_options.h: the rewrite rules that a pass may run, as its context says.
 */

#ifndef PLN_TRANSFORM_RULE_OPTIONS_H
#define PLN_TRANSFORM_RULE_OPTIONS_H

#include "rule/rule.h"
#include "transform/transform.h"

/* Sets `exact` and `only` of the options from the config keys rules.exact and
 * rules.only. `only` holds the value that options->only points to. */
pln_status pln_run_rule_options(const pln_pass_run *run, pln_attr *only,
                                pln_rule_options *options) PLN_CHECKED;

#endif
