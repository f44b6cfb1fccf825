/* allreduce.h: one reduction over the threads of a block, as
 * tir.LowerThreadAllreduce writes it. */

#ifndef PLN_LOWER_THREAD_ALLREDUCE_H
#define PLN_LOWER_THREAD_ALLREDUCE_H

#include "lower/emit.h"
#include "lower/lower.h"

/* The most values that are reduced together. */
enum { PLN_MOST_REDUCED = 16 };

typedef struct pln_allreduce_target {
  pln_slice kind;          /* "cuda" */
  int64_t warp_size;       /* threads that exchange registers */
  int64_t max_num_threads; /* of a block; -1: not known */
} pln_allreduce_target;

/* Nodes are of the builder, but for those of the old graph. */
typedef struct pln_allreduce {
  pln_stmt_rewrite *s;
  pln_emit e;
  pln_analyzer *a;
  const pln_allreduce_target *target;
  pln_ref reducer; /* CommReducer of the old graph */
  bool overlaps;   /* a result of it needs an earlier value: all are computed
                    * before any of them is stored */
  uint32_t size;   /* values that are reduced together */
  pln_ref values[PLN_MOST_REDUCED];
  pln_type types[PLN_MOST_REDUCED];
  pln_ref reduce_index, group_index; /* of the present thread */
  int64_t reduce_extent;             /* threads that reduce together */
  int64_t group_extent;              /* groups of such threads */
  int64_t contiguous_extent;         /* of neighbours among them */
  pln_ref *stmts;                    /* what is written, in order */
  uint32_t n, cap;
  pln_ref *locals; /* Buffers that are allocated around it, innermost first */
  uint32_t n_locals, cap_locals;
  /* Where the results are: an element of each Buffer; and how large these are:
   * one extent, or groups by threads. */
  pln_ref results[PLN_MOST_REDUCED], result_index, extents[2];
  uint32_t n_extents;
} pln_allreduce;

/* Appends a statement; a Buffer to be allocated. */
void pln_allreduce_push(pln_allreduce *r, pln_ref stmt);
void pln_allreduce_local(pln_allreduce *r, pln_ref buffer);
/* T.tvm_storage_sync(scope) */
void pln_allreduce_sync(pln_allreduce *r, const char *scope);
/* A Buffer of `extent` elements of the type of value `i`, with new memory in
 * that scope. `name` has a "%u" where the number of the value stands. */
pln_ref pln_allreduce_buffer(pln_allreduce *r, const char *name, uint32_t i,
                             const char *scope, int64_t extent);
/* Loads of an element of each of the Buffers. */
void pln_allreduce_load(pln_allreduce *r, const pln_ref *buffers, pln_ref index,
                        pln_ref *out);
/* An integer of the type of the threads' indices. */
pln_ref pln_allreduce_index(pln_allreduce *r, int64_t value);
/* Value `i` of the reducer applied to x and y, which are nodes that belong to
 * no statement yet. */
pln_ref pln_allreduce_combine(pln_allreduce *r, uint32_t i, const pln_ref *x,
                              const pln_ref *y);
/* Stores such values to an element of each of the Buffers. */
void pln_allreduce_assign(pln_allreduce *r, const pln_ref *buffers,
                          pln_ref index, const pln_ref *values);
/* The statements that were pushed since there were `first`, as one. */
pln_ref pln_allreduce_take(pln_allreduce *r, uint32_t first);

/* warp_allreduce.c: whether the target exchanges registers for this reduction,
 * and the code that does. */
bool pln_is_warp_allreduce(const pln_allreduce *r);
void pln_warp_allreduce(pln_allreduce *r);
/* shared_allreduce.c: through shared memory. */
void pln_shared_allreduce(pln_allreduce *r);

#endif
