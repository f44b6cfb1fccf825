/* call.h: evaluates one operator on tensors; for folding and for the
 * evaluator. */

#ifndef PLN_EVAL_CALL_H
#define PLN_EVAL_CALL_H

#include "eval/eval.h"
#include "op/op.h"

/* Evaluates the call `node` of `graph` on `n` tensors (NULL: omitted). results:
 * max(1, n_results) entries, preset to NULL and owned by the caller; all NULL
 * on failure. PLN_ERR_UNSUPPORTED with a diagnostic when there is no result. */
pln_status pln_compute(const pln_graph *graph, pln_ref node, uint32_t n,
                       const pln_tensor *const *args,
                       pln_tensor **results) PLN_CHECKED;
/* The same with explicit attributes: the node's, with references resolved. */
pln_status pln_compute_as(const pln_graph *graph, pln_ref node, pln_attrs attrs,
                          uint32_t n, const pln_tensor *const *args,
                          pln_tensor **results) PLN_CHECKED;

/* True if the tensor is consistent with the type, as far as that is known. */
bool pln_tensor_fits(const pln_engine *engine, const pln_tensor *tensor,
                     pln_type type);

#endif
