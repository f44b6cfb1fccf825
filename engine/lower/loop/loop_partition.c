/* loop_partition.c: tir.LoopPartition: splits loops so that in a part of the
 * rounds no likely() condition is left to test.
 *
 * Run by the executor (config keys tir.LoopPartition.*). Each round splits the
 * outermost loops that can be; the loops that this makes are looked at in the
 * next. In the end likely() and partition hints are removed.
 *
 *     for i in range(n): if T.likely(i < m): A[i] = 0
 *         =>   for i in range(min(m, n)): A[i] = 0
 *              for i in range(n - m): if i + min(m, n) < m: ...
 *
 * Semantics: TVM's tir.LoopPartition, without the splitting of thread axes. Its
 * parts are kept inside of the loop (partition_plan.c). */

#include "lower/loop/partition_plan.h"

enum { MOST_ROUNDS = 64 };

typedef struct partitioner {
  pln_partition_plan plan;
  const pln_graph *g;
  const pln_loop_plan *middle; /* whose middle part is being visited */
} partitioner;

static const pln_loop_plan *plan_of(const partitioner *x, pln_ref stmt) {
  uint32_t row = x->plan.plan_of[stmt];
  return row ? &x->plan.plans[row - 1] : NULL;
}

static pln_status export_term(partitioner *x, pln_stmt_rewrite *s,
                              pln_term term, pln_ref *out) {
  return pln_analyzer_export(x->plan.a, pln_stmt_builder(s), term, out);
}

/* The variable is var + begin; in a part of one round, var is 0. */
static pln_status enter_part(partitioner *x, pln_stmt_rewrite *s, pln_ref stmt,
                             const pln_part_plan *part) {
  pln_ref old = pln_stmt_param(s, stmt, 0, 0), var, begin;
  pln_stmt_bind(s, old, PLN_NONE);
  PLN_TRY(pln_stmt_map(s, old, &var));
  PLN_TRY(export_term(x, s, part->begin, &begin));
  if (part->once)
    PLN_TRY(pln_stmt_int_like(s, var, 0, &var));
  if (!pln_is_int(pln_stmt_builder(s)->graph, begin, 0))
    PLN_TRY(
        pln_build_binary(pln_stmt_builder(s), PLN_PRIM_ADD, var, begin, &var));
  pln_stmt_bind(s, old, var);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  partitioner *x = ud;
  const pln_loop_plan *plan = plan_of(x, stmt);
  (void)k;
  (void)skip;
  if (!plan)
    return PLN_OK;
  const pln_part_plan *part = &plan->parts[pln_stmt_visits(s)];
  if (part->part == PLN_PART_MIDDLE)
    x->middle = plan;
  return enter_part(x, s, stmt, part);
}

/* The attributes of the loop; a final one is marked. */
static pln_status part_attrs(const partitioner *x, pln_ref loop, bool final,
                             pln_attrs *out) {
  pln_symbol name;
  *out = x->g->nodes[loop].attrs;
  if (!final)
    return PLN_OK;
  PLN_TRY(
      pln_symbol_intern(x->g->engine, pln_text(PLN_PARTITIONED_ATTR), &name));
  return pln_attrs_with(
      x->g->engine, *out,
      &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = 1}, out);
}

