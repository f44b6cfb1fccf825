/* child_engine.h: child engines, which let function passes run in several
 * threads.
 *
 * A child reads the tables of its parent, which is frozen as long as it has
 * children: nobody writes to it. What a child makes has ids above those of the
 * parent. What it is given to work on it borrows (borrow.c): graphs, modules
 * and tensors of its own over the parent's arrays, so that reference counts,
 * allocations and diagnostics are the child's. What it made is brought home
 * (merge.c) when no child works any more: records are interned in the parent,
 * blocks change their owner. pass/parallel/child_engine.c puts a child
 * together. */

#ifndef PLN_IR_WORKER_CHILD_ENGINE_H
#define PLN_IR_WORKER_CHILD_ENGINE_H

#include "ir/graph/module.h"

/* ----------------------------------------------------------------- lending */

pln_status pln_borrowed_new(pln_engine *child) PLN_CHECKED;
/* Before the tables of the child go. */
void pln_borrowed_free(pln_engine *child);
/* A tensor of the child with the same elements; equal to all that the parent's
 * is equal to. Lives as long as the child. */
pln_status pln_borrow_tensor(pln_engine *child, const pln_tensor *tensor,
                             pln_tensor **out) PLN_CHECKED;
/* A graph of the child over the same nodes, whose types may be looked at. It
 * has no constants' tensors before pln_borrow_tensors. */
pln_status pln_borrow_tensors(pln_engine *child,
                              pln_graph *borrow_state) PLN_CHECKED;
pln_status pln_borrow_graph(pln_engine *child, const pln_graph *graph,
                            pln_graph **out) PLN_CHECKED;
/* A module of the child with all of the module's functions. */
pln_status pln_borrow_module(pln_engine *child, const pln_module *module,
                             pln_module **out) PLN_CHECKED;

/* What the parent had counted to when the child was made. */
typedef struct pln_parent_counts {
  uint32_t vars, type_vars;
} pln_parent_counts;
const pln_parent_counts *pln_parent_counts_of(const pln_engine *child);

/* ----------------------------------------------------------------- joining */

/* Ids up to `below` are the parent's; what came after them, and is `to` there
 * now. */
typedef struct pln_merge_map {
  uint32_t below, n, capacity;
  uint32_t *to;
} pln_merge_map;

static inline uint32_t pln_merged_id(const pln_merge_map *map, uint32_t id) {
  return id <= map->below ? id : map->to[id - map->below - 1];
}
/* A number that was counted up in the child from the parent's. */
typedef struct pln_merge_offset {
  uint32_t below, by;
} pln_merge_offset;
static inline uint32_t pln_merged_number(pln_merge_offset shift,
                                         uint32_t number) {
  return number <= shift.below ? number : number + shift.by;
}

typedef struct pln_merge {
  pln_engine *child, *parent;
  pln_merge_map symbols, dims, values, types, attrs, ops;
  pln_merge_offset vars, type_vars;
} pln_merge;

/* Brings the child's records home. When it fails, the parent has more records
 * than it needs, and nothing else has changed. */
pln_status pln_merge_begin(pln_merge *join, pln_engine *child) PLN_CHECKED;
void pln_merge_end(pln_merge *join);
/* The parent's graph for one of the child; gives up the child's. Needs no
 * memory. */
pln_graph *pln_merge_graph(const pln_merge *join, pln_graph *graph);
/* The same for a tensor. */
pln_tensor *pln_merge_tensor(const pln_merge *join, pln_tensor *tensor);

/* A dim of the child as the parent has it. */
pln_dim pln_merge_dim(const pln_merge *join, pln_dim dim);
/* Records of one table; each file knows its own. A type or a dictionary waits,
 * *ready is false, until those of the other table that it names are there. */
pln_status pln_merge_map_begin(pln_merge *join, pln_merge_map *map,
                               uint32_t below, uint32_t count) PLN_CHECKED;
pln_status pln_merge_dims(pln_merge *join) PLN_CHECKED;
pln_status pln_merge_values(pln_merge *join) PLN_CHECKED;
pln_status pln_merge_type(pln_merge *join, bool *ready) PLN_CHECKED;
pln_status pln_merge_attrs(pln_merge *join, bool *ready) PLN_CHECKED;
uint32_t pln_attrs_inherited(const pln_engine *engine);
uint32_t pln_attrs_total(const pln_engine *engine);
uint32_t pln_types_inherited(const pln_engine *engine);
uint32_t pln_types_total(const pln_engine *engine);
pln_status pln_merge_ops(pln_merge *join) PLN_CHECKED;
/* Appends the rows of a child's table to its parent's; of all that were lent.
 */
pln_status pln_merge_origins(pln_merge *join, pln_origins *origins) PLN_CHECKED;
pln_status pln_borrowed_merge_origins(pln_merge *join) PLN_CHECKED;

/* op_info.c: the operators of a child, over its parent's. */
pln_status pln_ops_child(pln_engine *child) PLN_CHECKED;
/* relay/attr_conversion.c: Relay's schemas, read anew: they are remembered as
 * they are read. */
pln_status pln_relay_child(pln_engine *child) PLN_CHECKED;

#endif
