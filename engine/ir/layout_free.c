/* layout_free.c: lays out what was built freely, as from Lua: nodes float, and
 * each goes to the innermost scope that encloses all its uses, in Relay's
 * order of evaluation, operands left to right.
 *
 * Called by pln_builder_seal of a builder without open scopes; the builder
 * stays as it is. Scopes copied from sealed graphs keep their order: their
 * nodes have a home. Nothing recurses; the scope of several uses is found with
 * jump pointers in logarithmic time. */

#include "ir/layout.h"

enum { TAIL = 1, VISITED = 2, BOUND = 4 };

typedef struct placer {
  const pln_builder *b;
  const pln_graph *g;
  pln_layout *l;
  uint8_t *state;   /* a node */
  uint32_t *uses;   /* a node: how often it is needed */
  pln_ref *next;    /* a node: the next scheduled one of its scope */
  pln_ref *head;    /* a scope: its first scheduled node */
  pln_scope *alias; /* a scope: the one it was dissolved into, or itself */
  pln_scope *parent;
  pln_scope *jump;
  uint32_t *depth;
  uint8_t *live;
  pln_ref *stack; /* of the walk in evaluation order */
  uint32_t top, cap_stack;
} placer;

/* ------------------------------------------------------------------- tables */

static pln_status prepare(placer *p) {
  pln_engine *e = p->l->engine;
  size_t n = p->g->n_nodes + (size_t)1, k = p->g->n_scopes + (size_t)1;
  p->state = pln_mem_zeroed(e, n);
  p->uses = pln_mem_zeroed(e, n * sizeof *p->uses);
  p->next = pln_mem_new(e, n * sizeof *p->next);
  p->head = pln_mem_new(e, k * sizeof *p->head);
  p->alias = pln_mem_new(e, k * sizeof *p->alias);
  p->parent = pln_mem_zeroed(e, k * sizeof *p->parent);
  p->jump = pln_mem_zeroed(e, k * sizeof *p->jump);
  p->depth = pln_mem_zeroed(e, k * sizeof *p->depth);
  p->live = pln_mem_zeroed(e, k);
  if (!p->state || !p->uses || !p->next || !p->head || !p->alias ||
      !p->parent || !p->jump || !p->depth || !p->live)
    return pln_nomem(e);
  memset(p->head, 0xff, k * sizeof *p->head);
  memset(p->l->home, 0xff, n * sizeof *p->l->home);
  for (pln_scope s = 0; s < k; s++)
    p->alias[s] = s;
  return PLN_OK;
}

static void dispose(placer *p) {
  pln_engine *e = p->l->engine;
  size_t n = p->g->n_nodes + (size_t)1, k = p->g->n_scopes + (size_t)1;
  pln_mem_free(e, p->state, n);
  pln_mem_free(e, p->uses, n * sizeof *p->uses);
  pln_mem_free(e, p->next, n * sizeof *p->next);
  pln_mem_free(e, p->head, k * sizeof *p->head);
  pln_mem_free(e, p->alias, k * sizeof *p->alias);
  pln_mem_free(e, p->parent, k * sizeof *p->parent);
  pln_mem_free(e, p->jump, k * sizeof *p->jump);
  pln_mem_free(e, p->depth, k * sizeof *p->depth);
  pln_mem_free(e, p->live, k);
  pln_mem_free(e, p->stack, p->cap_stack * sizeof *p->stack);
}

/* ------------------------------------------------------------ what is needed
 */

/* Counts uses from users to operands; owners stand after their scopes. */
static void count_uses(placer *p) {
  const pln_graph *g = p->g;
  p->uses[p->l->root] = 1;
  p->live[0] = 1;
  for (pln_ref ref = p->l->root + 1; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    pln_scope home = p->b->home[ref];
    if (home != PLN_NONE && p->live[home] && pln_is_scheduled(n)) {
      p->uses[ref]++;
      p->next[ref] = p->head[home];
      p->head[home] = ref;
    }
    if (!p->uses[ref])
      continue;
    for (uint32_t i = 0; i < n->count; i++)
      p->uses[g->operands[n->first + i]]++;
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
      p->live[s] = 1;
      p->uses[g->scopes[s].result]++;
    }
  }
}

