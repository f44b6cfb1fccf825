/* loop.h: loop, scan and sequence_map: what a round of the nested function is
 * given, and what becomes of what it gives. The evaluator runs the rounds. */

#ifndef PLN_EVAL_LOOP_H
#define PLN_EVAL_LOOP_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

typedef struct pln_cycle pln_cycle;

/* Whether the operator calls its last operand. */
bool pln_cycle_is(pln_op op);

/* Of a call whose operands but the last are in `args`, which is taken. attrs:
 * its own, their references resolved. */
pln_status pln_cycle_new(const pln_graph *graph, pln_ref node, pln_attrs attrs,
                         pln_box *args, pln_cycle **out) PLN_CHECKED;
/* Takes in what the round before gave, in *pln_cycle_given. *args are the
 * arguments of the next round, owned by the caller; NULL: there is none. */
pln_status pln_cycle_next(pln_cycle *cycle, pln_box **args) PLN_CHECKED;
/* Where the result of a round goes. */
pln_datum *pln_cycle_given(pln_cycle *cycle);
/* The result of the call, when there is no round any more. */
pln_status pln_cycle_finish(pln_cycle *cycle, pln_datum *out) PLN_CHECKED;
void pln_cycle_free(pln_cycle *cycle);

#endif
