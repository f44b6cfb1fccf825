/* loop.h: iterations of loop, scan, scan_batches and sequence_map: the
 * arguments of each iteration and what becomes of its results. The evaluator
 * runs the body. */

#ifndef PLN_EVAL_LOOP_H
#define PLN_EVAL_LOOP_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

typedef struct pln_loop_state pln_loop_state;

/* True if the operator calls its last operand. */
bool pln_is_loop_op(pln_op op);
/* True if the operator calls functions among the operands of the call: that of
 * a loop, or those of flex_attention. */
bool pln_calls_operands(const pln_node *call);

/* State for a call whose operands, except the last, are in `args`, which is
 * taken. attrs: the node's, with references resolved. */
pln_status pln_loop_state_new(const pln_graph *graph, pln_ref node,
                              pln_attrs attrs, pln_ref_cell *args,
                              pln_loop_state **out) PLN_CHECKED;
/* Consumes the result of the previous iteration, which the caller has stored in
 * *pln_loop_state_result. *args are the arguments of the next iteration, owned
 * by the caller; NULL: the loop has ended. */
pln_status pln_loop_state_next(pln_loop_state *loop,
                               pln_ref_cell **args) PLN_CHECKED;
/* Where the caller stores the result of an iteration. */
pln_runtime_value *pln_loop_state_result(pln_loop_state *loop);
/* The result of the call, after the last iteration. */
pln_status pln_loop_state_finish(pln_loop_state *loop,
                                 pln_runtime_value *out) PLN_CHECKED;
void pln_loop_state_free(pln_loop_state *loop);

#endif
