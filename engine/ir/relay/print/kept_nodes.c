/* kept_nodes.c: finds nodes that the text must mark with `keep`: unused nodes,
 * and nodes with effects that the text would otherwise evaluate in another
 * order or scope.
 *
 * Called by plan.c for sealed graphs. The parser lays text out in Relay's
 * evaluation order: statements, then operands from left to right, a callee
 * after its arguments, each in the innermost scope that encloses its uses. A
 * graph from a file has the file's order instead. Nothing recurses. */

#include "ir/compare/equal.h"
#include "ir/graph/layout/scope_tree.h"
#include "ir/relay/print/plan.h"

static bool has_effect(const pln_node *n) {
  return !pln_is_atomic_expr(n->kind) && n->kind != PLN_LET &&
         pln_kinds[n->kind].kind_class == PLN_CLASS_EXPR &&
         pln_flags_effect(n->flags) != PLN_EFFECT_NONE;
}

/* Nothing uses it, no let binds it, and yet it is evaluated: what turned out to
 * have no effect after all is as good as gone. */
static bool is_unused(const pln_text_plan *plan, pln_ref i) {
  const pln_graph *g = plan->graph;
  const pln_node *n = &g->nodes[i];
  if ((pln_is_atomic_expr(n->kind) && n->kind != PLN_CONSTANT) ||
      n->kind == PLN_LET || i == g->root ||
      pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN)
    return false;
  return n->flags & PLN_NODE_KEEP ||
         (plan->nodes[i].uses == 0 && pln_is_effect_ordered(n));
}

/* -------------------------------------------------------- order of evaluation
 */

typedef enum task_kind { ENTER, LEAVE, SCOPES } task_kind;

typedef struct task {
  uint32_t kind; /* task_kind */
  uint32_t id;   /* a node; SCOPES: a scope, and those behind it */
} task;

typedef struct effect_order_search {
  const pln_text_plan *plan;
  uint8_t *seen; /* a node */
  pln_ref
      *last; /* a scope: 1 + what has an effect, or is a let, and came last */
  bool *reordered; /* a scope: another order than that of its nodes */
  task *tasks;
  uint32_t n_tasks, cap_tasks;
} effect_order_search;

static pln_status push_order_task(effect_order_search *o, task_kind kind,
                                  uint32_t id) {
  PLN_TRY(pln_mem_grow(o->plan->graph->engine, (void **)&o->tasks,
                       &o->cap_tasks, (size_t)o->n_tasks + 1,
                       sizeof *o->tasks));
  o->tasks[o->n_tasks++] = (task){kind, id};
  return PLN_OK;
}

static pln_status enter_scopes(effect_order_search *o, pln_scope s) {
  const pln_graph *g = o->plan->graph;
  const pln_scope_row *row = &g->scopes[s];
  if (row->next != PLN_NONE)
    PLN_TRY(push_order_task(o, SCOPES, row->next));
  PLN_TRY(push_order_task(o, ENTER, row->result));
  for (pln_ref i = pln_prev_effect_ordered(g, s, row->end); i != PLN_NONE;
       i = pln_prev_effect_ordered(g, s, pln_skip_effect_ordered(g, i)))
    if (g->nodes[i].kind == PLN_LET || is_unused(o->plan, i))
      PLN_TRY(push_order_task(o, ENTER, i));
  return PLN_OK;
}

static pln_status enter_ordered_node(effect_order_search *o, pln_ref node) {
  const pln_graph *g = o->plan->graph;
  const pln_node *n = &g->nodes[node];
  if (o->seen[node])
    return PLN_OK;
  o->seen[node] = 1;
  PLN_TRY(push_order_task(o, LEAVE, node));
  if (pln_owns(n))
    PLN_TRY(push_order_task(o, SCOPES, n->data));
  uint32_t callee = pln_has_callee(n);
  if (callee)
    PLN_TRY(push_order_task(o, ENTER, pln_operand(g, node, 0)));
  for (uint32_t i = n->count; i-- > callee;)
    PLN_TRY(push_order_task(o, ENTER, pln_operand(g, node, i)));
  return PLN_OK;
}

static void leave_ordered_node(effect_order_search *o, pln_ref node) {
  const pln_node *n = &o->plan->graph->nodes[node];
  pln_scope scope = o->plan->nodes[node].next;
  if (n->kind != PLN_LET && !has_effect(n))
    return;
  if (o->last[scope] > node)
    o->reordered[scope] = true;
  o->last[scope] = node + 1;
}

