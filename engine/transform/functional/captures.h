/* captures.h: what functions inside of a function use from around them; for
 * LambdaLift. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_CAPTURES_H
#define PLN_TRANSFORM_FUNCTIONAL_CAPTURES_H

#include "ir/graph/graph.h"

typedef struct pln_capture {
  pln_ref node;
  uint32_t next; /* of the same function, or PLN_NONE */
} pln_capture;

typedef struct pln_captures {
  const pln_graph *graph;
  uint8_t *lifts;    /* a node: a function whose captures are listed */
  pln_ref *self;     /* such a function: the variable bound to it by a let,
                        when it uses that itself; else PLN_NONE */
  pln_ref *binder;   /* a variable: such a function, of which it is self */
  uint32_t *head;    /* such a function: its first capture, or PLN_NONE */
  pln_capture *list; /* in order of first use, by depth as Relay visits */
  uint32_t n, cap;
} pln_captures;

/* Of all functions but the root, the closure that it makes, those inside of
 * primitive functions, and those that operators are given. */
pln_status pln_captures_find(const pln_graph *graph,
                             pln_captures *out) PLN_CHECKED;
void pln_captures_free(pln_captures *captures);

#endif
