/* remove_no_op.c: tir.RemoveNoOp: removes statements that have no effect.
 *
 * Run by the executor: loops without a round or a body, branches and
 * allocations of nothing, variables that nothing uses, evaluations without
 * effect, stores of what is there. Effects of the expressions of what is
 * removed stay, as Evaluate.
 *
 *     for i in range(8): T.evaluate(i)   =>   T.evaluate(0)
 *
 * Semantics: TVM's tir.RemoveNoOp. With the config key use_dataflow_analysis
 * also stores that are overwritten before anything reads them, and stores of
 * what the elements hold already (dataflow/). */

#include "lower/dataflow/dataflow.h"
#include "lower/known_branch.h"
#include "lower/lower.h"

typedef struct remover {
  const pln_graph *g;
  pln_analyzer_scopes scopes;
  bool *used; /* by node: it is an operand */
  pln_buffer_flow flow;
} remover;

static bool has_effect(const pln_stmt_rewrite *s, pln_ref expr) {
  return (pln_stmt_node(s, expr)->flags & PLN_NODE_EFFECT) > PLN_EFFECT_READS;
}

static bool is_no_op(const pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  return g->nodes[stmt].kind == PLN_EVALUATE &&
         g->nodes[pln_operand(g, stmt, 0)].kind == PLN_INT_IMM;
}

static pln_status evaluate(pln_stmt_rewrite *s, pln_ref value, pln_ref *out) {
  pln_prim spec = {.kind = PLN_EVALUATE, .n = 1, .operands = &value};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

/* The effects of the present statement's operands from `first` on, and then
 * `body` unless it is PLN_NO_STMT. */
static pln_status only_effects(pln_stmt_rewrite *s, uint32_t first, uint32_t n,
                               pln_ref body, pln_ref *out) {
  pln_ref stmts[PLN_MOST_EFFECTS + 1];
  uint32_t count = 0;
  for (uint32_t i = first; i < n && count < PLN_MOST_EFFECTS; i++)
    if (has_effect(s, pln_stmt_operand(s, i)))
      PLN_TRY(evaluate(s, pln_stmt_operand(s, i), &stmts[count++]));
  if (body != PLN_NO_STMT)
    stmts[count++] = body;
  return pln_stmt_seq(s, count, stmts, out);
}

/* ------------------------------------------------------------------- loops */

/* True if the loop has no round. */
static pln_status is_never_run(remover *x, pln_stmt_rewrite *s, bool *never) {
  pln_term extent;
  PLN_TRY(pln_scoped_term(&x->scopes, s, pln_stmt_operand(s, 1), &extent));
  pln_term none = pln_fold(x->scopes.a, PLN_PRIM_LE, extent,
                           pln_const_like(x->scopes.a, extent, 0));
  PLN_TRY(x->scopes.a->status);
  return pln_analyzer_can_prove(x->scopes.a, none, 0, never);
}

/* What a variable stands for is known in its body. */
static pln_status enter_let(remover *x, pln_stmt_rewrite *s, pln_ref stmt) {
  const pln_node *value = pln_stmt_node(s, pln_stmt_operand(s, 0));
  return (value->flags & PLN_NODE_EFFECT) == PLN_EFFECT_NONE
             ? pln_scoped_bind(&x->scopes, s, stmt)
             : PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  remover *x = ud;
  switch (x->g->nodes[stmt].kind) {
  case PLN_FOR: PLN_TRY(is_never_run(x, s, skip)); break;
  case PLN_LET_STMT: PLN_TRY(enter_let(x, s, stmt)); break;
  case PLN_IF_THEN_ELSE: *skip = pln_stmt_condition(s, stmt) == (int)k; break;
  case PLN_ATTR_STMT:
    *skip = pln_slice_is(
        pln_attrs_string(x->g->engine, x->g->nodes[stmt].attrs, "attr_key", ""),
        "pragma_debug_skip_region");
    break;
  default: break;
  }
  return *skip ? PLN_OK : pln_analyzer_scopes_enter(&x->scopes, s, stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s;
  (void)stmt;
  (void)k;
  (void)body;
  (void)again;
  pln_analyzer_scopes_leave(&((remover *)ud)->scopes);
  return PLN_OK;
}

/* ---------------------------------------------------------------- statements
 */

static pln_status leave_loop(pln_stmt_rewrite *s, pln_ref *node) {
  pln_ref body = pln_stmt_body(s, 0);
  if (body == PLN_NONE)
    return pln_stmt_no_op(s, node);
  return is_no_op(s, body) ? only_effects(s, 0, 2, PLN_NO_STMT, node) : PLN_OK;
}

/* if not condition: other */
static pln_status negate_branch(pln_stmt_rewrite *s, pln_ref other,
                                pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref condition = pln_stmt_operand(s, 0), negated;
  pln_prim no = {.kind = PLN_PRIM_NOT, .n = 1, .operands = &condition};
  PLN_TRY(pln_build_prim(b, &no, &negated));
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &negated};
  return pln_build_floating_stmt(b, &spec, 1, &(pln_body){.stmt = other}, node);
}

static pln_status only_then(pln_stmt_rewrite *s, pln_ref then, pln_ref *node) {
  pln_ref condition = pln_stmt_operand(s, 0);
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &condition};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1,
                                 &(pln_body){.stmt = then}, node);
}

