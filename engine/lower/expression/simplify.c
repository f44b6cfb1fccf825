/* simplify.c: tir.Simplify: expressions and conditions become what the analyzer
 * makes of them where they stand.
 *
 * Run by the executor. A branch whose condition is known is taken, a LetStmt of
 * a pure integer is put in its place, a store of what is there is removed.
 *
 *     for i in range(8): if i < 10: A[i * 4 - i * 3] = 0
 *         =>   for i in range(8): A[i] = 0
 *
 * Semantics: TVM's tir.Simplify; config keys tir.Simplify.*. */

#include "lower/dataflow/dataflow.h"
#include "lower/known_branch.h"
#include "lower/lower.h"

typedef struct simplifier {
  pln_analyzer_scopes scopes;
  const pln_graph *old;
  /* By term: the value of a LetStmt's variable that stays, or PLN_NO_TERM.
   * Conditions are decided with these values. */
  pln_term *value_of;
  uint32_t cap_value_of;
  bool *in_buffer;      /* by node: an operand of a Buffer */
  int *decided;         /* by node: of an IfThenElse, 1 or 0; -1: not known */
  pln_buffer_flow flow; /* if one of the next asks for it */
  uint32_t extensions;  /* of the analyzer */
  bool prove_by_flow, simplify_by_flow;
} simplifier;

/* A PrimExpr that the analyzer takes: a number, a condition, a call. */
static bool is_value(const pln_engine *e, const pln_node *n) {
  return n->kind == PLN_PRIM_CALL ||
         (pln_type_get_kind(e, n->type) == PLN_TYPE_PRIM &&
          pln_type_dtype(e, n->type) != PLN_DTYPE_NONE &&
          n->kind != PLN_BUFFER);
}

static pln_status simplify_node(simplifier *x, pln_stmt_rewrite *s,
                                pln_ref *node) {
  if (!is_value(x->old->engine, pln_stmt_node(s, *node)))
    return PLN_OK;
  return pln_scoped_simplify(&x->scopes, s, *node, node);
}

/* The two ends of a Range, which are whole expressions too. */
static pln_status simplify_range(simplifier *x, pln_stmt_rewrite *s,
                                 pln_ref old, pln_ref *node) {
  pln_ref ends[2], before[2];
  for (uint32_t i = 0; i < 2; i++) {
    before[i] = ends[i] = pln_stmt_image(s, pln_operand(x->old, old, i));
    PLN_TRY(simplify_node(x, s, &ends[i]));
  }
  if (ends[0] == before[0] && ends[1] == before[1])
    return PLN_OK;
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = ends};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status simplify_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  simplifier *x = ud;
  pln_kind kind = (pln_kind)x->old->nodes[old].kind;
  if (kind == PLN_BUFFER_LOAD && x->simplify_by_flow && x->flow.value_of[old])
    return pln_analyzer_export(x->flow.a, pln_stmt_builder(s),
                               x->flow.value_of[old], node);
  return kind == PLN_RANGE ? simplify_range(x, s, old, node) : PLN_OK;
}

static pln_status simplify_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                   uint32_t i, pln_ref *node) {
  (void)stmt;
  (void)i;
  return simplify_node(ud, s, node);
}

/* ---------------------------------------------------------------- statements
 */

/* A condition with the values of its variables, if these are known. */
static pln_status with_values(simplifier *x, pln_term term, pln_term *out) {
  pln_analyzer *a = x->scopes.a;
  pln_term_list order, vars = {0}, values = {0};
  *out = term;
  if (x->cap_value_of == 0)
    return PLN_OK;
  if (!pln_term_order(a, term, NULL, &order))
    return a->status;
  bool ok = true;
  for (uint32_t i = 0; i < order.n && ok; i++) {
    pln_term t = order.items[i];
    if (t < x->cap_value_of && x->value_of[t])
      ok = pln_term_list_push(a, &vars, t) &&
           pln_term_list_push(a, &values, x->value_of[t]);
  }
  if (ok && vars.n > 0)
    *out = pln_term_substitute(a, term, vars.n, vars.items, values.items);
  pln_term_list_free(a, &order);
  pln_term_list_free(a, &vars);
  pln_term_list_free(a, &values);
  return a->status;
}

/* Decides the condition of a branch: simplified, and with the values of
 * variables. */
