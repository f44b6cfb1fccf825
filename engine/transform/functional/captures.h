/* captures.h: free variables of nested functions (closure captures), for
 * LambdaLift and Defunctionalization. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_CAPTURES_H
#define PLN_TRANSFORM_FUNCTIONAL_CAPTURES_H

#include "ir/graph/graph.h"

typedef struct pln_capture {
  pln_ref node;
  uint32_t next; /* next capture of the same function, or PLN_NONE */
} pln_capture;

typedef struct pln_captures {
  const pln_graph *graph;
  uint8_t *lifts; /* by node: a function whose captures are listed */
  pln_ref *self;  /* by lifted function: the variable that a let binds to it, if
                     its body uses that; else PLN_NONE */
  pln_ref *binder;   /* by variable: the function whose self it is */
  uint32_t *head;    /* by lifted function: its first capture, or PLN_NONE */
  pln_capture *list; /* in order of first use, in Relay's depth-first order */
  uint32_t n, cap;
} pln_captures;

/* Finds the captures of all functions except the root, the closure that the
 * root returns, functions inside primitive functions, and functions that are
 * arguments of operators. */
pln_status pln_captures_find(const pln_graph *graph,
                             pln_captures *out) PLN_CHECKED;
void pln_captures_free(pln_captures *captures);

#endif
