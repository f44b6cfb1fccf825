/* pattern_match.h: whether a value fits the pattern of a Match's arm. */

#ifndef PLN_EVAL_PATTERN_MATCH_H
#define PLN_EVAL_PATTERN_MATCH_H

#include "ir/graph/graph.h"
#include "ir/tensor/runtime_value.h"

/* A variable or a pattern, and the value it meets: a part of the matched one,
 * borrowed. */
typedef struct pln_meeting {
  pln_ref node;
  const pln_datum *value;
} pln_meeting;

/* What it takes, kept from one match to the next; zeroed at first. */
typedef struct pln_fit {
  pln_engine *engine;
  pln_meeting *bound; /* what the variables of the last pattern stand for */
  uint32_t n_bound, cap_bound;
  pln_meeting *todo;
  uint32_t n_todo, cap_todo;
} pln_fit;

/* The first scope of `match`, which owns some, whose pattern `value` fits;
 * PLN_NONE when none does. */
pln_status pln_fit_arm(pln_fit *fit, const pln_graph *graph, pln_ref match,
                       const pln_datum *value, pln_scope *out) PLN_CHECKED;
void pln_fit_end(pln_fit *fit);

#endif
