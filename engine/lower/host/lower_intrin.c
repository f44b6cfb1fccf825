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
  default: PLN_TRY(pln_floor_division_lower(x, &e, s, old, node)); break;
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

pln_status pln_pass_tir_lower_intrin(pln_pass_run *run) {
  pln_intrin_lowering x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = lower_expr,
                              .enter_body = enter_body,
                              .leave_body = leave_body};
  pln_attrs target = pln_target_of(x.g);
  if (!target)
    return pln_diag_error(x.g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.LowerIntrin: the function has no attribute "
                          "'target'; tir.BindTarget gives it one");
  x.llvm =
      pln_slice_is(pln_attrs_string(x.g->engine, target, "kind", ""), "llvm");
  x.fma = x.llvm;
  PLN_TRY(pln_analyzer_scopes_begin(&x.scopes, x.g));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_scopes_end(&x.scopes);
  return status;
}