/* ------------------------------------------------------------ scopes of nodes
 */

/* Jump pointers as Myers lays them (An applicative random-access stack, 1983):
 * a path to the root is climbed in logarithmic time. */
static void hang(placer *p, pln_scope s, pln_scope parent) {
  pln_scope j = p->jump[parent];
  p->parent[s] = parent;
  p->depth[s] = p->depth[parent] + 1;
  bool even =
      p->depth[parent] - p->depth[j] == p->depth[j] - p->depth[p->jump[j]];
  p->jump[s] = even ? p->jump[j] : parent;
}

static pln_scope common_scope(const placer *p, pln_scope a, pln_scope b) {
  while (p->depth[a] > p->depth[b])
    a = p->depth[p->jump[a]] >= p->depth[b] ? p->jump[a] : p->parent[a];
  while (p->depth[b] > p->depth[a])
    b = p->depth[p->jump[b]] >= p->depth[a] ? p->jump[b] : p->parent[b];
  while (a != b) {
    bool far = p->jump[a] != p->jump[b];
    a = far ? p->jump[a] : p->parent[a];
    b = far ? p->jump[b] : p->parent[b];
  }
  return a;
}

/* `ref` is used from `scope`. */
static void want(placer *p, pln_ref ref, pln_scope scope) {
  pln_scope *home = &p->l->home[ref];
  if (p->state[ref] & BOUND)
    return;
  if (p->b->home[ref] != PLN_NONE)
    *home = p->alias[p->b->home[ref]];
  else
    *home = *home == PLN_NONE ? scope : common_scope(p, *home, scope);
}

static pln_status bind_params(placer *p, const pln_node *n) {
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref param = p->g->operands[n->first + i];
    if (p->state[param] & BOUND)
      return pln_diag_error(
          p->l->engine, PLN_ERR_TYPE, NULL,
          "the variable '%s' is bound more than once",
          pln_symbol_text(p->l->engine, p->g->nodes[param].attrs).data);
    p->state[param] |= BOUND;
    p->l->home[param] = n->data;
  }
  return PLN_OK;
}

/* A block of lets that is the result of its scope lies in that scope. */
static void want_result(placer *p, pln_scope inner, pln_scope scope) {
  pln_ref result = p->g->scopes[inner].result;
  want(p, result, scope);
  p->l->result[scope] = result;
  if (p->g->nodes[result].kind == PLN_LET_BLOCK && p->uses[result] == 1)
    p->state[result] |= TAIL;
}

static pln_status place_owner(placer *p, pln_ref ref, pln_scope home) {
  const pln_node *n = &p->g->nodes[ref];
  if (p->state[ref] & TAIL) {
    p->alias[n->data] = home;
    want_result(p, n->data, home);
    return PLN_OK;
  }
  if (n->kind == PLN_FUNCTION)
    PLN_TRY(bind_params(p, n));
  for (pln_scope s = n->data; s != PLN_NONE; s = p->g->scopes[s].next) {
    hang(p, s, home);
    want_result(p, s, s);
  }
  return PLN_OK;
}

