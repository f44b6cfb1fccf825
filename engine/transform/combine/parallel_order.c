/* parallel_order.c: orders nodes so that all operands of a group of parallel
 * branches come before the first of its results. Called by
 * parallel_branches.c.
 *
 * A result of a group depends on the operands of all of its branches. A group
 * is accepted if that closes no cycle with the groups accepted before, and if
 * what has to move up are plain calls of operators without effects, tuples and
 * constants. The search for a cycle follows at most MAX_CONE nodes, so that the
 * work is linear in the number of groups.
 *
 *     %0 = nn.dense(%x, %w); %1 = exp(%v); %2 = nn.dense(%x, %1)
 *       =>   %1 = exp(%v); %0 = nn.dense(%x, %w); %2 = nn.dense(%x, %1) */

#include "transform/combine/parallel_order.h"

enum { MAX_CONE = 4096 };

typedef struct branch_order {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_scope *node_scope;
  pln_group_parts *parts;
  uint32_t *seen; /* by node: the last group whose search saw it */
  pln_ref moved;  /* the first lead before which nodes move up, or PLN_NONE */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} branch_order;

static pln_status push(branch_order *o, pln_ref node) {
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->stack, &o->cap_stack,
                       (size_t)o->n_stack + 1, sizeof *o->stack));
  o->stack[o->n_stack++] = node;
  return PLN_OK;
}

/* What the combined computation needs but the operand that all share. */
static pln_status push_group_operands(branch_order *o,
                                      const pln_branch_group *g) {
  for (const pln_branch_level *l = g->first; l; l = l->next)
    for (uint32_t j = 0; j < g->n; j++)
      for (uint32_t i = 0; i < o->graph->nodes[l->nodes[j]].count; i++)
        if (i != l->parent)
          PLN_TRY(push(o, pln_operand(o->graph, l->nodes[j], i)));
  return PLN_OK;
}

static pln_status push_operands(branch_order *o, pln_ref node) {
  for (uint32_t i = 0; i < o->graph->nodes[node].count; i++)
    PLN_TRY(push(o, pln_operand(o->graph, node, i)));
  return PLN_OK;
}

/* ------------------------------------------------------------------- groups */

static bool can_move(const branch_order *o, pln_ref node, pln_scope scope) {
  const pln_node *n = &o->graph->nodes[node];
  bool plain = n->kind == PLN_CONSTANT || n->kind == PLN_TUPLE ||
               n->kind == PLN_TUPLE_GET_ITEM ||
               (n->kind == PLN_CALL && n->data);
  return plain && o->node_scope[node] == scope &&
         !(n->flags & (PLN_NODE_EFFECT | PLN_NODE_KEEP));
}

/* Follows what the group's operands depend on, as far as it may depend on the
 * group itself. */
static pln_status check_dependences(branch_order *o, uint32_t number,
                                    bool *refused) {
  const pln_branch_group *g = &o->parts->groups[number];
  pln_ref stop = g->lead < o->moved ? g->lead : o->moved;
  pln_scope scope = o->node_scope[g->lead];
  uint32_t cone = 0;
  o->n_stack = 0;
  PLN_TRY(push_group_operands(o, g));
  while (o->n_stack && !*refused) {
    pln_ref node = o->stack[--o->n_stack];
    uint32_t other = o->parts->group_of[node];
    if (node < stop || o->seen[node] == number)
      continue;
    o->seen[node] = number;
    *refused = other == number || ++cone > MAX_CONE ||
               pln_owns(&o->graph->nodes[node]) ||
               (node > g->lead && !can_move(o, node, scope));
    if (other && other != number)
      PLN_TRY(push_group_operands(o, &o->parts->groups[other]));
    PLN_TRY(push_operands(o, node));
  }
  return PLN_OK;
}

static bool has_late_operand(const branch_order *o, const pln_branch_group *g) {
  for (const pln_branch_level *l = g->first; l; l = l->next)
    for (uint32_t j = 0; j < g->n; j++)
      for (uint32_t i = 0; i < o->graph->nodes[l->nodes[j]].count; i++)
        if (i != l->parent && pln_operand(o->graph, l->nodes[j], i) > g->lead)
          return true;
  return false;
}

