/* isomorphic.h: graphs that nothing tells apart but the numbers of their Vars,
 * the places that their nodes come from, and which copy of a tensor they hold.
 * What was made of one is what would have been made of the other. */

#ifndef PLN_IR_COMPARE_ISOMORPHIC_H
#define PLN_IR_COMPARE_ISOMORPHIC_H

#include "ir/compare/equal.h"

typedef struct pln_isomorphism {
  const pln_graph *a, *b;
  pln_bijection vars;
  pln_idmap *rows;    /* origins of a: of b */
  pln_idmap *tensors; /* of a, by address: 1 + the index in both */
  uint32_t *stack;    /* origins still to be looked at */
  uint32_t n_stack, cap_stack;
} pln_isomorphism;

/* Equal for twins, and seldom for others. */
uint64_t pln_isomorphism_hash(const pln_graph *graph);
/* Compares; to be ended whatever comes of it. */
pln_status pln_isomorphism_match(pln_isomorphism *t, const pln_graph *a,
                                 const pln_graph *b, bool *same) PLN_CHECKED;
/* What is to b as `made` is to a: Vars and origins of a become those of b, Vars
 * that are new in it become newer ones. NULL when `made` holds a place of a
 * under no origin of a, so that nobody can tell b's. */
pln_status pln_isomorphism_remap(pln_isomorphism *t, const pln_graph *made,
                                 pln_graph **out) PLN_CHECKED;
void pln_isomorphism_end(pln_isomorphism *t);

#endif
