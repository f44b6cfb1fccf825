/* with_params.h: gives a function other parameters. */

#ifndef PLN_IR_REWRITE_WITH_PARAMS_H
#define PLN_IR_REWRITE_WITH_PARAMS_H

#include "ir/graph/graph.h"

/* A copy of a function, which has parameters, with `n` other ones: Vars that
 * are parameters now, or free in the body. Parameters that are not listed must
 * be unused. */
pln_status pln_graph_with_params(const pln_graph *function, uint32_t n,
                                 const pln_node *vars,
                                 pln_graph **out) PLN_CHECKED;

#endif