/* Claims the calls of the last level; false if another group has one. */
static bool claim(branch_order *o, uint32_t number) {
  pln_branch_group *g = &o->parts->groups[number];
  for (uint32_t j = 0; j < g->n; j++)
    if (o->parts->group_of[g->last->nodes[j]])
      return false;
  g->lead = PLN_NONE;
  for (uint32_t j = 0; j < g->n; j++) {
    pln_ref node = g->last->nodes[j];
    o->parts->group_of[node] = number;
    o->parts->branch_of[node] = j;
    g->lead = node < g->lead ? node : g->lead;
  }
  return true;
}

static void unclaim(branch_order *o, const pln_branch_group *g) {
  for (uint32_t j = 0; j < g->n; j++)
    o->parts->group_of[g->last->nodes[j]] = 0;
}

static pln_status accept_group(branch_order *o, uint32_t number) {
  pln_branch_group *g = &o->parts->groups[number];
  bool refused = false;
  if (!claim(o, number)) {
    g->applied = false;
    return PLN_OK;
  }
  PLN_TRY(check_dependences(o, number, &refused));
  if (refused) {
    g->applied = false;
    unclaim(o, g);
  } else if (g->lead < o->moved && has_late_operand(o, g)) {
    o->moved = g->lead;
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- order */

/* Appends a node behind what it needs. */
static pln_status place(branch_order *o, pln_ref root, pln_ref *order,
                        uint32_t *n, uint8_t *state) {
  enum { OPEN = 1, PLACED = 2 };
  o->n_stack = 0;
  PLN_TRY(push(o, root));
  while (o->n_stack) {
    pln_ref node = o->stack[o->n_stack - 1];
    uint32_t group = o->parts->group_of[node];
    if (state[node]) {
      o->n_stack--;
      if (state[node] == OPEN)
        order[(*n)++] = node;
      state[node] = PLACED;
      continue;
    }
    state[node] = OPEN;
    PLN_TRY(push_operands(o, node));
    /* `seen` has served; it marks the groups whose operands are placed. */
    if (group && !o->seen[group]) {
      o->seen[group] = 1;
      PLN_TRY(push_group_operands(o, &o->parts->groups[group]));
    }
  }
  return PLN_OK;
}

static pln_status reorder(branch_order *o, pln_graph **out) {
  const pln_graph *g = o->graph;
  size_t size = g->n_nodes * sizeof(pln_ref);
  pln_ref *order = pln_mem_new(o->engine, size);
  uint8_t *state = pln_mem_zeroed(o->engine, g->n_nodes);
  pln_status status = order && state ? PLN_OK : pln_nomem(o->engine);
  uint32_t n = 0;
  memset(o->seen, 0, size);
  for (pln_ref ref = 0; status == PLN_OK && ref < g->n_nodes; ref++)
    status = place(o, ref, order, &n, state);
  if (status == PLN_OK)
    status = pln_graph_reorder(g, order, out);
  pln_mem_free(o->engine, order, size);
  pln_mem_free(o->engine, state, g->n_nodes);
  return status;
}

static pln_status order_groups(branch_order *o, pln_graph **reordered) {
  for (uint32_t i = 1; i <= o->parts->n_groups; i++)
    if (o->parts->groups[i].applied)
      PLN_TRY(accept_group(o, i));
  return o->moved == PLN_NONE ? PLN_OK : reorder(o, reordered);
}

pln_status pln_parallel_order(const pln_graph *graph,
                              const pln_scope *node_scope,
                              pln_group_parts *parts, pln_graph **reordered) {
  branch_order o = {.engine = graph->engine,
                    .graph = graph,
                    .node_scope = node_scope,
                    .parts = parts,
                    .moved = PLN_NONE};
  size_t size = graph->n_nodes * sizeof *o.seen;
  o.seen = pln_mem_zeroed(o.engine, size);
  pln_status status =
      o.seen ? order_groups(&o, reordered) : pln_nomem(o.engine);
  pln_mem_free(o.engine, o.seen, size);
  pln_mem_free(o.engine, o.stack, o.cap_stack * sizeof *o.stack);
  return status;
}
