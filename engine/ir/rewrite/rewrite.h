/* rewrite.h: what a running rewrite is made of; for rewrite.c,
 * value_numbering.c and the mutators of scripts. */

#ifndef PLN_IR_REWRITE_REWRITE_H
#define PLN_IR_REWRITE_REWRITE_H

#include "ir/graph/graph.h"

/* Hash-cons table: open addressing, entries removed in reverse order when
 * their scope closes. */
typedef struct pln_value_number_slot {
  uint32_t hash;
  pln_ref node; /* + 1; 0: empty */
} pln_value_number_slot;

typedef struct pln_value_numbers {
  pln_value_number_slot *slots;
  uint32_t mask; /* capacity - 1; 0: nothing allocated */
  uint32_t *log; /* slots in order of entry */
  uint32_t count, cap_log;
} pln_value_numbers;

typedef struct pln_swept_scope {
  pln_scope old;
  pln_scope image; /* in the builder; of a dissolved one the enclosing one */
  uint32_t value_numbers; /* entries of the table when it was opened */
  bool dissolved;
} pln_swept_scope;

struct pln_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  const pln_mutator *mutator;
  /* NULL as long as nothing changed: then the new graph is the old one, node
   * for node, and nothing is copied. */
  pln_builder *b;
  pln_ref *map;          /* old node -> new; made with the builder */
  pln_scope *scopes;     /* old scope -> new, PLN_NONE when left out */
  pln_scope *node_scope; /* while clean: the scope of each swept node */
  pln_ref at;            /* the old node being swept */
  pln_ref built;         /* nodes of the new graph that have their origin */
  pln_ref swept;         /* nodes that stand in the new graph while clean */
  pln_swept_scope *open; /* innermost last */
  uint32_t n_open, cap_open;
  bool drop_kept;
  /* The last node that was replaced by one of a type that contradicts its own:
   * the old node, what replaced it, and the rule that did. */
  struct {
    pln_ref old, image;
    pln_symbol rule;
  } contradicted;
  bool error_located; /* the newest error names its node */
  /* Variables that became parameters: the Var that a mutator gave, and the
   * parameter that it is now. */
  struct pln_rewrite_new_param {
    pln_ref var, param;
  } * adopted;
  uint32_t n_adopted, cap_adopted;
  pln_type_mutator *types; /* NULL: types stay */
  pln_value_numbers value_numbers;
};

/* Copies what was swept so far into a builder. */
pln_status pln_rewrite_materialise(pln_rewrite *rw) PLN_CHECKED;
/* The node that is swept is merged into `kept`, which then comes from both. */
pln_status pln_rewrite_merge_origin(pln_rewrite *rw, pln_ref kept) PLN_CHECKED;
/* graph/import_origin.c: when the graph's table has many more steps than there
 * are nodes, the graph gets one with what its nodes still need and the newest
 * steps. */
pln_status pln_origins_trim(pln_graph *graph) PLN_CHECKED;
/* value_numbering.c: whether what the mutator built and answers with is the
 * node that it was given once more; then it is dropped. */
bool pln_rewrite_is_same_node(pln_rewrite *rw, pln_ref node, pln_ref answer);
/* Removes the entries made since the table held `count`. */
void pln_value_numbers_truncate(pln_value_numbers *value_numbers,
                                uint32_t count);
void pln_value_numbers_free(pln_engine *engine,
                            pln_value_numbers *value_numbers);

#endif
