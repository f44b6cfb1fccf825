/* isomorphic.h: compares graphs up to isomorphism. Two graphs are isomorphic
 * when they are equal node by node except for Var numbers, source locations and
 * which copy of a tensor a Constant holds. A pass result that was computed for
 * one graph can be remapped to the other. */

#ifndef PLN_IR_COMPARE_ISOMORPHIC_H
#define PLN_IR_COMPARE_ISOMORPHIC_H

#include "ir/compare/equal.h"

typedef struct pln_isomorphism {
  const pln_graph *a, *b;
  pln_bijection vars;
  pln_idmap *rows;    /* origin of a -> origin of b */
  pln_idmap *tensors; /* tensor address in a -> index in both + 1 */
  uint32_t *stack;    /* stack of origins to compare */
  uint32_t n_stack, cap_stack;
} pln_isomorphism;

/* Isomorphic graphs have equal hashes; other graphs rarely collide. */
uint64_t pln_isomorphism_hash(const pln_graph *graph);
/* Compares; pln_isomorphism_end must follow in any case. */
pln_status pln_isomorphism_match(pln_isomorphism *t, const pln_graph *a,
                                 const pln_graph *b, bool *same) PLN_CHECKED;
/* Remaps a pass result from graph a to the isomorphic graph b. `made` was
 * computed from a; *out is the same result computed from b. Vars and origins of
 * a become those of b; Vars that the pass created get new numbers. *out is NULL
 * when `made` contains a source location of a that no origin of a maps to. */
pln_status pln_isomorphism_remap(pln_isomorphism *t, const pln_graph *made,
                                 pln_graph **out) PLN_CHECKED;
void pln_isomorphism_end(pln_isomorphism *t);

#endif
