/* layout.c: seals a builder: assigns each live node its position in one array
 * and each scope its interval, and drops the rest.
 *
 * Called by pln_builder_seal. Every step is a loop over nodes. The sequence is
 * the order of appending (here) or of evaluation (layout_floating.c). */

#include "ir/graph/layout.h"

/* ------------------------------------------------------------------- tables */

/* Total size of the per-node and per-scope tables in bytes. */
static size_t tables_size(const pln_layout *l) {
  return 3 * l->nodes * sizeof(pln_ref) + 6 * l->scopes * sizeof(pln_ref);
}

/* One allocation for all tables, so that a small function costs few calls. */
pln_status pln_layout_begin(pln_layout *l, const pln_graph *from,
                            pln_ref root) {
  pln_engine *e = from->engine;
  size_t n = from->n_nodes + (size_t)1, k = from->n_scopes + (size_t)1;
  *l = (pln_layout){
      .engine = e, .from = from, .root = root, .nodes = n, .scopes = k};
  l->order = pln_mem_zeroed(e, tables_size(l));
  if (!l->order)
    return pln_nomem(e);
  l->node_scope = l->order + n;
  l->at = l->node_scope + n;
  l->result = l->at + n;
  l->size = l->result + k;
  l->begin = l->size + k;
  l->cursor = l->begin + k;
  l->row = l->cursor + k;
  l->found = l->row + k;
  return PLN_OK;
}

void pln_layout_end(pln_layout *l) {
  pln_mem_free(l->engine, l->order, tables_size(l));
}

/* ------------------------------------------------------------------ placing */

/* Scopes precede their owner in the sequence, so one pass computes their
 * sizes. */
static void measure_scopes(pln_layout *l) {
  const pln_graph *g = l->from;
  for (uint32_t i = 0; i < l->n; i++) {
    const pln_node *n = &g->nodes[l->order[i]];
    uint32_t size = 1;
    if (pln_owns(n))
      for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
        size += l->size[s];
    l->size[l->node_scope[l->order[i]]] += size;
  }
}

/* The owner is placed at `end`, its scopes directly before it. */
static pln_ref place_scopes(pln_layout *l, const pln_node *n, pln_ref end) {
  const pln_graph *g = l->from;
  pln_ref at = end;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    at -= l->size[s];
  pln_ref first = at;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
    l->begin[s] = at;
    at += l->size[s];
    l->cursor[s] = at;
    l->found[l->n_found++] = s;
  }
  return first;
}

static void place_nodes(pln_layout *l) {
  const pln_graph *g = l->from;
  l->cursor[0] = l->size[0];
  l->found[l->n_found++] = 0;
  for (uint32_t i = l->n; i-- > 0;) {
    pln_ref ref = l->order[i];
    const pln_node *n = &g->nodes[ref];
    pln_scope s = l->node_scope[ref];
    l->at[ref] = --l->cursor[s];
    if (pln_owns(n))
      l->cursor[s] = place_scopes(l, n, l->cursor[s]);
  }
}

/* Sorts rows by begin, outer before inner: a stable counting sort. */
static pln_status number_rows(pln_layout *l) {
  size_t size = ((size_t)l->n + 2) * sizeof(uint32_t);
  uint32_t *start = pln_mem_zeroed(l->engine, size);
  if (!start)
    return pln_nomem(l->engine);
  for (uint32_t i = 0; i < l->n_found; i++)
    start[l->begin[l->found[i]] + 1]++;
  for (uint32_t i = 0; i <= l->n; i++)
    start[i + 1] += start[i];
  for (uint32_t i = 0; i < l->n_found; i++)
    l->row[l->found[i]] = start[l->begin[l->found[i]]]++;
  pln_mem_free(l->engine, start, size);
  return PLN_OK;
}

pln_status pln_layout_place(pln_layout *l) {
  memset(l->at, 0xff, l->nodes * sizeof *l->at);
  memset(l->row, 0xff, l->scopes * sizeof *l->row);
  measure_scopes(l);
  place_nodes(l);
  return number_rows(l);
}

/* ----------------------------------------------------------------- emission */

