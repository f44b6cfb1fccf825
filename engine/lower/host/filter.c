/* filter.c: tir.Filter: keeps the functions for which a function of the caller
 * says true.
 *
 * Run by the executor. Without a condition nothing is removed.
 *
 *     pl.passes["tir.Filter"] {
 *       fcond = function(f) return f.attrs.calling_conv ~= 2 end }
 *
 * Semantics: TVM's tir.Filter. */

#include "lower/lower.h"

pln_status pln_pass_tir_filter(pln_pass_run *run) {
  const pln_predicate *keep = pln_pass_predicate(pln_run_pass(run), "fcond");
  const pln_graph *g = pln_run_function(run);
  bool answer = true;
  if (!keep)
    return PLN_OK;
  PLN_TRY(keep->call(keep->ud, run, g, g->root, &answer));
  return answer ? PLN_OK : pln_run_remove_function(run);
}
