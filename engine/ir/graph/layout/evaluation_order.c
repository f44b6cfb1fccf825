/* evaluation_order.c: lays a sealed graph out in the order in which Relay
 * evaluates it: operands from left to right, each value before its first use.
 *
 * Called by ToANormalForm, whose lets are in that order; passes that replace
 * nodes may leave another one. A graph stays as it is if values with effects or
 * lets would change places among each other.
 *
 *     %0 = f(%a); %1 = g(%b); h(%1, %0)   =>   %0 = g(%b); %1 = f(%a); h(%0,
 * %1)
 */

#include "ir/graph/layout/evaluation_order.h"

#include "ir/graph/layout/layout.h"

typedef struct evaluation_order {
  const pln_graph *graph;
  pln_ref *head,
      *next; /* by scope, by node: lets, clauses, parameters, extra roots */
  uint8_t *state; /* by node */
  pln_ref *order;
  uint32_t n;
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} evaluation_order;

enum { OPEN = 1, PLACED = 2 };

static pln_status push(evaluation_order *o, pln_ref node) {
  PLN_TRY(pln_mem_grow(o->graph->engine, (void **)&o->stack, &o->cap_stack,
                       (size_t)o->n_stack + 1, sizeof *o->stack));
  o->stack[o->n_stack++] = node;
  return PLN_OK;
}

static pln_status push_scope(evaluation_order *o, pln_scope s) {
  for (pln_ref ref = o->head[s]; ref != PLN_NONE; ref = o->next[ref])
    PLN_TRY(push(o, ref));
  return push(o, o->graph->scopes[s].result);
}

/* What comes before the node, the first on top: arguments, then the callee,
 * then what is inside. */
static pln_status push_parts(evaluation_order *o, pln_ref ref) {
  const pln_graph *g = o->graph;
  const pln_node *n = &g->nodes[ref];
  uint32_t begin = o->n_stack, callee = pln_has_callee(n);
  for (uint32_t i = callee; i < n->count; i++)
    PLN_TRY(push(o, pln_operand(g, ref, i)));
  if (callee)
    PLN_TRY(push(o, pln_operand(g, ref, 0)));
  if (pln_owns(n))
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
      PLN_TRY(push_scope(o, s));
  for (uint32_t i = begin, j = o->n_stack; i + 1 < j; i++) {
    pln_ref swapped = o->stack[i];
    o->stack[i] = o->stack[--j];
    o->stack[j] = swapped;
  }
  return PLN_OK;
}

static pln_status place(evaluation_order *o, pln_ref root) {
  PLN_TRY(push(o, root));
  while (o->n_stack) {
    pln_ref ref = o->stack[o->n_stack - 1];
    if (o->state[ref]) {
      o->n_stack--;
      if (o->state[ref] == OPEN)
        o->order[o->n++] = ref;
      o->state[ref] = PLACED;
      continue;
    }
    o->state[ref] = OPEN;
    PLN_TRY(push_parts(o, ref));
  }
  return PLN_OK;
}

/* What stands in its scope whether it is used or not. Values with effects are
 * found at their uses. */
static bool is_anchor(const pln_node *n) {
  return n->kind == PLN_LET || n->kind == PLN_CLAUSE ||
         n->flags & (PLN_NODE_PARAM | PLN_NODE_KEEP);
}

static void list_anchors(evaluation_order *o, const pln_scope *node_scope) {
  const pln_graph *g = o->graph;
  memset(o->head, 0xff, g->n_scopes * sizeof *o->head);
  for (pln_ref ref = g->n_nodes; ref-- > 0;)
    if (is_anchor(&g->nodes[ref])) {
      o->next[ref] = o->head[node_scope[ref]];
      o->head[node_scope[ref]] = ref;
    }
}

static pln_status find_order(evaluation_order *o, pln_scope *node_scope) {
  pln_graph_node_scopes(o->graph, node_scope);
  list_anchors(o, node_scope);
  for (pln_ref ref = o->head[0]; ref != PLN_NONE; ref = o->next[ref])
    PLN_TRY(place(o, ref));
  return place(o, o->graph->root);
}

/* True if the order has all nodes, differs from that of the graph, and leaves
 * the effects and lets of each scope in theirs. Overwrites `head`. */
static bool is_usable(evaluation_order *o, const pln_scope *node_scope) {
  bool differs = false;
  memset(o->head, 0, o->graph->n_scopes * sizeof *o->head);
  for (uint32_t i = 0; i < o->n; i++) {
    pln_ref ref = o->order[i];
    differs |= ref != i;
    if (!pln_is_scheduled(&o->graph->nodes[ref]))
      continue;
    pln_ref *last = &o->head[node_scope[ref]];
    if (ref < *last)
      return false;
    *last = ref;
  }
  return differs && o->n == o->graph->n_nodes;
}

pln_status pln_graph_in_evaluation_order(const pln_graph *graph,
                                         pln_graph **out) {
  pln_engine *e = graph->engine;
  evaluation_order o = {.graph = graph};
  size_t nodes = graph->n_nodes * sizeof(pln_ref);
  size_t scopes = graph->n_scopes * sizeof(pln_ref);
  pln_scope *node_scope = pln_mem_new(e, nodes);
  o.head = pln_mem_new(e, scopes);
  o.next = pln_mem_new(e, nodes);
  o.order = pln_mem_new(e, nodes);
  o.state = pln_mem_zeroed(e, graph->n_nodes);
  pln_status status = node_scope && o.head && o.next && o.order && o.state
                          ? find_order(&o, node_scope)
                          : pln_nomem(e);
  if (status == PLN_OK && !is_usable(&o, node_scope))
    *out = pln_graph_retain(graph);
  else if (status == PLN_OK)
    status = pln_graph_reorder(graph, o.order, out);
  pln_mem_free(e, node_scope, nodes);
  pln_mem_free(e, o.head, scopes);
  pln_mem_free(e, o.next, nodes);
  pln_mem_free(e, o.order, nodes);
  pln_mem_free(e, o.state, graph->n_nodes);
  pln_mem_free(e, o.stack, o.cap_stack * sizeof *o.stack);
  return status;
}
