/* canonical.h: attributes as e-graphs compare them. For saturate.c. */

#ifndef PLN_RULE_EGRAPH_CANONICAL_H
#define PLN_RULE_EGRAPH_CANONICAL_H

#include "rule/set.h"

enum { PLN_CANONICAL_CACHE = 256 };

/* What decides the canonical form of attributes, and the form. */
typedef struct pln_canonical_entry {
  pln_op op;
  pln_attrs attrs, canonical;
  pln_type types[2]; /* of the first operands; 0: there is none */
} pln_canonical_entry;

typedef struct pln_canonical {
  pln_rule_match *match; /* whose run has begun */
  pln_canonical_entry entries[PLN_CANONICAL_CACHE];
} pln_canonical;

/* A pln_ecanonical_fn; `ud`: a pln_canonical, at first all zero but for the
 * match. Makes an entry of dictionaries for each form that was not met
 * before. */
pln_status pln_egraph_canonical_attrs(void *ud, const pln_graph *g,
                                      pln_ref call, pln_attrs *out) PLN_CHECKED;

#endif
