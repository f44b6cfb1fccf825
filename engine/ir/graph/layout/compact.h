/* compact.h: garbage collection of a floating builder. */

#ifndef PLN_IR_GRAPH_COMPACT_H
#define PLN_IR_GRAPH_COMPACT_H

#include "ir/graph/graph.h"

typedef struct pln_compaction {
  pln_builder *b;
  uint32_t size, size_scopes;
  pln_ref *map; /* per node: its new number, or PLN_NONE */
  pln_scope *scopes;
  uint32_t n_nodes, n_scopes; /* numbers of remaining nodes and scopes */
  pln_ref *stack;
  uint32_t top, cap_stack;
  pln_idmap *vars, *early;
} pln_compaction;

/* Marks what the roots reach in a floating builder; changes nothing.
 * pln_compaction_end must follow in any case. */
pln_status pln_compaction_begin(pln_compaction *c, pln_builder *b, uint32_t n,
                                const pln_ref *roots) PLN_CHECKED;
/* Removes everything else; each remaining node gets the number in c->map.
 * `tensors`: one zeroed entry per tensor of the builder. */
void pln_compaction_apply(pln_compaction *c, uint32_t *tensors);
void pln_compaction_end(pln_compaction *c);
/* builder.c: the key in b->vars of a variable that occurs with several
 * types. */
uint64_t pln_typed_var(uint32_t var, pln_type type);
/* import.c: forgets imported nodes that were removed, so that they are imported
 * again when needed, and releases graphs without remaining copies. */
void pln_import_compact(pln_builder *b, const pln_ref *map);
/* tir/buffer_identity.c: enters a Buffer, which will be node `moved`, into a
 * new table of what is known by identity. */
pln_status pln_buffer_remember_as(const pln_graph *g, pln_ref buffer,
                                  pln_idmap *known, pln_ref moved) PLN_CHECKED;

#endif
