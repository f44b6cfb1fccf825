/* lower_init_block.c: tir.LowerInitBlock: the initial value of a reduction is
 * stored in its first step.
 *
 * Run by the executor.
 *
 *     with T.init(): B[i] = 0   =>   if k == 0: B[i] = 0      k: a reduction
 * axis
 *
 * Semantics: TVM's tir.LowerInitBlock. */

#include "lower/lower.h"

/* The Block in whose scope a BlockInit stands. */
static pln_ref block_of(const pln_graph *g, pln_ref init) {
  return g->scopes[pln_graph_scope_of(g, init)].owner;
}

/* condition and var == min, for each axis of a reduction. PLN_NONE: there is
 * none. */
static pln_status first_step(const pln_graph *g, pln_stmt_rewrite *s,
                             pln_ref block, pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_scope scope = g->nodes[block].data;
  *out = PLN_NONE;
  for (uint32_t i = 0; i < g->nodes[block].count; i++) {
    pln_ref var, min, equal;
    if (!pln_is_reduction_axis(g, block, i))
      continue;
    PLN_TRY(pln_stmt_map(s, g->scopes[scope].begin + i, &var));
    PLN_TRY(pln_stmt_map(s, pln_operand(g, pln_operand(g, block, i), 0), &min));
    PLN_TRY(pln_build_folded(b, PLN_PRIM_EQ, var, min, &equal));
    if (*out == PLN_NONE)
      *out = equal;
    else
      PLN_TRY(pln_build_folded(b, PLN_PRIM_AND, *out, equal, out));
  }
  return PLN_OK;
}

static pln_status lower_init(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_graph *g = ud;
  pln_ref condition, init;
  if (g->nodes[stmt].kind != PLN_BLOCK_INIT)
    return PLN_OK;
  init = pln_stmt_body(s, 0);
  PLN_TRY(first_step(g, s, block_of(g, stmt), &condition));
  *node = init;
  if (condition == PLN_NONE)
    return PLN_OK;
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &condition};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1,
                                 &(pln_body){.stmt = init}, node);
}

pln_status pln_pass_tir_lower_init_block(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)g, .leave = lower_init};
  return pln_has_kind(g, PLN_BLOCK_INIT) ? pln_lower_function(run, &mutator)
                                         : PLN_OK;
}
