/* fold_function.h: evaluates calls of functions, and loops, that depend on
 * constants only. For FoldConstant. */

#ifndef PLN_TRANSFORM_FOLD_FOLD_FUNCTION_H
#define PLN_TRANSFORM_FOLD_FOLD_FUNCTION_H

#include "eval/eval.h"
#include "transform/transform.h"

/* Of one sweep over a function. Zeroed but for `old`, `run` and `steps`. */
typedef struct pln_function_folds {
  const pln_graph *old; /* the function that is rewritten */
  pln_pass_run *run;    /* of a function of the module that it may call */
  uint64_t *steps;      /* how many nodes calls may still compute in vain */
  pln_builder *b;       /* floating; NULL before the first call */
  /* By node of `old`; NULL before the first function. Of a Var that a let
   * binds: its Function or Tuple. Of a Function: 0, or a row of `bodies` + 1.
   */
  uint32_t *of;
  pln_idmap *globals; /* name of a called global -> its row of `bodies` + 1 */
  struct pln_folded_body *bodies;
  uint32_t n_bodies, cap_bodies;
} pln_function_folds;

/* Steps that a sweep of FoldConstant may compute in vain. */
#define PLN_FOLD_STEPS ((uint64_t)1 << 20)

void pln_function_folds_end(pln_function_folds *folds);
/* A let of the old function binds `var` to `value`. */
pln_status pln_function_folds_let(pln_function_folds *folds, pln_ref var,
                                  pln_ref value) PLN_CHECKED;
/* The Function or Tuple of the old function that its variable is bound to;
 * PLN_NONE: another value, or no variable. */
pln_ref pln_function_folds_value(const pln_function_folds *folds, pln_ref var);
/* True if the call of the new graph calls a function, or is a loop, and each
 * other operand is a constant. */
bool pln_function_folds_try(const pln_function_folds *folds,
                            const pln_rewrite *rw, pln_ref old, pln_ref node);
/* Evaluates such a call. values: one, or one per field of its tuple; zeroed,
 * and released by the caller. They stay PLN_RUNTIME_NONE if the call is
 * refused, with the reason in *why: PLN_REFUSED_NOT if its body depends on more
 * than constants, has effects, or is no plain function. */
pln_status pln_function_folds_run(pln_function_folds *folds, pln_rewrite *rw,
                                  pln_ref old, pln_ref node, uint32_t n,
                                  pln_runtime_value *values,
                                  pln_refusal *why) PLN_CHECKED;

#endif
