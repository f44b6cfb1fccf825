/* infer/check_uses.h: whether what was built before a type was known fits it;
 * for the verifier and inference. */

#ifndef PLN_IR_INFER_CHECK_USES_H
#define PLN_IR_INFER_CHECK_USES_H

#include "ir/graph/graph.h"

/* A let's variable may be used inside of its own value, before the let gives
 * it that value's type: each such use fits it. PLN_ERR_TYPE with the node when
 * one does not. What is not known contradicts nothing, and neither does what a
 * file was accepted with. */
pln_status pln_graph_check_early_uses(const pln_graph *graph) PLN_CHECKED;
/* Checks each function of a module; the message names it. */
pln_status pln_module_check_early_uses(const pln_module *module) PLN_CHECKED;
/* Each Constructor, of values and of patterns, is one that the module defines.
 * Those without a type, as scripts make them, have as many fields as it says,
 * of their types. PLN_ERR_TYPE with the node when one is not, or has not. */
pln_status pln_graph_check_constructors(const pln_graph *graph,
                                        const pln_module *module) PLN_CHECKED;

#endif
