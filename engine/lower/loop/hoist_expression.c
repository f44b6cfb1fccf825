/* hoist_expression.c: tir.HoistExpression and tir.HoistIfThenElse: conditions
 * that do not depend on a loop are decided outside of it, and variables are
 * bound there.
 *
 * Run by the executor. A condition of a statement without an else leaves the
 * loop in one branch; others leave two copies of it. tir.InsertHoistIfThenElse
 * is the first of three steps; tir.Simplify and tir.RemoveNoOp then remove what
 * is decided inside.
 *
 *     for i in range(8): if n > 3: A[i] = 0
 *         =>   if n > 3: for i in range(8): A[i] = 0
 *
 * Semantics: TVM's passes of the same names. Conditions that may fail (division
 * by what is not known) stay, and at most 8 conditions with an else leave one
 * nest of loops. */

#include "lower/emit.h"
#include "lower/loop/hoist_plan.h"

static pln_status wrap_conditions(const pln_hoist_plan *plan,
                                  pln_stmt_rewrite *s, uint32_t at,
                                  pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  for (; at; at = plan->entries[at - 1].next) {
    const pln_hoisted *entry = &plan->entries[at - 1];
    pln_ref condition;
    PLN_TRY(pln_stmt_map(s, entry->expr, &condition));
    *node =
        pln_emit_if(&e, condition, *node, entry->has_else ? *node : PLN_NONE);
    PLN_TRY(e.status);
  }
  return PLN_OK;
}

static pln_status wrap_lets(const pln_hoist_plan *plan, pln_stmt_rewrite *s,
                            uint32_t at, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  for (; at; at = plan->entries[at - 1].next) {
    const pln_hoisted *entry = &plan->entries[at - 1];
    pln_ref var, value;
    if (entry->is_only_found)
      continue;
    PLN_TRY(pln_stmt_map(s, entry->expr, &value));
    PLN_TRY(pln_stmt_map(s, entry->var, &var));
    *node = pln_emit_let(&e, var, value, *node);
    PLN_TRY(e.status);
  }
  return PLN_OK;
}

static bool is_hoisted_let(const pln_hoist_plan *plan, pln_ref var) {
  return plan->let_of[var] &&
         !plan->entries[plan->let_of[var] - 1].is_only_found;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_hoist_plan *plan = ud;
  const pln_node *n = &plan->g->nodes[stmt];
  if (n->kind == PLN_LET_STMT &&
      is_hoisted_let(plan, plan->g->scopes[n->data].begin)) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  if (!plan->first_condition[stmt] && !plan->first_let[stmt])
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  PLN_TRY(wrap_conditions(plan, s, plan->first_condition[stmt], node));
  return wrap_lets(plan, s, plan->first_let[stmt], node);
}

static pln_status drop_let(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  const pln_hoist_plan *plan = ud;
  if (plan->g->nodes[old].kind == PLN_PRIM_LET &&
      is_hoisted_let(plan, pln_operand(plan->g, old, 0)))
    *node = pln_stmt_image(s, pln_operand(plan->g, old, 2));
  return PLN_OK;
}

/* *out: the function with everything moved that the settings ask for. */
static pln_status hoist(const pln_graph *function, int64_t conditionals,
                        int64_t lets, pln_graph **out) {
  pln_hoist_plan plan = {
      .g = function, .conditionals = conditionals, .lets = lets};
  pln_stmt_mutator mutator = {
      .ud = &plan, .expr = drop_let, .leave = leave_stmt};
  pln_status status = pln_hoist_plan_make(&plan);
  *out = NULL;
  if (status == PLN_OK && plan.n_used == 0)
    *out = pln_graph_retain(function);
  else if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_hoist_plan_free(&plan);
  return status;
}

/* ------------------------------------------------------------------- passes */

/* What is to be moved out of loops, and then simplified. */
static pln_status run_hoist(pln_pass_run *run, int64_t conditionals,
                            int64_t lets, bool simplify) {
  pln_graph *function;
  PLN_TRY(hoist(pln_run_function(run), conditionals, lets, &function));
  pln_status status = PLN_OK;
  if (simplify)
    status = pln_lower_step(run, pln_pass_tir_simplify, &function);
  if (simplify && status == PLN_OK)
    status = pln_lower_step(run, pln_pass_tir_remove_no_op, &function);
  if (status == PLN_OK)
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}

static pln_status if_conditionals(const pln_pass_run *run, int64_t *out) {
  int64_t blocks = 0;
  if (!pln_slice_is(pln_run_string(run, "variant"), "basic"))
    PLN_TRY(pln_lower_config(
        run, "tir.HoistIfThenElse.support_block_scope_hosting", &blocks));
  *out = PLN_HOIST_IF_STMT | (blocks ? PLN_HOIST_USING_BLOCK_VAR : 0);
  return PLN_OK;
}

pln_status pln_pass_tir_insert_hoist_if_then_else(pln_pass_run *run) {
  int64_t conditionals;
  PLN_TRY(if_conditionals(run, &conditionals));
  return run_hoist(run, conditionals, 0, false);
}

pln_status pln_pass_tir_hoist_if_then_else(pln_pass_run *run) {
  int64_t conditionals;
  PLN_TRY(if_conditionals(run, &conditionals));
  return run_hoist(run, conditionals, 0, true);
}

pln_status pln_pass_tir_hoist_expression(pln_pass_run *run) {
  int64_t conditionals, lets;
  PLN_TRY(pln_lower_config(run, "tir.HoistExpression.hoisted_conditionals",
                           &conditionals));
  PLN_TRY(
      pln_lower_config(run, "tir.HoistExpression.hoisted_let_bindings", &lets));
  return run_hoist(run, conditionals, lets, true);
}
