/* lowered_call.h: calls of PrimFuncs from Relay code (call_lowered), run by
 * the interpreter of loops; for the evaluator. */

#ifndef PLN_EVAL_LOWERED_CALL_H
#define PLN_EVAL_LOWERED_CALL_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

/* Calls `program` on the tensors in `args` (tuples count as their fields), then
 * on zeros of each tensor in `type`, which are the results. *out is a tensor,
 * or a tuple if `type` is one. */
pln_status pln_lowered_call(pln_engine *engine, const pln_loop_program *program,
                            const pln_ref_cell *args, pln_type type,
                            pln_runtime_value *out) PLN_CHECKED;

#endif
