/* layout.c: seals a builder: assigns each live node its position in one array
 * and each scope its interval, and drops the rest.
 *
 * Called by pln_builder_seal. Every step is a loop over nodes. The sequence is
 * the order of appending (here) or of evaluation (layout_floating.c). If no
 * node has to pass another one, which is usual for a rewritten graph, the live
 * nodes are moved together in the builder's own arrays. */

#include "ir/graph/layout/layout.h"

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
  l->order = pln_mem_new(e, tables_size(l));
  if (!l->order)
    return pln_nomem(e);
  memset(l->order + 3 * n, 0, 6 * k * sizeof *l->order);
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

/* An insertion sort. */
static void number_few_rows(pln_layout *l) {
  for (uint32_t i = 0; i < l->n_found; i++) {
    uint32_t row = i;
    for (uint32_t k = 0; k < i; k++)
      if (l->begin[l->found[k]] > l->begin[l->found[i]]) {
        l->row[l->found[k]]++;
        row--;
      }
    l->row[l->found[i]] = row;
  }
}

/* Sorts rows by begin, outer before inner: a stable counting sort. */
static pln_status number_rows(pln_layout *l) {
  enum { FEW = 16 };
  if (l->n_found <= FEW) {
    number_few_rows(l);
    return PLN_OK;
  }
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
                       pln_scope parent, pln_scope_row *rows) {
  const pln_scope_row *old = &l->from->scopes[s];
  pln_scope_row *row = &rows[l->row[s]];
  *row = *old;
  row->begin = l->begin[s];
  row->end = l->begin[s] + l->size[s];
  row->owner = owner;
  row->parent = parent;
  row->next = old->next == PLN_NONE ? PLN_NONE : l->row[old->next];
  row->result = l->at[l->result[s]];
}

/* Emits the scopes of node `ref`, if it owns any. */
static void emit_owned_scopes(const pln_layout *l, pln_ref ref,
                              pln_scope_row *rows) {
  const pln_node *n = &l->from->nodes[ref];
  if (!pln_owns(n))
    return;
  pln_scope parent = l->row[l->node_scope[ref]];
  for (pln_scope s = n->data; s != PLN_NONE; s = l->from->scopes[s].next)
    emit_scope(l, s, l->at[ref], parent, rows);
}

static void mark_params(pln_graph *g) {
  for (pln_scope s = 0; s < g->n_scopes; s++)
    for (uint32_t i = 0; i < g->scopes[s].n_params; i++)
      g->nodes[g->scopes[s].begin + i].flags |= PLN_NODE_PARAM;
}

static void emit_scopes(const pln_layout *l, pln_graph *g) {
  emit_scope(l, 0, PLN_NONE, PLN_NONE, g->scopes);
  g->n_scopes = l->n_found;
  for (uint32_t i = 0; i < l->n; i++)
    emit_owned_scopes(l, l->order[i], g->scopes);
  mark_params(g);
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

/* The effects of the nodes of a graph while it is sealed. */
typedef struct effect_summary {
  uint8_t *inside; /* by scope: the strongest effect of its nodes so far */
  bool functions;  /* a function with an effect came before */
  /* Operators known to be pure, by number modulo the length. */
  pln_op pure[64];
} effect_summary;

static inline bool is_pure(effect_summary *e, const pln_graph *g, pln_op op) {
  pln_op *known = &e->pure[op % PLN_COUNT(e->pure)];
  if (*known != op && pln_op_row(g->engine, op)->traits & PLN_TRAIT_PURE)
    *known = op;
  return *known == op;
}

/* Sets the effect of a call of a literal or let-bound function, or of an
 * operator with functions: it may have been built before the function's
 * remaining effects were known. A call of an operator without effect keeps none
 * where there is no such function. */
static inline void set_call_effect(effect_summary *e, const pln_graph *g,
                                   pln_node *n) {
  if (!n->data)
    pln_graph_call_effect(g, n);
  else if (e->functions || n->flags & PLN_NODE_EFFECT ||
           !is_pure(e, g, n->data))
    n->flags = (uint8_t)((n->flags & ~PLN_NODE_EFFECT) | pln_op_effect(g, n));
}

/* Sets the effect of node `n` of scope `row`, and adds it to the scope's. */
static inline void summarise_effect(effect_summary *e, pln_graph *g,
                                    pln_node *n, pln_scope row) {
  if (pln_owns(n))
    set_effect(g, n, e->inside);
  else if (n->kind == PLN_CALL)
    set_call_effect(e, g, n);
  else if (n->kind == PLN_LET)
    pln_graph_bind_effect(g, n);
  e->functions |= n->kind == PLN_FUNCTION && pln_node_call_effect(n);
  if ((n->flags & PLN_NODE_EFFECT) > e->inside[row])
    e->inside[row] = n->flags & PLN_NODE_EFFECT;
}

static pln_status summarise_effects(const pln_layout *l, pln_graph *g) {
  effect_summary e = {.inside = pln_mem_zeroed(l->engine, g->n_scopes)};
  if (!e.inside)
    return pln_nomem(l->engine);
  for (uint32_t i = 0; i < l->n; i++)
    summarise_effect(&e, g, &g->nodes[l->at[l->order[i]]],
                     l->row[l->node_scope[l->order[i]]]);
  pln_mem_free(l->engine, e.inside, g->n_scopes);
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
 * whether a scope is live before its nodes are visited. */
static pln_status mark_live(const pln_builder *b, const pln_layout *l,
                            uint8_t *live, uint8_t *scopes) {
  const pln_graph *g = b->graph;
  scopes[0] = 1;
  live[l->root] = 1;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(pln_poll_round(l->engine, ref));
    if (!live[ref] && !(scopes[b->node_scope[ref]] && pln_is_scheduled(n) &&
                        !(n->flags & PLN_NODE_DROPPED)))
      continue;
    if (!scopes[b->node_scope[ref]])
      return out_of_scope(b, ref);
    live[ref] = 1;
    for (uint32_t i = 0; i < n->count; i++)
      live[g->operands[n->first + i]] = 1;
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
      scopes[s] = 1;
      live[g->scopes[s].result] = 1;
    }
  }
  return PLN_OK;
}

