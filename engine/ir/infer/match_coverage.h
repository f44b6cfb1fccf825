/* infer/match_coverage.h: the values that no arm of a Match covers. */

#ifndef PLN_IR_INFER_MATCH_COVERAGE_H
#define PLN_IR_INFER_MATCH_COVERAGE_H

#include "ir/graph/graph.h"

typedef enum pln_case_kind {
  PLN_CASE_ANY,        /* `_` */
  PLN_CASE_TUPLE,      /* a number of parts follow, each with its own parts */
  PLN_CASE_CONSTRUCTOR /* the same */
} pln_case_kind;

/* A case is a list of parts, outer before inner: Cons(_, Nil) is the
 * constructor Cons with 2 parts, any, the constructor Nil with none. */
typedef struct pln_case_part {
  pln_case_kind kind;
  pln_symbol constructor;
  uint32_t n_parts;
} pln_case_part;

/* Called for each case; setting *stop ends the search. */
typedef pln_status (*pln_case_fn)(void *ud, uint32_t n,
                                  const pln_case_part *parts, bool *stop);

/* Calls back for the cases that no arm covers; every uncovered value is in one
 * of them. They come in the order of the arms, then of the definitions.
 * `module` (may be NULL) defines the data types. PLN_ERR_TYPE for a constructor
 * that it does not define, or with another number of fields; PLN_ERR_LIMIT when
 * the search takes too long. */
pln_status pln_match_each_uncovered(const pln_graph *graph, pln_ref match,
                                    const pln_module *module,
                                    pln_case_fn report_case,
                                    void *ud) PLN_CHECKED;

/* infer/match_check.c: checks that the patterns of each Match have the type of
 * its data, and that a Match marked complete covers every value. PLN_ERR_TYPE
 * describes a violation. `module` may be NULL. */
pln_status pln_module_check_matches(const pln_module *module) PLN_CHECKED;
pln_status pln_graph_check_matches(const pln_graph *graph,
                                   const pln_module *module) PLN_CHECKED;

#endif
