/* canonical.h: attributes as e-graphs compare them. For saturate.c. */

#ifndef PLN_RULE_EGRAPH_CANONICAL_H
#define PLN_RULE_EGRAPH_CANONICAL_H

#include "rule/set.h"

/* A pln_ecanonical_fn; `ud`: a pln_rule_match whose run has begun. Makes an
 * entry of dictionaries for each form that was not met before. */
pln_status pln_egraph_canonical_attrs(void *ud, const pln_graph *g,
                                      pln_ref call, pln_attrs *out) PLN_CHECKED;

#endif
