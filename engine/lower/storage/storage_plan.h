/* storage_plan.h: which allocations of a PrimFunc share memory, and where it is
 * allocated; for tir.StorageRewrite. */

#ifndef PLN_LOWER_STORAGE_STORAGE_PLAN_H
#define PLN_LOWER_STORAGE_STORAGE_PLAN_H

#include "lower/lower.h"

/* Memory that one or several allocations use, one after the other. */
typedef struct pln_storage {
  pln_ref first;    /* the Allocate whose variable it has */
  pln_ref attach;   /* the For, LetStmt or AttrStmt in whose body it is
                     * allocated; PLN_NONE: in the function */
  pln_symbol scope; /* storage scope */
  pln_dtype dtype;  /* of an element, without lanes */
  uint64_t bits;    /* 0: the size is not constant */
  uint32_t last;    /* the row of its last allocation in `allocations` */
  bool merged;      /* the allocations differ */
  uint32_t head;    /* 1 + the storage of whose memory it is a part; 0: none */
  uint64_t offset;  /* its first bit there */
  uint64_t total;   /* bits of a storage that others are parts of; 0: none is */
} pln_storage;

typedef struct pln_storage_allocation {
  pln_ref stmt;     /* the Allocate */
  uint32_t storage; /* row + 1; 0: never used */
  uint32_t next;    /* the one before it in the storage, + 1 */
  uint32_t level;   /* number of scopes that are open there */
  uint32_t lanes;
  pln_dtype dtype;
  pln_symbol scope;
  uint64_t bits; /* of its memory; 0: not constant */
} pln_storage_allocation;

typedef struct pln_storage_plan {
  pln_engine *engine;
  const pln_graph *graph;
  uint32_t *allocation_of; /* by node: the row + 1 of the Allocate whose
                            * variable it is */
  pln_storage_allocation *allocations;
  uint32_t n_allocations, cap_allocations;
  pln_storage *storages;
  uint32_t n_storages, cap_storages;
} pln_storage_plan;

pln_status pln_storage_plan_make(pln_storage_plan *plan,
                                 const pln_graph *function) PLN_CHECKED;
void pln_storage_plan_free(pln_storage_plan *plan);

/* access_pattern.c: the statements in order, with the allocations they touch.
 */

typedef struct pln_access {
  uint32_t allocation; /* row */
  uint32_t next;       /* index + 1 of the next one of the entry */
} pln_access;

/* A statement without bodies, or the begin or the end of one with bodies. */
typedef struct pln_access_entry {
  pln_ref stmt;
  int32_t pair;   /* distance to the other end; 0: no bodies */
  uint32_t first; /* index + 1 of its first access */
} pln_access_entry;

typedef struct pln_access_pattern {
  pln_access_entry *entries;
  uint32_t n, cap;
  pln_access *accesses;
  uint32_t n_accesses, cap_accesses;
} pln_access_pattern;

/* Fills the allocations of the plan, and the pattern. */
pln_status pln_access_pattern_find(pln_access_pattern *pattern,
                                   pln_storage_plan *plan) PLN_CHECKED;
void pln_access_pattern_free(pln_engine *engine, pln_access_pattern *pattern);

/* pointer_value_type.c: tir.PointerValueTypeRewrite for memory that the
 * function allocates, without scalar reads of vectors. */
pln_status pln_rewrite_memory_types(pln_pass_run *run) PLN_CHECKED;

/* inplace.c: true if the statement computes dst[i] = f(src[i], ...) for data
 * pointers dst and src, and accesses them in no other way, so that they may be
 * one. */
bool pln_is_inplace(const pln_graph *graph, pln_ref stmt, pln_ref dst,
                    pln_ref src);

#endif