static pln_status place_nodes(placer *p) {
  const pln_graph *g = p->g;
  pln_ref root = p->l->root;
  p->l->home[root] = 0;
  p->l->result[0] = root;
  if (g->nodes[root].kind == PLN_LET_BLOCK && p->uses[root] == 1)
    p->state[root] |= TAIL;
  for (pln_ref ref = root + 1; ref-- > 0;) {
    if (!p->uses[ref])
      continue;
    const pln_node *n = &g->nodes[ref];
    pln_scope home = p->l->home[ref];
    if (home == PLN_NONE)
      home = p->l->home[ref] = p->alias[p->b->home[ref]];
    bool binds = n->kind == PLN_FUNCTION;
    for (uint32_t i = 0; i < n->count && !binds; i++)
      want(p, g->operands[n->first + i], home);
    if (pln_owns(n))
      PLN_TRY(place_owner(p, ref, home));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------- evaluation order
 */

#define LEAVE 0x80000000u

static pln_status push(placer *p, pln_ref entry) {
  PLN_TRY(pln_mem_grow(p->l->engine, (void **)&p->stack, &p->cap_stack,
                       (size_t)p->top + 1, sizeof *p->stack));
  p->stack[p->top++] = entry;
  return PLN_OK;
}

/* Pushed in reverse: what is pushed last is evaluated first. */
static pln_status push_scope(placer *p, pln_scope s) {
  PLN_TRY(push(p, p->g->scopes[s].result));
  uint32_t from = p->top;
  for (pln_ref ref = p->head[s]; ref != PLN_NONE; ref = p->next[ref])
    PLN_TRY(push(p, ref));
  for (uint32_t to = p->top; from + 1 < to; from++, to--) {
    pln_ref swap = p->stack[from];
    p->stack[from] = p->stack[to - 1];
    p->stack[to - 1] = swap;
  }
  return PLN_OK;
}

static pln_status push_scopes(placer *p, const pln_node *n) {
  uint32_t from = p->top;
  for (pln_scope s = n->data; s != PLN_NONE; s = p->g->scopes[s].next)
    PLN_TRY(push(p, s));
  uint32_t k = p->top - from;
  if (k == 1) {
    p->top--;
    return push_scope(p, n->data);
  }
  pln_scope few[8], *scopes = few;
  size_t size = k * sizeof *scopes;
  if (size > sizeof few && !(scopes = pln_mem_new(p->l->engine, size)))
    return pln_nomem(p->l->engine);
  memcpy(scopes, p->stack + from, size);
  p->top = from;
  pln_status status = PLN_OK;
  while (k-- > 0 && status == PLN_OK)
    status = push_scope(p, scopes[k]);
  if (scopes != few)
    pln_mem_free(p->l->engine, scopes, size);
  return status;
}

static pln_status enter(placer *p, pln_ref ref) {
  const pln_node *n = &p->g->nodes[ref];
  if (p->state[ref] & VISITED)
    return PLN_OK;
  p->state[ref] |= VISITED;
  PLN_TRY(push(p, ref | LEAVE));
  if (pln_owns(n))
    PLN_TRY(push_scopes(p, n));
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(push(p, p->g->operands[n->first + i]));
  return PLN_OK;
}

static pln_status walk(placer *p) {
  PLN_TRY(push(p, p->l->root));
  while (p->top > 0) {
    pln_ref entry = p->stack[--p->top];
    if (!(entry & LEAVE))
      PLN_TRY(enter(p, entry));
    else if (!(p->state[entry & ~LEAVE] & TAIL))
      p->l->order[p->l->n++] = entry & ~LEAVE;
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- driver
 */

static pln_status arrange(placer *p) {
  PLN_TRY(prepare(p));
  count_uses(p);
  PLN_TRY(place_nodes(p));
  PLN_TRY(walk(p));
  p->l->root = p->l->result[0];
  return pln_layout_place(p->l);
}

pln_status pln_layout_free(const pln_builder *b, pln_ref root,
                           pln_graph **out) {
  pln_layout l;
  placer p = {.b = b, .g = b->graph, .l = &l};
  pln_graph *g = NULL;
  pln_status status = pln_layout_begin(&l, b->graph, root);
  if (status == PLN_OK)
    status = arrange(&p);
  dispose(&p);
  if (status == PLN_OK)
    status = pln_layout_emit(&l, &g);
  pln_layout_end(&l);
  if (status == PLN_OK)
    status = pln_graph_verify(g);
  if (status != PLN_OK) {
    pln_graph_release(g);
    return status;
  }
  *out = g;
  return PLN_OK;
}