/* Counts the operands of laid out nodes and the results of live scopes. */
static void count_layout_uses(const pln_layout *l, const uint8_t *live,
                              const uint8_t *scopes, uint32_t *uses) {
  const pln_graph *g = l->from;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; live[ref] && i < g->nodes[ref].count; i++)
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
static void dissolve_tails(const pln_builder *b, pln_layout *l, uint8_t *live,
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
    live[result] = 0;
  }
  l->node_scope = l->order + l->nodes;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    l->node_scope[ref] = into[b->node_scope[ref]];
}

static pln_status find_tails(const pln_builder *b, pln_layout *l, uint8_t *live,
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
    count_layout_uses(l, live, scopes, uses);
    dissolve_tails(b, l, live, scopes, uses, into);
  }
  pln_status status = uses && into ? PLN_OK : pln_nomem(l->engine);
  pln_mem_free(l->engine, uses, uses_size);
  pln_mem_free(l->engine, into, into_size);
  return status;
}

/* The scopes are those of the builder unless tails dissolve. */
static pln_status find_live(const pln_builder *b, pln_layout *l,
                            uint8_t *live) {
  const pln_graph *g = b->graph;
  uint8_t *scopes = pln_mem_zeroed(l->engine, g->n_scopes);
  if (!scopes)
    return pln_nomem(l->engine);
  pln_status status = mark_live(b, l, live, scopes);
  l->node_scope = b->node_scope;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    l->result[s] = g->scopes[s].result;
  l->result[0] = l->root;
  if (status == PLN_OK)
    status = find_tails(b, l, live, scopes);
  pln_mem_free(l->engine, scopes, g->n_scopes);
  return status;
}

/* ----------------------------------------------------------- in the builder */

/* Returns true if the scopes of an owner at position `at` are adjacent, with
 * the last one before it. Empty ones have no position yet. `scope` is the
 * owner's own. */
static bool has_scopes_before(pln_layout *l, const pln_node *n, pln_scope scope,
                              pln_ref at) {
  const pln_scope_row *rows = l->from->scopes;
  uint32_t size = 0;
  for (pln_scope s = n->data; s != PLN_NONE; s = rows[s].next)
    size += l->size[s];
  pln_ref next = at - size;
  if (size > at)
    return false;
  if (l->size[scope] == 0)
    l->begin[scope] = next;
  l->size[scope] += size;
  for (pln_scope s = n->data; s != PLN_NONE; s = rows[s].next) {
    if (l->size[s] && l->begin[s] != next)
      return false;
    l->begin[s] = next;
    next += l->size[s];
  }
  return true;
}

