/* rule_options.c: reads the config keys that choose among rewrite rules.
 * Called by the passes that run rules. */

#include "transform/rule_options.h"

pln_status pln_run_rule_options(const pln_pass_run *run, pln_attr *only,
                                pln_rule_options *options) {
  pln_attr exact;
  PLN_TRY(pln_context_config_value(run->context, "rules.exact", &exact));
  PLN_TRY(pln_context_config_value(run->context, "rules.only", only));
  options->exact = exact.v.i != 0;
  options->only = only;
  return PLN_OK;
}
