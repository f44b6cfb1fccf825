/* child_engine.h: child engines, which run function passes in several threads.
 *
 * A child reads the tables of its parent, which is frozen as long as it has
 * children. Objects that a child makes have ids above the parent's. A child
 * borrows the graphs, modules and tensors that it works on (borrow.c): it has
 * its own headers over the parent's arrays, so reference counts, allocations
 * and diagnostics belong to the child. When no child runs any more, merge.c
 * merges what it made into the parent: records are interned again, memory
 * blocks change owner. pass/parallel/child_engine.c assembles a child. */

#ifndef PLN_IR_WORKER_CHILD_ENGINE_H
#define PLN_IR_WORKER_CHILD_ENGINE_H

#include "ir/graph/module.h"
#include "ir/merge_ids.h"

/* ----------------------------------------------------------------- lending */

pln_status pln_borrowed_new(pln_engine *child) PLN_CHECKED;
/* Called before the tables of the child are freed. */
void pln_borrowed_free(pln_engine *child);
/* A graph of the child over the same nodes and types. Its constants have no
 * tensors before pln_borrow_tensors. */
pln_status pln_borrow_tensors(pln_engine *child,
                              pln_graph *borrow_state) PLN_CHECKED;
pln_status pln_borrow_graph(pln_engine *child, const pln_graph *graph,
                            pln_graph **out) PLN_CHECKED;
/* A module of the child with all functions of the parent's module. */
pln_status pln_borrow_module(pln_engine *child, const pln_module *module,
                             pln_module **out) PLN_CHECKED;

/* The parent's counters when the child was made. */
typedef struct pln_parent_counts {
  uint32_t vars, type_vars;
} pln_parent_counts;
const pln_parent_counts *pln_parent_counts_of(const pln_engine *child);

/* ----------------------------------------------------------------- joining */

/* Interns the child's records in the parent. On failure the parent has some
 * superfluous records, and nothing else has changed. */
pln_status pln_merge_begin(pln_merge *join, pln_engine *child) PLN_CHECKED;
void pln_merge_end(pln_merge *join);
/* The parent's graph for one of the child; takes the child's. Needs no
 * memory. */
pln_graph *pln_merge_graph(const pln_merge *join, pln_graph *graph);

/* Appends the rows of a child's table to its parent's, for all borrowed
 * tables. */
pln_status pln_merge_origins(pln_merge *join, pln_origins *origins) PLN_CHECKED;
pln_status pln_borrowed_merge_origins(pln_merge *join) PLN_CHECKED;

/* relay/attr_conversion.c: the Relay schemas of a child. They are parsed again
 * because parsing caches its results. */
pln_status pln_relay_child(pln_engine *child) PLN_CHECKED;

#endif
