/* loop.h: loop, scan and sequence_map: what a round of the nested function is
 * given, and what becomes of what it gives. The evaluator runs the rounds. */

#ifndef PLN_EVAL_LOOP_H
#define PLN_EVAL_LOOP_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

typedef struct pln_loop_state pln_loop_state;

/* Whether the operator calls its last operand. */
bool pln_is_loop_op(pln_op op);

/* Of a call whose operands but the last are in `args`, which is taken. attrs:
 * its own, their references resolved. */
pln_status pln_loop_state_new(const pln_graph *graph, pln_ref node,
                              pln_attrs attrs, pln_ref_cell *args,
                              pln_loop_state **out) PLN_CHECKED;
/* Takes in what the round before gave, in *pln_loop_state_result. *args are the
 * arguments of the next round, owned by the caller; NULL: there is none. */
pln_status pln_loop_state_next(pln_loop_state *loop,
                               pln_ref_cell **args) PLN_CHECKED;
/* Where the result of a round goes. */
pln_runtime_value *pln_loop_state_result(pln_loop_state *loop);
/* The result of the call, when there is no round any more. */
pln_status pln_loop_state_finish(pln_loop_state *loop,
                                 pln_runtime_value *out) PLN_CHECKED;
void pln_loop_state_free(pln_loop_state *loop);

#endif
