/* ematch.h: matches of a rule's variant in an e-graph: as rule/match.c, but an
 * operand of a matched e-node may be any e-node of the operand's class. For
 * saturate.c. */

#ifndef PLN_RULE_EGRAPH_EMATCH_H
#define PLN_RULE_EGRAPH_EMATCH_H

#include "rule/egraph/egraph.h"
#include "rule/set.h"

/* How the candidates of a pattern are listed. */
typedef enum pln_elist {
  PLN_ELIST_ONE,  /* the node itself, PLN_NONE for an omitted operand */
  PLN_ELIST_RING, /* the members of its class */
  PLN_ELIST_USES, /* users of a class */
  PLN_ELIST_END
} pln_elist;

typedef struct pln_elevel {
  uint8_t list; /* pln_elist */
  pln_ref first;
  uint32_t at;   /* a node; USES: in the e-graph's `uses` */
  uint32_t pool; /* elements of lists that earlier levels have */
} pln_elevel;

/* A search for the matches at one node. */
typedef struct pln_ematch {
  pln_egraph *eg;
  pln_rule_match *m; /* variant and root are set */
  uint32_t level;
  uint32_t steps;  /* candidates that were compared */
  bool begun, cut; /* cut: there were too many candidates */
  pln_elevel levels[PLN_RULE_MAX_NODES];
} pln_ematch;

void pln_ematch_begin(pln_ematch *em, pln_egraph *eg, pln_rule_match *m);
/* Binds the variables for the next match; *found: there is one. Between two
 * calls nodes may be added, and nothing may be merged. */
pln_status pln_ematch_next(pln_ematch *em, bool *found) PLN_CHECKED;
/* Returns true if e-graphs are searched for the variant: its patterns are
 * calls of operators, tuples, fields, constants and variables. */
bool pln_ematch_takes(const pln_rule_set *set, const pln_rule_variant *variant);

#endif