/* Gives each live node the next position. Returns true if every scope is then
 * one interval and its owner follows it, and operands need not pass each other
 * either. Lists the owners in `order`. */
static bool find_positions(pln_layout *l, const uint8_t *live) {
  const pln_graph *g = l->from;
  uint32_t n = 0, owners = 0;
  size_t operands = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *node = &g->nodes[ref];
    pln_scope scope = l->node_scope[ref];
    l->at[ref] = PLN_NONE;
    if (!live[ref])
      continue;
    if (node->count && node->first < operands)
      return false;
    operands += node->count;
    if (pln_owns(node)) {
      if (!has_scopes_before(l, node, scope, n))
        return false;
      l->order[owners++] = ref;
    } else if (l->size[scope] == 0) {
      l->begin[scope] = n;
    }
    l->n_constants += node->kind == PLN_CONSTANT;
    l->size[scope]++;
    l->at[ref] = n++;
  }
  l->n = n;
  l->n_owners = owners;
  return true;
}

/* Outer scopes before inner ones, the last owner's first, as place_nodes finds
 * them. */
static pln_status find_rows(pln_layout *l) {
  const pln_graph *g = l->from;
  memset(l->row, 0xff, l->scopes * sizeof *l->row);
  l->n_found = 0;
  l->begin[0] = 0;
  l->found[l->n_found++] = 0;
  for (uint32_t i = l->n_owners; i-- > 0;)
    for (pln_scope s = g->nodes[l->order[i]].data; s != PLN_NONE;
         s = g->scopes[s].next)
      l->found[l->n_found++] = s;
  return number_rows(l);
}

/* What the sealed graph needs beside the builder's arrays. */
typedef struct sealed_parts {
  pln_scope_row *scopes;
  pln_tensor **tensors;
  uint32_t n_tensors;
  effect_summary effects;
} sealed_parts;

static pln_status make_parts(const pln_layout *l, sealed_parts *parts) {
  pln_engine *e = l->engine;
  uint32_t n = l->n_constants; /* several may share a tensor */
  *parts = (sealed_parts){0};
  parts->scopes = pln_mem_new(e, l->n_found * sizeof *parts->scopes);
  parts->effects.inside = pln_mem_zeroed(e, l->n_found);
  if (n)
    parts->tensors = pln_mem_new(e, n * sizeof *parts->tensors);
  if (parts->scopes && parts->effects.inside && (parts->tensors || !n))
    return PLN_OK;
  pln_mem_free(e, parts->scopes, l->n_found * sizeof *parts->scopes);
  pln_mem_free(e, parts->effects.inside, l->n_found);
  pln_mem_free(e, parts->tensors, n * sizeof *parts->tensors);
  return pln_nomem(e);
}

/* Moves a live node to its position, which is not behind it. */
static void move_node(const pln_layout *l, pln_ref ref, pln_graph *g,
                      sealed_parts *parts) {
  pln_ref at = l->at[ref];
  pln_node n = g->nodes[ref];
  const pln_ref *operands = g->operands + n.first;
  n.first = g->n_operands;
  n.flags &= (uint8_t)~PLN_NODE_DROPPED;
  for (uint32_t i = 0; i < n.count; i++)
    g->operands[g->n_operands++] = l->at[operands[i]];
  if (n.kind == PLN_CONSTANT) {
    parts->tensors[parts->n_tensors] = pln_tensor_retain(g->tensors[n.data]);
    n.data = parts->n_tensors++;
  }
  if (pln_owns(&n))
    n.data = l->row[n.data];
  g->nodes[at] = n;
  g->values[at] = g->values[ref];
  g->origin[at] = g->origin[ref];
  g->typed_from[at] = g->typed_from[ref];
}

static void replace_tensors(pln_graph *g, const sealed_parts *parts) {
  for (uint32_t i = 0; i < g->n_tensors; i++)
    pln_tensor_release(g->tensors[i]);
  pln_mem_free(g->engine, g->tensors, g->cap_tensors * sizeof *g->tensors);
  g->tensors = parts->tensors;
  g->n_tensors = g->cap_tensors = parts->n_tensors;
}

static void replace_scopes(pln_graph *g, const pln_layout *l,
                           const sealed_parts *parts) {
  pln_mem_free(g->engine, g->scopes, g->cap_scopes * sizeof *g->scopes);
  g->scopes = parts->scopes;
  g->n_scopes = g->cap_scopes = l->n_found;
}

