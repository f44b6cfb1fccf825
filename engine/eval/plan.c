/* plan.c: determines which nodes a run must evaluate: the root, nodes with
 * effects, and what these need. Made once per graph of a run, in two linear
 * sweeps.
 *
 * Invariant: the backward sweep reaches an owner before the nodes of its
 * scopes, so it is known whether a scope is entered before its nodes are
 * visited. */

#include "eval/plan.h"
#include "eval/call.h"
#include "eval/loop.h"

/* ------------------------------------------------------------------ scopes */

static void link_scopes(pln_plan *p) {
  const pln_graph *g = p->graph;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    p->first_child[s] = p->next_child[s] = PLN_NONE;
  for (pln_scope s = g->n_scopes; s-- > 1;) {
    pln_scope parent = g->scopes[s].parent;
    p->next_child[s] = p->first_child[parent];
    p->first_child[parent] = s;
  }
}

/* ------------------------------------------------------------------- needs */

static void pin(pln_plan *p, pln_ref node) {
  if (node == PLN_NONE)
    return;
  p->needed[node] = 1;
  p->escapes[node] = 1;
  p->moved[node] = 1;
  p->uses[node] = PLN_PLAN_PINNED;
}

/* The kernel of `by` reads its operands by an order of axes. */
static bool reads_permuted(const pln_plan *p, const pln_node *by) {
  return by->kind == PLN_CALL && by->data && by->count <= PLN_FEW_ARGS &&
         pln_op_row(p->graph->engine, by->data)->traits & PLN_TRAIT_PERMUTED;
}

static bool is_transpose(const pln_node *n) {
  return n->kind == PLN_CALL && n->data == PLN_OP_TRANSPOSE && n->count == 1 &&
         n->results == 0;
}

static void count_needed_use(pln_plan *p, pln_ref node, pln_ref user) {
  const pln_node *by = &p->graph->nodes[user];
  p->needed[node] = 1;
  if (by->kind != PLN_CALL || !pln_calls_operands(by))
    p->escapes[node] = 1; /* annotations give their operand back */
  if (!reads_permuted(p, by) || p->node_scope[node] != p->node_scope[user] ||
      !is_transpose(&p->graph->nodes[node]))
    p->moved[node] = 1;
  if (p->node_scope[node] != p->node_scope[user])
    p->uses[node] = PLN_PLAN_PINNED;
  else if (p->uses[node] != PLN_PLAN_PINNED)
    p->uses[node]++;
}

static bool is_entered(const pln_node *n) {
  return pln_owns(n) && (n->kind == PLN_FUNCTION || n->kind == PLN_IF ||
                         n->kind == PLN_LET_BLOCK || n->kind == PLN_MATCH);
}

static bool is_needed(const pln_plan *p, pln_ref i, const uint8_t *entered) {
  const pln_node *n = &p->graph->nodes[i];
  if (p->needed[i])
    return true;
  if (n->kind == PLN_LET && p->needed[p->graph->operands[n->first]])
    return true;
  return (n->flags & PLN_NODE_EFFECT) != PLN_EFFECT_NONE &&
         entered[p->node_scope[i]];
}

/* A Let uses its value on behalf of the Var; it does not use the Var. */
static void need_operands(pln_plan *p, pln_ref i) {
  const pln_node *n = &p->graph->nodes[i];
  const pln_ref *args = pln_operands(p->graph, n);
  for (uint32_t k = n->kind == PLN_LET ? 1 : 0; k < n->count; k++)
    count_needed_use(p, args[k], i);
}

static void find_needs(pln_plan *p, uint8_t *entered) {
  const pln_graph *g = p->graph;
  memset(entered, 0, g->n_scopes);
  entered[0] = 1;
  pin(p, g->root);
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    if (!is_needed(p, i, entered))
      continue;
    p->needed[i] = 1;
    need_operands(p, i);
    if (!is_entered(&g->nodes[i]))
      continue;
    for (pln_scope s = g->nodes[i].data; s != PLN_NONE; s = g->scopes[s].next) {
      entered[s] = 1;
      pin(p, g->scopes[s].result);
    }
  }
}

/* ------------------------------------------------------------------- slots */