static pln_status make_room(const pln_layout *l, size_t operands,
                            pln_graph *g) {
  pln_engine *e = l->engine;
  PLN_TRY(pln_mem_grow(e, (void **)&g->nodes, &g->cap_nodes, l->n,
                       sizeof *g->nodes));
  PLN_TRY(pln_mem_grow(e, (void **)&g->values, &g->cap_values, l->n,
                       sizeof *g->values));
  PLN_TRY(pln_mem_grow(e, (void **)&g->origin, &g->cap_origin, l->n,
                       sizeof *g->origin));
  PLN_TRY(pln_mem_grow(e, (void **)&g->typed_from, &g->cap_typed_from, l->n,
                       sizeof *g->typed_from));
  PLN_TRY(pln_mem_grow(e, (void **)&g->operands, &g->cap_operands, operands + 1,
                       sizeof *g->operands));
  return pln_mem_grow(e, (void **)&g->scopes, &g->cap_scopes, l->n_found,
                      sizeof *g->scopes);
}

/* The operands of a floating Function were its parameters and are dropped. */
static uint32_t operands_kept(const pln_node *n) {
  return n->kind == PLN_FUNCTION ? 0 : n->count;
}

static pln_status emit_node(const pln_layout *l, pln_ref ref, pln_ref at,
                            pln_graph *g) {
  const pln_graph *from = l->from;
  pln_node n = from->nodes[ref];
  const pln_ref *operands = pln_operands(from, &n);
  n.first = g->n_operands;
  n.count = operands_kept(&n);
  n.flags &= (uint8_t)~PLN_NODE_DROPPED;
  for (uint32_t i = 0; i < n.count; i++)
    g->operands[g->n_operands++] = l->at[operands[i]];
  if (n.kind == PLN_CONSTANT)
    PLN_TRY(pln_graph_add_tensor(g, from->tensors[n.data], &n.data));
  if (pln_owns(&n))
    n.data = l->row[n.data];
  g->nodes[at] = n;
  g->values[at] = from->values[ref];
  g->origin[at] = from->origin[ref];
  g->typed_from[at] = from->typed_from[ref];
  return PLN_OK;
}

/* The node at each position is found by inverting `at`. */
static pln_status emit_nodes(const pln_layout *l, pln_graph *g) {
  size_t size = ((size_t)l->n + 1) * sizeof(pln_ref);
  pln_ref *source = pln_mem_new(l->engine, size);
  if (!source)
    return pln_nomem(l->engine);
  for (uint32_t i = 0; i < l->n; i++)
    source[l->at[l->order[i]]] = l->order[i];
  pln_status status = PLN_OK;
  for (uint32_t at = 0; at < l->n && status == PLN_OK; at++) {
    status = pln_poll_round(l->engine, at);
    if (status == PLN_OK)
      status = emit_node(l, source[at], at, g);
  }
  g->n_nodes = l->n;
  pln_mem_free(l->engine, source, size);
  return status;
}

static void emit_scope(const pln_layout *l, pln_scope s, pln_ref owner,
                       pln_scope parent, pln_graph *g) {
  const pln_scope_row *old = &l->from->scopes[s];
  pln_scope_row *row = &g->scopes[l->row[s]];
  *row = *old;
  row->begin = l->begin[s];
  row->end = l->begin[s] + l->size[s];
  row->owner = owner;
  row->parent = parent;
  row->next = old->next == PLN_NONE ? PLN_NONE : l->row[old->next];
  row->result = l->at[l->result[s]];
  for (uint32_t i = 0; i < row->n_params; i++)
    g->nodes[row->begin + i].flags |= PLN_NODE_PARAM;
}

static void emit_scopes(const pln_layout *l, pln_graph *g) {
  const pln_graph *from = l->from;
  emit_scope(l, 0, PLN_NONE, PLN_NONE, g);
  g->n_scopes = l->n_found;
  for (uint32_t i = 0; i < l->n; i++) {
    pln_ref ref = l->order[i];
    if (!pln_owns(&from->nodes[ref]))
      continue;
    pln_scope parent = l->row[l->node_scope[ref]];
    for (pln_scope s = from->nodes[ref].data; s != PLN_NONE;
         s = from->scopes[s].next)
      emit_scope(l, s, l->at[ref], parent, g);
  }
}

/* The effect of an owner is that of the nodes remaining in its scopes. */
static void set_effect(pln_graph *g, pln_node *n, const uint8_t *inside) {
  uint8_t effect = 0;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    if (inside[s] > effect)
      effect = inside[s];
  if (n->kind == PLN_FUNCTION || n->kind == PLN_PRIM_FUNC)
    n->flags = (uint8_t)((n->flags & ~PLN_NODE_CALL_EFFECT) |
                         (effect << PLN_NODE_CALL_EFFECT_SHIFT));
  else if (pln_kinds[n->kind].kind_class != PLN_CLASS_STMT)
    n->flags = (uint8_t)((n->flags & ~PLN_NODE_EFFECT) | effect);
}

