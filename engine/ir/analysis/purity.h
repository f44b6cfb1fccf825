/* purity.h: which expressions of a function may be dropped or moved, and which
 * functions of a module may be called without effect; for DeadCodeElimination.
 */

#ifndef PLN_IR_ANALYSIS_PURITY_H
#define PLN_IR_ANALYSIS_PURITY_H

#include "ir/graph/module.h"

/* Bits of a node. A node without them is pure. */
enum {
  PLN_IMPURE_EVAL = 1, /* evaluating it, with its operands, has an effect */
  PLN_IMPURE_CALL = 2  /* calling the function that it evaluates to has one */
};

/* The functions of a module that have an effect when called. A recursive
 * function is pure unless something in it is not, which the flags of its nodes
 * do not say: they are set from the bottom up. */
typedef struct pln_purity {
  pln_engine *engine;
  uint32_t n;
  uint8_t *impure; /* by function of the module */
} pln_purity;

pln_status pln_purity_begin(pln_purity *purity,
                            const pln_module *module) PLN_CHECKED;
void pln_purity_end(pln_purity *purity);

/* Sets the bits of each node of a function; `bits` is zeroed. `purity` is of
 * `module`, which may hold an older version of the function. */
pln_status pln_purity_mark(const pln_purity *purity, const pln_module *module,
                           const pln_graph *graph, uint8_t *bits) PLN_CHECKED;

#endif
