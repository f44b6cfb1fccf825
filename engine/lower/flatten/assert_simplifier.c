/* assert_simplifier.c: tir.AssertSimplifier: an assertion that is proved goes.
 *
 * A step of tir.StorageFlatten.
 *
 *     for i in range(8): assert i * 16 % 16 == 0; A[i] = 0
 *         =>   for i in range(8): A[i] = 0
 *
 * Semantics: TVM's AssertSimplifier. */

#include "lower/flatten/flatten.h"

typedef struct prover {
  pln_analyzer_scopes scopes;
  bool *proved; /* by node */
} prover;

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  prover *x = ud;
  (void)skip;
  if (pln_stmt_old(s)->nodes[stmt].kind == PLN_ASSERT_STMT) {
    pln_term term;
    PLN_TRY(pln_scoped_term(&x->scopes, s, pln_stmt_operand(s, 0), &term));
    PLN_TRY(pln_analyzer_can_prove(x->scopes.a, term, 0, &x->proved[stmt]));
  }
  return pln_analyzer_scopes_enter(&x->scopes, s, stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s;
  (void)stmt;
  (void)k;
  (void)body;
  (void)again;
  pln_analyzer_scopes_leave(&((prover *)ud)->scopes);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  if (((prover *)ud)->proved[stmt])
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

pln_status pln_assert_simplifier(const pln_graph *function, pln_graph **out) {
  pln_engine *e = function->engine;
  prover x = {.proved = NULL};
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  *out = NULL;
  if (!pln_has_kind(function, PLN_ASSERT_STMT)) {
    *out = pln_graph_retain(function);
    return PLN_OK;
  }
  x.proved = pln_mem_zeroed(e, function->n_nodes * sizeof *x.proved);
  if (!x.proved)
    return pln_nomem(e);
  pln_status status = pln_analyzer_scopes_begin(&x.scopes, function);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_analyzer_scopes_end(&x.scopes);
  pln_mem_free(e, x.proved, function->n_nodes * sizeof *x.proved);
  return status;
}