static pln_status decide(simplifier *x, pln_stmt_rewrite *s, pln_ref stmt) {
  pln_term term;
  pln_analyzer *a = x->scopes.a;
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref condition = pln_likely_condition(g, pln_stmt_operand(s, 0));
  PLN_TRY(pln_scoped_term(&x->scopes, s, condition, &term));
  pln_term whole = term;
  PLN_TRY(with_values(x, term, &whole));
  if (whole != term)
    PLN_TRY(pln_analyzer_simplify(a, whole, 2, &term));
  x->decided[stmt] = pln_is_const(a, term) ? pln_const(a, term) != 0
                     : x->prove_by_flow    ? x->flow.decided[stmt]
                                           : -1;
  return PLN_OK;
}

/* 1 or 0: the condition is known; else -1. */
static int known_condition(const simplifier *x, pln_ref stmt) {
  return x->old->nodes[stmt].kind == PLN_IF_THEN_ELSE ? x->decided[stmt] : -1;
}

/* True if a LetStmt of that value is put in its place. */
static bool may_inline(const pln_stmt_rewrite *s, pln_ref value) {
  const pln_node *n = pln_stmt_node(s, value);
  pln_engine *e = pln_stmt_old(s)->engine;
  if (n->kind == PLN_INT_IMM || n->kind == PLN_FLOAT_IMM || n->kind == PLN_VAR)
    return true;
  pln_dtype dtype = pln_type_dtype(e, n->type);
  return pln_type_get_kind(e, n->type) == PLN_TYPE_PRIM && dtype != PLN_BOOL &&
         dtype != PLN_DTYPE_NONE && pln_is_int_dtype(dtype) &&
         (n->flags & PLN_NODE_EFFECT) == PLN_EFFECT_NONE;
}

/* A variable that a Buffer's fields need stays. */
static void find_used_in_buffers(simplifier *x) {
  const pln_graph *g = x->old;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BUFFER)
      for (uint32_t i = 0; i < g->nodes[ref].count; i++)
        x->in_buffer[pln_operand(g, ref, i)] = true;
}

static pln_status set_value(simplifier *x, pln_term var, pln_term value) {
  uint32_t old = x->cap_value_of;
  PLN_TRY(pln_mem_grow(x->old->engine, (void **)&x->value_of, &x->cap_value_of,
                       (size_t)var + 1, sizeof *x->value_of));
  memset(x->value_of + old, 0, (x->cap_value_of - old) * sizeof *x->value_of);
  x->value_of[var] = value;
  return PLN_OK;
}

/* A pure value of a variable that stays is known to conditions. */
static pln_status remember_value(simplifier *x, pln_stmt_rewrite *s,
                                 pln_ref var, pln_ref value) {
  pln_ref image;
  pln_term terms[2];
  if ((pln_stmt_node(s, value)->flags & PLN_NODE_EFFECT) != PLN_EFFECT_NONE)
    return PLN_OK;
  PLN_TRY(pln_stmt_map(s, var, &image));
  PLN_TRY(pln_scoped_term(&x->scopes, s, image, &terms[0]));
  PLN_TRY(pln_scoped_term(&x->scopes, s, value, &terms[1]));
  return set_value(x, terms[0], terms[1]);
}

