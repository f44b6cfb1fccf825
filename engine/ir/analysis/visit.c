/* visit.c: traversal of an expression: each node once, operands before users.
 *
 * Called by passes, analyses and scripts. The order is Relay's view: a Call's
 * operands in order, a Function's parameters and body, an If's condition and
 * branches, a Match's data and arms (pattern, then body). The body of a Let is
 * the rest of its scope, so a run of lets is entered in order and left in
 * reverse. Invariants: the stack is explicit; each scope's own nodes are
 * scanned once, and nested scopes are skipped. */

#include "ir/graph/layout/layout.h"

/* The state of a frame: the next operand `at`; with the highest bit set, the
 * owner's next scope; LEAVING. */
typedef struct frame {
  pln_ref ref; /* PLN_NONE: the body on top of the body stack */
  uint32_t at;
} frame;
#define SCOPE 0x80000000u
#define LEAVING 0xffffffffu

/* A scope being walked: its own nodes from `at` on, then its result. */
typedef struct walked_body {
  pln_scope scope;
  pln_ref at;
  pln_scope inner; /* all rows before it begin before `at` */
} walked_body;

struct pln_walker {
  const pln_graph *g;
  uint8_t *seen; /* a node */
  frame *stack;
  uint32_t top, capacity;
  walked_body *bodies;
  uint32_t n_bodies, cap_bodies;
  pln_ref first; /* the root; PLN_NONE once the walk has begun */
};

/* ---------------------------------------------------------------- lifetime */

static pln_status start_node_walk(pln_walker *w, const pln_graph *g,
                                  pln_ref node) {
  if (!g->sealed || node >= g->n_nodes)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "a traversal must begin at a node of a sealed graph");
  *w = (pln_walker){.g = g, .first = node};
  w->seen = pln_mem_zeroed(g->engine, g->n_nodes);
  return w->seen ? PLN_OK : pln_nomem(g->engine);
}

static void stop(pln_walker *w) {
  pln_engine *e = w->g->engine;
  pln_mem_free(e, w->seen, w->g->n_nodes);
  pln_mem_free(e, w->stack, w->capacity * sizeof *w->stack);
  pln_mem_free(e, w->bodies, w->cap_bodies * sizeof *w->bodies);
}

pln_status pln_walker_new(const pln_graph *graph, pln_ref node,
                          pln_walker **out) {
  pln_walker w;
  PLN_TRY(start_node_walk(&w, graph, node));
  *out = pln_mem_new(graph->engine, sizeof **out);
  if (!*out) {
    stop(&w);
    return pln_nomem(graph->engine);
  }
  **out = w;
  pln_graph_retain(graph);
  return PLN_OK;
}

void pln_walker_free(pln_walker *w) {
  if (!w)
    return;
  const pln_graph *g = w->g;
  pln_engine *e = g->engine;
  stop(w);
  pln_mem_free(e, w, sizeof *w);
  pln_graph_release((pln_graph *)(uintptr_t)g);
}

bool pln_walker_revisit(pln_walker *w, pln_ref node) {
  if (w->top > 0 || w->first != PLN_NONE || node >= w->g->n_nodes ||
      w->seen[node])
    return false;
  w->first = node;
  return true;
}

/* ------------------------------------------------------------------ scopes */

/* The scope's next own node that is evaluated even when unused; PLN_NONE: only
 * the result is left. */
static pln_ref next_own(const pln_graph *g, walked_body *f) {
  pln_ref end = g->scopes[f->scope].end;
  while (f->at < end) {
    f->inner = pln_graph_scope_from(g, f->inner, f->at);
    bool nested = f->inner < g->n_scopes && g->scopes[f->inner].begin < end;
    pln_ref stop = nested ? g->scopes[f->inner].begin : end;
    while (f->at < stop)
      if (pln_is_scheduled(&g->nodes[f->at++]))
        return f->at - 1;
    if (nested)
      f->at = g->scopes[f->inner++].end;
  }
  return PLN_NONE;
}

/* ------------------------------------------------------------------- steps */

static inline pln_status push_walked_node(pln_walker *w, pln_ref ref) {
  if (w->top == w->capacity)
    PLN_TRY(pln_mem_grow(w->g->engine, (void **)&w->stack, &w->capacity,
                         (size_t)w->top + 1, sizeof *w->stack));
  w->stack[w->top++] = (frame){ref, 0};
  return PLN_OK;
}

static inline pln_status enter_walked_owner(pln_walker *w, pln_ref node) {
  w->seen[node] = 1;
  return push_walked_node(w, node);
}

static pln_status push_body(pln_walker *w, pln_scope scope, pln_ref at) {
  PLN_TRY(pln_mem_grow(w->g->engine, (void **)&w->bodies, &w->cap_bodies,
                       (size_t)w->n_bodies + 1, sizeof *w->bodies));
  w->bodies[w->n_bodies++] = (walked_body){scope, at, scope + 1};
  return PLN_OK;
}

/* A Let includes the rest of its scope; the root includes everything that the
 * graph computes, with the lets before it. */
static pln_status begin_walk_root(pln_walker *w, pln_ref *node) {
  const pln_graph *g = w->g;
  *node = w->first;
  w->first = PLN_NONE;
  if (*node == g->root) {
    *node = PLN_NONE;
    PLN_TRY(push_body(w, 0, 0));
    return push_walked_node(w, PLN_NONE);
  }
  if (g->nodes[*node].kind == PLN_LET)
    PLN_TRY(push_body(w, pln_graph_scope_of(g, *node), *node + 1));
  return enter_walked_owner(w, *node);
}

