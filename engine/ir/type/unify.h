/* type/unify.h: first-order unification of types (Milner 1978).
 *
 * A hole (PLN_TYPE_HOLE) is an unknown type. Unifying two types finds what
 * their holes stand for, or a contradiction. */

#ifndef PLN_IR_TYPE_UNIFY_H
#define PLN_IR_TYPE_UNIFY_H

#include "ir/type/substitute.h"

typedef struct pln_hole_row {
  uint32_t link; /* union-find parent row; itself at a root */
  pln_type term; /* at a root: the type; 0: unknown yet */
  pln_type type; /* the hole as a type */
  /* At a root: ids that wait for its term, a list through pln_unifier.next; ids
   * plus 1. */
  uint32_t first_waiting, last_waiting;
} pln_hole_row;

/* A pair of types whose parts are being unified. */
typedef struct pln_unify_frame {
  pln_type a, b;
  pln_type as; /* `a` with its parameters renamed to b's */
  uint32_t done, first;
  uint32_t hole; /* the root whose term becomes the result, or PLN_NONE */
  uint32_t from; /* the root that was linked to it, or PLN_NONE */
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
  bool settled; /* after pln_unifier_freeze: resolved terms are remembered */
  pln_type conflict_a, conflict_b; /* the contradicting parts */
  uint32_t *next;                  /* per waiting id: its successor, plus 1 */
  uint32_t cap_next;
  uint32_t first_ready, last_ready; /* ids plus 1 */
  pln_type_substitution resolving;
  pln_type unknown; /* the first unknown hole found while resolving */
} pln_unifier;

void pln_unifier_init(pln_unifier *u, pln_engine *engine);
void pln_unifier_free(pln_unifier *u);
/* A new hole. */
pln_status pln_unifier_hole(pln_unifier *u, pln_type *out) PLN_CHECKED;
/* `type` with a new hole for each incomplete part. */
pln_status pln_unifier_open(pln_unifier *u, pln_type type,
                            pln_type *out) PLN_CHECKED;
/* The same, with a hole also for each tensor that is partly unknown. */
pln_status pln_unifier_resolve_relaxed(pln_unifier *u, pln_type type,
                                       pln_type *out) PLN_CHECKED;
/* The function type with a new hole for each type parameter. */
pln_status pln_unifier_instantiate(pln_unifier *u, pln_type function,
                                   pln_type *out) PLN_CHECKED;
/* The type itself, or the term of the hole that it is; a hole only when nothing
 * is known. */
pln_type pln_unifier_find(pln_unifier *u, pln_type type);
/* *fits false: the types contradict each other. The only error is out of
 * memory. Parts with less information (`?`) match anything, and the result has
 * no more information than they have. */
pln_status pln_unify(pln_unifier *u, pln_type a, pln_type b,
                     bool *fits) PLN_CHECKED;
/* The common type of the last successful pln_unify; of two generic functions
 * the less general one. */
pln_type pln_unifier_common_type(const pln_unifier *u);
/* The type with holes replaced by their terms. Unknown holes become incomplete
 * types; unknown holes of users stay. PLN_ERR_TYPE when the type contains
 * itself. *unknown (may be NULL): an unknown hole in it, or 0. */
pln_status pln_unifier_resolve(pln_unifier *u, pln_type type, pln_type *out,
                               pln_type *unknown) PLN_CHECKED;
/* Declares unification finished; resolving then takes linear time in total. */
void pln_unifier_freeze(pln_unifier *u);
/* `id` waits for an unknown hole. pln_unifier_next_ready returns it when
 * something is known of the hole. An id waits for one hole at a time. */
pln_status pln_unifier_wait(pln_unifier *u, pln_type hole,
                            uint32_t id) PLN_CHECKED;
bool pln_unifier_next_ready(pln_unifier *u, uint32_t *id);

#endif
