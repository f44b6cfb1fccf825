/* dominators.h: the tree of immediate post-dominators; for dominators.c and
 * passes that define uses themselves. */

#ifndef PLN_IR_ANALYSIS_DOMINATORS_H
#define PLN_IR_ANALYSIS_DOMINATORS_H

#include "ir/graph/graph.h"

/* Built from users to operands: nodes are closed in descending order, each
 * before it uses operands itself. */
typedef struct pln_dominators {
  pln_engine *engine;
  uint32_t n;
  pln_ref *parent;  /* per node: its immediate post-dominator; PLN_NONE: none */
  uint8_t *weight;  /* maximum weight on the paths to its parent */
  uint32_t *depth;  /* 0: not used yet */
  pln_ref *jump;    /* jump pointer: an ancestor further up, or n */
  uint8_t *jumped;  /* maximum weight on the paths to `jump` */
  uint8_t *escapes; /* its value leaves the graph's nodes */
} pln_dominators;

pln_status pln_dominators_begin(pln_dominators *d, pln_engine *engine,
                                uint32_t n) PLN_CHECKED;
void pln_dominators_end(pln_dominators *d);
/* The value of `node` leaves the graph, so nothing dominates it. */
void pln_dominators_escape(pln_dominators *d, pln_ref node);
/* `user`, which is closed, uses `node`. */
void pln_dominators_use(pln_dominators *d, pln_ref node, pln_ref user,
                        uint8_t weight);
/* All uses of `node` have been added. */
void pln_dominators_close(pln_dominators *d, pln_ref node);

#endif