/* Sets the effect of a call of a literal or let-bound function, or of an
 * operator with functions: it may have been built before the function's
 * remaining effects were known. */
static void set_call_effect(const pln_graph *g, pln_node *n) {
  if (n->data)
    n->flags = (uint8_t)((n->flags & ~PLN_NODE_EFFECT) | pln_op_effect(g, n));
  else
    pln_graph_call_effect(g, n);
}

static pln_status summarise_effects(const pln_layout *l, pln_graph *g) {
  uint8_t *inside = pln_mem_zeroed(l->engine, g->n_scopes);
  if (!inside)
    return pln_nomem(l->engine);
  for (uint32_t i = 0; i < l->n; i++) {
    pln_node *n = &g->nodes[l->at[l->order[i]]];
    if (pln_owns(n))
      set_effect(g, n, inside);
    else if (n->kind == PLN_CALL)
      set_call_effect(g, n);
    else if (n->kind == PLN_LET)
      pln_graph_bind_effect(g, n);
    uint8_t *node_scope = &inside[l->row[l->node_scope[l->order[i]]]];
    if ((n->flags & PLN_NODE_EFFECT) > *node_scope)
      *node_scope = n->flags & PLN_NODE_EFFECT;
  }
  pln_mem_free(l->engine, inside, g->n_scopes);
  return PLN_OK;
}

static pln_status fill_sealed_graph(const pln_layout *l, pln_graph *g) {
  size_t operands = 0;
  for (uint32_t i = 0; i < l->n; i++)
    operands += operands_kept(&l->from->nodes[l->order[i]]);
  PLN_TRY(make_room(l, operands, g));
  PLN_TRY(emit_nodes(l, g));
  emit_scopes(l, g);
  PLN_TRY(summarise_effects(l, g));
  if (l->from->origins)
    g->origins = pln_origins_retain(l->from->origins);
  g->root = l->at[l->root];
  g->sealed = true;
  return PLN_OK;
}

pln_status pln_layout_emit(const pln_layout *l, pln_graph **out) {
  pln_graph *g;
  PLN_TRY(pln_graph_new(l->engine, &g));
  pln_status status = fill_sealed_graph(l, g);
  if (status != PLN_OK) {
    pln_graph_release(g);
    return status;
  }
  *out = g;
  return PLN_OK;
}

pln_status pln_layout_verified(pln_status status, pln_graph *graph,
                               pln_graph **out) {
  if (status == PLN_OK)
    status = pln_graph_verify(graph);
  if (status == PLN_OK)
    *out = graph;
  else
    pln_graph_release(graph);
  return status;
}

/* ---------------------------------------------------------- scoped building */

/* Reports that a rewrite used a node of a dissolved or skipped scope as a
 * replacement. */
static pln_status out_of_scope(const pln_builder *b, pln_ref ref) {
  return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                        "node %u is used, but its scope was left out", ref);
}

/* One sweep from users to operands. Owners follow their scopes, so it is known
 * whether a scope is live before its nodes are visited. Marks are in l->at. */
static pln_status mark_live(const pln_builder *b, pln_layout *l,
                            uint8_t *scopes) {
  const pln_graph *g = b->graph;
  scopes[0] = 1;
  l->at[l->root] = 1;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(pln_poll_round(l->engine, ref));
    if (!l->at[ref] && !(scopes[b->node_scope[ref]] && pln_is_scheduled(n) &&
                         !(n->flags & PLN_NODE_DROPPED)))
      continue;
    if (!scopes[b->node_scope[ref]])
      return out_of_scope(b, ref);
    l->at[ref] = 1;
    for (uint32_t i = 0; i < n->count; i++)
      l->at[g->operands[n->first + i]] = 1;
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
      scopes[s] = 1;
      l->at[g->scopes[s].result] = 1;
    }
  }
  return PLN_OK;
}

/* Counts the operands of laid out nodes and the results of live scopes. */
static void count_layout_uses(const pln_layout *l, const uint8_t *scopes,
                              uint32_t *uses) {
  const pln_graph *g = l->from;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; l->at[ref] && i < g->nodes[ref].count; i++)
      uses[g->operands[g->nodes[ref].first + i]]++;
  for (pln_scope s = 1; s < g->n_scopes; s++)
    if (scopes[s])
      uses[g->scopes[s].result]++;
}

