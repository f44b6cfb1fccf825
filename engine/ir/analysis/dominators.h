/* dominators.h: the tree of immediate post-dominators over a graph of uses;
 * for dominators.c and for passes that say themselves what a use is. */

#ifndef PLN_IR_ANALYSIS_DOMINATORS_H
#define PLN_IR_ANALYSIS_DOMINATORS_H

#include "ir/graph/graph.h"

/* Made from users to what they use: a node is closed by its first own use of
 * something, so nodes are taken in falling order. */
typedef struct pln_dominators {
  pln_engine *engine;
  uint32_t n;
  pln_ref *parent;  /* a node: what dominates it; PLN_NONE: nothing */
  uint8_t *weight;  /* the greatest weight on the ways to its parent */
  uint32_t *depth;  /* 0: used by nobody yet */
  pln_ref *jump;    /* an ancestor further up, or n */
  uint8_t *jumped;  /* the greatest weight on the ways to it */
  uint8_t *escapes; /* its value is used by what is no node */
} pln_dominators;

pln_status pln_dominators_begin(pln_dominators *d, pln_engine *engine,
                                uint32_t n) PLN_CHECKED;
void pln_dominators_end(pln_dominators *d);
/* The value of `node` goes where no node is: nothing dominates it. */
void pln_dominators_escape(pln_dominators *d, pln_ref node);
/* `user`, which was closed, uses `node`. */
void pln_dominators_use(pln_dominators *d, pln_ref node, pln_ref user,
                        uint8_t weight);
/* All uses of `node` are told. */
void pln_dominators_close(pln_dominators *d, pln_ref node);

#endif
