/* infer/inferencer.h: joint inference of several graphs; for
 * infer/inferencer.c, infer/constraints.c, infer/module.c and
 * infer/check_uses.c. */

#ifndef PLN_IR_INFER_INFERENCER_H
#define PLN_IR_INFER_INFERENCER_H

#include "ir/graph/graph.h"
#include "ir/type/unify.h"

/* Maximum number of contradictions reported in one run. */
enum { PLN_MOST_REFUSED = 20 };

/* One of the graphs. */
typedef struct pln_inferencer_graph {
  pln_symbol name;       /* of the function; 0: an expression */
  const pln_graph *old;  /* borrowed */
  pln_graph *graph;      /* its copy, which receives the inferred types */
  pln_type *terms;       /* per node: its type with holes; 0: it has none */
  bool *open;            /* per node: its type may become more precise */
  bool *refused;         /* per node: its contradiction was reported */
  pln_scope *node_scope; /* per node: its innermost scope */
  uint32_t base;         /* node n has the waiting id base + n */
} pln_inferencer_graph;

typedef struct pln_inferencer {
  pln_engine *engine;
  const pln_module *module; /* signatures and data types; may be NULL */
  const uint32_t *along;    /* per function of the module: its graph here, plus
                             * 1; NULL: none is */
  bool lenient;             /* read from a file: contradictions were reported
                             * already */
  pln_unifier u;
  pln_inferencer_graph *graphs;
  uint32_t n_graphs, cap_graphs;
  uint32_t n_ids;
  uint32_t n_refused, most_refused; /* the run ends at most_refused */
  pln_idmap *met;                   /* memo of meets of old and new types */
} pln_inferencer;

void pln_inferencer_init(pln_inferencer *t, pln_engine *engine,
                         const pln_module *module);
void pln_inferencer_free(pln_inferencer *t);
pln_status pln_inferencer_add(pln_inferencer *t, pln_symbol name,
                              const pln_graph *graph) PLN_CHECKED;
/* Infers all types that can be inferred. PLN_ERR_TYPE on contradictions. */
pln_status pln_inferencer_solve(pln_inferencer *t) PLN_CHECKED;
/* Runs the rule of one node, to check it alone. Open nodes that were not run
 * contradict nothing. */
pln_status pln_inferencer_check_node(pln_inferencer *t, uint32_t index,
                                     pln_ref ref) PLN_CHECKED;
/* The graph with the inferred types, or the old one when nothing was learnt;
 * the caller releases it. */
pln_status pln_inferencer_result(pln_inferencer *t, uint32_t index,
                                 pln_graph **out) PLN_CHECKED;

/* infer/constraints.c: the constraints of node `ref` on its type and those of
 * its operands. `last`: it runs for the last time, and unknown parts stay
 * unknown. */
pln_status pln_constraint_rule(pln_inferencer *t, pln_inferencer_graph *g,
                               pln_ref ref, bool last) PLN_CHECKED;
/* What a call of an operator with known result implies about its operands. */
pln_status pln_inferencer_infer_operands(pln_inferencer *t,
                                         pln_inferencer_graph *g,
                                         pln_ref ref) PLN_CHECKED;
/* The data that a clause's pattern is matched against, or PLN_NONE. */
pln_ref pln_clause_data(const pln_inferencer_graph *g, pln_ref clause);
/* True if some type in the graph is unknown. */
bool pln_graph_is_open(const pln_graph *graph);
/* True if nodes of the kind never have a type. */
bool pln_is_untyped(pln_kind kind);

#endif
