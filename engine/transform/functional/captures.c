/* captures.c: finds the free variables of nested functions, in the order in
 * which Relay visits them. Called by LambdaLift and Defunctionalization.
 *
 * One walk over the graph follows each edge once and adds a used node to the
 * list of every function between the use and the definition. Invariants: no
 * list contains a node twice; time is linear in the edges and the lists. */

#include "transform/functional/captures.h"
#include "transform/functional/let.h"

typedef struct capture_visit {
  pln_ref node;
  uint32_t operand; /* next operand to visit */
  pln_scope scope;  /* scope being visited, or PLN_NONE */
  pln_ref anchor;   /* its next anchored node; PLN_NONE: the result is next */
} capture_visit;

typedef struct capture_search {
  pln_captures *out;
  const pln_graph *g;
  pln_engine *engine;
  pln_scope *node_scope;
  pln_ref *around; /* by scope: the innermost lifted function around it */
  pln_ref *first,
      *next;      /* lists of anchored nodes: first by scope, next by node */
  pln_ref *users; /* by node: its first user */
  uint32_t *tail; /* by function: its last capture */
  uint8_t *seen;
  pln_idmap *listed; /* pairs (function, node) already listed */
  capture_visit *stack;
  uint32_t top, cap_stack;
} capture_search;

/* ------------------------------------------------------------------- tables */

static pln_status alloc_capture_tables(capture_search *f) {
  pln_engine *e = f->engine;
  pln_captures *out = f->out;
  size_t n = f->g->n_nodes, k = f->g->n_scopes;
  out->lifts = pln_mem_zeroed(e, n);
  out->self = pln_mem_new(e, n * sizeof *out->self);
  out->binder = pln_mem_new(e, n * sizeof *out->binder);
  out->head = pln_mem_new(e, n * sizeof *out->head);
  f->node_scope = pln_mem_new(e, n * sizeof *f->node_scope);
  f->around = pln_mem_new(e, k * sizeof *f->around);
  f->first = pln_mem_new(e, k * sizeof *f->first);
  f->next = pln_mem_new(e, n * sizeof *f->next);
  f->users = pln_mem_new(e, n * sizeof *f->users);
  f->tail = pln_mem_new(e, n * sizeof *f->tail);
  f->seen = pln_mem_zeroed(e, n);
  if (!out->lifts || !out->self || !out->binder || !out->head ||
      !f->node_scope || !f->around || !f->first || !f->next || !f->users ||
      !f->tail || !f->seen)
    return pln_nomem(e);
  memset(out->self, 0xff, n * sizeof *out->self);
  memset(out->binder, 0xff, n * sizeof *out->binder);
  memset(out->head, 0xff, n * sizeof *out->head);
  memset(f->first, 0xff, k * sizeof *f->first);
  memset(f->next, 0xff, n * sizeof *f->next);
  return pln_idmap_new(e, &f->listed);
}

static void free_capture_finder(capture_search *f) {
  pln_engine *e = f->engine;
  size_t n = f->g->n_nodes, k = f->g->n_scopes;
  pln_mem_free(e, f->node_scope, n * sizeof *f->node_scope);
  pln_mem_free(e, f->around, k * sizeof *f->around);
  pln_mem_free(e, f->first, k * sizeof *f->first);
  pln_mem_free(e, f->next, n * sizeof *f->next);
  pln_mem_free(e, f->users, n * sizeof *f->users);
  pln_mem_free(e, f->tail, n * sizeof *f->tail);
  pln_mem_free(e, f->seen, n);
  pln_mem_free(e, f->stack, f->cap_stack * sizeof *f->stack);
  pln_idmap_free(f->listed);
}

void pln_captures_free(pln_captures *c) {
  const pln_graph *g = c->graph;
  pln_mem_free(g->engine, c->lifts, g->n_nodes);
  pln_mem_free(g->engine, c->self, g->n_nodes * sizeof *c->self);
  pln_mem_free(g->engine, c->binder, g->n_nodes * sizeof *c->binder);
  pln_mem_free(g->engine, c->head, g->n_nodes * sizeof *c->head);
  pln_mem_free(g->engine, c->list, c->cap * sizeof *c->list);
}

/* -------------------------------------------------------------- preparation */

static bool is_marked(const capture_search *f, const pln_node *n,
                      const char *name) {
  const pln_attr *mark =
      n->attrs ? pln_attrs_find(f->engine, n->attrs, name) : NULL;
  return mark && mark->v.i;
}

/* The closure that the root returns: its function was lifted by an earlier
 * run. */
static pln_ref closure_made(const capture_search *f) {
  const pln_node *root = &f->g->nodes[f->g->root];
  return root->kind == PLN_FUNCTION && is_marked(f, root, "Closure")
             ? f->g->scopes[root->data].result
             : PLN_NONE;
}

static pln_status select_listed_functions(capture_search *f) {
  const pln_graph *g = f->g;
  pln_captures *out = f->out;
  uint8_t *bits = pln_mem_zeroed(f->engine, g->n_nodes + (size_t)g->n_scopes);
  if (!bits)
    return pln_nomem(f->engine);
  uint8_t *in_sight = bits, *primitive = bits + g->n_nodes;
  pln_ref closure = closure_made(f);
  pln_let_operator_functions(g, in_sight);
  pln_let_primitive_scopes(g, primitive);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    out->lifts[ref] = n->kind == PLN_FUNCTION && ref != g->root &&
                      f->node_scope[ref] != 0 && !in_sight[ref] &&
                      !primitive[f->node_scope[ref]] &&
                      !is_marked(f, n, "Primitive") && ref != closure;
  }
  pln_mem_free(f->engine, bits, g->n_nodes + (size_t)g->n_scopes);
  return PLN_OK;
}

