/* thread_reduction.h: which blocks of a PrimFunc reduce over threads; for
 * tir.LowerCrossThreadReduction. */

#ifndef PLN_LOWER_THREAD_THREAD_REDUCTION_H
#define PLN_LOWER_THREAD_THREAD_REDUCTION_H

#include "lower/emit.h"
#include "lower/lower.h"

/* The most values that a known reducer reduces together. */
enum { PLN_MOST_COMBINED = 2 };

struct pln_reducer_row; /* known_reducers.c */

/* What a block does with its values, by nodes of the old graph. */
typedef struct pln_reduction_update {
  const struct pln_reducer_row *reducer;
  uint32_t n; /* values */
  pln_ref stores[PLN_MOST_COMBINED];
  pln_ref inits[PLN_MOST_COMBINED]; /* what they begin with */
  pln_ref terms[PLN_MOST_COMBINED]; /* what is combined with them */
} pln_reduction_update;

/* known_reducers.c: reads the init and the body of a block. PLN_ERR_ARGUMENT:
 * they are no reduction that is known. */
pln_status pln_reduction_update_read(const pln_graph *g, pln_ref block,
                                     pln_reduction_update *out) PLN_CHECKED;
/* A CommReducer like that of the update, with new variables. `inits` are nodes
 * of the builder. */
pln_ref pln_emit_reducer(pln_emit *e, const pln_reduction_update *update,
                         const pln_ref *inits);

/* A block that reduces over threads, and the loops whose variables its
 * reduction axes have: they are around it without anything between them. */
typedef struct pln_thread_reduction {
  pln_ref realize, block;
  pln_ref outer_block; /* the Block around it */
  pln_ref *loops;      /* outermost first */
  uint32_t n_loops, cap_loops;
  bool in_thread; /* each thread reduces, or has a condition, before */
  pln_reduction_update update;
} pln_thread_reduction;

typedef struct pln_thread_reductions {
  const pln_graph *g;
  pln_thread_reduction *items;
  uint32_t n, cap;
  uint32_t
      *at; /* by node: 1 + the reduction whose loop or BlockRealize it is */
} pln_thread_reductions;

/* PLN_ERR_ARGUMENT: one cannot be lowered. */
pln_status pln_thread_reductions_find(const pln_graph *g,
                                      pln_thread_reductions *out) PLN_CHECKED;
void pln_thread_reductions_free(pln_thread_reductions *all);

/* Whether the loop is bound to a thread, and its name: "threadIdx.x". */
bool pln_is_thread_loop(const pln_graph *g, pln_ref loop);
pln_slice pln_thread_tag(const pln_graph *g, pln_ref loop);

#endif
