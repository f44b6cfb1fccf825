/* walk.c: visits of an expression: each node once, operands before users.
 *
 * Passes, analyses and scripts call it. A walk sees what Relay sees: a Call's
 * operands in order, a Function's parameters and body, an If's condition and
 * branches, a Match's data and arms (pattern, then body), and as the body of a
 * Let the rest of its scope, so that a run of lets is entered in order and
 * left in reverse. What holds: the stack is explicit; a scope's own nodes are
 * looked at once, nested scopes are stepped over. */

#include "ir/layout.h"

typedef enum phase {
  OPERANDS, /* of node `ref`, from `at` on */
  SCOPES,   /* of an owner: `at` is the next one */
  REST,     /* of a Let: the scope that it lies in */
  BODY,     /* of scope `ref`: its nodes from `at` on, then the result */
  LEAVING
} phase;

typedef struct frame {
  uint32_t ref;
  uint32_t at;
  uint32_t inner; /* BODY, and a Let: the next row that may lie behind */
  pln_scope home; /* a Let: its scope */
  phase phase;
} frame;

struct pln_walker {
  const pln_graph *g;
  uint8_t *seen; /* a node */
  frame *stack;
  uint32_t top, capacity;
  pln_ref first; /* where to begin; PLN_NONE once begun */
};

/* ---------------------------------------------------------------- lifetime */

static pln_status start(pln_walker *w, const pln_graph *g, pln_ref node) {
  if (!g->sealed || node >= g->n_nodes)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "a walk begins at a node of a sealed graph");
  *w = (pln_walker){.g = g, .first = node};
  w->seen = pln_mem_zeroed(g->engine, g->n_nodes);
  return w->seen ? PLN_OK : pln_nomem(g->engine);
}

static void stop(pln_walker *w) {
  pln_engine *e = w->g->engine;
  pln_mem_free(e, w->seen, w->g->n_nodes);
  pln_mem_free(e, w->stack, w->capacity * sizeof *w->stack);
}

