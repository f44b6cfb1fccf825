/* lower_intrin.c: tir.LowerIntrin: functions and operators that a target does
 * not have, by those that it has.
 *
 * Run by the executor, for a function with the attribute `target`. Floor
 * division becomes a shift or a division towards zero (floor_division.c),
 * mathematical functions what intrinsic_rules.c says, and on llvm a product
 * that is added becomes one operation.
 *
 *     i // 8    =>   T.shift_right(i, 3)
 *     c + a * b =>   T.call_llvm_pure_intrin("float32", 141, 3, a, b, c)
 *
 * Semantics: TVM's tir.LowerIntrin for the targets llvm and c. */

#include "lower/host/lower_intrin.h"

/* ------------------------------------------------------ conditions of values
 *
 * A value of a Select is used where its condition holds. */

#define NOT_USED (PLN_NONE - 1)
enum { MOST_GUARDS = 16 };

static bool is_select(const pln_node *n) {
  return n->kind == PLN_SELECT || pln_is_call_of(n, "if_then_else");
}

/* A use of the node under a guard; uses under several have none. */
static void note_use(pln_intrin_lowering *x, pln_ref node, pln_ref guard,
                     bool is_false) {
  if (x->guard[node] == NOT_USED) {
    x->guard[node] = guard;
    x->is_false[node] = is_false;
  } else if (x->guard[node] != guard || x->is_false[node] != is_false) {
    x->guard[node] = PLN_NONE;
  }
}

/* One sweep from users to operands. */
static void find_guards(pln_intrin_lowering *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    x->guard[ref] = NOT_USED;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    bool prim = pln_is_prim(n) && x->guard[ref] != NOT_USED;
    pln_ref above = prim ? x->guard[ref] : PLN_NONE;
    for (uint32_t i = 0; i < n->count; i++) {
      bool selected = prim && is_select(n) && i > 0;
      note_use(x, pln_operand(g, ref, i), selected ? ref : above,
               selected ? i == 2 : prim && x->is_false[ref]);
    }
  }
}

static pln_status enter_guard(pln_intrin_lowering *x, pln_stmt_rewrite *s,
                              pln_ref guard, bool is_false, uint32_t *mark) {
  pln_analyzer *a = x->scopes.a;
  pln_ref condition = pln_stmt_image(s, pln_operand(x->g, guard, 0));
  pln_term term;
  PLN_TRY(pln_scoped_term(&x->scopes, s, condition, &term));
  if (is_false) {
    term = pln_fold_not(a, term);
    PLN_TRY(a->status);
    PLN_TRY(pln_analyzer_rewrite_simplify(a, term, &term));
  }
  return pln_analyzer_enter(a, term, mark);
}

/* True if the condition is a scalar whose image is known. */
static bool is_usable(const pln_intrin_lowering *x, pln_stmt_rewrite *s,
                      pln_ref guard) {
  pln_ref condition = pln_operand(x->g, guard, 0);
  return pln_prim_dtype(x->g, condition) == PLN_BOOL &&
         pln_prim_lanes(x->g, condition) == 1 &&
         pln_stmt_image(s, condition) != PLN_NONE;
}

/* Lowers a division under the conditions of the innermost values that it is
 * in. */
static pln_status lower_guarded(pln_intrin_lowering *x, pln_emit *e,
                                pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  uint32_t marks[MOST_GUARDS], n = 0;
  pln_status status = PLN_OK;
  for (pln_ref at = old; status == PLN_OK && n < MOST_GUARDS &&
                         x->guard[at] != PLN_NONE && x->guard[at] != NOT_USED;
       at = x->guard[at])
    if (is_usable(x, s, x->guard[at])) {
      status = enter_guard(x, s, x->guard[at], x->is_false[at], &marks[n]);
      n += status == PLN_OK;
    }
  if (status == PLN_OK)
    status = pln_floor_division_lower(x, e, s, old, node);
  while (n > 0)
    pln_analyzer_leave(x->scopes.a, marks[--n]);
  return status;
}

/* -------------------------------------------------------------- expressions
 */

static bool is_product(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_PRIM_MUL;
}

