/* call.h: one operator on tensors; for folding and for the evaluator. */

#ifndef PLN_EVAL_CALL_H
#define PLN_EVAL_CALL_H

#include "eval/eval.h"
#include "op/op.h"

/* Computes the call `node` of `graph` on `n` tensors (NULL: omitted). results:
 * max(1, n_results) of them, preset to NULL, owned by the caller; on failure
 * none is left. PLN_ERR_UNSUPPORTED with a diagnostic when refused. */
pln_status pln_compute(const pln_graph *graph, pln_ref node, uint32_t n,
                       const pln_tensor *const *args,
                       pln_tensor **results) PLN_CHECKED;
/* The same with other attributes: the node's, their references resolved. */
pln_status pln_compute_as(const pln_graph *graph, pln_ref node, pln_attrs attrs,
                          uint32_t n, const pln_tensor *const *args,
                          pln_tensor **results) PLN_CHECKED;

/* Whether the tensor is as the type says, as far as that is known. */
bool pln_tensor_fits(const pln_engine *engine, const pln_tensor *tensor,
                     pln_type type);

#endif