/* `body`: for each scope, the scope of the function that contains it. */
static void find_bodies(const pln_graph *g, pln_scope *body) {
  body[0] = 0;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    bool function = g->nodes[g->scopes[s].owner].kind == PLN_FUNCTION;
    body[s] = function ? s : body[g->scopes[s].parent];
  }
}

static void number_slots(pln_plan *p, pln_scope *body) {
  const pln_graph *g = p->graph;
  uint32_t all = 0;
  find_bodies(g, body);
  for (pln_ref i = 0; i < g->n_nodes; i++)
    p->slot[i] = p->n_slots[body[p->node_scope[i]]]++;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    p->first_slot[s] = all;
    all += p->n_slots[s];
  }
  for (pln_ref i = 0; i < g->n_nodes; i++)
    p->slot_uses[p->first_slot[body[p->node_scope[i]]] + p->slot[i]] =
        p->uses[i];
}

/* -------------------------------------------------------------- life cycle */

static bool alloc_plan_tables(pln_plan *p) {
  pln_engine *e = p->graph->engine;
  size_t nodes = p->graph->n_nodes, scopes = p->graph->n_scopes;
  p->uses = pln_mem_zeroed(e, nodes * sizeof *p->uses);
  p->needed = pln_mem_zeroed(e, nodes);
  p->moved = pln_mem_zeroed(e, nodes);
  p->escapes = pln_mem_zeroed(e, nodes);
  p->node_scope = pln_mem_new(e, nodes * sizeof *p->node_scope);
  p->slot = pln_mem_new(e, nodes * sizeof *p->slot);
  p->slot_uses = pln_mem_new(e, nodes * sizeof *p->slot_uses);
  p->first_slot = pln_mem_new(e, scopes * sizeof *p->first_slot);
  p->n_slots = pln_mem_zeroed(e, scopes * sizeof *p->n_slots);
  p->first_child = pln_mem_new(e, scopes * sizeof *p->first_child);
  p->next_child = pln_mem_new(e, scopes * sizeof *p->next_child);
  if (!p->first_slot || !p->n_slots || !p->first_child || !p->next_child)
    return false;
  return (p->uses && p->needed && p->moved && p->escapes && p->node_scope &&
          p->slot && p->slot_uses) ||
         nodes == 0;
}

static pln_status build_eval_plan(pln_plan *p) {
  pln_engine *e = p->graph->engine;
  size_t size = p->graph->n_scopes * sizeof(pln_scope);
  if (!alloc_plan_tables(p))
    return pln_nomem(e);
  pln_scope *scratch = pln_mem_new(e, size);
  if (!scratch)
    return pln_nomem(e);
  link_scopes(p);
  pln_graph_node_scopes(p->graph, p->node_scope);
  find_needs(p, (uint8_t *)scratch);
  number_slots(p, scratch);
  pln_mem_free(e, scratch, size);
  return PLN_OK;
}

pln_status pln_plan_new(const pln_graph *graph, pln_plan **out) {
  pln_plan *p = pln_mem_zeroed(graph->engine, sizeof *p);
  if (!p)
    return pln_nomem(graph->engine);
  p->graph = graph;
  pln_status status = build_eval_plan(p);
  if (status != PLN_OK)
    pln_plan_free(p);
  else
    *out = p;
  return status;
}

void pln_plan_free(pln_plan *plan) {
  if (!plan)
    return;
  pln_engine *e = plan->graph->engine;
  size_t nodes = plan->graph->n_nodes, scopes = plan->graph->n_scopes;
  pln_mem_free(e, plan->uses, nodes * sizeof *plan->uses);
  pln_mem_free(e, plan->needed, nodes);
  pln_mem_free(e, plan->moved, nodes);
  pln_mem_free(e, plan->escapes, nodes);
  pln_mem_free(e, plan->node_scope, nodes * sizeof *plan->node_scope);
  pln_mem_free(e, plan->slot, nodes * sizeof *plan->slot);
  pln_mem_free(e, plan->slot_uses, nodes * sizeof *plan->slot_uses);
  pln_mem_free(e, plan->first_slot, scopes * sizeof *plan->first_slot);
  pln_mem_free(e, plan->n_slots, scopes * sizeof *plan->n_slots);
  pln_mem_free(e, plan->first_child, scopes * sizeof *plan->first_child);
  pln_mem_free(e, plan->next_child, scopes * sizeof *plan->next_child);
  pln_mem_free(e, plan, sizeof *plan);
}
