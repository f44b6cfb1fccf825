/* skip_assert.c: tir.SkipAssert: removes assertions.
 *
 * Run by the executor.
 *
 *     assert n > 0, "n"; A[0] = n   =>   A[0] = n
 *
 * Semantics: TVM's tir.SkipAssert. */

#include "lower/lower.h"

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  (void)ud;
  if (pln_stmt_old(s)->nodes[stmt].kind == PLN_ASSERT_STMT)
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

pln_status pln_pass_tir_skip_assert(pln_pass_run *run) {
  pln_stmt_mutator mutator = {.leave = leave_stmt};
  return pln_has_kind(pln_run_function(run), PLN_ASSERT_STMT)
             ? pln_lower_function(run, &mutator)
             : PLN_OK;
}