/* a * b + c in one operation. */
static pln_status lower_add(const pln_intrin_lowering *x, pln_emit *e,
                            pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  pln_ref a = pln_operand(x->g, old, 0), b = pln_operand(x->g, old, 1);
  pln_dtype dtype = pln_type_dtype(x->g->engine, x->g->nodes[old].type);
  pln_ref product = is_product(x->g, b) ? b : a, other = product == b ? a : b;
  if (!x->fma || !pln_is_float_dtype(dtype) || !is_product(x->g, product))
    return PLN_OK;
  pln_ref args[3] = {pln_stmt_image(s, pln_operand(x->g, product, 0)),
                     pln_stmt_image(s, pln_operand(x->g, product, 1)),
                     pln_stmt_image(s, other)};
  return pln_intrin_lower_call(x, e, "fma", x->g->nodes[old].type, 3, args,
                               node);
}

static pln_status lower_builtin(const pln_intrin_lowering *x, pln_emit *e,
                                pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref args[3];
  if (n->data == 0 || n->count == 0 || n->count > PLN_COUNT(args))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  return pln_intrin_lower_call(x, e, pln_builtin_name(n->data), n->type,
                               n->count, args, node);
}

static pln_status lower_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  pln_intrin_lowering *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  switch (x->g->nodes[old].kind) {
  case PLN_PRIM_ADD: PLN_TRY(lower_add(x, &e, s, old, node)); break;
  case PLN_PRIM_CALL: PLN_TRY(lower_builtin(x, &e, s, old, node)); break;
  case PLN_PRIM_EQ:
  case PLN_PRIM_NE:
  case PLN_PRIM_MAX:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: PLN_TRY(lower_guarded(x, &e, s, old, node)); break;
  default: break;
  }
  return e.status;
}

/* What a variable stands for is known in its body. */
static pln_status enter_let(pln_intrin_lowering *x, pln_stmt_rewrite *s,
                            pln_ref stmt) {
  pln_ref value = pln_stmt_operand(s, 0);
  if ((pln_stmt_node(s, value)->flags & PLN_NODE_EFFECT) != PLN_EFFECT_NONE ||
      pln_type_get_kind(x->g->engine, pln_stmt_node(s, value)->type) !=
          PLN_TYPE_PRIM ||
      !pln_is_int_dtype(
          pln_type_dtype(x->g->engine, pln_stmt_node(s, value)->type)))
    return PLN_OK;
  return pln_scoped_bind(&x->scopes, s, stmt);
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  (void)skip;
  if (pln_stmt_old(s)->nodes[stmt].kind == PLN_LET_STMT)
    PLN_TRY(enter_let(ud, s, stmt));
  return pln_analyzer_scopes_enter(&((pln_intrin_lowering *)ud)->scopes, s,
                                   stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s;
  (void)stmt;
  (void)k;
  (void)body;
  (void)again;
  pln_analyzer_scopes_leave(&((pln_intrin_lowering *)ud)->scopes);
  return PLN_OK;
}

static pln_status lower_function(pln_pass_run *run, pln_intrin_lowering *x) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = lower_expr,
                              .enter_body = enter_body,
                              .leave_body = leave_body};
  find_guards(x);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->g));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_scopes_end(&x->scopes);
  return status;
}

pln_status pln_pass_tir_lower_intrin(pln_pass_run *run) {
  pln_intrin_lowering x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  pln_attrs target = pln_target_of(x.g);
  if (!target)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "tir.LowerIntrin: the function has no attribute "
                          "'target'; tir.BindTarget gives it one");
  x.llvm = pln_slice_is(pln_attrs_string(e, target, "kind", ""), "llvm");
  x.fma = x.llvm;
  x.guard = pln_mem_new(e, x.g->n_nodes * sizeof *x.guard);
  x.is_false = pln_mem_zeroed(e, x.g->n_nodes * sizeof *x.is_false);
  pln_status status =
      x.guard && x.is_false ? lower_function(run, &x) : pln_nomem(e);
  pln_mem_free(e, x.guard, x.g->n_nodes * sizeof *x.guard);
  pln_mem_free(e, x.is_false, x.g->n_nodes * sizeof *x.is_false);
  return status;
}