static pln_status leave_branch(const remover *x, pln_stmt_rewrite *s,
                               pln_ref stmt, pln_ref *node) {
  const pln_graph *g = x->g;
  bool has_else = g->scopes[g->nodes[stmt].data].next != PLN_NONE;
  pln_ref then = pln_stmt_body(s, 0);
  pln_ref other = has_else ? pln_stmt_body(s, 1) : PLN_NONE;
  int known = pln_stmt_condition(s, stmt);
  if (known >= 0)
    return pln_known_branch(s, known, node);
  bool no_then = is_no_op(s, then), no_else = !has_else || is_no_op(s, other);
  if (no_then && no_else)
    return only_effects(s, 0, 1, PLN_NO_STMT, node);
  if (no_then)
    return negate_branch(s, other, node);
  return no_else && has_else ? only_then(s, then, node) : PLN_OK;
}

static pln_status leave_let(const remover *x, pln_stmt_rewrite *s, pln_ref stmt,
                            pln_ref *node) {
  pln_ref body = pln_stmt_body(s, 0);
  if (is_no_op(s, body))
    return only_effects(s, 0, 1, PLN_NO_STMT, node);
  return x->used[pln_stmt_param(s, stmt, 0, 0)]
             ? PLN_OK
             : only_effects(s, 0, 1, body, node);
}

static pln_status leave_attr(pln_stmt_rewrite *s, pln_ref *node) {
  pln_ref body = pln_stmt_body(s, 0);
  if (body == PLN_NONE)
    return pln_stmt_no_op(s, node);
  return is_no_op(s, body) ? only_effects(s, 1, 2, PLN_NO_STMT, node) : PLN_OK;
}

static pln_status leave_evaluate(pln_stmt_rewrite *s, pln_ref *node) {
  pln_ref value = pln_stmt_operand(s, 0);
  if (has_effect(s, value) || pln_is_int(pln_stmt_builder(s)->graph, value, 0))
    return PLN_OK;
  return pln_stmt_no_op(s, node);
}

/* True for a store of what the same element holds. */
static pln_status stores_itself(remover *x, pln_stmt_rewrite *s, uint32_t n,
                                bool *itself) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref load = pln_stmt_operand(s, 1);
  *itself =
      g->nodes[load].kind == PLN_BUFFER_LOAD && g->nodes[load].count == n - 1 &&
      pln_is_same_memory(g, pln_operand(g, load, 0), pln_stmt_operand(s, 0));
  for (uint32_t i = 2; i < n && *itself; i++) {
    pln_term from, to;
    PLN_TRY(pln_scoped_term(&x->scopes, s, pln_operand(g, load, i - 1), &from));
    PLN_TRY(pln_scoped_term(&x->scopes, s, pln_stmt_operand(s, i), &to));
    PLN_TRY(pln_analyzer_can_prove_equal(x->scopes.a, from, to, itself));
  }
  return PLN_OK;
}

