/* convert_ssa.c: tir.ConvertSSA: gives each binding of a variable a variable of
 * its own.
 *
 * Run by the executor.
 *
 *     x = 32; with T.LetStmt(16, var=x): T.evaluate(x)
 *         =>   x = 32; with T.LetStmt(16) as y: T.evaluate(y)
 *
 * Semantics: TVM's tir.ConvertSSA within each function. */

#include "lower/lower.h"

typedef struct ssa_converter {
  const pln_graph *g;
  pln_idmap *bound; /* the variable's identity -> 1 */
} ssa_converter;

/* A variable that is bound for the second time becomes a new one. */
static pln_status bind_param(ssa_converter *x, pln_stmt_rewrite *s,
                             pln_ref param) {
  const pln_node *n = &x->g->nodes[param];
  pln_ref fresh;
  if (n->kind != PLN_VAR)
    return PLN_OK;
  if (!pln_idmap_get(x->bound, n->data))
    return pln_idmap_set(x->bound, n->data, 1);
  PLN_TRY(pln_build_var(pln_stmt_builder(s), n->attrs, n->type, 0, &fresh));
  pln_stmt_builder(s)->graph->nodes[fresh].results = n->results;
  pln_stmt_bind(s, param, fresh);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  ssa_converter *x = ud;
  pln_scope scope = x->g->nodes[stmt].data;
  (void)skip;
  for (uint32_t i = 0; i < k; i++)
    scope = x->g->scopes[scope].next;
  for (uint32_t i = 0; i < x->g->scopes[scope].n_params; i++)
    PLN_TRY(bind_param(x, s, x->g->scopes[scope].begin + i));
  return PLN_OK;
}

pln_status pln_pass_tir_convert_ssa(pln_pass_run *run) {
  ssa_converter x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x, .enter_body = enter_body};
  PLN_TRY(pln_idmap_new(x.g->engine, &x.bound));
  pln_status status = pln_lower_function(run, &mutator);
  pln_idmap_free(x.bound);
  return status;
}
