/* unshare_scalars.c: gives each operator that uses a scalar constant a constant
 * of its own.
 *
 * Called by EliminateCommonSubexpr, whose value numbering makes equal constants
 * one node. FuseOps writes a scalar into the function of its only user, but
 * makes one that several groups share a parameter of each.
 *
 *     (add(%x, c), multiply(%y, c))   =>   (add(%x, c), multiply(%y, c')) */

#include "transform/unshare_scalars.h"

#include "rule/rule.h"

/* Operators of more operands keep theirs. */
enum { FEW_OPERANDS = 8 };

bool pln_is_literal_scalar(const pln_tensor *t) {
  return t->rank == 0 && (t->dtype == PLN_INT32 || t->dtype == PLN_INT64 ||
                          t->dtype == PLN_FLOAT32 || t->dtype == PLN_FLOAT64 ||
                          t->dtype == PLN_BOOL);
}

static bool is_literal(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CONSTANT && pln_is_literal_scalar(g->tensors[n->data]);
}

static bool is_operator_call(const pln_node *n) {
  return n->kind == PLN_CALL && n->data && n->count <= FEW_OPERANDS;
}

/* Marks the scalars that others than operators use; *any: a scalar has several
 * uses. */
static void mark_other_uses(const pln_graph *g, uint8_t *used, bool *any) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++) {
      pln_ref arg = pln_operand(g, ref, i);
      *any |= used[arg] && is_literal(g, arg);
      used[arg] = 1;
    }
  memset(used, 0, g->n_nodes);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      used[pln_operand(g, ref, i)] |= !is_operator_call(&g->nodes[ref]);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE) {
      *any |= is_literal(g, g->scopes[s].result);
      used[g->scopes[s].result] = 1;
    }
}

/* Replaces the operands that have a user already; *any: there are some. */
static pln_status copy_used_scalars(pln_builder *b, const pln_graph *old,
                                    pln_ref call, uint8_t *used, pln_ref *args,
                                    bool *any) {
  for (uint32_t i = 0; i < old->nodes[call].count; i++) {
    pln_ref arg = pln_operand(old, call, i);
    if (!is_literal(old, arg))
      continue;
    if (used[arg]) {
      *any = true;
      PLN_TRY(
          pln_build_constant(b, old->tensors[old->nodes[arg].data], &args[i]));
    }
    used[arg] = 1;
  }
  return PLN_OK;
}

static pln_status unshare_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  const pln_graph *g = pln_rewrite_old(rw);
  pln_ref args[FEW_OPERANDS];
  bool any = false;
  if (!is_operator_call(&g->nodes[old]) || !pln_call_is_valid(g, old))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node call = b->graph->nodes[*node];
  memcpy(args, pln_operands(b->graph, &call), call.count * sizeof *args);
  PLN_TRY(copy_used_scalars(b, g, old, ud, args, &any));
  if (!any)
    return PLN_OK;
  PLN_TRY(pln_build_call(b, call.data, call.attrs, call.results, call.count,
                         args, node));
  return pln_keep_type(rw, *node, call.type);
}

pln_status pln_unshare_scalars(const pln_graph *graph, pln_graph **out) {
  pln_engine *e = graph->engine;
  uint8_t *used = pln_mem_zeroed(e, graph->n_nodes);
  pln_mutator m = {.ud = used, .visit = unshare_node};
  pln_status status = PLN_OK;
  bool any = false;
  if (!used)
    return pln_nomem(e);
  mark_other_uses(graph, used, &any);
  if (any)
    status = pln_graph_rewrite(graph, &m, out);
  else
    *out = pln_graph_retain(graph);
  pln_mem_free(e, used, graph->n_nodes);
  return status;
}
