/* check_calls.h: whether the calls of a graph fit what they call; for the
 * verifier, inference and whoever changes a signature. */

#ifndef PLN_IR_INFER_CHECK_CALLS_H
#define PLN_IR_INFER_CHECK_CALLS_H

#include "ir/graph/graph.h"

/* Each call of a function, global or local, has as many arguments as that
 * takes, of its types, and its result. PLN_ERR_TYPE with the argument, both
 * types and the node when one has not. What is not known contradicts nothing,
 * and neither does what a file was accepted with. */
pln_status pln_graph_check_calls(const pln_graph *graph) PLN_CHECKED;
/* What an ONNX model calls was warned of when it was read: the graph of one
 * says that it has calls that do not fit, if it has, and is not asked again. */
pln_status pln_graph_accept_calls(pln_graph *graph) PLN_CHECKED;
/* Checks each function of a module; the message names it. */
pln_status pln_module_check_calls(const pln_module *module) PLN_CHECKED;
/* Names the function in the newest error; gives the status back. */
pln_status pln_annotate_function(const pln_module *module, uint32_t index,
                                 pln_status status);

#endif
