/* pattern_match.h: whether a value fits the pattern of a Match's arm. */

#ifndef PLN_EVAL_PATTERN_MATCH_H
#define PLN_EVAL_PATTERN_MATCH_H

#include "ir/graph/graph.h"
#include "ir/tensor/runtime_value.h"

/* A variable or a pattern, and the value it meets: a part of the matched one,
 * borrowed. */
typedef struct pln_pattern_binding {
  pln_ref node;
  const pln_runtime_value *value;
} pln_pattern_binding;

/* What it takes, kept from one match to the next; zeroed at first. */
typedef struct pln_pattern_matcher {
  pln_engine *engine;
  pln_pattern_binding
      *bound; /* what the variables of the last pattern stand for */
  uint32_t n_bound, cap_bound;
  pln_pattern_binding *todo;
  uint32_t n_todo, cap_todo;
} pln_pattern_matcher;

/* The first scope of `match`, which owns some, whose pattern `value` fits;
 * PLN_NONE when none does. */
pln_status pln_pattern_match_arm(pln_pattern_matcher *matcher,
                                 const pln_graph *graph, pln_ref match,
                                 const pln_runtime_value *value,
                                 pln_scope *out) PLN_CHECKED;
void pln_pattern_matcher_end(pln_pattern_matcher *matcher);

#endif
