/* virtual_thread_plan.h: which statements of a virtual thread run once for each
 * thread, and which memory each thread has for itself. */

#ifndef PLN_LOWER_LOOP_VIRTUAL_THREAD_PLAN_H
#define PLN_LOWER_LOOP_VIRTUAL_THREAD_PLAN_H

#include "lower/lower.h"

typedef struct pln_virtual_thread {
  pln_ref attr; /* the AttrStmt */
  pln_ref var;  /* a Var of the graph */
  uint32_t n;   /* the number of threads */
  bool shares;  /* "vthread": memory that no thread touches is shared */
} pln_virtual_thread;

/* The innermost virtual threads of a function. Numbers are 1 + the index among
 * `threads`. */
typedef struct pln_virtual_thread_plan {
  const pln_graph *g;
  pln_virtual_thread *threads;
  uint32_t n, cap;
  bool outer;       /* there are others around them */
  uint32_t *thread; /* by AttrStmt: the thread that it begins */
  uint32_t *repeat; /* by statement: the thread for each of which it runs */
  uint32_t *own;    /* by data pointer of an Allocate: the thread that has it
                     * for itself */
  bool *has_loop;   /* by statement: it is a loop, or has one inside */
} pln_virtual_thread_plan;

pln_status
pln_virtual_thread_plan_make(const pln_graph *g,
                             pln_virtual_thread_plan *out) PLN_CHECKED;
void pln_virtual_thread_plan_free(pln_virtual_thread_plan *plan);
/* True of an AttrStmt that binds a virtual thread. */
bool pln_is_virtual_thread(const pln_graph *g, pln_ref stmt);

#endif