static pln_status walk_evaluation_order(effect_order_search *o) {
  PLN_TRY(push_order_task(o, SCOPES, 0));
  while (o->n_tasks > 0) {
    task t = o->tasks[--o->n_tasks];
    if (t.kind == LEAVE)
      leave_ordered_node(o, t.id);
    else
      PLN_TRY(t.kind == ENTER ? enter_ordered_node(o, t.id)
                              : enter_scopes(o, t.id));
  }
  return PLN_OK;
}

/* -------------------------------------------------------- scopes of uses
 */

/* `node` is used from `scope`. */
static void raise_to_use_scope(const pln_scope_tree *tree, pln_scope *at,
                               pln_ref node, pln_scope scope) {
  at[node] =
      at[node] == PLN_NONE ? scope : pln_scope_tree_lca(tree, at[node], scope);
}

/* Users before what they use: a node without effect is evaluated where its uses
 * are, and its scopes lie there. */
static void find_away(effect_order_search *o, pln_scope_tree *tree,
                      pln_scope *at) {
  const pln_graph *g = o->plan->graph;
  raise_to_use_scope(tree, at, g->root, 0);
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    const pln_node *n = &g->nodes[i];
    pln_scope node_scope = o->plan->nodes[i].next;
    bool stays = pln_is_effect_ordered(n) || at[i] == PLN_NONE;
    if (has_effect(n) && at[i] != PLN_NONE && at[i] != node_scope)
      o->reordered[node_scope] = true;
    if (stays)
      at[i] = node_scope;
    for (uint32_t j = 0; j < n->count; j++)
      raise_to_use_scope(tree, at, pln_operand(g, i, j), at[i]);
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
      pln_scope_tree_add_child(tree, s, at[i]);
      raise_to_use_scope(tree, at, g->scopes[s].result, s);
    }
  }
}

static pln_status find_scopes(effect_order_search *o) {
  const pln_graph *g = o->plan->graph;
  size_t size = ((size_t)g->n_nodes + 1) * sizeof(pln_scope);
  pln_scope_tree tree;
  pln_scope *at = pln_mem_new(g->engine, size);
  if (!at)
    return pln_nomem(g->engine);
  memset(at, 0xff, size);
  pln_status status = pln_scope_tree_begin(&tree, g->engine, g->n_scopes);
  if (status == PLN_OK)
    find_away(o, &tree, at);
  pln_scope_tree_end(&tree);
  pln_mem_free(g->engine, at, size);
  return status;
}

static void mark_reordered(const effect_order_search *o) {
  const pln_graph *g = o->plan->graph;
  pln_text_node *nodes = o->plan->nodes;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (o->reordered[nodes[i].next] && has_effect(&g->nodes[i]) &&
        pln_can_be_kept((pln_kind)g->nodes[i].kind))
      nodes[i].kept = true;
}

/* Of two nodes with effects, or a let and one, in one scope either may come
 * first; one that only an inner scope uses may come there. */
static pln_status find_reordered(const pln_text_plan *plan) {
  const pln_graph *g = plan->graph;
  pln_engine *e = g->engine;
  size_t n = (size_t)g->n_nodes + 1, k = (size_t)g->n_scopes + 1;
  effect_order_search o = {.plan = plan,
                           .seen = pln_mem_zeroed(e, n),
                           .last = pln_mem_zeroed(e, k * sizeof *o.last),
                           .reordered =
                               pln_mem_zeroed(e, k * sizeof *o.reordered)};
  pln_status status = o.seen && o.last && o.reordered
                          ? walk_evaluation_order(&o)
                          : pln_nomem(e);
  if (status == PLN_OK)
    status = find_scopes(&o);
  if (status == PLN_OK)
    mark_reordered(&o);
  pln_mem_free(e, o.seen, n);
  pln_mem_free(e, o.last, k * sizeof *o.last);
  pln_mem_free(e, o.reordered, k * sizeof *o.reordered);
  pln_mem_free(e, o.tasks, o.cap_tasks * sizeof *o.tasks);
  return status;
}

pln_status pln_text_find_kept_nodes(pln_text_plan *plan) {
  const pln_graph *g = plan->graph;
  uint32_t effects = 0;
  if (!g->sealed)
    return PLN_OK;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    plan->nodes[i].kept = is_unused(plan, i);
    effects += g->nodes[i].kind == PLN_LET || has_effect(&g->nodes[i]);
  }
  return effects > 0 ? find_reordered(plan) : PLN_OK;
}
