/* layout_reachable.c: copies the part of a floating graph that a root reaches
 * into a separate graph, in Relay's evaluation order.
 *
 * Called by layout_floating.c. The cost depends only on the reachable part: its
 * marks are tables as long as the graph, kept by the builder and zero between
 * two calls. A pattern shared by several arms is copied for each arm. Nothing
 * recurses. */

#include "ir/graph/describe.h"
#include "ir/graph/layout/layout.h"

#define LEAVE 0x80000000u
/* Marks of nodes without a number yet. */
#define ENTERED UINT32_MAX
#define SEEN (UINT32_MAX - 1) /* a pattern whose variables are listed */

/* Grows a table of numbers that reads as zero where nothing was written. */
static pln_status grow_reach_table(pln_engine *e, uint32_t **table,
                                   uint32_t *cap, uint32_t need) {
  uint32_t old = *cap;
  PLN_TRY(pln_mem_grow(e, (void **)table, cap, need, sizeof **table));
  memset(*table + old, 0, (size_t)(*cap - old) * sizeof **table);
  return PLN_OK;
}

static pln_status push_reached_node(pln_reachable_copy *r, pln_ref entry) {
  PLN_TRY(pln_mem_grow(r->part.engine, (void **)&r->stack, &r->cap_stack,
                       (size_t)r->top + 1, sizeof *r->stack));
  r->stack[r->top++] = entry;
  return PLN_OK;
}

/* The scope's number in the copy; PLN_NONE: not reached. */
static pln_scope numbered(const pln_reachable_copy *r, pln_scope s) {
  return s == PLN_NONE ? PLN_NONE : r->builder->scope_marks[s] - 1;
}

/* ----------------------------------------------------------------- the copy */

static pln_status make_room(pln_reachable_copy *r, size_t operands) {
  pln_graph *g = &r->part;
  pln_engine *e = g->engine;
  size_t n = (size_t)g->n_nodes + 1;
  PLN_TRY(
      pln_mem_grow(e, (void **)&g->nodes, &g->cap_nodes, n, sizeof *g->nodes));
  PLN_TRY(pln_mem_grow(e, (void **)&g->values, &g->cap_values, n,
                       sizeof *g->values));
  PLN_TRY(pln_mem_grow(e, (void **)&g->origin, &g->cap_origin, n,
                       sizeof *g->origin));
  PLN_TRY(pln_mem_grow(e, (void **)&g->typed_from, &g->cap_typed_from, n,
                       sizeof *g->typed_from));
  PLN_TRY(pln_mem_grow(e, (void **)&g->operands, &g->cap_operands,
                       g->n_operands + operands + 1, sizeof *g->operands));
  PLN_TRY(pln_mem_grow(e, (void **)&r->node_scope, &r->cap_node_scope, n,
                       sizeof *r->node_scope));
  return pln_mem_grow(e, (void **)&r->order, &r->cap_order, n,
                      sizeof *r->order);
}

/* An extra root of a floating block must come before the block's result. */
static pln_status check_kept(const pln_reachable_copy *r, pln_ref ref) {
  const pln_graph *g = r->builder->graph;
  pln_scope node_scope = r->builder->node_scope[ref];
  if (!(g->nodes[ref].flags & PLN_NODE_KEEP) || node_scope == PLN_NONE ||
      numbered(r, node_scope) != PLN_NONE || g->scopes[node_scope].begin != ref)
    return PLN_OK;
  pln_status status =
      pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                     "a kept node of a block is used outside of the block");
  pln_annotate_node(g, ref);
  return status;
}

/* Everything that the node needs has a number already. */
static pln_status copy_node(pln_reachable_copy *r, pln_ref ref) {
  const pln_graph *from = r->builder->graph;
  pln_graph *g = &r->part;
  pln_node n = from->nodes[ref];
  PLN_TRY(check_kept(r, ref));
  PLN_TRY(make_room(r, n.count));
  const pln_ref *operands = pln_operands(from, &n);
  n.first = g->n_operands;
  for (uint32_t i = 0; i < n.count; i++)
    g->operands[g->n_operands++] = r->builder->marks[operands[i]] - 1;
  if (pln_owns(&n))
    n.data = numbered(r, n.data);
  g->nodes[g->n_nodes] = n;
  g->values[g->n_nodes] = from->values[ref];
  g->origin[g->n_nodes] = from->origin[ref];
  g->typed_from[g->n_nodes] = from->typed_from[ref];
  r->node_scope[g->n_nodes] = numbered(r, r->builder->node_scope[ref]);
  r->order[g->n_nodes] = ref;
  r->builder->marks[ref] = ++g->n_nodes;
  return PLN_OK;
}

