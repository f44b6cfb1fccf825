/* eliminate_common_subexpr.c: one node for equal computations.
 *
 * Run by the executor, once per function. Requires a verified graph.
 * A node becomes an earlier equal one that its scope can see; never a node
 * with effects, never across sibling scopes, never a function or a branch.
 * Constants up to 1 KiB are equal by content, larger ones by place.
 *
 *     %0 = tanh(%x); %1 = tanh(%x); add(%0, %1)   =>   %0 = tanh(%x); add(%0,
 * %0)
 *
 * Semantics: TVM EliminateCommonSubexpr, extended to every kind and scope. */

#include "transform/transform.h"

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  int64_t *merged = ud;
  pln_ref shared;
  pln_type type = pln_rewrite_graph(rw)->nodes[*node].type;
  (void)old;
  PLN_TRY(pln_rewrite_share(rw, *node, &shared));
  if (shared == *node)
    return PLN_OK;
  ++*merged;
  *node = shared;
  return pln_keep_rank(rw, shared, type);
}

pln_status pln_pass_eliminate_common_subexpr(pln_pass_run *run) {
  int64_t merged = 0;
  pln_mutator m = {.ud = &merged, .visit = visit};
  PLN_TRY(pln_rewrite_function(run, &m));
  return merged ? pln_run_count(run, "merged", merged) : PLN_OK;
}
