/* infer/check_uses.h: rechecks nodes that were built before an operand's type
 * was known, now that it is known; for the verifier and inference. */

#ifndef PLN_IR_INFER_CHECK_USES_H
#define PLN_IR_INFER_CHECK_USES_H

#include "ir/graph/graph.h"

/* A let variable may be used inside its own value, before it gets that value's
 * type. Checks each such use: PLN_ERR_TYPE with the node. Unknown types
 * contradict nothing. Mismatches accepted when a file was read are not
 * reported. */
pln_status pln_graph_check_early_uses(const pln_graph *graph) PLN_CHECKED;
/* Checks each function of a module; the message names it. */
pln_status pln_module_check_early_uses(const pln_module *module) PLN_CHECKED;
/* Checks that the module defines each Constructor in values and patterns. A
 * Constructor without a type, as scripts make them, must be used with the right
 * number and types of fields. PLN_ERR_TYPE with the node. */
pln_status pln_graph_check_constructors(const pln_graph *graph,
                                        const pln_module *module) PLN_CHECKED;

#endif
