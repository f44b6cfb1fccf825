/* saturate.h: equality saturation: the rules of sets are applied to an e-graph
 * of each scope until nothing new is found or a limit is reached, and the
 * cheapest expression of the scope's result is taken out.
 *
 * Semantics: egg (Willsey et al. 2021) and Tensat (Yang et al. 2021), with
 * these differences: rules are matched again only where classes changed;
 * commutativity and associativity are the matcher's; calls of constants are
 * folded; k_multi counts rules of several roots one after the other, not
 * rounds; what is taken out is never dearer than what was there. */

#ifndef PLN_RULE_EGRAPH_SATURATE_H
#define PLN_RULE_EGRAPH_SATURATE_H

#include "rule/rule.h"

enum { PLN_SATURATE_MAX_SETS = 8 };

/* Estimates of what a call costs. */
typedef enum pln_ecost_kind {
  PLN_ECOST_NODES, /* calls */
  PLN_ECOST_FLOPS,
  PLN_ECOST_BYTES, /* read and written */
  PLN_ECOST_TIME   /* roofline: the longer of the two, and a start */
} pln_ecost_kind;

/* The cost of a call of an operator, which must not be negative or NaN; a
 * callback instead of an estimate, in seconds; infinity: not known, and the
 * estimate of the time is taken. `node` is of a graph being built. Bit i of
 * `constants`: operand i is computed of constants alone. Calls all of whose
 * operands are, are not asked for: FoldConstant computes them. */
typedef pln_status (*pln_ecost_fn)(void *ud, const pln_graph *graph,
                                   pln_ref node, uint64_t constants,
                                   double *out);

typedef struct pln_saturate_options {
  const pln_rule_set *const *sets; /* complete */
  uint32_t n_sets;
  pln_rule_options rules;
  uint32_t inexact_sets; /* bit i: of set i rules of every proof are applied,
                          * whatever rules.exact says */
  uint32_t node_limit, iter_limit;
  uint32_t k_multi; /* rules of several roots are applied to what they made
                     * k_multi - 1 times; 0: not at all. Tensat's parameter of
                     * that name counts rounds */
  double seconds;   /* 0: no limit. A search that time ends may differ from one
                     * run to the next */
  bool once; /* one round, of which application number `at` alone is made,
              * whatever it costs: a step of a search by single substitutions */
  uint64_t at;
  pln_ecost_kind cost;
  pln_ecost_fn cost_fn; /* NULL: `cost` */
  void *ud;
} pln_saturate_options;

typedef enum pln_saturate_stop {
  PLN_SATURATE_DONE,
  PLN_SATURATE_ITERATIONS,
  PLN_SATURATE_NODES,
  PLN_SATURATE_TIME
} pln_saturate_stop;

/* What a saturation did; sums over the scopes of a graph. */
typedef struct pln_saturate_report {
  uint32_t scopes, changed, iterations, e_nodes, e_classes;
  uint32_t rules, rules_tried; /* searched for; those that matched */
  uint32_t
      stopped[PLN_SATURATE_TIME + 1]; /* scopes by what ended their search */
  uint64_t matches, refused, rehashed;
  uint64_t applications; /* in the option `once`: that could be made */
  double cost_before, cost_after;
  /* By rule, of all sets in order: how many of its calls were taken. Allocated
   * by the caller; NULL: not counted. */
  uint32_t *taken;
} pln_saturate_report;

/* *out: `graph` itself, retained, if nothing cheaper was found. */
pln_status pln_rules_saturate(const pln_graph *graph,
                              const pln_saturate_options *options,
                              pln_saturate_report *report,
                              pln_graph **out) PLN_CHECKED;

#endif