/* For a floating arm, the Clause gives the position of the row's parameters. */
static pln_status number_scope(pln_reachable_copy *r, pln_scope s) {
  pln_graph *g = &r->part;
  pln_engine *e = g->engine;
  size_t n = (size_t)g->n_scopes + 1;
  PLN_TRY(pln_mem_grow(e, (void **)&g->scopes, &g->cap_scopes, n,
                       sizeof *g->scopes));
  PLN_TRY(pln_mem_grow(e, (void **)&r->scopes, &r->cap_scopes, n,
                       sizeof *r->scopes));
  g->scopes[g->n_scopes] = r->builder->graph->scopes[s];
  g->scopes[g->n_scopes].begin = PLN_NONE;
  r->scopes[g->n_scopes] = s;
  r->builder->scope_marks[s] = ++g->n_scopes;
  return PLN_OK;
}

/* Called after the owner's scopes were walked. */
static void finish_scopes(pln_reachable_copy *r, const pln_node *n) {
  const pln_graph *from = r->builder->graph;
  for (pln_scope s = n->data; s != PLN_NONE; s = from->scopes[s].next) {
    pln_scope_row *row = &r->part.scopes[numbered(r, s)];
    row->next = numbered(r, from->scopes[s].next);
    row->result = r->builder->marks[from->scopes[s].result] - 1;
  }
}

/* --------------------------------------------------------- evaluation order */

/* The next node of the scope at `ref`, or the first node of the nested scopes
 * of its owner, which lie in the same interval. */
static pln_ref skip_nested(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return pln_owns(n) && g->scopes[n->data].begin < ref
             ? g->scopes[n->data].begin
             : ref;
}

/* Pushed in reverse, so that the first evaluated is on top. */
static pln_status push_scope(pln_reachable_copy *r, pln_scope s) {
  const pln_graph *g = r->builder->graph;
  const pln_scope_row *row = &g->scopes[s];
  PLN_TRY(push_reached_node(r, row->result));
  for (pln_ref ref = row->end; ref > row->begin;) {
    ref--;
    if (r->builder->node_scope[ref] == s && pln_is_scheduled(&g->nodes[ref]))
      PLN_TRY(push_reached_node(r, ref));
    ref = skip_nested(g, ref);
  }
  return PLN_OK;
}

static pln_status push_scopes(pln_reachable_copy *r, const pln_node *n) {
  const pln_graph *g = r->builder->graph;
  uint32_t first = r->part.n_scopes;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    PLN_TRY(number_scope(r, s));
  for (uint32_t i = r->part.n_scopes; i-- > first;)
    PLN_TRY(push_scope(r, r->scopes[i]));
  return PLN_OK;
}

/* The arguments of a Call are evaluated before a computed callee. */
static pln_status push_operands(pln_reachable_copy *r, const pln_node *n) {
  const pln_ref *operands = pln_operands(r->builder->graph, n);
  uint32_t callee = pln_has_callee(n);
  if (callee)
    PLN_TRY(push_reached_node(r, operands[0]));
  for (uint32_t i = n->count; i-- > callee;)
    PLN_TRY(push_reached_node(r, operands[i]));
  return PLN_OK;
}

static bool is_pattern(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN;
}

/* A pattern copied for an earlier arm is visited again. */
static bool is_done(const pln_reachable_copy *r, pln_ref ref) {
  uint32_t mark = r->builder->marks[ref];
  if (mark == 0 || mark == SEEN)
    return false;
  return mark == ENTERED || mark > r->arm ||
         !is_pattern(&r->builder->graph->nodes[ref]);
}

/* ----------------------------------------------------------------- patterns */

static pln_status bind_reached_var(pln_reachable_copy *r, pln_ref var) {
  const pln_graph *g = r->builder->graph;
  if (!r->builder->marks[var])
    return copy_node(r, var);
  return pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                        "the variable '%s' is bound more than once, or used "
                        "outside of the arm that binds it",
                        pln_symbol_text(g->engine, g->nodes[var].attrs).data);
}

static pln_status list_vars(pln_reachable_copy *r, pln_ref pattern) {
  const pln_graph *g = r->builder->graph;
  const pln_node *n = &g->nodes[pattern];
  uint32_t *mark = &r->builder->marks[pattern];
  if (n->kind == PLN_PATTERN_VAR)
    return bind_reached_var(r, g->operands[n->first]);
  if (!is_pattern(n) || *mark == SEEN || *mark == ENTERED)
    return PLN_OK;
  *mark = SEEN;
  return push_operands(r, n);
}

