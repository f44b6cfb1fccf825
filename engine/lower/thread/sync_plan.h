/* sync_plan.h: before which statements of a PrimFunc a barrier between threads
 * stands; for tir.ThreadSync. */

#ifndef PLN_LOWER_THREAD_SYNC_PLAN_H
#define PLN_LOWER_THREAD_SYNC_PLAN_H

#include "lower/lower.h"

typedef enum pln_access_type {
  PLN_ACCESS_READ,
  PLN_ACCESS_WRITE,
  PLN_ACCESS_SYNC
} pln_access_type;

typedef struct pln_thread_access {
  pln_access_type type;
  pln_ref data;      /* the variable of the memory */
  pln_ref at;        /* the BufferLoad or BufferStore; PLN_NONE: a region */
  uint64_t thread;   /* bit of the innermost thread around it */
  bool is_point;     /* one element: no variable of an inner loop is in it */
  bool double_write; /* of a double buffer, in the half that is not read */
} pln_thread_access;

/* By node, of its expression. */
typedef struct pln_index_facts {
  pln_ref latest;   /* its loop variable that is bound last; 0: it has none;
                     * PLN_NONE: it has a call, of which nothing is known */
  uint64_t threads; /* bits of its thread variables */
} pln_index_facts;

typedef struct pln_sync_plan {
  const pln_graph *g;
  pln_slice scope;        /* storage scope */
  pln_index_facts *facts; /* by node */
  bool *before;           /* by node: a barrier stands before it */
  uint32_t count;         /* of the barriers */
} pln_sync_plan;

pln_status pln_sync_plan_make(pln_sync_plan *plan, const pln_graph *function,
                              pln_slice scope) PLN_CHECKED;
void pln_sync_plan_free(pln_sync_plan *plan);

/* Whether the variable is memory of that storage scope. */
bool pln_is_in_storage(const pln_graph *g, pln_ref var, pln_slice scope);

/* access_conflict.c: accesses since the last barrier. */

/* Accesses of one kind to one memory. */
typedef struct pln_pending_cell {
  pln_thread_access first;
  uint32_t epoch; /* it is empty if this is not the present one */
  bool mixed;     /* one of them is of another element than the first */
} pln_pending_cell;

typedef struct pln_pending {
  pln_engine *engine;
  uint32_t *row_of;               /* by node: row + 1 of memory */
  pln_pending_cell (*rows)[2][2]; /* by type, and double_write */
  uint32_t n_rows, epoch;
} pln_pending;

pln_status pln_pending_new(pln_pending *p,
                           const pln_sync_plan *plan) PLN_CHECKED;
void pln_pending_free(pln_pending *p, const pln_sync_plan *plan);
void pln_pending_clear(pln_pending *p);
/* True if it tells something new: a later access conflicts with it and may not
 * with those that were added, or the other way round. */
bool pln_pending_add(pln_pending *p, const pln_sync_plan *plan,
                     const pln_thread_access *access);
/* True if an access before may be of the same element by another thread.
 * `carried`: those before are of the loop's round before. */
bool pln_pending_conflicts(const pln_pending *p, const pln_sync_plan *plan,
                           const pln_thread_access *access, bool carried);

#endif
