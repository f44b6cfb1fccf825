/* rewrite_unsafe_select.c: tir.RewriteUnsafeSelect: a Select evaluates both
 * values; where one reads memory or has an effect, it becomes an if_then_else,
 * which evaluates one.
 *
 * Run by the executor.
 *
 *     T.Select(i < 8, A[i], 0)   =>   T.if_then_else(i < 8, A[i], 0)
 *
 * Semantics: TVM's tir.RewriteUnsafeSelect. */

#include "lower/lower.h"

typedef struct rewriter {
  const pln_graph *g;
  bool *unsafe; /* by node: its evaluation reads memory or has an effect */
} rewriter;

static bool is_unsafe_call(const pln_node *n) {
  pln_call_kind kind =
      n->data ? pln_builtin_call_kind(n->data) : PLN_CALL_OPAQUE;
  return kind != PLN_CALL_PURE && kind != PLN_CALL_EXPR_ANNOTATION;
}

static bool any_unsafe(const rewriter *x, const pln_node *n, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (x->unsafe[pln_operands(x->g, n)[i]])
      return true;
  return false;
}

/* True of a Select that is rewritten. */
static bool is_unsafe_select(const rewriter *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->kind != PLN_SELECT)
    return false;
  pln_type condition = x->g->nodes[pln_operand(x->g, ref, 0)].type;
  return pln_type_number(x->g->engine, condition) == 1 &&
         (x->unsafe[pln_operand(x->g, ref, 1)] ||
          x->unsafe[pln_operand(x->g, ref, 2)]);
}

static bool is_unsafe(const rewriter *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->kind == PLN_BUFFER_LOAD || n->kind == PLN_PRODUCER_LOAD)
    return true;
  if (is_unsafe_select(x, ref))
    return any_unsafe(x, n, 1);
  if (n->kind != PLN_PRIM_CALL)
    return any_unsafe(x, n, n->count);
  if (n->data && strcmp(pln_builtin_name(n->data), "if_then_else") == 0)
    return any_unsafe(x, n, 1);
  return is_unsafe_call(n) || any_unsafe(x, n, n->count);
}

static bool find_unsafe(rewriter *x) {
  bool found = false;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (pln_is_prim(&x->g->nodes[ref])) {
      x->unsafe[ref] = is_unsafe(x, ref);
      found |= is_unsafe_select(x, ref);
    }
  return found;
}

static pln_status rewrite_select(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) {
  const rewriter *x = ud;
  pln_ref operands[3];
  if (!is_unsafe_select(x, old))
    return PLN_OK;
  for (uint32_t i = 0; i < 3; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  pln_prim spec = {.kind = PLN_PRIM_CALL,
                   .data = pln_builtin_find(pln_text("if_then_else")),
                   .type = x->g->nodes[old].type,
                   .n = 3,
                   .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

pln_status pln_pass_tir_rewrite_unsafe_select(pln_pass_run *run) {
  rewriter x = {.g = pln_run_function(run)};
  pln_engine *e = pln_run_engine(run);
  pln_stmt_mutator mutator = {.ud = &x, .expr = rewrite_select};
  pln_status status = PLN_OK;
  if (!pln_has_kind(x.g, PLN_SELECT))
    return PLN_OK;
  x.unsafe = pln_mem_zeroed(e, x.g->n_nodes * sizeof *x.unsafe);
  if (!x.unsafe)
    return pln_nomem(e);
  if (find_unsafe(&x))
    status = pln_lower_function(run, &mutator);
  pln_mem_free(e, x.unsafe, x.g->n_nodes * sizeof *x.unsafe);
  return status;
}