/* The variables of a floating arm become its parameters, which come first. */
static pln_status enter_arm(pln_reachable_copy *r, pln_ref clause) {
  const pln_graph *g = r->builder->graph;
  pln_scope s = r->builder->node_scope[clause];
  pln_ref begin = r->part.n_nodes;
  uint32_t base = r->top;
  if (s == PLN_NONE || g->scopes[s].end - g->scopes[s].begin != 1)
    return PLN_OK; /* copied from a sealed graph: already in order */
  r->arm = begin;
  PLN_TRY(push_operands(r, &g->nodes[clause]));
  while (r->top > base)
    PLN_TRY(list_vars(r, r->stack[--r->top]));
  s = numbered(r, s);
  if (s == PLN_NONE)
    return PLN_OK;
  r->part.scopes[s].begin = begin;
  r->part.scopes[s].n_params = r->part.n_nodes - begin;
  return PLN_OK;
}

/* ----------------------------------------------------------------- the walk */

static pln_status enter_reached_owner(pln_reachable_copy *r, pln_ref ref) {
  const pln_node *n = &r->builder->graph->nodes[ref];
  if (is_done(r, ref))
    return PLN_OK;
  r->builder->marks[ref] = ENTERED;
  PLN_TRY(push_reached_node(r, ref | LEAVE));
  if (pln_owns(n))
    PLN_TRY(push_scopes(r, n));
  if (n->kind == PLN_CLAUSE)
    PLN_TRY(enter_arm(r, ref));
  return push_operands(r, n);
}

static pln_status leave_reached_owner(pln_reachable_copy *r, pln_ref ref) {
  const pln_node *n = &r->builder->graph->nodes[ref];
  PLN_TRY(copy_node(r, ref));
  if (pln_owns(n))
    finish_scopes(r, n);
  return PLN_OK;
}

static pln_status walk_reachable(pln_reachable_copy *r, pln_ref root) {
  PLN_TRY(number_scope(r, 0));
  PLN_TRY(push_reached_node(r, root));
  for (size_t round = 0; r->top > 0; round++) {
    pln_ref entry = r->stack[--r->top];
    PLN_TRY(pln_poll_round(r->part.engine, round));
    PLN_TRY(entry & LEAVE ? leave_reached_owner(r, entry & ~LEAVE)
                          : enter_reached_owner(r, entry));
  }
  r->part.root = r->part.n_nodes - 1;
  return PLN_OK;
}

/* ------------------------------------------------------------------- driver */

/* After a failure the marks are in an unknown state, so the tables are
 * freed. */
static void drop_marks(pln_builder *b) {
  pln_engine *e = b->engine;
  pln_mem_free(e, b->marks, b->cap_marks * sizeof *b->marks);
  pln_mem_free(e, b->scope_marks, b->cap_scope_marks * sizeof *b->scope_marks);
  b->marks = b->scope_marks = NULL;
  b->cap_marks = b->cap_scope_marks = 0;
}

static void clear_marks(pln_reachable_copy *r) {
  pln_builder *b = r->builder;
  for (pln_ref at = 0; at < r->part.n_nodes; at++)
    b->marks[r->order[at]] = 0;
  for (pln_scope at = 0; at < r->part.n_scopes; at++)
    b->scope_marks[r->scopes[at]] = 0;
}

pln_status pln_reachable_copy_begin(pln_reachable_copy *r, pln_builder *b,
                                    pln_ref root) {
  const pln_graph *g = b->graph;
  *r = (pln_reachable_copy){.builder = b};
  r->part.engine = b->engine;
  r->part.tensors = g->tensors; /* borrowed, as are the origins */
  r->part.n_tensors = g->n_tensors;
  r->part.origins = g->origins;
  pln_status status =
      grow_reach_table(b->engine, &b->marks, &b->cap_marks, g->n_nodes);
  if (status == PLN_OK)
    status = grow_reach_table(b->engine, &b->scope_marks, &b->cap_scope_marks,
                              g->n_scopes);
  if (status == PLN_OK)
    status = walk_reachable(r, root);
  if (status == PLN_OK)
    clear_marks(r);
  else
    drop_marks(b);
  return status;
}

void pln_reachable_copy_end(pln_reachable_copy *r) {
  pln_graph *g = &r->part;
  pln_engine *e = g->engine;
  pln_mem_free(e, g->nodes, g->cap_nodes * sizeof *g->nodes);
  pln_mem_free(e, g->values, g->cap_values * sizeof *g->values);
  pln_mem_free(e, g->origin, g->cap_origin * sizeof *g->origin);
  pln_mem_free(e, g->typed_from, g->cap_typed_from * sizeof *g->typed_from);
  pln_mem_free(e, g->operands, g->cap_operands * sizeof *g->operands);
  pln_mem_free(e, g->scopes, g->cap_scopes * sizeof *g->scopes);
  pln_mem_free(e, r->node_scope, r->cap_node_scope * sizeof *r->node_scope);
  pln_mem_free(e, r->order, r->cap_order * sizeof *r->order);
  pln_mem_free(e, r->scopes, r->cap_scopes * sizeof *r->scopes);
  pln_mem_free(e, r->stack, r->cap_stack * sizeof *r->stack);
}