/* A block of lets that a rewrite placed at the end of another scope. */
static bool is_tail_block(const pln_builder *b, pln_scope s) {
  const pln_graph *g = b->graph;
  const pln_node *n = &g->nodes[g->scopes[s].result];
  return n->kind == PLN_LET_BLOCK && b->node_scope[g->scopes[s].result] == s &&
         !(n->flags & PLN_NODE_KEEP) && n->data > s &&
         !g->scopes[n->data].attrs;
}

/* Dissolves such blocks into the enclosing scope. `into`: per scope, the scope
 * that it became part of; inner scopes have higher numbers. */
static void dissolve_tails(const pln_builder *b, pln_layout *l,
                           const uint8_t *scopes, const uint32_t *uses,
                           pln_scope *into) {
  const pln_graph *g = b->graph;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    into[s] = s;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    pln_ref result = g->scopes[s].result;
    if (!scopes[s] || !is_tail_block(b, s) || uses[result] > 1)
      continue;
    pln_scope inner = g->nodes[result].data;
    into[inner] = into[s];
    l->result[into[s]] = g->scopes[inner].result;
    l->at[result] = 0;
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    l->node_scope[ref] = into[l->node_scope[ref]];
}

static pln_status find_tails(const pln_builder *b, pln_layout *l,
                             const uint8_t *scopes) {
  const pln_graph *g = b->graph;
  pln_scope s = 1;
  while (s < g->n_scopes && !(scopes[s] && is_tail_block(b, s)))
    s++;
  if (s >= g->n_scopes)
    return PLN_OK;
  size_t uses_size = g->n_nodes * sizeof(uint32_t);
  size_t into_size = g->n_scopes * sizeof(pln_scope);
  uint32_t *uses = pln_mem_zeroed(l->engine, uses_size);
  pln_scope *into = pln_mem_zeroed(l->engine, into_size);
  if (uses && into) {
    count_layout_uses(l, scopes, uses);
    dissolve_tails(b, l, scopes, uses, into);
  }
  pln_status status = uses && into ? PLN_OK : pln_nomem(l->engine);
  pln_mem_free(l->engine, uses, uses_size);
  pln_mem_free(l->engine, into, into_size);
  return status;
}

static pln_status list_live(const pln_builder *b, pln_layout *l) {
  const pln_graph *g = b->graph;
  uint8_t *scopes = pln_mem_zeroed(l->engine, g->n_scopes);
  if (!scopes)
    return pln_nomem(l->engine);
  pln_status status = mark_live(b, l, scopes);
  memcpy(l->node_scope, b->node_scope, g->n_nodes * sizeof *l->node_scope);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    l->result[s] = g->scopes[s].result;
  l->result[0] = l->root;
  if (status == PLN_OK)
    status = find_tails(b, l, scopes);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (l->at[ref])
      l->order[l->n++] = ref;
  pln_mem_free(l->engine, scopes, g->n_scopes);
  return status;
}

/* True if nothing was dropped or moves: the arrays are already sealed ones. */
static bool is_laid_out(const pln_layout *l) {
  if (l->n != l->from->n_nodes || l->n_found != l->from->n_scopes)
    return false;
  for (uint32_t i = 0; i < l->n; i++)
    if (l->at[i] != i)
      return false;
  for (uint32_t i = 0; i < l->n_found; i++)
    if (l->row[i] != i)
      return false;
  return true;
}

static pln_graph *adopt(pln_builder *b, const pln_layout *l) {
  pln_graph *g = b->graph;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    g->nodes[ref].flags &= (uint8_t)~PLN_NODE_DROPPED;
  emit_scopes(l, g);
  g->root = l->root;
  g->sealed = true;
  b->graph = NULL;
  return g;
}

pln_status pln_layout_scoped(pln_builder *b, pln_ref root, pln_graph **out) {
  if (b->n_open > 1)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "%u scopes are still open", b->n_open - 1);
  pln_layout l;
  pln_status status = pln_layout_begin(&l, b->graph, root);
  if (status == PLN_OK)
    status = list_live(b, &l);
  if (status == PLN_OK)
    status = pln_layout_place(&l);
  if (status == PLN_OK && is_laid_out(&l))
    *out = adopt(b, &l);
  else if (status == PLN_OK)
    status = pln_layout_emit(&l, out);
  pln_layout_end(&l);
  return status;
}
