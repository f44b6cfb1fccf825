/* convert_for_loops_to_serial.c: tir.ConvertForLoopsToSerial: every loop that
 * is marked parallel becomes serial; other kinds stay.
 *
 *     for i in T.parallel(8): ...   =>   for i in range(8): ...
 *
 * Semantics: TVM's tir.ConvertForLoopsToSerial. */

#include "lower/lower.h"

static pln_status make_serial(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                              pln_ref *node) {
  const pln_graph *g = ud;
  if (g->nodes[stmt].kind != PLN_FOR ||
      pln_for_kind_of(g, stmt) != PLN_FOR_PARALLEL)
    return PLN_OK;
  return pln_stmt_rebuild_for(s, stmt, PLN_FOR_SERIAL, node);
}

pln_status pln_pass_tir_convert_for_loops_to_serial(pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)pln_run_function(run),
                              .leave = make_serial};
  return pln_lower_function(run, &mutator);
}