pln_status pln_walker_new(const pln_graph *graph, pln_ref node,
                          pln_walker **out) {
  pln_walker w;
  PLN_TRY(start(&w, graph, node));
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

bool pln_walker_again(pln_walker *w, pln_ref node) {
  if (w->top > 0 || w->first != PLN_NONE || node >= w->g->n_nodes ||
      w->seen[node])
    return false;
  w->first = node;
  return true;
}

/* ------------------------------------------------------------------ scopes */

/* The first row from `inner` on that begins at or after `at`: a search that
 * costs the logarithm of what it steps over. */
static uint32_t row_behind(const pln_graph *g, uint32_t inner, pln_ref at) {
  uint32_t step = 1, low = inner;
  while (low < g->n_scopes && g->scopes[low].begin < at) {
    inner = low + 1;
    low += step;
    step += step;
  }
  uint32_t high = low < g->n_scopes ? low : g->n_scopes;
  while (inner < high) {
    uint32_t middle = inner + (high - inner) / 2;
    if (g->scopes[middle].begin < at)
      inner = middle + 1;
    else
      high = middle;
  }
  return inner;
}

/* The next node of the scope itself that is evaluated whether it is used or
 * not; PLN_NONE: only the result is left. */
static pln_ref next_own(const pln_graph *g, frame *f) {
  pln_ref end = g->scopes[f->ref].end;
  while (f->at < end) {
    f->inner = row_behind(g, f->inner, f->at);
    if (f->inner < g->n_scopes && g->scopes[f->inner].begin == f->at) {
      f->at = g->scopes[f->inner++].end;
      continue;
    }
    if (pln_is_scheduled(&g->nodes[f->at]))
      return f->at++;
    f->at++;
  }
  return PLN_NONE;
}

/* The innermost scope around a node. */
static pln_scope scope_of(const pln_graph *g, pln_ref node) {
  pln_scope s = row_behind(g, 0, node + 1) - 1;
  while (g->scopes[s].end <= node)
    s = g->scopes[s].parent;
  return s;
}

/* ------------------------------------------------------------------- steps */

static inline pln_status push(pln_walker *w, frame f) {
  if (w->top == w->capacity)
    PLN_TRY(pln_mem_grow(w->g->engine, (void **)&w->stack, &w->capacity,
                         (size_t)w->top + 1, sizeof *w->stack));
  w->stack[w->top++] = f;
  return PLN_OK;
}

static inline pln_status enter(pln_walker *w, pln_ref node) {
  w->seen[node] = 1;
  return push(w, (frame){.ref = node, .phase = OPERANDS});
}

static pln_status push_body(pln_walker *w, pln_scope scope) {
  const pln_scope_row *row = &w->g->scopes[scope];
  return push(w, (frame){.ref = scope,
                         .at = row->begin,
                         .inner = scope + 1,
                         .phase = BODY});
}

/* The root stands for all that the graph computes, lets before it included. */
static pln_status push_whole(pln_walker *w) {
  w->first = PLN_NONE;
  return push_body(w, 0);
}

/* The rest of the scope becomes the Let's own: the scope's frame goes. */
static pln_status enter_let(pln_walker *w, pln_ref let) {
  frame body = w->stack[--w->top];
  w->seen[let] = 1;
  return push(w, (frame){.ref = let,
                         .inner = body.inner,
                         .home = body.ref,
                         .phase = OPERANDS});
}

/* A Let brings the rest of its scope along. */
static pln_status enter_first(pln_walker *w, pln_ref *node) {
  *node = w->first;
  w->first = PLN_NONE;
  PLN_TRY(enter(w, *node));
  if (w->g->nodes[*node].kind != PLN_LET)
    return PLN_OK;
  frame *f = &w->stack[w->top - 1];
  f->home = scope_of(w->g, *node);
  f->inner = f->home + 1;
  return PLN_OK;
}

/* All operands of the node on top are done: what comes then. */
static inline phase after_operands(const pln_node *n, frame *f) {
  if (n->kind == PLN_LET)
    return REST;
  if (!pln_owns(n))
    return LEAVING;
  f->at = n->data;
  return SCOPES;
}

static pln_status push_rest(pln_walker *w, frame *let) {
  let->phase = LEAVING;
  return push(w, (frame){.ref = let->home,
                         .at = let->ref + 1,
                         .inner = let->inner,
                         .phase = BODY});
}

/* The next node below the owner or scope on top, or PLN_NONE. */
static pln_status step_inside(pln_walker *w, pln_ref *node) {
  frame *f = &w->stack[w->top - 1];
  *node = PLN_NONE;
  switch (f->phase) {
  case SCOPES: {
    pln_scope s = f->at;
    f->at = w->g->scopes[s].next;
    if (f->at == PLN_NONE)
      f->phase = LEAVING;
    return push_body(w, s);
  }
  case REST: return push_rest(w, f);
  case BODY:
    *node = next_own(w->g, f);
    if (*node == PLN_NONE) {
      *node = w->g->scopes[f->ref].result;
      w->top--;
    }
    break;
  case OPERANDS:
  case LEAVING: break;
  }
  if (*node == PLN_NONE || w->seen[*node]) {
    *node = PLN_NONE;
    return PLN_OK;
  }
  return w->g->nodes[*node].kind == PLN_LET ? enter_let(w, *node)
                                            : enter(w, *node);
}

/* Enters the next operand of the node on top that was not seen. */
static inline bool next_operand(const pln_walker *w, frame *f, pln_ref *node) {
  const pln_node *n = &w->g->nodes[f->ref];
  const pln_ref *operands = pln_operands(w->g, n);
  while (f->at < n->count) {
    *node = operands[f->at++];
    if (!w->seen[*node])
      return true;
  }
  f->phase = after_operands(n, f);
  return false;
}

static inline pln_status step(pln_walker *w, pln_walk_event *event,
                              pln_ref *node) {
  *event = PLN_WALK_ENTER;
  if (w->first == w->g->root)
    PLN_TRY(push_whole(w));
  else if (w->first != PLN_NONE)
    return enter_first(w, node);
  while (w->top > 0) {
    frame *f = &w->stack[w->top - 1];
    if (f->phase == OPERANDS && next_operand(w, f, node))
      return enter(w, *node);
    if (f->phase == LEAVING) {
      *event = PLN_WALK_LEAVE;
      *node = f->ref;
      w->top--;
      return PLN_OK;
    }
    PLN_TRY(step_inside(w, node));
    if (*node != PLN_NONE)
      return PLN_OK;
  }
  *event = PLN_WALK_DONE;
  *node = PLN_NONE;
  return PLN_OK;
}

pln_status pln_walker_next(pln_walker *w, pln_walk_event *event,
                           pln_ref *node) {
  return step(w, event, node);
}

/* ------------------------------------------------------------- whole walks */

void pln_walker_skip(pln_walker *w) {
  if (w->top > 0 && w->stack[w->top - 1].phase == OPERANDS &&
      w->stack[w->top - 1].at == 0)
    w->top--;
}

static pln_status leave_all(pln_walker *w, pln_visit_fn fn, void *ud) {
  pln_walk_event event;
  pln_ref node;
  for (;;) {
    PLN_TRY(step(w, &event, &node));
    if (event == PLN_WALK_DONE)
      return PLN_OK;
    if (event == PLN_WALK_LEAVE)
      PLN_TRY(fn(ud, w->g, node));
  }
}

pln_status pln_walk_post_order(const pln_graph *graph, pln_ref node,
                               pln_visit_fn fn, void *ud) {
  pln_walker w;
  PLN_TRY(start(&w, graph, node));
  pln_status status = leave_all(&w, fn, ud);
  stop(&w);
  return status;
}

static pln_status visit_all(pln_walker *w, const pln_visitor *visitor) {
  pln_walk_event event;
  pln_ref node;
  for (;;) {
    PLN_TRY(step(w, &event, &node));
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
  PLN_TRY(start(&w, graph, node));
  pln_status status = visit_all(&w, visitor);
  stop(&w);
  return status;
}
