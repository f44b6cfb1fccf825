/* call_graph.h: which functions of a module refer to themselves. */

#ifndef PLN_TRANSFORM_CALL_GRAPH_H
#define PLN_TRANSFORM_CALL_GRAPH_H

#include "ir/graph/module.h"

/* cyclic[i] of each function of the module: it refers to itself, directly or
 * through others; only functions with member[i] count. */
pln_status pln_recursive_functions(const pln_module *module,
                                   const uint8_t *member,
                                   uint8_t *cyclic) PLN_CHECKED;

#endif
