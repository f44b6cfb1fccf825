/* rewrite.h: the state of a running rewrite; for rewrite.c, value_numbering.c
 * and the mutators of scripts. */

#ifndef PLN_IR_REWRITE_REWRITE_H
#define PLN_IR_REWRITE_REWRITE_H

#include "ir/graph/graph.h"

/* The tables of value numbering (value_numbering.c). */
typedef struct pln_value_number_slot {
  uint32_t hash;
  pln_ref node; /* node + 1; 0: empty */
} pln_value_number_slot;

/* An entry, in order of insertion. */
typedef struct pln_value_number {
  uint32_t place; /* a slot, with a bit; or the operand whose list it is in */
  pln_ref node;
  uint32_t next; /* the entry before it in the list, + 1; 0: none */
} pln_value_number;

typedef struct pln_value_numbers {
  uint32_t *lists; /* by node: the newest entry of those whose latest operand it
                    * is, + 1; 0: none */
  uint32_t cap_lists;
  pln_value_number_slot *slots; /* a hash table, open addressing */
  uint32_t mask, n_slots;       /* mask: capacity - 1; 0: not allocated */
  pln_value_number *entries;
  uint32_t count, cap_entries;
  uint32_t valid; /* the entries behind these are of scopes that have ended, and
                   * are removed before the next one is added */
} pln_value_numbers;

typedef struct pln_swept_scope {
  pln_scope old;
  pln_scope image;        /* its scope in the builder; for a dissolved scope the
                           * enclosing one */
  uint32_t value_numbers; /* number of entries when it was opened */
  bool dissolved;
} pln_swept_scope;

struct pln_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  const pln_mutator *mutator;
  /* NULL as long as nothing changed: the new graph is then the old one and
   * nothing is copied. */
  pln_builder *b;
  pln_ref *map;      /* old node -> new node, with a bit (rewrite.c); made with
                      * the builder */
  pln_scope *scopes; /* old scope -> new scope, PLN_NONE when skipped */
  pln_ref at;        /* the old node being swept */
  pln_ref built;     /* nodes of the new graph whose origin is set */
  pln_ref unmapped;  /* nodes of the new graph from here on are no image yet */
  bool retyped;      /* the type of an image changed */
  pln_ref swept;     /* before the first change: the number of swept nodes */
  pln_swept_scope *open; /* open scopes, innermost last */
  uint32_t n_open, cap_open;
  bool drop_kept;
  /* The last node replaced by one of a contradicting type: the old node, its
   * replacement and the rule. */
  struct {
    pln_ref old, image;
    pln_symbol rule;
  } contradicted;
  bool error_located; /* the newest error names its node already */
  /* A Var that replaced a parameter, and the parameter node that it is now. */
  struct pln_rewrite_new_param {
    pln_ref var, param;
  } * adopted;
  uint32_t n_adopted, cap_adopted;
  pln_type_mutator *types; /* NULL: types are unchanged */
  pln_value_numbers value_numbers;
};

/* Called when the type of a node of the new graph changes. */
static inline void pln_rewrite_note_type(pln_rewrite *rw, pln_ref node) {
  rw->retyped |= node < rw->unmapped;
}
/* Copies everything swept so far into a builder. */
pln_status pln_rewrite_materialise(pln_rewrite *rw) PLN_CHECKED;
/* Records that the swept node was merged into `kept`, which gets both
 * origins. */
pln_status pln_rewrite_merge_origin(pln_rewrite *rw, pln_ref kept) PLN_CHECKED;
/* hoist.c: true if the scope of a node of the new graph has ended, so that the
 * node is not visible where the sweep is. */
bool pln_rewrite_has_left(const pln_rewrite *rw, pln_ref node);
/* Copies such a node and what it is computed of inside its scope to the scope
 * being swept. *out: the copy, or the node itself if a part of it has scopes or
 * is a parameter or let. */
pln_status pln_rewrite_hoist(pln_rewrite *rw, pln_ref node,
                             pln_ref *out) PLN_CHECKED;
/* Moves such a node, which has no effect and no scopes, out to the innermost
 * scope that has not ended. Its operands are visible there. */
void pln_rewrite_raise(pln_rewrite *rw, pln_ref node);
/* value_numbering.c: true if the mutator's result is an equal copy of the node
 * that it was given; the copy is then dropped. */
bool pln_rewrite_is_same_node(pln_rewrite *rw, pln_ref node, pln_ref answer);
void pln_value_numbers_free(pln_engine *engine,
                            pln_value_numbers *value_numbers);

#endif
