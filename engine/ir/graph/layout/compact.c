/* compact.c: garbage collection of a floating builder: removes nodes that no
 * handle reaches.
 *
 * Called by the Lua binding for the builder of scripts, between two
 * constructors, with the nodes that scripts hold handles of. Invariants:
 * remaining nodes keep their order; a node of a copied scope keeps its whole
 * owner alive; everything that may fail is done before anything is changed.
 * Nothing recurses. */

#include "ir/graph/layout/compact.h"

static pln_status push_reachable_node(pln_compaction *c, pln_ref ref) {
  if (c->map[ref] != PLN_NONE)
    return PLN_OK;
  c->map[ref] = 0;
  PLN_TRY(pln_mem_grow(c->b->engine, (void **)&c->stack, &c->cap_stack,
                       (size_t)c->top + 1, sizeof *c->stack));
  c->stack[c->top++] = ref;
  return PLN_OK;
}

/* Pushes what the node needs: operands, results of its scopes and their nodes,
 * and the owner of the scope that it lies in. */
static pln_status push_needs(pln_compaction *c, pln_ref ref) {
  const pln_graph *g = c->b->graph;
  const pln_node *n = &g->nodes[ref];
  pln_scope node_scope = c->b->node_scope[ref];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(push_reachable_node(c, g->operands[n->first + i]));
  if (node_scope != PLN_NONE && g->scopes[node_scope].owner != PLN_NONE)
    PLN_TRY(push_reachable_node(c, g->scopes[node_scope].owner));
  for (pln_scope s = pln_owns(n) ? n->data : PLN_NONE; s != PLN_NONE;
       s = g->scopes[s].next) {
    const pln_scope_row *row = &g->scopes[s];
    PLN_TRY(push_reachable_node(c, row->result));
    for (pln_ref in = row->begin; row->begin != PLN_NONE && in < row->end; in++)
      PLN_TRY(push_reachable_node(c, in));
  }
  return PLN_OK;
}

static void number_nodes(pln_compaction *c) {
  const pln_graph *g = c->b->graph;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (c->map[ref] != PLN_NONE)
      c->map[ref] = c->n_nodes++;
}

/* Numbers scope 0 and the scopes of remaining owners. */
static void number_scopes(pln_compaction *c) {
  const pln_graph *g = c->b->graph;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    bool stays = s == 0 || (owner != PLN_NONE && c->map[owner] != PLN_NONE);
    c->scopes[s] = stays ? c->n_scopes++ : PLN_NONE;
  }
}

/* Updates the builder's table from variables, with and without a type, to
 * nodes. */
static pln_status move_var(pln_compaction *c, pln_ref ref) {
  const pln_node *n = &c->b->graph->nodes[ref];
  uint64_t keys[] = {n->data, pln_typed_var(n->data, n->type)};
  for (int i = 0; i < 2; i++)
    if (pln_idmap_get(c->b->vars, keys[i]) == ref + 1)
      PLN_TRY(pln_idmap_set(c->vars, keys[i], c->map[ref] + 1));
  if (!pln_idmap_get(c->vars, n->data))
    return pln_idmap_set(c->vars, n->data, c->map[ref] + 1);
  return PLN_OK;
}

/* Nodes that are found by their identity: variables and Buffers. */
static pln_status move_known(pln_compaction *c, pln_ref ref) {
  const pln_graph *g = c->b->graph;
  pln_kind kind = (pln_kind)g->nodes[ref].kind;
  if (!c->b->vars || c->b->node_scope[ref] != PLN_NONE)
    return PLN_OK;
  if (kind == PLN_BUFFER)
    return pln_buffer_remember_as(g, ref, c->vars, c->map[ref]);
  return kind == PLN_VAR ? move_var(c, ref) : PLN_OK;
}

static pln_status move_tables(pln_compaction *c) {
  pln_builder *b = c->b;
  const pln_graph *g = b->graph;
  if (b->vars)
    PLN_TRY(pln_idmap_new(b->engine, &c->vars));
  if (b->early)
    PLN_TRY(pln_idmap_new(b->engine, &c->early));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (c->map[ref] == PLN_NONE)
      continue;
    PLN_TRY(move_known(c, ref));
    if (b->early && pln_idmap_get(b->early, ref))
      PLN_TRY(pln_idmap_set(c->early, c->map[ref], 1));
  }
  return PLN_OK;
}