/* Gives back the room that an array does not need, if it is much. */
static void shrink(pln_engine *e, void **items, uint32_t *capacity, uint32_t n,
                   size_t item) {
  if (*capacity / 8 * 7 < n)
    return;
  void *moved = pln_mem_resize(e, *items, *capacity * item, (n + 1) * item);
  if (!moved)
    return;
  *items = moved;
  *capacity = n + 1;
}

static void shrink_arrays(pln_graph *g) {
  pln_engine *e = g->engine;
  uint32_t n = g->n_nodes;
  shrink(e, (void **)&g->nodes, &g->cap_nodes, n, sizeof *g->nodes);
  shrink(e, (void **)&g->values, &g->cap_values, n, sizeof *g->values);
  shrink(e, (void **)&g->origin, &g->cap_origin, n, sizeof *g->origin);
  shrink(e, (void **)&g->typed_from, &g->cap_typed_from, n,
         sizeof *g->typed_from);
  shrink(e, (void **)&g->operands, &g->cap_operands, g->n_operands,
         sizeof *g->operands);
}

/* Nothing fails once the first node has moved. */
static pln_status seal_in_place(pln_builder *b, pln_layout *l,
                                const uint8_t *live, pln_graph **out) {
  pln_graph *g = b->graph;
  sealed_parts parts;
  PLN_TRY(find_rows(l));
  PLN_TRY(make_parts(l, &parts));
  emit_scope(l, 0, PLN_NONE, PLN_NONE, parts.scopes);
  for (uint32_t i = 0; i < l->n_owners; i++)
    emit_owned_scopes(l, l->order[i], parts.scopes);
  replace_scopes(g, l, &parts);
  g->n_operands = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (!live[ref])
      continue;
    move_node(l, ref, g, &parts);
    summarise_effect(&parts.effects, g, &g->nodes[l->at[ref]],
                     l->row[l->node_scope[ref]]);
  }
  g->n_nodes = l->n;
  mark_params(g);
  shrink_arrays(g);
  replace_tensors(g, &parts);
  pln_mem_free(l->engine, parts.effects.inside, l->n_found);
  g->root = l->at[l->root];
  g->sealed = true;
  b->graph = NULL;
  *out = g;
  return PLN_OK;
}

/* ---------------------------------------------------------- one plain function
 */

/* The layout of a function without scopes in its body, which most are. */
typedef struct plain_function {
  uint32_t *at; /* by node: 0 if it is dead, 1 if not, then its position */
  uint32_t n_constants;
  bool fits; /* operands lie in the order of the nodes that have them */
} plain_function;

/* Returns true if the builder has one function with one scope, and it is the
 * last node and the root. */
static bool is_plain_function(const pln_builder *b, pln_ref root) {
  const pln_graph *g = b->graph;
  const pln_node *n = &g->nodes[root];
  return g->n_scopes == 2 && root + 1 == g->n_nodes && pln_owns(n) &&
         n->data == 1 && n->count == 0 && g->scopes[1].next == PLN_NONE &&
         b->node_scope[root] == 0 && root > 0;
}

/* mark_live for a plain function. */
static pln_status mark_live_nodes(const pln_builder *b, plain_function *f) {
  const pln_graph *g = b->graph;
  uint32_t root = g->n_nodes - 1, next = g->n_operands;
  f->at[root] = f->at[g->scopes[1].result] = 1;
  for (pln_ref ref = root; ref-- > 0 && f->fits;) {
    const pln_node *n = &g->nodes[ref];
    PLN_TRY(pln_poll_round(g->engine, ref));
    if (!f->at[ref] && !(pln_is_scheduled(n) && !(n->flags & PLN_NODE_DROPPED)))
      continue;
    f->at[ref] = 1;
    f->n_constants += n->kind == PLN_CONSTANT;
    f->fits = b->node_scope[ref] == 1 &&
              (!n->count || (n->first <= next && n->count <= next - n->first));
    next = n->count ? n->first : next;
    for (uint32_t i = 0; i < n->count; i++)
      f->at[g->operands[n->first + i]] = 1;
  }
  return PLN_OK;
}

/* Moves live nodes together; none moves behind where it was. The last one owns
 * the scope of the others. */
