/* use_counts.c: use counts during a rewrite, for passes that ask the constant
 * budget.
 *
 * Invariant: uses->now[i] is the number of uses that node i of the new graph
 * will have when sealed, as far as known: nodes not swept yet use what they
 * used in the old graph. */

#include "ir/rewrite/use_counts.h"

static void count(const pln_graph *g, uint32_t *uses) {
  for (uint32_t i = 0; i < g->n_operands; i++)
    uses[g->operands[i]]++;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      uses[g->scopes[s].result]++;
  uses[g->root]++;
}

pln_status pln_use_counts_begin(pln_use_counts *uses, const pln_graph *old) {
  *uses = (pln_use_counts){.engine = old->engine, .graph = old};
  uses->old = pln_mem_zeroed(old->engine, old->n_nodes * sizeof *uses->old);
  if (!uses->old)
    return pln_nomem(old->engine);
  count(old, uses->old);
  return PLN_OK;
}

void pln_use_counts_end(pln_use_counts *uses) {
  if (uses->graph)
    pln_mem_free(uses->engine, uses->old,
                 uses->graph->n_nodes * sizeof *uses->old);
  pln_mem_free(uses->engine, uses->now, uses->cap * sizeof *uses->now);
  uses->old = uses->now = NULL;
  uses->n = uses->cap = 0;
}

pln_status pln_use_counts_grow(pln_use_counts *uses, pln_ref node) {
  uint32_t before = uses->cap;
  size_t need = (size_t)node + 1;
  if (!before && need <= uses->graph->n_nodes)
    need = (size_t)uses->graph->n_nodes + 1;
  PLN_TRY(pln_mem_grow(uses->engine, (void **)&uses->now, &uses->cap, need,
                       sizeof *uses->now));
  memset(uses->now + before, 0, (uses->cap - before) * sizeof *uses->now);
  uses->n = uses->cap;
  return PLN_OK;
}

pln_status pln_use_counts_change(pln_use_counts *uses, const pln_graph *graph,
                                 pln_ref node, int by) {
  const pln_node *n = &graph->nodes[node];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(graph, node, i);
    PLN_TRY(pln_use_counts_cover(uses, operand));
    uses->now[operand] += (uint32_t)by;
  }
  return PLN_OK;
}