/* Returns true for anchored nodes: lets, match clauses and unused nodes. All
 * others are visited through their users. */
static bool is_visited_in_place(const capture_search *f, pln_ref ref) {
  pln_kind kind = (pln_kind)f->g->nodes[ref].kind;
  return kind == PLN_LET || kind == PLN_CLAUSE || f->users[ref] == PLN_NONE;
}

/* Backwards, so that each list comes out in order. */
static void list_anchors(capture_search *f) {
  const pln_graph *g = f->g;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    if (!is_visited_in_place(f, ref))
      continue;
    f->next[ref] = f->first[f->node_scope[ref]];
    f->first[f->node_scope[ref]] = ref;
    if (n->kind == PLN_LET && f->out->lifts[pln_operand(g, ref, 1)])
      f->out->self[pln_operand(g, ref, 1)] = pln_operand(g, ref, 0);
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (f->out->self[ref] != PLN_NONE)
      f->out->binder[f->out->self[ref]] = ref;
}

static void find_around(capture_search *f) {
  const pln_graph *g = f->g;
  f->around[0] = PLN_NONE;
  for (pln_scope s = 1; s < g->n_scopes; s++)
    f->around[s] = f->out->lifts[g->scopes[s].owner]
                       ? g->scopes[s].owner
                       : f->around[g->scopes[s].parent];
}

/* ----------------------------------------------------------------- captures */

static pln_status add_capture(capture_search *f, pln_ref function,
                              pln_ref node) {
  pln_captures *out = f->out;
  PLN_TRY(pln_mem_grow(f->engine, (void **)&out->list, &out->cap,
                       (size_t)out->n + 1, sizeof *out->list));
  if (out->head[function] == PLN_NONE)
    out->head[function] = out->n;
  else
    out->list[f->tail[function]].next = out->n;
  f->tail[function] = out->n;
  out->list[out->n++] = (pln_capture){node, PLN_NONE};
  return PLN_OK;
}

/* Lists `node` as a capture of `function` and of the enclosing functions
 * that it is defined outside of. If one function has it already, so do those
 * around. */
static pln_status note_captured_use(capture_search *f, pln_ref function,
                                    pln_ref node) {
  const pln_graph *g = f->g;
  while (function != PLN_NONE) {
    pln_scope body = g->nodes[function].data;
    uint64_t key = (uint64_t)function << 32 | node;
    if (node >= g->scopes[body].begin || f->out->self[function] == node ||
        pln_idmap_get(f->listed, key))
      return PLN_OK;
    PLN_TRY(pln_idmap_set(f->listed, key, 1));
    PLN_TRY(add_capture(f, function, node));
    function = f->around[f->node_scope[function]];
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- walk */

static pln_status push_unseen_node(capture_search *f, pln_ref node) {
  if (f->seen[node])
    return PLN_OK;
  f->seen[node] = 1;
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->stack, &f->cap_stack,
                       (size_t)f->top + 1, sizeof *f->stack));
  pln_scope scope = PLN_NONE;
  if (pln_owns(&f->g->nodes[node]))
    scope = f->g->nodes[node].data;
  pln_ref anchor = scope == PLN_NONE ? PLN_NONE : f->first[scope];
  f->stack[f->top++] = (capture_visit){node, 0, scope, anchor};
  return PLN_OK;
}

static pln_status meet_operand(capture_search *f, capture_visit *v) {
  pln_ref operand = pln_operand(f->g, v->node, v->operand++);
  PLN_TRY(note_captured_use(f, f->around[f->node_scope[v->node]], operand));
  return push_unseen_node(f, operand);
}

static pln_status meet_inside(capture_search *f, capture_visit *v) {
  pln_scope scope = v->scope;
  if (v->anchor != PLN_NONE) {
    pln_ref anchor = v->anchor;
    v->anchor = f->next[anchor];
    return push_unseen_node(f, anchor);
  }
  pln_ref result = f->g->scopes[scope].result;
  v->scope = f->g->scopes[scope].next;
  v->anchor = v->scope == PLN_NONE ? PLN_NONE : f->first[v->scope];
  PLN_TRY(note_captured_use(f, f->around[scope], result));
  return push_unseen_node(f, result);
}

static pln_status walk_captured_nodes(capture_search *f) {
  PLN_TRY(push_unseen_node(f, f->g->root));
  while (f->top > 0) {
    capture_visit *v = &f->stack[f->top - 1];
    if (v->operand < f->g->nodes[v->node].count)
      PLN_TRY(meet_operand(f, v));
    else if (v->scope != PLN_NONE)
      PLN_TRY(meet_inside(f, v));
    else
      f->top--;
  }
  return PLN_OK;
}

static pln_status compute_captures(capture_search *f) {
  PLN_TRY(alloc_capture_tables(f));
  pln_graph_node_scopes(f->g, f->node_scope);
  pln_let_first_users(f->g, f->users);
  PLN_TRY(select_listed_functions(f));
  list_anchors(f);
  find_around(f);
  return walk_captured_nodes(f);
}

pln_status pln_captures_find(const pln_graph *graph, pln_captures *out) {
  capture_search f = {.out = out, .g = graph, .engine = graph->engine};
  *out = (pln_captures){.graph = graph};
  pln_status status = compute_captures(&f);
  free_capture_finder(&f);
  return status;
}
