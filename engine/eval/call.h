/* call.h: evaluates one operator on tensors; for folding and for the
 * evaluator. */

#ifndef PLN_EVAL_CALL_H
#define PLN_EVAL_CALL_H

#include "eval/eval.h"
#include "op/op.h"

/* The number of arguments stored without an allocation. */
enum { PLN_FEW_ARGS = 8 };

/* A call with its arguments. */
typedef struct pln_prepared_call {
  const pln_graph *graph;
  const pln_node *node;
  pln_attrs attrs; /* the node's attributes with references resolved */
  uint32_t count;
  const pln_tensor *const *args;
  pln_tensor **results;
  bool folding;                  /* called by a pass, not by a run */
  const uint32_t *const *orders; /* as in pln_kernel_call */
} pln_prepared_call;
/* The tensor as kernels take it: its data open, dense and aligned. */
pln_status pln_call_operand(const pln_tensor *tensor,
                            pln_tensor **out) PLN_CHECKED;
/* Runs the kernel of a call; results as for pln_compute. */
pln_status pln_call_run(const pln_prepared_call *call) PLN_CHECKED;
static inline void pln_tensors_release(uint32_t n, pln_tensor **tensors) {
  for (uint32_t i = 0; i < n; i++) {
    pln_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}
/* The number of fields of the tuple that a call gives; 0: it gives a tensor.
 * An operator whose results are not counted in the call, as in meshgrid, gives
 * those of the call's type. */
static inline uint32_t pln_n_fields(const pln_graph *g, const pln_node *n) {
  if (n->results || pln_type_get_kind(g->engine, n->type) != PLN_TYPE_TUPLE)
    return n->results;
  return pln_type_n_parts(g->engine, n->type);
}
/* The number of tensors that a call gives. */
static inline uint32_t pln_n_results(const pln_graph *g, const pln_node *n) {
  uint32_t fields = pln_n_fields(g, n);
  return fields ? fields : 1;
}

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

#endif
