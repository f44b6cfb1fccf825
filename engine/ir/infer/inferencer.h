/* infer/inferencer.h: graphs whose types are being found together; for
 * infer/inferencer.c, infer/constraints.c, infer/module.c and
 * type/check_uses.c. */

#ifndef PLN_IR_INFER_INFERENCER_H
#define PLN_IR_INFER_INFERENCER_H

#include "ir/graph/graph.h"
#include "ir/type/unify.h"

/* Contradictions that are told in one run. */
enum { PLN_MOST_REFUSED = 20 };

/* One graph of them. */
typedef struct pln_inferencer_graph {
  pln_symbol name;       /* of the function; 0: an expression */
  const pln_graph *old;  /* borrowed */
  pln_graph *graph;      /* its copy, which is given the types found */
  pln_type *terms;       /* a node: its type, with holes; 0: it has none */
  bool *open;            /* a node: its type may be told better than it was */
  bool *refused;         /* a node: it contradicts others, which was told */
  pln_scope *node_scope; /* a node: its innermost scope */
  uint32_t base;         /* node n waits under the id base + n */
} pln_inferencer_graph;

typedef struct pln_inferencer {
  pln_engine *engine;
  const pln_module *module; /* signatures and data types; may be NULL */
  const uint32_t *along;    /* a function of the module: its graph here, plus 1;
                               NULL: none of them is */
  bool lenient;             /* of a file: contradictions were told already */
  pln_unifier u;
  pln_inferencer_graph *graphs;
  uint32_t n_graphs, cap_graphs;
  uint32_t n_ids;
  uint32_t n_refused, most_refused; /* at that number it ends */
  pln_idmap *met;                   /* pairs of old types and new ones */
} pln_inferencer;

void pln_inferencer_init(pln_inferencer *t, pln_engine *engine,
                         const pln_module *module);
void pln_inferencer_free(pln_inferencer *t);
pln_status pln_inferencer_add(pln_inferencer *t, pln_symbol name,
                              const pln_graph *graph) PLN_CHECKED;
/* Finds all types that can be found. PLN_ERR_TYPE on contradictions. */
pln_status pln_inferencer_solve(pln_inferencer *t) PLN_CHECKED;
/* Asks one node what it says, for who checks it alone. What is open and was not
 * asked contradicts nothing. */
pln_status pln_inferencer_check_node(pln_inferencer *t, uint32_t index,
                                     pln_ref ref) PLN_CHECKED;
/* The graph with what was found, or the old one when that is nothing; the
 * caller's to release. */
pln_status pln_inferencer_result(pln_inferencer *t, uint32_t index,
                                 pln_graph **out) PLN_CHECKED;

/* infer/constraints.c: what node `ref` says of its type and those of its
 * operands. `last`: it is asked for the last time, what is not known stays so.
 */
pln_status pln_constraint_rule(pln_inferencer *t, pln_inferencer_graph *g,
                               pln_ref ref, bool last) PLN_CHECKED;
/* What a call of an operator says of its operands when its result is known. */
pln_status pln_inferencer_infer_operands(pln_inferencer *t,
                                         pln_inferencer_graph *g,
                                         pln_ref ref) PLN_CHECKED;
/* The data that a clause's pattern is held against, or PLN_NONE. */
pln_ref pln_clause_data(const pln_inferencer_graph *g, pln_ref clause);
/* Is there anything that is not known about a graph? */
bool pln_graph_is_open(const pln_graph *graph);
/* Is the node of a kind that never has a type? */
bool pln_is_untyped(pln_kind kind);

#endif
