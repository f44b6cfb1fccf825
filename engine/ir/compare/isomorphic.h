/* isomorphic.h: graphs that nothing tells apart but the numbers of their Vars,
 * the places that their nodes come from, and which copy of a tensor they hold.
 * What was made of one is what would have been made of the other. */

#ifndef PLN_IR_COMPARE_ISOMORPHIC_H
#define PLN_IR_COMPARE_ISOMORPHIC_H

#include "ir/compare/equal.h"

typedef struct pln_twins {
  const pln_graph *a, *b;
  pln_pairing vars;
  pln_idmap *rows;    /* origins of a: of b */
  pln_idmap *tensors; /* of a, by address: 1 + the index in both */
  uint32_t *stack;    /* origins still to be looked at */
  uint32_t n_stack, cap_stack;
} pln_twins;

/* Equal for twins, and seldom for others. */
uint64_t pln_twin_hash(const pln_graph *graph);
/* Compares; to be ended whatever comes of it. */
pln_status pln_twins_match(pln_twins *t, const pln_graph *a, const pln_graph *b,
                           bool *same) PLN_CHECKED;
/* What is to b as `made` is to a: Vars and origins of a become those of b, Vars
 * that are new in it become newer ones. NULL when `made` holds a place of a
 * under no origin of a, so that nobody can tell b's. */
pln_status pln_twins_carry(pln_twins *t, const pln_graph *made,
                           pln_graph **out) PLN_CHECKED;
void pln_twins_end(pln_twins *t);

#endif
