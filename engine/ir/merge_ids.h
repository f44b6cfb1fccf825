/* merge_ids.h: the ids of a child engine's records in the tables of its parent.
 *
 * Each table (symbols, dims, types, attributes, operators) merges its own
 * records; worker/merge.c calls them. Tables know this header and not the
 * workers. */

#ifndef PLN_IR_MERGE_IDS_H
#define PLN_IR_MERGE_IDS_H

#include "base/base.h"

/* Maps a child's ids to the parent's: ids up to `below` are the parent's own;
 * `to` holds the parent's ids of the later ones. */
typedef struct pln_merge_map {
  uint32_t below, n, capacity;
  uint32_t *to;
} pln_merge_map;

static inline uint32_t pln_merged_id(const pln_merge_map *map, uint32_t id) {
  return id <= map->below ? id : map->to[id - map->below - 1];
}
/* A counter that both the parent and the child incremented. */
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

/* The parent's tensor for one of the child; takes the child's. */
pln_tensor *pln_merge_tensor(const pln_merge *join, pln_tensor *tensor);
/* A tensor of the child with the same elements; equal to every tensor that the
 * parent's is equal to. Lives as long as the child. */
pln_status pln_borrow_tensor(pln_engine *child, const pln_tensor *tensor,
                             pln_tensor **out) PLN_CHECKED;
/* The parent's dim for a dim of the child. */
pln_dim pln_merge_dim(const pln_merge *join, pln_dim dim);
/* Merges the records of one table; each file implements its own. A type or
 * attribute dictionary is deferred (*ready is false) until the records of the
 * other table that it refers to are merged. */
pln_status pln_merge_map_begin(pln_merge *join, pln_merge_map *map,
                               uint32_t below, uint32_t count) PLN_CHECKED;
pln_status pln_merge_dims(pln_merge *join) PLN_CHECKED;
pln_status pln_merge_values(pln_merge *join) PLN_CHECKED;
pln_status pln_merge_type(pln_merge *join, bool *ready) PLN_CHECKED;
pln_status pln_merge_attrs(pln_merge *join, bool *ready) PLN_CHECKED;
pln_status pln_merge_ops(pln_merge *join) PLN_CHECKED;
uint32_t pln_attrs_inherited(const pln_engine *engine);
uint32_t pln_attrs_total(const pln_engine *engine);
uint32_t pln_types_inherited(const pln_engine *engine);
uint32_t pln_types_total(const pln_engine *engine);

#endif
