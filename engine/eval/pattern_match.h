/* pattern_match.h: matches a value against the patterns of a Match. */

#ifndef PLN_EVAL_PATTERN_MATCH_H
#define PLN_EVAL_PATTERN_MATCH_H

#include "ir/graph/graph.h"
#include "ir/tensor/runtime_value.h"

/* A pattern variable or subpattern, and the part of the matched value that
 * corresponds to it, borrowed. */
typedef struct pln_pattern_binding {
  pln_ref node;
  const pln_runtime_value *value;
} pln_pattern_binding;

/* Buffers reused from one match to the next; zero-initialised. */
typedef struct pln_pattern_matcher {
  pln_engine *engine;
  pln_pattern_binding
      *bound; /* values of the variables of the matched pattern */
  uint32_t n_bound, cap_bound;
  pln_pattern_binding *todo;
  uint32_t n_todo, cap_todo;
} pln_pattern_matcher;

/* The first scope of `match`, which has at least one, whose pattern matches
 * `value`; PLN_NONE when none does. */
pln_status pln_pattern_match_arm(pln_pattern_matcher *matcher,
                                 const pln_graph *graph, pln_ref match,
                                 const pln_runtime_value *value,
                                 pln_scope *out) PLN_CHECKED;
void pln_pattern_matcher_end(pln_pattern_matcher *matcher);

#endif
