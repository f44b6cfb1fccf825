/* call_graph.h: finds the recursive functions of a module: those in a cycle of
 * the call graph. */

#ifndef PLN_TRANSFORM_CALL_GRAPH_H
#define PLN_TRANSFORM_CALL_GRAPH_H

#include "ir/graph/module.h"

/* Sets cyclic[i] for each function of the module: true if it refers to itself,
 * directly or through others. Only functions with member[i] are followed. */
pln_status pln_recursive_functions(const pln_module *module,
                                   const uint8_t *member,
                                   uint8_t *cyclic) PLN_CHECKED;

#endif