static pln_status leave_store(remover *x, pln_stmt_rewrite *s, pln_ref stmt,
                              pln_ref *node) {
  uint32_t n = x->g->nodes[stmt].count;
  bool itself;
  if (n > PLN_MOST_EFFECTS)
    return PLN_OK;
  PLN_TRY(stores_itself(x, s, n, &itself));
  if (x->flow.g && (x->flow.overwritten[stmt] || x->flow.redundant[stmt]))
    itself = true;
  return itself ? only_effects(s, 1, n, PLN_NO_STMT, node) : PLN_OK;
}

static pln_status leave_memory(const remover *x, pln_stmt_rewrite *s,
                               pln_ref stmt, pln_ref *node) {
  return is_no_op(s, pln_stmt_body(s, 0)) &&
                 x->g->nodes[stmt].count <= PLN_MOST_EFFECTS
             ? only_effects(s, 1, x->g->nodes[stmt].count, PLN_NO_STMT, node)
             : PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  remover *x = ud;
  switch (x->g->nodes[stmt].kind) {
  case PLN_FOR: return leave_loop(s, node);
  case PLN_IF_THEN_ELSE: return leave_branch(x, s, stmt, node);
  case PLN_LET_STMT: return leave_let(x, s, stmt, node);
  case PLN_ATTR_STMT: return leave_attr(s, node);
  case PLN_EVALUATE: return leave_evaluate(s, node);
  case PLN_BUFFER_STORE: return leave_store(x, s, stmt, node);
  case PLN_ALLOCATE: return leave_memory(x, s, stmt, node);
  case PLN_BUFFER_REALIZE:
  case PLN_PRODUCER_REALIZE:
    if (is_no_op(s, pln_stmt_body(s, 0)))
      return pln_stmt_no_op(s, node);
    return PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status find_used(remover *x) {
  const pln_graph *g = x->g;
  x->used = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *x->used);
  if (!x->used)
    return pln_nomem(g->engine);
  for (uint32_t i = 0; i < g->n_operands; i++)
    x->used[g->operands[i]] = true;
  return PLN_OK;
}

static pln_status remove_no_ops(pln_pass_run *run, remover *x) {
  pln_stmt_mutator mutator = {.ud = x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->g));
  pln_status status = find_used(x);
  if (status == PLN_OK)
    status = pln_lower_function(run, &mutator);
  pln_mem_free(x->g->engine, x->used, x->g->n_nodes * sizeof *x->used);
  pln_analyzer_scopes_end(&x->scopes);
  return status;
}

static pln_status remove_by_flow(pln_pass_run *run, remover *x) {
  PLN_TRY(pln_buffer_flow_find(x->g, PLN_ARITH_TRANSITIVE, true, &x->flow));
  pln_status status = remove_no_ops(run, x);
  pln_buffer_flow_free(&x->flow);
  return status;
}

pln_status pln_pass_tir_remove_no_op(pln_pass_run *run) {
  remover x = {.g = pln_run_function(run)};
  int64_t dataflow;
  PLN_TRY(
      pln_lower_config(run, "tir.RemoveNoOp.use_dataflow_analysis", &dataflow));
  if (dataflow)
    return remove_by_flow(run, &x);
  if (pln_lower_is_fixed_point(run, PLN_FIXED_POINT_OF_REMOVE_NO_OP))
    return PLN_OK;
  PLN_TRY(remove_no_ops(run, &x));
  pln_lower_note_fixed_point(run, PLN_FIXED_POINT_OF_REMOVE_NO_OP);
  return PLN_OK;
}