static void move_live_nodes(pln_graph *g, plain_function *f,
                            sealed_parts *parts) {
  uint32_t at = 0, n_operands = 0, root = g->n_nodes - 1;
  for (pln_ref ref = 0; ref <= root; ref++) {
    if (!f->at[ref])
      continue;
    pln_node *n = &g->nodes[at];
    *n = g->nodes[ref];
    const pln_ref *operands = g->operands + n->first;
    n->first = n_operands;
    n->flags &= (uint8_t)~PLN_NODE_DROPPED;
    for (uint32_t i = 0; i < n->count; i++)
      g->operands[n_operands++] = f->at[operands[i]];
    if (n->kind == PLN_CONSTANT) {
      parts->tensors[parts->n_tensors] = pln_tensor_retain(g->tensors[n->data]);
      n->data = parts->n_tensors++;
    }
    g->values[at] = g->values[ref];
    g->origin[at] = g->origin[ref];
    g->typed_from[at] = g->typed_from[ref];
    summarise_effect(&parts->effects, g, n, ref < root);
    f->at[ref] = at++;
  }
  g->n_nodes = at;
  g->n_operands = n_operands;
}

/* Nothing fails once the first node has moved. */
static pln_status seal_plain_function(pln_builder *b, plain_function *f,
                                      pln_graph **out) {
  pln_graph *g = b->graph;
  sealed_parts parts;
  pln_layout l = {.engine = g->engine,
                  .from = g,
                  .n_found = 2,
                  .n_constants = f->n_constants};
  PLN_TRY(make_parts(&l, &parts));
  pln_ref root = g->n_nodes - 1;
  move_live_nodes(g, f, &parts);
  for (pln_scope s = 0; s < 2; s++) {
    parts.scopes[s] = g->scopes[s];
    parts.scopes[s].begin = 0;
    parts.scopes[s].end = g->n_nodes - s;
    parts.scopes[s].owner = s ? f->at[root] : PLN_NONE;
    parts.scopes[s].parent = s ? 0 : PLN_NONE;
    parts.scopes[s].result = f->at[s ? g->scopes[s].result : root];
  }
  replace_scopes(g, &l, &parts);
  mark_params(g);
  shrink_arrays(g);
  replace_tensors(g, &parts);
  pln_mem_free(g->engine, parts.effects.inside, l.n_found);
  g->root = f->at[root];
  g->sealed = true;
  b->graph = NULL;
  *out = g;
  return PLN_OK;
}

/* *out stays as it is if the function does not fit. */
static pln_status try_plain_function(pln_builder *b, pln_graph **out) {
  pln_engine *e = b->engine;
  size_t size = b->graph->n_nodes * sizeof(uint32_t);
  plain_function f = {.at = pln_mem_zeroed(e, size), .fits = true};
  if (!f.at)
    return pln_nomem(e);
  pln_status status = mark_live_nodes(b, &f);
  if (status == PLN_OK && f.fits)
    status = seal_plain_function(b, &f, out);
  pln_mem_free(e, f.at, size);
  return status;
}

/* ------------------------------------------------------------------ sealing */

static pln_status seal_in_new_arrays(pln_layout *l, const uint8_t *live,
                                     pln_graph **out) {
  l->n = 0;
  l->begin[0] = 0;
  memset(l->size, 0, l->scopes * sizeof *l->size);
  for (pln_ref ref = 0; ref < l->from->n_nodes; ref++)
    if (live[ref])
      l->order[l->n++] = ref;
  PLN_TRY(pln_layout_place(l));
  return pln_layout_emit(l, out);
}

static pln_status seal_live(pln_builder *b, pln_layout *l, const uint8_t *live,
                            pln_graph **out) {
  return find_positions(l, live) ? seal_in_place(b, l, live, out)
                                 : seal_in_new_arrays(l, live, out);
}

static pln_status layout_scopes(pln_builder *b, pln_ref root, pln_graph **out) {
  pln_layout l;
  size_t n = b->graph->n_nodes;
  PLN_TRY(pln_layout_begin(&l, b->graph, root));
  uint8_t *live = pln_mem_zeroed(b->engine, n);
  pln_status status = live ? find_live(b, &l, live) : pln_nomem(b->engine);
  if (status == PLN_OK)
    status = seal_live(b, &l, live, out);
  pln_mem_free(b->engine, live, live ? n : 0);
  pln_layout_end(&l);
  return status;
}

pln_status pln_layout_scoped(pln_builder *b, pln_ref root, pln_graph **out) {
  if (b->n_open > 1)
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "%u scopes are still open", b->n_open - 1);
  *out = NULL;
  if (is_plain_function(b, root))
    PLN_TRY(try_plain_function(b, out));
  return *out ? PLN_OK : layout_scopes(b, root, out);
}
