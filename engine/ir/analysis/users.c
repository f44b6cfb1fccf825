/* users.c: the users of each node, in the layout of a compressed sparse
 * matrix. */

#include "ir/analysis/users.h"

static void fill_users(pln_users *u, const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].count; k++)
      u->first[pln_operand(g, i, k) + 1]++;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    u->first[i + 1] += u->first[i];
  uint32_t total = u->first[g->n_nodes];
  for (pln_ref i = g->n_nodes; i-- > 0;)
    for (uint32_t k = g->nodes[i].count; k-- > 0;)
      u->users[--u->first[pln_operand(g, i, k) + 1]] = i;
  /* Filling moved the end of each list to its start. */
  for (pln_ref i = 0; i < g->n_nodes; i++)
    u->first[i] = u->first[i + 1];
  u->first[g->n_nodes] = total;
}

static void fill_results(pln_users *u, const pln_graph *g) {
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      u->is_result[g->scopes[s].result] = 1;
  if (g->root != PLN_NONE)
    u->is_result[g->root] = 1;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].flags & PLN_NODE_KEEP)
      u->is_result[i] = 1;
}

pln_status pln_users_begin(pln_users *u, const pln_graph *graph) {
  pln_engine *e = graph->engine;
  size_t n = graph->n_nodes;
  *u = (pln_users){
      .engine = e, .n_nodes = graph->n_nodes, .n_operands = graph->n_operands};
  u->first = pln_mem_zeroed(e, (n + 2) * sizeof *u->first);
  u->users = pln_mem_new(e, (u->n_operands + (size_t)1) * sizeof *u->users);
  u->is_result = pln_mem_zeroed(e, n + 1);
  u->node_scope = pln_mem_new(e, (n + 1) * sizeof *u->node_scope);
  if (!u->first || !u->users || !u->is_result || !u->node_scope)
    return pln_nomem(e);
  fill_users(u, graph);
  fill_results(u, graph);
  pln_graph_node_scopes(graph, u->node_scope);
  return PLN_OK;
}

void pln_users_end(pln_users *u) {
  size_t n = u->n_nodes;
  pln_mem_free(u->engine, u->first, (n + 2) * sizeof *u->first);
  pln_mem_free(u->engine, u->users,
               (u->n_operands + (size_t)1) * sizeof *u->users);
  pln_mem_free(u->engine, u->is_result, n + 1);
  pln_mem_free(u->engine, u->node_scope, (n + 1) * sizeof *u->node_scope);
}