static pln_status enter_let(simplifier *x, pln_stmt_rewrite *s, pln_ref stmt) {
  pln_ref var = pln_stmt_param(s, stmt, 0, 0), value = pln_stmt_operand(s, 0);
  if (!may_inline(s, value))
    return remember_value(x, s, var, value);
  if (!x->in_buffer[var])
    pln_stmt_bind(s, var, value);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  simplifier *x = ud;
  pln_kind kind = (pln_kind)x->old->nodes[stmt].kind;
  if (kind == PLN_IF_THEN_ELSE && k == 0)
    PLN_TRY(decide(x, s, stmt));
  int known = known_condition(x, stmt);
  *skip = known >= 0 && (uint32_t)known == k;
  if (*skip)
    return PLN_OK;
  if (kind == PLN_LET_STMT)
    PLN_TRY(enter_let(x, s, stmt));
  return pln_analyzer_scopes_enter(&x->scopes, s, stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s;
  (void)stmt;
  (void)k;
  (void)body;
  (void)again;
  pln_analyzer_scopes_leave(&((simplifier *)ud)->scopes);
  return PLN_OK;
}

/* True for B[i] = B[i]. */
static bool stores_itself(const pln_stmt_rewrite *s) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  const pln_node *load = &g->nodes[pln_stmt_operand(s, 1)];
  if (load->kind != PLN_BUFFER_LOAD ||
      !pln_is_same_memory(g, g->operands[load->first], pln_stmt_operand(s, 0)))
    return false;
  for (uint32_t i = 1; i < load->count; i++)
    if (!pln_same_expr(g, g->operands[load->first + i],
                       pln_stmt_operand(s, i + 1)))
      return false;
  return true;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  simplifier *x = ud;
  const pln_node *n = &x->old->nodes[stmt];
  int known = known_condition(x, stmt);
  if (known >= 0)
    return pln_known_branch(s, known, node);
  if (n->kind == PLN_LET_STMT) {
    pln_ref var = pln_stmt_image(s, pln_stmt_param(s, stmt, 0, 0));
    if (var == pln_stmt_operand(s, 0))
      *node = pln_stmt_body(s, 0);
  }
  if (n->kind == PLN_BUFFER_STORE && stores_itself(s))
    return pln_stmt_no_op(s, node);
  return PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status read_extensions(const pln_pass_run *run, uint32_t *out) {
  static const struct {
    const char *key;
    uint32_t bit;
  } rows[] = {
      {"tir.Simplify.transitively_prove_inequalities", PLN_ARITH_TRANSITIVE},
      {"tir.Simplify.convert_boolean_to_and_of_ors", PLN_ARITH_AND_OF_ORS},
      {"tir.Simplify.apply_constraints_to_boolean_branches",
       PLN_ARITH_IN_BRANCHES},
  };
  *out = 0;
  for (size_t i = 0; i < PLN_COUNT(rows); i++) {
    int64_t on;
    PLN_TRY(pln_lower_config(run, rows[i].key, &on));
    *out |= on ? rows[i].bit : 0;
  }
  return PLN_OK;
}

static pln_status read_flags(const pln_pass_run *run, simplifier *x) {
  int64_t prove, simplify;
  PLN_TRY(read_extensions(run, &x->extensions));
  PLN_TRY(pln_lower_config(
      run, "tir.Simplify.propagate_knowns_to_prove_conditional", &prove));
  PLN_TRY(pln_lower_config(
      run, "tir.Simplify.propagate_knowns_to_simplify_expressions", &simplify));
  x->prove_by_flow = prove != 0;
  x->simplify_by_flow = simplify != 0;
  return PLN_OK;
}

static bool is_plain(const simplifier *x) {
  return !x->extensions && !x->prove_by_flow && !x->simplify_by_flow;
}

static pln_status begin(simplifier *x) {
  pln_engine *e = x->old->engine;
  x->decided = pln_mem_new(e, x->old->n_nodes * sizeof *x->decided);
  x->in_buffer = pln_mem_zeroed(e, x->old->n_nodes * sizeof *x->in_buffer);
  if (!x->decided || !x->in_buffer)
    return pln_nomem(e);
  find_used_in_buffers(x);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->old));
  pln_analyzer_set_extensions(x->scopes.a, x->extensions);
  return x->prove_by_flow || x->simplify_by_flow
             ? pln_buffer_flow_find(x->old, x->extensions, false, &x->flow)
             : PLN_OK;
}

static void end(simplifier *x) {
  pln_engine *e = x->old->engine;
  size_t n = x->old->n_nodes;
  pln_mem_free(e, x->decided, n * sizeof *x->decided);
  pln_mem_free(e, x->in_buffer, n * sizeof *x->in_buffer);
  pln_mem_free(e, x->value_of, x->cap_value_of * sizeof *x->value_of);
  pln_analyzer_scopes_end(&x->scopes);
  pln_buffer_flow_free(&x->flow);
}

static pln_status simplify(pln_pass_run *run, simplifier *x) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = simplify_expr,
                              .operand = simplify_operand,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_status status = begin(x);
  if (status == PLN_OK)
    status = pln_lower_function(run, &mutator);
  end(x);
  return status;
}

pln_status pln_pass_tir_simplify(pln_pass_run *run) {
  simplifier x = {.old = pln_run_function(run)};
  PLN_TRY(read_flags(run, &x));
  if (is_plain(&x) &&
      pln_lower_is_fixed_point(run, PLN_FIXED_POINT_OF_SIMPLIFY))
    return PLN_OK;
  PLN_TRY(simplify(run, &x));
  if (is_plain(&x))
    pln_lower_note_fixed_point(run, PLN_FIXED_POINT_OF_SIMPLIFY);
  return PLN_OK;
}
