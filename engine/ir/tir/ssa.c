/* tir/ssa.c: checks that each variable of a TIR program is bound at most once
 * (TVM, VerifySSA). A let inside a PrimExpr may occur several times if its
 * value is the same, because shared PrimExprs are duplicated.
 *
 * Called by scripts. */

#include "ir/graph/describe.h"
#include "ir/tir/tir.h"

static pln_status refuse_second_binding(const pln_graph *g, pln_ref var,
                                        pln_ref node) {
  pln_status status = pln_diag_error(
      g->engine, PLN_ERR_INVALID, NULL,
      "the variable %s is bound more than once; this is not SSA form",
      pln_symbol_text(g->engine, g->nodes[var].attrs).data);
  pln_annotate_node(g, node);
  return status;
}

/* Block variables are not definitions for this check. */
static pln_status note_params(const pln_graph *g, pln_idmap *by) {
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    const pln_scope_row *row = &g->scopes[s];
    if (row->owner == PLN_NONE || g->nodes[row->owner].kind == PLN_BLOCK)
      continue;
    for (uint32_t i = 0; i < row->n_params; i++) {
      uint32_t id = g->nodes[row->begin + i].data;
      if (pln_idmap_get(by, id))
        return refuse_second_binding(g, row->begin + i, row->owner);
      PLN_TRY(pln_idmap_set(by, id, row->owner + 1));
    }
  }
  return PLN_OK;
}

static pln_status note_let(const pln_graph *g, pln_idmap *by, pln_ref let) {
  const pln_ref *o = pln_node_operands(g, let);
  uint32_t id = g->nodes[o[0]].data, known = pln_idmap_get(by, id);
  if (!known)
    return pln_idmap_set(by, id, let + 1);
  bool same = g->nodes[known - 1].kind == PLN_PRIM_LET;
  if (same)
    PLN_TRY(pln_graph_equal(g, pln_node_operands(g, known - 1)[1], g, o[1],
                            false, &same));
  return same ? PLN_OK : refuse_second_binding(g, o[0], let);
}

pln_status pln_tir_verify_ssa(const pln_graph *g) {
  pln_idmap *by; /* identity -> binder + 1 */
  PLN_TRY(pln_idmap_new(g->engine, &by));
  pln_status status = note_params(g, by);
  for (pln_ref ref = 0; ref < g->n_nodes && status == PLN_OK; ref++)
    if (g->nodes[ref].kind == PLN_PRIM_LET)
      status = note_let(g, by, ref);
  pln_idmap_free(by);
  return status;
}
