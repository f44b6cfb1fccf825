/* known_branch.c: branches whose condition is a constant. Called by passes that
 * take such branches away. */

#include "lower/known_branch.h"
#include "lower/analyzer_scopes.h"

int pln_stmt_condition(const pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  if (pln_stmt_old(s)->nodes[stmt].kind != PLN_IF_THEN_ELSE)
    return -1;
  pln_ref condition = pln_likely_condition(g, pln_stmt_operand(s, 0));
  return g->nodes[condition].kind == PLN_INT_IMM
             ? pln_node_int(g, condition) != 0
             : -1;
}

pln_status pln_known_branch(pln_stmt_rewrite *s, int condition, pln_ref *out) {
  *out = pln_stmt_body(s, condition ? 0 : 1);
  return *out == PLN_NONE ? pln_stmt_no_op(s, out) : PLN_OK;
}

pln_status pln_enter_known_branch(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  uint32_t k, bool *skip) {
  (void)ud;
  *skip = pln_stmt_condition(s, stmt) == (int)k;
  return PLN_OK;
}

pln_status pln_leave_known_branch(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  pln_ref *node) {
  int known = pln_stmt_condition(s, stmt);
  (void)ud;
  return known < 0 ? PLN_OK : pln_known_branch(s, known, node);
}
