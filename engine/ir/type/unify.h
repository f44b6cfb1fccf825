/* type/unify.h: what types must be for others to be equal to them.
 *
 * A hole (PLN_TYPE_HOLE) is a type that is not known yet. Unifying two types
 * finds what their holes stand for, or that they contradict each other. */

#ifndef PLN_IR_TYPE_UNIFY_H
#define PLN_IR_TYPE_UNIFY_H

#include "ir/type/substitute.h"

typedef struct pln_hole_row {
  uint32_t link; /* the row that stands for it; itself at a root */
  pln_type term; /* of a root: what it is; 0: not known yet */
  pln_type type; /* the hole as a type */
  /* Of a root: who waits for its term, a list through pln_unifier.next; ids
   * plus 1. */
  uint32_t first_waiting, last_waiting;
} pln_hole_row;

/* A pair of types whose parts are being unified. */
typedef struct pln_unify_frame {
  pln_type a, b;
  pln_type as; /* `a` as it is unified: with the names of b's parameters */
  uint32_t done, first;
  uint32_t hole; /* whose term the result becomes, or PLN_NONE */
  uint32_t from; /* the hole that was linked to it, or PLN_NONE */
} pln_unify_frame;

typedef struct pln_unifier {
  pln_engine *engine;
  pln_hole_row *holes;
  uint32_t n_holes, cap_holes;
  pln_idmap *rows;  /* a user's hole -> row + 1 */
  pln_idmap *pairs; /* composite pairs -> result + 1 */
  pln_unify_frame *frames;
  pln_type *parts;
  uint32_t n_frames, cap_frames, n_parts, cap_parts;
  bool conflict;
  bool settled; /* no more is learnt: what is resolved is remembered */
  pln_type conflict_a, conflict_b; /* the parts that contradict each other */
  uint32_t *next;                  /* a waiting id: the one behind it, plus 1 */
  uint32_t cap_next;
  uint32_t first_ready, last_ready; /* ids plus 1 */
  pln_type_substitution resolving;
  pln_type unknown; /* the first hole met while resolving that is open */
} pln_unifier;

void pln_unifier_init(pln_unifier *u, pln_engine *engine);
void pln_unifier_free(pln_unifier *u);
/* A new hole. */
pln_status pln_unifier_hole(pln_unifier *u, pln_type *out) PLN_CHECKED;
/* `type` with a new hole in place of each incomplete part. */
pln_status pln_unifier_open(pln_unifier *u, pln_type type,
                            pln_type *out) PLN_CHECKED;
/* The same, and a hole in place of each tensor of which something is open. */
pln_status pln_unifier_resolve_relaxed(pln_unifier *u, pln_type type,
                                       pln_type *out) PLN_CHECKED;
/* The function type without its type parameters: a new hole for each. */
pln_status pln_unifier_instantiate(pln_unifier *u, pln_type function,
                                   pln_type *out) PLN_CHECKED;
/* The type itself, or what is known of the hole that it is: a hole only when
 * nothing is. */
pln_type pln_unifier_find(pln_unifier *u, pln_type type);
/* *fits false: no holes make them equal. Only memory fails. Parts that say
 * less (`?`) match any, and the result says as little as they. */
pln_status pln_unify(pln_unifier *u, pln_type a, pln_type b,
                     bool *fits) PLN_CHECKED;
/* What both types of the last pln_unify are, when it fits: of generic functions
 * the less general one. */
pln_type pln_unifier_common_type(const pln_unifier *u);
/* The type without holes: those nobody knows are incomplete, those made by
 * users themselves. PLN_ERR_TYPE when the type contains itself. *unknown (may
 * be NULL): a hole in it that is open, or 0. */
pln_status pln_unifier_resolve(pln_unifier *u, pln_type type, pln_type *out,
                               pln_type *unknown) PLN_CHECKED;
/* Nothing will be unified any more: resolving takes linear time in all. */
void pln_unifier_freeze(pln_unifier *u);
/* `id` waits for the open hole; pln_unifier_next_ready gives it back when
 * something is known of that. An id waits for one hole at a time. */
pln_status pln_unifier_wait(pln_unifier *u, pln_type hole,
                            uint32_t id) PLN_CHECKED;
bool pln_unifier_next_ready(pln_unifier *u, uint32_t *id);

#endif
