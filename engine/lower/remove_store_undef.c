/* remove_store_undef.c: tir.RemoveStoreUndef: a store of T.undef() stores
 * anything, so it goes.
 *
 * Run by the executor. Anywhere else T.undef() is an error, in an index or a
 * condition for example.
 *
 *     A[0] = T.undef()   =>   T.evaluate(0)
 *
 * Semantics: TVM's tir.RemoveStoreUndef: the removal, tir.RemoveNoOp, and the
 * check that none is left. */

#include "lower/lower.h"

typedef struct undef_remover {
  const pln_graph *g;
  bool *undefined; /* by node: its value may be anything */
} undef_remover;

/* A load is what memory holds, whatever its index. */
static bool is_undefined(const undef_remover *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (pln_is_call_of(n, "undef"))
    return true;
  if (!pln_is_prim(n) || n->kind == PLN_BUFFER_LOAD || n->kind == PLN_BUFFER)
    return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (x->undefined[pln_operand(x->g, ref, i)])
      return true;
  return false;
}

/* The value of a LetStmt precedes the variable; its owner follows. */
static void find_undefined(undef_remover *x) {
  const pln_graph *g = x->g;
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    if (g->nodes[owner].kind == PLN_LET_STMT &&
        pln_is_call_of(&g->nodes[pln_operand(g, owner, 0)], "undef"))
      x->undefined[g->scopes[i].begin] = true;
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_VAR)
      x->undefined[ref] = is_undefined(x, ref);
  }
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    if (g->nodes[owner].kind == PLN_LET_STMT)
      x->undefined[g->scopes[i].begin] |=
          x->undefined[pln_operand(g, owner, 0)];
  }
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const undef_remover *x = ud;
  const pln_graph *g = x->g;
  if (g->nodes[stmt].kind != PLN_BUFFER_STORE ||
      !x->undefined[pln_operand(g, stmt, 1)])
    return PLN_OK;
  pln_ref value = pln_operand(g, stmt, 1);
  if ((g->nodes[value].flags & PLN_NODE_EFFECT) > PLN_EFFECT_READS)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.RemoveStoreUndef: a value with T.undef() has "
                          "other effects");
  return pln_stmt_no_op(s, node);
}

static pln_status check_none_left(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_is_call_of(&g->nodes[ref], "undef"))
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.RemoveStoreUndef: T.undef() is used other "
                            "than as a stored value");
  return PLN_OK;
}

static pln_status remove_undef(pln_pass_run *run, const pln_graph *g,
                               pln_graph **out) {
  undef_remover x = {.g = g};
  pln_stmt_mutator mutator = {.ud = &x, .leave = leave_stmt};
  x.undefined = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *x.undefined);
  *out = NULL;
  if (!x.undefined)
    return pln_nomem(g->engine);
  find_undefined(&x);
  pln_status status = pln_stmt_rewrite_function(g, &mutator, out);
  pln_mem_free(g->engine, x.undefined, g->n_nodes * sizeof *x.undefined);
  if (status == PLN_OK)
    status = pln_lower_step(run, pln_pass_tir_remove_no_op, out);
  return status == PLN_OK ? check_none_left(*out) : status;
}

pln_status pln_pass_tir_remove_store_undef(pln_pass_run *run) {
  pln_graph *function;
  pln_status status = remove_undef(run, pln_run_function(run), &function);
  if (status == PLN_OK)
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}
