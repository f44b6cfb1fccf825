/* convert_ssa.c: tir.ConvertSSA: gives each binding of a variable a variable of
 * its own.
 *
 * Run by the executor.
 *
 *     x = 32; with T.LetStmt(16, var=x): T.evaluate(x)
 *         =>   x = 32; with T.LetStmt(16) as y: T.evaluate(y)
 *
 * A variable that a function's buffers define by their shapes, strides and
 * offsets, and that stands in several of these, counts as bound more than once:
 * it becomes a new one for the whole function, and a plain variable where it
 * was a size_var.
 *
 * Semantics: TVM's tir.ConvertSSA within each function. */

#include "lower/lower.h"

typedef struct ssa_converter {
  const pln_graph *g;
  pln_idmap *bound; /* the variable's identity -> 1 */
  uint8_t *uses;    /* by Var: entries of parameters' buffers; 2: or more */
} ssa_converter;

/* -------------------------------------------------- variables of parameters */

static void count_use(ssa_converter *x, pln_ref ref) {
  const pln_graph *g = x->g;
  const pln_scope_row *params = &g->scopes[g->nodes[g->root].data];
  bool is_param =
      ref >= params->begin && ref - params->begin < params->n_params;
  if (g->nodes[ref].kind == PLN_VAR && !is_param && x->uses[ref] < 2)
    x->uses[ref]++;
}

static void count_uses(ssa_converter *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (x->g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    pln_buffer_fields f = pln_buffer_fields_of(x->g, pln_operand(x->g, ref, 1));
    for (uint32_t i = 0; i < f.rank; i++)
      count_use(x, f.shape[i]);
    for (uint32_t i = 0; i < f.n_strides; i++)
      count_use(x, f.strides[i]);
    count_use(x, f.elem_offset);
  }
}

static pln_status replace_var(void *ud, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *node) {
  const ssa_converter *x = ud;
  const pln_node *n = &x->g->nodes[old];
  if (n->kind != PLN_VAR || x->uses[old] < 2)
    return PLN_OK;
  return pln_build_var(pln_stmt_builder(s), n->attrs, n->type, 0, node);
}

/* ----------------------------------------------------- variables of bodies */

/* A variable that is bound for the second time becomes a new one. */
static pln_status bind_param(ssa_converter *x, pln_stmt_rewrite *s,
                             pln_ref param) {
  const pln_node *n = &x->g->nodes[param];
  if (n->kind != PLN_VAR)
    return PLN_OK;
  return pln_idmap_get(x->bound, n->data) ? pln_stmt_bind_new_var(s, param)
                                          : pln_idmap_set(x->bound, n->data, 1);
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

static pln_status convert(ssa_converter *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {
      .ud = x, .expr = replace_var, .enter_body = enter_body};
  if (!x->uses)
    return pln_nomem(x->g->engine);
  count_uses(x);
  PLN_TRY(pln_idmap_new(x->g->engine, &x->bound));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_convert_ssa(pln_pass_run *run) {
  ssa_converter x = {.g = pln_run_function(run)};
  x.uses = pln_mem_zeroed(x.g->engine, x.g->n_nodes);
  pln_status status = convert(&x, run);
  pln_idmap_free(x.bound);
  pln_mem_free(x.g->engine, x.uses, x.g->n_nodes);
  return status;
}