/* Enters the next unvisited node of the body on top. A body's frame is popped
 * when its result is entered, and before a Let, which takes over the rest of
 * the body. */
static pln_status step_body(pln_walker *w, pln_ref *node) {
  walked_body *b = &w->bodies[w->n_bodies - 1];
  *node = next_own(w->g, b);
  if (*node == PLN_NONE) {
    *node = w->g->scopes[b->scope].result;
    w->n_bodies--;
    w->top--;
  }
  if (w->seen[*node]) {
    *node = PLN_NONE;
    return PLN_OK;
  }
  if (w->g->nodes[*node].kind == PLN_LET)
    w->top--;
  return enter_walked_owner(w, *node);
}

static pln_status step_scopes(pln_walker *w, frame *f) {
  pln_scope s = f->at & ~SCOPE, next = w->g->scopes[s].next;
  f->at = next == PLN_NONE ? LEAVING : next | SCOPE;
  PLN_TRY(push_body(w, s, w->g->scopes[s].begin));
  return push_walked_node(w, PLN_NONE);
}

/* Continues after the last operand of the node. */
static pln_status after_operands(pln_walker *w, frame *f, const pln_node *n) {
  f->at = pln_owns(n) ? n->data | SCOPE : LEAVING;
  return n->kind == PLN_LET ? push_walked_node(w, PLN_NONE) : PLN_OK;
}

static inline bool is_scopeless_node(const pln_node *n) {
  return n->kind != PLN_LET && !pln_owns(n);
}

/* The next unvisited operand of the node on top. A node without scopes is
 * finished with its last operand, so that it need not be read again when it is
 * left. */
static inline bool next_operand(const pln_walker *w, frame *f,
                                const pln_node *n, pln_ref *node) {
  const pln_ref *operands = pln_operands(w->g, n);
  while (f->at < n->count) {
    *node = operands[f->at++];
    if (!w->seen[*node]) {
      f->at = f->at == n->count && is_scopeless_node(n) ? LEAVING : f->at;
      return true;
    }
  }
  return false;
}

/* Advances the frame on top, which is not finished; *node is PLN_NONE when no
 * node is entered. */
static inline pln_status advance_walk_frame(pln_walker *w, frame *f,
                                            pln_ref *node) {
  *node = PLN_NONE;
  if (f->ref == PLN_NONE)
    return step_body(w, node);
  if (f->at & SCOPE)
    return step_scopes(w, f);
  const pln_node *n = &w->g->nodes[f->ref];
  pln_ref operand;
  if (!next_operand(w, f, n, &operand))
    return after_operands(w, f, n);
  *node = operand;
  return enter_walked_owner(w, operand);
}

/* Advances to the next event; with `quiet` to the next LEAVE. */
static inline pln_status walk_next_event(pln_walker *w, bool quiet,
                                         pln_walk_event *event, pln_ref *node) {
  *node = PLN_NONE;
  *event = PLN_WALK_ENTER;
  if (w->first != PLN_NONE)
    PLN_TRY(begin_walk_root(w, node));
  while ((quiet || *node == PLN_NONE) && w->top > 0) {
    frame *f = &w->stack[w->top - 1];
    if (f->at == LEAVING) {
      *event = PLN_WALK_LEAVE;
      *node = f->ref;
      w->top--;
      return PLN_OK;
    }
    PLN_TRY(advance_walk_frame(w, f, node));
  }
  if (quiet || *node == PLN_NONE)
    *event = PLN_WALK_DONE;
  return PLN_OK;
}

pln_status pln_walker_next(pln_walker *w, pln_walk_event *event,
                           pln_ref *node) {
  return walk_next_event(w, false, event, node);
}

/* ------------------------------------------------------------- whole walks */

void pln_walker_skip(pln_walker *w) {
  pln_ref node = w->top > 0 ? w->stack[w->top - 1].ref : PLN_NONE;
  if (node == PLN_NONE || w->stack[w->top - 1].at != 0)
    return;
  w->top--;
  if (w->g->nodes[node].kind == PLN_LET)
    w->n_bodies--;
}

static pln_status leave_all(pln_walker *w, pln_visit_fn fn, void *ud) {
  pln_walk_event event;
  pln_ref node;
  for (;;) {
    PLN_TRY(walk_next_event(w, true, &event, &node));
    if (event == PLN_WALK_DONE)
      return PLN_OK;
    PLN_TRY(fn(ud, w->g, node));
  }
}

pln_status pln_walk_post_order(const pln_graph *graph, pln_ref node,
                               pln_visit_fn fn, void *ud) {
  pln_walker w;
  PLN_TRY(start_node_walk(&w, graph, node));
  pln_status status = leave_all(&w, fn, ud);
  stop(&w);
  return status;
}

static pln_status visit_all(pln_walker *w, const pln_visitor *visitor) {
  pln_walk_event event;
  pln_ref node;
  for (;;) {
    PLN_TRY(walk_next_event(w, false, &event, &node));
    if (event == PLN_WALK_DONE)
      return PLN_OK;
    bool skip = false;
    if (event == PLN_WALK_ENTER && visitor->enter)
      PLN_TRY(visitor->enter(visitor->ud, w->g, node, &skip));
    if (skip)
      pln_walker_skip(w);
    if (event == PLN_WALK_LEAVE && visitor->leave)
      PLN_TRY(visitor->leave(visitor->ud, w->g, node));
  }
}

pln_status pln_walk(const pln_graph *graph, pln_ref node,
                    const pln_visitor *visitor) {
  pln_walker w;
  PLN_TRY(start_node_walk(&w, graph, node));
  pln_status status = visit_all(&w, visitor);
  stop(&w);
  return status;
}
