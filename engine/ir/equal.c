/* equal.c: structural equality as Relay defines it (TVM 0.14,
 * StructuralEqual): alpha-equivalence; a shared sub-expression differs from a
 * repeated one; free Vars are equal when they are the same, or correspond when
 * the caller maps them.
 *
 * Called by the executor to find honest copies, and by tests. Iterative: pairs
 * still to be compared stand on a stack. */

#include "ir/graph.h"

/* What a scope evaluates whether it is used or not, as lists. */
typedef struct anchors {
  const pln_graph *graph;
  pln_ref *first; /* a scope: its first anchored node, or PLN_NONE */
  pln_ref *last;
  pln_ref *next; /* a node: the next anchored one of its scope */
} anchors;

typedef struct comparer {
  pln_engine *engine;
  const pln_graph *a, *b;
  anchors in_a, in_b;
  bool map_free;
  bool equal;
  pln_ref *to;    /* a node of a: its partner in b, or PLN_NONE */
  pln_ref *from;  /* a node of b: its partner in a */
  pln_ref *stack; /* pairs */
  uint32_t top, cap_stack;
} comparer;

static pln_status push(comparer *c, pln_ref x, pln_ref y) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->stack, &c->cap_stack,
                       (size_t)c->top + 2, sizeof *c->stack));
  c->stack[c->top++] = x;
  c->stack[c->top++] = y;
  return PLN_OK;
}

static bool partners(comparer *c, pln_ref x, pln_ref y) {
  if (c->to[x] == PLN_NONE && c->from[y] == PLN_NONE) {
    c->to[x] = y;
    c->from[y] = x;
    return true;
  }
  return c->to[x] == y && c->from[y] == x;
}

/* One sweep over the graph; `here` is the scope of the node. */
static void list_anchors(anchors *list) {
  const pln_graph *g = list->graph;
  pln_scope row = 0, here = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    while (row < g->n_scopes && g->scopes[row].begin <= ref)
      here = row++;
    while (g->scopes[here].end <= ref)
      here = g->scopes[here].parent;
    list->next[ref] = PLN_NONE;
    if (!pln_is_anchored(&g->nodes[ref]))
      continue;
    if (list->first[here] == PLN_NONE)
      list->first[here] = ref;
    else
      list->next[list->last[here]] = ref;
    list->last[here] = ref;
  }
}

static pln_status anchors_new(const pln_graph *g, anchors *list) {
  size_t scopes = g->n_scopes * sizeof *list->first;
  list->graph = g;
  list->first = pln_mem_new(g->engine, scopes);
  list->last = pln_mem_new(g->engine, scopes);
  list->next = pln_mem_new(g->engine, g->n_nodes * sizeof *list->next);
  if (!list->first || !list->last || !list->next)
    return pln_nomem(g->engine);
  memset(list->first, 0xff, scopes);
  list_anchors(list);
  return PLN_OK;
}

static void anchors_free(anchors *list) {
  const pln_graph *g = list->graph;
  if (!g)
    return;
  pln_mem_free(g->engine, list->first, g->n_scopes * sizeof *list->first);
  pln_mem_free(g->engine, list->last, g->n_scopes * sizeof *list->last);
  pln_mem_free(g->engine, list->next, g->n_nodes * sizeof *list->next);
}

static bool bind_params(comparer *c, const pln_scope_row *x,
                        const pln_scope_row *y) {
  for (uint32_t i = 0; i < x->n_params; i++) {
    pln_ref p = x->begin + i, q = y->begin + i;
    if (c->a->nodes[p].type != c->b->nodes[q].type || !partners(c, p, q))
      return false;
  }
  return true;
}

/* A Let's variables correspond before anything that uses them is compared. */
static bool bind_let(comparer *c, pln_ref x, pln_ref y) {
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  if (m->kind != n->kind)
    return false;
  if (m->kind != PLN_LET)
    return true;
  pln_ref p = c->a->operands[m->first], q = c->b->operands[n->first];
  return c->a->nodes[p].type == c->b->nodes[q].type && partners(c, p, q);
}

