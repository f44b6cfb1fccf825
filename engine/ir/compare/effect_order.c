/* effect_order.c: the ordered list of nodes that a scope evaluates for their
 * effect. Equality and hashing compare this list. It holds lets, clauses, TIR
 * statements, and unused kept nodes and unused values with effects.
 *
 * A node with an effect that is also used is compared at its use, not here. The
 * printer marks such a node `keep` when it is not printed where it is first
 * used. The result does not depend on how precisely effects are known: a call
 * of an unknown function has an effect here and may later turn out to have
 * none. */

#include "ir/compare/equal.h"
#include "ir/tir/tir.h"

static bool is_value(const pln_node *n) {
  return n->kind != PLN_LET && n->kind != PLN_CLAUSE && !pln_is_stmt(n);
}

/* Marks operands and results of scopes as used. */
static pln_status find_uses(pln_effect_order *s) {
  const pln_graph *g = s->graph;
  s->used = pln_mem_zeroed(g->engine, (size_t)g->n_nodes + 1);
  if (!s->used)
    return pln_nomem(g->engine);
  for (pln_ref i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].count; k++)
      s->used[pln_operand(g, i, k)] = 1;
  for (pln_scope i = 0; i < g->n_scopes; i++)
    s->used[g->scopes[i].result] = 1;
  return PLN_OK;
}

void pln_effect_order_free(pln_effect_order *s) {
  if (s->used)
    pln_mem_free(s->graph->engine, s->used, (size_t)s->graph->n_nodes + 1);
  s->used = NULL;
}

pln_status pln_effect_order_before(pln_effect_order *s, pln_scope scope,
                                   pln_ref at, pln_ref *out) {
  const pln_graph *g = s->graph;
  while ((at = pln_prev_effect_ordered(g, scope, at)) != PLN_NONE) {
    if (!is_value(&g->nodes[at]))
      break;
    if (!s->used)
      PLN_TRY(find_uses(s));
    if (!s->used[at])
      break;
    at = pln_skip_effect_ordered(g, at);
  }
  *out = at;
  return PLN_OK;
}

bool pln_is_used_effect(const pln_effect_order *s, pln_ref ref) {
  const pln_node *n = &s->graph->nodes[ref];
  return pln_is_effect_ordered(n) && is_value(n) && s->used && s->used[ref];
}
