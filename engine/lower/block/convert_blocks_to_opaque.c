/* convert_blocks_to_opaque.c: tir.ConvertBlocksToOpaque: puts the values of a
 * Block's variables in their place.
 *
 * Run by the executor after tir.LowerInitBlock.
 *
 *     with T.block("b"): v = T.axis.spatial(8, i); A[v] = 0
 *         =>   with T.block("b"): A[i] = 0
 *
 * Semantics: TVM's tir.ConvertBlocksToOpaque. */

#include "lower/lower.h"

/* The variables of the Block stand for the values of its BlockRealize. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  const pln_graph *g = ud;
  (void)k;
  (void)skip;
  if (g->nodes[stmt].kind != PLN_BLOCK_REALIZE)
    return PLN_OK;
  pln_ref block = g->scopes[g->nodes[stmt].data].result;
  for (uint32_t i = 1; i < g->nodes[stmt].count; i++)
    pln_stmt_bind(s, g->scopes[g->nodes[block].data].begin + i - 1,
                  pln_stmt_operand(s, i));
  return PLN_OK;
}

/* iter_types of no variable. */
static pln_status without_types(pln_engine *e, pln_attrs attrs,
                                pln_attrs *out) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("iter_types"), &name));
  return pln_attrs_with(e, attrs,
                        &(pln_attr){.name = name, .kind = PLN_ATTR_INTS}, out);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_graph *g = ud;
  const pln_node *n = &g->nodes[stmt];
  pln_prim spec = {.kind = (pln_kind)n->kind, .attrs = n->attrs};
  pln_ref predicate;
  if (n->kind != PLN_BLOCK && n->kind != PLN_BLOCK_REALIZE)
    return PLN_OK;
  if (n->kind == PLN_BLOCK && n->count == 0)
    return PLN_OK;
  if (n->kind == PLN_BLOCK_REALIZE) {
    if (n->count == 1)
      return PLN_OK;
    predicate = pln_stmt_operand(s, 0);
    spec.n = 1;
    spec.operands = &predicate;
  } else {
    PLN_TRY(without_types(g->engine, n->attrs, &spec.attrs));
  }
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1,
                                 &(pln_body){.stmt = pln_stmt_body(s, 0)},
                                 node);
}

static pln_status refuse_init(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK_INIT)
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.ConvertBlocksToOpaque: a block has an init: "
                            "run tir.LowerInitBlock first");
  return PLN_OK;
}

pln_status pln_pass_tir_convert_blocks_to_opaque(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)g,
                              .enter_body = enter_body,
                              .leave = leave_stmt};
  if (!pln_has_kind(g, PLN_BLOCK))
    return PLN_OK;
  PLN_TRY(refuse_init(g));
  return pln_lower_function(run, &mutator);
}