pln_status pln_compaction_begin(pln_compaction *c, pln_builder *b, uint32_t n,
                                const pln_ref *roots) {
  const pln_graph *g = b->graph;
  *c = (pln_compaction){.b = b, .size = g->n_nodes, .size_scopes = g->n_scopes};
  c->map = pln_mem_new(b->engine, ((size_t)g->n_nodes + 1) * sizeof *c->map);
  c->scopes =
      pln_mem_new(b->engine, ((size_t)g->n_scopes + 1) * sizeof *c->scopes);
  if (!c->map || !c->scopes)
    return pln_nomem(b->engine);
  memset(c->map, 0xff, ((size_t)g->n_nodes + 1) * sizeof *c->map);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push_reachable_node(c, roots[i]));
  while (c->top > 0)
    PLN_TRY(push_needs(c, c->stack[--c->top]));
  number_nodes(c);
  number_scopes(c);
  return move_tables(c);
}

void pln_compaction_end(pln_compaction *c) {
  pln_engine *e = c->b->engine;
  pln_mem_free(e, c->map, ((size_t)c->size + 1) * sizeof *c->map);
  pln_mem_free(e, c->scopes, ((size_t)c->size_scopes + 1) * sizeof *c->scopes);
  pln_mem_free(e, c->stack, c->cap_stack * sizeof *c->stack);
  pln_idmap_free(c->vars);
  pln_idmap_free(c->early);
}

/* ---------------------------------------------------------------- the change
 */

static pln_ref image(const pln_compaction *c, pln_ref ref) {
  return ref == PLN_NONE ? PLN_NONE : c->map[ref];
}

static pln_scope scope_image(const pln_compaction *c, pln_scope s) {
  return s == PLN_NONE ? PLN_NONE : c->scopes[s];
}

/* All nodes of a remaining scope remain. */
static void move_interval(const pln_compaction *c, pln_scope_row *row) {
  if (row->begin == PLN_NONE)
    return;
  bool open = row->end == PLN_NONE, empty = !open && row->begin >= row->end;
  pln_ref begin = c->map[row->begin];
  if (open || empty) /* scope 0 */
    begin = 0;
  row->end = open ? PLN_NONE : empty ? 0 : c->map[row->end - 1] + 1;
  row->begin = begin;
}

/* Tensors are numbered in the order of their constants. */
static void move_nodes(const pln_compaction *c) {
  pln_graph *g = c->b->graph;
  uint32_t n_operands = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_ref to = c->map[ref];
    pln_node n = g->nodes[ref];
    if (to == PLN_NONE)
      continue;
    for (uint32_t i = 0; i < n.count; i++)
      g->operands[n_operands + i] = c->map[g->operands[n.first + i]];
    n.first = n_operands;
    n_operands += n.count;
    if (pln_owns(&n))
      n.data = scope_image(c, n.data);
    g->nodes[to] = n;
    g->values[to] = g->values[ref];
    g->origin[to] = g->origin[ref];
    g->typed_from[to] = g->typed_from[ref];
    c->b->node_scope[to] = scope_image(c, c->b->node_scope[ref]);
  }
  g->n_operands = n_operands;
}

static void move_scopes(const pln_compaction *c) {
  pln_graph *g = c->b->graph;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_scope_row row = g->scopes[s];
    if (c->scopes[s] == PLN_NONE)
      continue;
    move_interval(c, &row);
    row.owner = image(c, row.owner);
    row.result = image(c, row.result);
    row.parent = scope_image(c, row.parent);
    row.next = scope_image(c, row.next);
    g->scopes[c->scopes[s]] = row;
    c->b->effects[c->scopes[s]] = c->b->effects[s];
  }
}

/* A tensor used by several constants is stored once. */
static void move_tensors(pln_graph *g, uint32_t *seen) {
  uint32_t n = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_CONSTANT)
      seen[g->nodes[ref].data] = 1;
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    if (!seen[i]) {
      pln_tensor_release(g->tensors[i]);
      continue;
    }
    g->tensors[n] = g->tensors[i];
    seen[i] = n++;
  }
  g->n_tensors = n;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_CONSTANT)
      g->nodes[ref].data = seen[g->nodes[ref].data];
}

static void exchange(pln_idmap **x, pln_idmap **y) {
  pln_idmap *former = *x;
  *x = *y;
  *y = former;
}

void pln_compaction_apply(pln_compaction *c, uint32_t *tensors) {
  pln_builder *b = c->b;
  move_nodes(c);
  move_scopes(c);
  pln_import_compact(b, c->map);
  b->graph->n_nodes = c->n_nodes;
  b->graph->n_scopes = c->n_scopes;
  b->n_noted = 0;
  move_tensors(b->graph, tensors);
  exchange(&b->vars, &c->vars);
  exchange(&b->early, &c->early);
}
