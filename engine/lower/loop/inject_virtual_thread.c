/* inject_virtual_thread.c: tir.InjectVirtualThread: takes branches whose
 * condition is a constant. Virtual threads, which TVM's pass writes out here,
 * are refused.
 *
 * Run by the executor.
 *
 *     if T.bool(True): A[i] = 0   =>   A[i] = 0
 *
 * Semantics: TVM's tir.InjectVirtualThread of programs without virtual
 * threads. */

#include "lower/lower.h"

static bool begins_with(pln_slice text, const char *prefix) {
  size_t size = strlen(prefix);
  return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

static bool is_virtual_thread(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  if (n->kind != PLN_ATTR_STMT || !pln_binds_thread(g, n))
    return false;
  pln_ref thread = pln_operand(g, stmt, 0);
  pln_slice tag =
      pln_attrs_string(g->engine, g->nodes[thread].attrs, "thread_tag", "");
  return begins_with(tag, "vthread") || begins_with(tag, "cthread") ||
         pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                      "virtual_thread");
}

static pln_status refuse_threads(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_virtual_thread(g, ref))
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.InjectVirtualThread: there is no code for "
                            "virtual threads");
  return PLN_OK;
}

/* 1 or 0: the condition is a constant; else -1. */
static int known_condition(const pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  if (pln_stmt_old(s)->nodes[stmt].kind != PLN_IF_THEN_ELSE)
    return -1;
  pln_ref condition = pln_likely_condition(g, pln_stmt_operand(s, 0));
  return g->nodes[condition].kind == PLN_INT_IMM
             ? pln_node_int(g, condition) != 0
             : -1;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  (void)ud;
  *skip = known_condition(s, stmt) == (int)k;
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  int known = known_condition(s, stmt);
  (void)ud;
  if (known < 0)
    return PLN_OK;
  *node = pln_stmt_body(s, known ? 0 : 1);
  return *node == PLN_NONE ? pln_stmt_no_op(s, node) : PLN_OK;
}

pln_status pln_pass_tir_inject_virtual_thread(pln_pass_run *run) {
  pln_stmt_mutator mutator = {.enter_body = enter_body, .leave = leave_stmt};
  const pln_graph *g = pln_run_function(run);
  PLN_TRY(refuse_threads(g));
  return pln_has_kind(g, PLN_IF_THEN_ELSE) ? pln_lower_function(run, &mutator)
                                           : PLN_OK;
}
