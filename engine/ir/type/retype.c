/* type/retype.c: the callers of a function whose signature changed are typed
 * again.
 *
 * Called by pln_module_with. A caller's own signature may change in turn, and
 * then its callers follow, level by level; other functions are not looked into.
 * What holds: after it, each GlobalVar has its function's type, unless
 * functions that call each other have no types that agree. */

#include "ir/module.h"

/* A call from one function to another. */
typedef struct edge {
  uint32_t caller;
  uint32_t next; /* of the same callee: an edge + 1; 0: the last */
} edge;

typedef struct callers {
  pln_module *module; /* being changed */
  uint32_t *first;    /* a function: its first edge + 1 */
  edge *edges;
  uint32_t n_edges, cap_edges;
  bool *dirty, *next; /* a function: to be typed in this, in the next level */
} callers;

pln_type pln_signature(const pln_graph *function) {
  return function->nodes[function->root].type;
}

static pln_status retype_var(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_module *m = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  (void)old;
  if (*node == PLN_NONE || pln_node_kind(g, *node) != PLN_GLOBAL_VAR)
    return PLN_OK;
  pln_symbol name = pln_node_symbol(g, *node);
  uint32_t i = pln_module_find(m, name);
  if (i == PLN_NONE ||
      pln_signature(m->rows[i].function) == g->nodes[*node].type)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_builder_module(b, m);
  return pln_build_global_var(b, name, 0, node);
}

/* ----------------------------------------------------------------- who calls
 */

static pln_status add_edges(callers *c, uint32_t caller) {
  const pln_graph *g = c->module->rows[caller].function;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t callee = pln_module_find(c->module, g->nodes[ref].data);
    if (callee == PLN_NONE)
      continue;
    PLN_TRY(pln_mem_grow(g->engine, (void **)&c->edges, &c->cap_edges,
                         (size_t)c->n_edges + 1, sizeof *c->edges));
    c->edges[c->n_edges++] = (edge){caller, c->first[callee]};
    c->first[callee] = c->n_edges;
  }
  return PLN_OK;
}

static void mark_callers(callers *c, uint32_t callee) {
  for (uint32_t at = c->first[callee]; at; at = c->edges[at - 1].next)
    c->next[c->edges[at - 1].caller] = true;
}

/* ------------------------------------------------------------------- levels */

static pln_status retype(callers *c, uint32_t i) {
  pln_mutator mutator = {.ud = c->module, .visit = retype_var};
  pln_graph *old = c->module->rows[i].function, *f;
  PLN_TRY(pln_graph_rewrite(old, &mutator, &f));
  if (pln_signature(f) != pln_signature(old))
    mark_callers(c, i);
  c->module->rows[i].function = f;
  pln_graph_release(old);
  return PLN_OK;
}

static pln_status retype_level(callers *c, bool *again) {
  uint32_t n = c->module->count;
  bool *dirty = c->next;
  c->next = c->dirty;
  c->dirty = dirty;
  memset(c->next, 0, n * sizeof *c->next);
  *again = false;
  for (uint32_t i = 0; i < n; i++)
    if (dirty[i])
      PLN_TRY(retype(c, i));
  for (uint32_t i = 0; i < n && !*again; i++)
    *again = c->next[i];
  return PLN_OK;
}

/* There are at most as many levels as functions, and one more for those that
 * call themselves. */
static pln_status retype_levels(callers *c, uint32_t changed) {
  uint32_t n = c->module->count;
  if (!c->first || !c->dirty || !c->next)
    return pln_nomem(c->module->engine);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(add_edges(c, i));
  mark_callers(c, changed);
  bool again = c->first[changed] != 0;
  for (uint32_t level = 0; again && level <= n; level++)
    PLN_TRY(retype_level(c, &again));
  return PLN_OK;
}

pln_status pln_module_retype_callers(pln_module *module, uint32_t changed) {
  pln_engine *e = module->engine;
  size_t n = module->count;
  callers c = {.module = module};
  c.first = pln_mem_zeroed(e, n * sizeof *c.first);
  c.dirty = pln_mem_zeroed(e, n * sizeof *c.dirty);
  c.next = pln_mem_zeroed(e, n * sizeof *c.next);
  pln_status status = retype_levels(&c, changed);
  pln_mem_free(e, c.first, n * sizeof *c.first);
  pln_mem_free(e, c.dirty, n * sizeof *c.dirty);
  pln_mem_free(e, c.next, n * sizeof *c.next);
  pln_mem_free(e, c.edges, c.cap_edges * sizeof *c.edges);
  return status;
}
