/* auto_copy.h: copies between global and shared memory that blocks ask to be
 * spread over the threads (tir.LowerAutoCopy). */

#ifndef PLN_LOWER_DEVICE_AUTO_COPY_H
#define PLN_LOWER_DEVICE_AUTO_COPY_H

#include "lower/lower.h"

enum { PLN_MOST_COPY_LOOPS = 16, PLN_MOST_COPY_AXES = 16, PLN_WARP = 32 };

/* A Block with the annotation auto_copy: loops around one store. */
typedef struct pln_auto_copy {
  pln_ref block, outermost, store;
  pln_ref loops[PLN_MOST_COPY_LOOPS]; /* the order of the new index */
  int64_t extents[PLN_MOST_COPY_LOOPS];
  uint32_t n_loops;
  int64_t rounds; /* of the loop around those of the threads */
  int64_t lanes;  /* elements that a thread copies at once */
  uint32_t bits;  /* of the larger element */
} pln_auto_copy;

/* A load or store of a copy in shared memory. */
typedef struct pln_copy_access {
  pln_ref access;
  uint32_t first; /* operand of the first index */
  uint32_t copy;
  uint32_t next; /* 1 + the next one of the same Buffer; 0: none */
} pln_copy_access;

typedef struct pln_auto_copies {
  const pln_graph *g;
  pln_analyzer *a;
  pln_auto_copy *rows;
  uint32_t n, cap;
  uint32_t *of;       /* by node: 1 + the copy whose outermost loop it is */
  uint32_t *elements; /* by scope: statements */
  pln_copy_access *accesses;
  uint32_t n_accesses, cap_accesses;
  uint32_t *first_access; /* by Buffer: 1 + its last access; 0: none */
  /* Of threadIdx.z, threadIdx.y, threadIdx.x; 0: there is none. */
  int64_t threads[3];
} pln_auto_copies;

extern const char *const pln_thread_axes[3];

/* Finds the copies. Must be freed in any case. */
pln_status pln_auto_copies_find(pln_auto_copies *x,
                                const pln_graph *function) PLN_CHECKED;
void pln_auto_copies_free(pln_auto_copies *x);
bool pln_is_in_shared(const pln_graph *g, pln_ref buffer);

/* shared_padding.c: strides of a Buffer in shared memory with which the threads
 * of a warp meet few banks twice. *padded: it is accessed by a copy, and its
 * shape is constant. */
pln_status pln_shared_strides(pln_auto_copies *x, pln_ref buffer,
                              int64_t *strides, bool *padded) PLN_CHECKED;

#endif
