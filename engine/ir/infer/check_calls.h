/* check_calls.h: checks calls against the signatures of their callees; for the
 * verifier, inference and changes of signatures. */

#ifndef PLN_IR_INFER_CHECK_CALLS_H
#define PLN_IR_INFER_CHECK_CALLS_H

#include "ir/graph/graph.h"

/* Checks every call of a function, global or local: number and types of
 * arguments, and the result type. PLN_ERR_TYPE names the argument, both types
 * and the node. Unknown types contradict nothing. Mismatches accepted when a
 * file was read are not reported. */
pln_status pln_graph_check_calls(const pln_graph *graph) PLN_CHECKED;
/* Marks the graph of an ONNX model whose mismatching calls were reported as
 * warnings, so that they are not reported again. */
pln_status pln_graph_accept_calls(pln_graph *graph) PLN_CHECKED;
/* True if a GlobalVar of Relay code has a type of its own: the type of a
 * PrimFunc says nothing of the tensors that call_lowered passes and gets. */
bool pln_has_own_type(const pln_graph *caller, const pln_node *global,
                      const pln_graph *callee);
/* Checks each function of a module; the message names it. */
pln_status pln_module_check_calls(const pln_module *module) PLN_CHECKED;
/* Adds the function's name to the newest error; returns the status. */
pln_status pln_annotate_function(const pln_module *module, uint32_t index,
                                 pln_status status);

#endif
