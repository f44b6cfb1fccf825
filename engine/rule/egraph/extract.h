/* extract.h: takes the cheapest expression of a class out of an e-graph. For
 * saturate.c. */

#ifndef PLN_RULE_EGRAPH_EXTRACT_H
#define PLN_RULE_EGRAPH_EXTRACT_H

#include "rule/egraph/egraph.h"
#include "rule/egraph/saturate.h"

/* An e-node that may stand for its class. */
typedef struct pln_echoice {
  pln_ref node;
  uint32_t class_;       /* dense number */
  uint32_t first, count; /* classes of its operands, in `operands` */
  double cost;           /* of itself; each class is computed once */
} pln_echoice;

/* The e-graph as extraction reads it: classes have dense numbers; class 0 is
 * the root. */
typedef struct pln_extraction {
  pln_engine *engine;
  pln_egraph *eg;
  const pln_saturate_options *options;
  uint32_t n_classes, n_choices, n_operands;
  uint32_t cap_classes, cap_choices, cap_operands;
  pln_ref program;        /* the root, as the program computes it */
  pln_ref *classes;       /* by number */
  uint32_t *first_choice; /* by number, and the end */
  uint32_t cap_first;
  pln_echoice *choices;     /* of one class side by side */
  uint32_t *operands;       /* class numbers */
  uint32_t *picked, *saved; /* by class: a choice; PLN_NONE */
  uint32_t *uses; /* by class: of the picked choices that are needed */
  uint32_t *user_first, *user_list; /* by class: choices that use it */
  uint32_t *stamp, stamped;         /* by class: marks of walks */
  uint32_t *stack;
  double *best;  /* by class: cost of its tree */
  uint64_t work; /* steps of the improvement so far */
} pln_extraction;

/* Reads the classes that `root` can be computed of. */
pln_status pln_extraction_begin(pln_extraction *x, pln_egraph *eg,
                                const pln_saturate_options *options,
                                pln_ref root) PLN_CHECKED;
void pln_extraction_end(pln_extraction *x);
/* Picks for each class the choice of the cheapest tree (Knuth 1977), or what
 * the program has, whichever is cheaper when classes are computed once; then
 * improves it by exchanging choices, alone and those that have a class in
 * common together, as long as the sum falls and within a bound of steps. Small
 * e-graphs are searched exhaustively (extract_exact.c). *before, *after: the
 * costs of the program and of what was picked. */
pln_status pln_extraction_pick(pln_extraction *x, double *before,
                               double *after) PLN_CHECKED;
/* Picks what the program has, but these nodes for their classes; false: that
 * has a cycle, or is the program. */
bool pln_extraction_force(pln_extraction *x, uint32_t n, const pln_ref *nodes,
                          double *cost);
/* Builds what was picked for the root. `taken`: counts by rule, or NULL. */
pln_status pln_extraction_build(pln_extraction *x, uint32_t *taken,
                                pln_ref *out) PLN_CHECKED;

/* improve.c: the sum over what is needed with the picked choices; infinity if
 * they have a cycle. Sets x->uses. */
double pln_extraction_cost(pln_extraction *x);
/* Exchanges choices while the sum falls, those of groups before all others if
 * `groups_first`. `cost` is that of what is picked. */
double pln_extraction_improve(pln_extraction *x, double cost,
                              bool groups_first);
/* extract_exact.c: branch and bound over what is needed, if the e-graph is
 * small enough. */
pln_status pln_extraction_exact(pln_extraction *x, double *cost) PLN_CHECKED;

/* cost.c: what a node costs by itself. `constants`: as of pln_ecost_fn. */
pln_status pln_ecost_of(const pln_saturate_options *options,
                        const pln_graph *graph, pln_ref node,
                        uint64_t constants, double *out) PLN_CHECKED;
/* *dear: no core computes the node in `most` seconds, which the program takes,
 * so that its cost is not asked for; *out is an estimate above that. */
pln_status pln_ecost_is_dear(const pln_saturate_options *options,
                             const pln_graph *graph, pln_ref node, double most,
                             bool *dear, double *out) PLN_CHECKED;
/* What a node costs whose operands are computed of constants alone: next to
 * nothing. */
pln_status pln_ecost_of_constants(const pln_saturate_options *options,
                                  const pln_graph *graph, pln_ref node,
                                  double *out) PLN_CHECKED;

#endif