static pln_status compare_scopes(comparer *c, pln_scope s, pln_scope t) {
  const pln_scope_row *x = &c->a->scopes[s], *y = &c->b->scopes[t];
  if (x->n_params != y->n_params || x->attrs != y->attrs ||
      !bind_params(c, x, y)) {
    c->equal = false;
    return PLN_OK;
  }
  pln_ref i = c->in_a.first[s], k = c->in_b.first[t];
  while (i != PLN_NONE && k != PLN_NONE && bind_let(c, i, k)) {
    PLN_TRY(push(c, i, k));
    i = c->in_a.next[i];
    k = c->in_b.next[k];
  }
  if (i != k)
    c->equal = false;
  return push(c, x->result, y->result);
}

static bool same_payload(const comparer *c, const pln_node *m,
                         const pln_node *n) {
  switch (pln_kinds[m->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_SCOPE: return true;
  case PLN_PAYLOAD_TENSOR:
    return pln_tensor_equal(c->a->tensors[m->data], c->b->tensors[n->data]);
  case PLN_PAYLOAD_VAR:
    return m->data == n->data || (c->map_free && m->type == n->type);
  case PLN_PAYLOAD_SYMBOL:
  case PLN_PAYLOAD_OP:
  case PLN_PAYLOAD_INDEX: return m->data == n->data;
  }
  return false;
}

static bool same_head(const comparer *c, const pln_node *m, const pln_node *n) {
  const pln_kind_info *kind = &pln_kinds[m->kind];
  return m->kind == n->kind && m->count == n->count &&
         m->results == n->results &&
         (!kind->has_attrs || m->attrs == n->attrs) && same_payload(c, m, n);
}

static pln_status compare(comparer *c, pln_ref x, pln_ref y) {
  if (c->to[x] == y && c->from[y] == x)
    return PLN_OK;
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  bool shared = pln_kinds[m->kind].shared;
  if (!same_head(c, m, n) || (shared && !partners(c, x, y))) {
    c->equal = false;
    return PLN_OK;
  }
  if (!shared)
    c->to[x] = y, c->from[y] = x; /* only saves looking again */
  for (uint32_t i = 0; i < m->count; i++)
    PLN_TRY(
        push(c, c->a->operands[m->first + i], c->b->operands[n->first + i]));
  if (!pln_owns(m))
    return PLN_OK;
  pln_scope s = m->data, t = n->data;
  while (c->equal && s != PLN_NONE && t != PLN_NONE) {
    PLN_TRY(compare_scopes(c, s, t));
    s = c->a->scopes[s].next;
    t = c->b->scopes[t].next;
  }
  c->equal = c->equal && s == t;
  return PLN_OK;
}

static pln_status run(comparer *c, pln_ref x, pln_ref y) {
  PLN_TRY(anchors_new(c->a, &c->in_a));
  PLN_TRY(anchors_new(c->b, &c->in_b));
  PLN_TRY(push(c, x, y));
  while (c->equal && c->top > 0) {
    c->top -= 2;
    PLN_TRY(compare(c, c->stack[c->top], c->stack[c->top + 1]));
  }
  return PLN_OK;
}

pln_status pln_graph_equal(const pln_graph *a, pln_ref node_a,
                           const pln_graph *b, pln_ref node_b,
                           bool map_free_vars, bool *out) {
  pln_engine *e = a->engine;
  comparer c = {
      .engine = e, .a = a, .b = b, .map_free = map_free_vars, .equal = true};
  size_t size_a = ((size_t)a->n_nodes + 1) * sizeof *c.to;
  size_t size_b = ((size_t)b->n_nodes + 1) * sizeof *c.from;
  c.to = pln_mem_new(e, size_a);
  c.from = pln_mem_new(e, size_b);
  pln_status status = c.to && c.from ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK) {
    memset(c.to, 0xff, size_a);
    memset(c.from, 0xff, size_b);
    status = run(&c, node_a, node_b);
  }
  if (status == PLN_OK)
    *out = c.equal;
  anchors_free(&c.in_a);
  anchors_free(&c.in_b);
  pln_mem_free(e, c.to, size_a);
  pln_mem_free(e, c.from, size_b);
  pln_mem_free(e, c.stack, c.cap_stack * sizeof *c.stack);
  return status;
}
