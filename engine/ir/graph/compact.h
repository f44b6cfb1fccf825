/* compact.h: what floats in a builder and nobody can reach is dropped. */

#ifndef PLN_IR_GRAPH_COMPACT_H
#define PLN_IR_GRAPH_COMPACT_H

#include "ir/graph/graph.h"

typedef struct pln_compaction {
  pln_builder *b;
  uint32_t size, size_scopes;
  pln_ref *map; /* a node: its new number, or PLN_NONE */
  pln_scope *scopes;
  uint32_t n_nodes, n_scopes; /* that stay */
  pln_ref *stack;
  uint32_t top, cap_stack;
  pln_idmap *vars, *early;
} pln_compaction;

/* Finds what the roots need, of a builder that builds freely; changes nothing.
 * To be ended whatever comes of it. */
pln_status pln_compaction_begin(pln_compaction *c, pln_builder *b, uint32_t n,
                                const pln_ref *roots) PLN_CHECKED;
/* Drops the rest; each node that stays gets the number that c->map says.
 * `tensors`: room for a zero a tensor of the builder. */
void pln_compaction_apply(pln_compaction *c, uint32_t *tensors);
void pln_compaction_end(pln_compaction *c);
/* builder.c: the key in b->vars of an identity that is there with several
 * types.
 */
uint64_t pln_typed_var(uint32_t var, pln_type type);
/* import.c: what was imported and is gone is imported again when it is needed;
 * graphs of which nothing is left are let go. */
void pln_import_compact(pln_builder *b, const pln_ref *map);

#endif