static pln_status leave_part(partitioner *x, pln_stmt_rewrite *s, pln_ref stmt,
                             const pln_part_plan *part, pln_ref *body) {
  pln_ref ends[2], var, old = pln_stmt_param(s, stmt, 0, 0);
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  if (part->once)
    return PLN_OK;
  PLN_TRY(export_term(x, s, part->extent, &ends[1]));
  PLN_TRY(pln_stmt_int_like(s, pln_stmt_operand(s, 0), 0, &ends[0]));
  pln_stmt_bind(s, old, PLN_NONE);
  PLN_TRY(pln_stmt_map(s, old, &var));
  PLN_TRY(part_attrs(x, stmt, part->final, &spec.attrs));
  return pln_build_floating_stmt(
      pln_stmt_builder(s), &spec, 1,
      &(pln_body){.n_params = 1, .params = &var, .stmt = *body}, body);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  partitioner *x = ud;
  const pln_loop_plan *plan = plan_of(x, stmt);
  uint32_t visits = pln_stmt_visits(s);
  (void)k;
  if (!plan)
    return PLN_OK;
  x->middle = NULL;
  *again = visits + 1 < plan->n_parts;
  return leave_part(x, s, stmt, &plan->parts[visits], body);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  if (plan_of(ud, stmt))
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* A condition that is decided in the middle part. */
static pln_status decide(void *ud, pln_stmt_rewrite *s, pln_ref old,
                         pln_ref *node) {
  partitioner *x = ud;
  pln_type type = x->g->nodes[old].type;
  pln_term term;
  if (!x->middle || pln_type_get_kind(x->g->engine, type) != PLN_TYPE_PRIM ||
      pln_type_dtype(x->g->engine, type) != PLN_BOOL)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(x->plan.a, x->g, old, &term));
  for (uint32_t i = 0; i < x->middle->decided.n; i++)
    if (x->middle->decided.items[i] == term)
      return pln_build_int_imm(pln_stmt_builder(s), type, x->middle->value,
                               node);
  return PLN_OK;
}

/* One round. *out: the function itself, retained, if nothing is split. */
static pln_status split_loops(const pln_graph *g,
                              const pln_partition_config *config,
                              pln_graph **out) {
  partitioner x = {.g = g};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = decide,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  PLN_TRY(pln_partition_plan_make(&x.plan, g, config));
  pln_status status = PLN_OK;
  if (x.plan.n == 0)
    *out = pln_graph_retain(g);
  else
    status = pln_stmt_rewrite_function(g, &mutator, out);
  pln_partition_plan_free(&x.plan);
  return status;
}

/* ------------------------------------------------------------------- the end
 */

static pln_status remove_likely(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  pln_ref argument = pln_likely_argument(ud, old);
  if (argument != PLN_NONE)
    *node = pln_stmt_image(s, argument);
  return PLN_OK;
}

static pln_status remove_marks(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  const pln_graph *g = ud;
  const pln_node *n = &g->nodes[stmt];
  pln_prim spec = {.kind = PLN_FOR, .n = n->count};
  if (pln_is_partition_hint(g, stmt)) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  if (n->kind != PLN_FOR ||
      !pln_attrs_find(g->engine, n->attrs, PLN_PARTITIONED_ATTR))
    return PLN_OK;
  PLN_TRY(pln_attrs_without(g->engine, n->attrs, PLN_PARTITIONED_ATTR,
                            &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status finish(const pln_graph *g, pln_graph **out) {
  pln_stmt_mutator mutator = {
      .ud = (void *)(uintptr_t)g, .expr = remove_likely, .leave = remove_marks};
  return pln_stmt_rewrite_function(g, &mutator, out);
}

/* Splits until nothing changes. */
static pln_status split_all(const pln_graph *g,
                            const pln_partition_config *config,
                            pln_graph **out) {
  pln_graph *now = pln_graph_retain(g), *next = NULL;
  for (uint32_t i = 0; i < MOST_ROUNDS; i++) {
    pln_status status = split_loops(now, config, &next);
    bool changed = status == PLN_OK && next != now;
    pln_graph_release(now);
    PLN_TRY(status);
    now = next;
    if (!changed)
      break;
  }
  pln_status status = finish(now, out);
  pln_graph_release(now);
  return status;
}

pln_status pln_pass_tir_loop_partition(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_partition_config config;
  pln_graph *out;
  PLN_TRY(pln_lower_config(run, "tir.LoopPartition.partition_const_loop",
                           &config.constant_loops));
  PLN_TRY(pln_lower_config(run,
                           "tir.LoopPartition.no_unroll_loop_with_extent_one",
                           &config.keep_unit_loops));
  PLN_TRY(split_all(g, &config, &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
