/* dominators.c: immediate post-dominators over a def-use graph.
 *
 * Called by FuseOps with its own definition of uses, and by
 * pln_graph_dominators. One sweep from users to operands inserts each node
 * below the lowest common ancestor of its users, found with jump pointers in
 * logarithmic time. (On an acyclic graph one sweep in topological order
 * suffices; Cooper, Harvey and Kennedy iterate the same step for cyclic ones.)
 * Invariants: a user is closed before its own operands are used; an unused or
 * escaping node has no parent. */

#include "ir/analysis/dominators.h"

/* ------------------------------------------------------------------- tables */

pln_status pln_dominators_begin(pln_dominators *d, pln_engine *engine,
                                uint32_t n) {
  size_t k = (size_t)n + 1;
  *d = (pln_dominators){.engine = engine, .n = n};
  d->parent = pln_mem_new(engine, k * sizeof *d->parent);
  d->weight = pln_mem_zeroed(engine, k);
  d->depth = pln_mem_zeroed(engine, k * sizeof *d->depth);
  d->jump = pln_mem_new(engine, k * sizeof *d->jump);
  d->jumped = pln_mem_zeroed(engine, k);
  d->escapes = pln_mem_zeroed(engine, k);
  if (!d->parent || !d->weight || !d->depth || !d->jump || !d->jumped ||
      !d->escapes)
    return pln_nomem(engine);
  memset(d->parent, 0xff, k * sizeof *d->parent);
  d->parent[n] = d->jump[n] = n; /* the virtual root above all nodes */
  return PLN_OK;
}

void pln_dominators_end(pln_dominators *d) {
  size_t k = (size_t)d->n + 1;
  if (!d->engine)
    return;
  pln_mem_free(d->engine, d->parent, k * sizeof *d->parent);
  pln_mem_free(d->engine, d->weight, k);
  pln_mem_free(d->engine, d->depth, k * sizeof *d->depth);
  pln_mem_free(d->engine, d->jump, k * sizeof *d->jump);
  pln_mem_free(d->engine, d->jumped, k);
  pln_mem_free(d->engine, d->escapes, k);
  *d = (pln_dominators){0};
}

/* ----------------------------------------------------------------- climbing */

static void heavier(uint8_t *weight, uint8_t other) {
  if (other > *weight)
    *weight = other;
}

/* One step up; by the jump pointer if that does not go below depth `least`. */
static pln_ref climb(const pln_dominators *d, pln_ref a, uint32_t least,
                     uint8_t *weight) {
  bool far = d->depth[d->jump[a]] >= least;
  heavier(weight, far ? d->jumped[a] : d->weight[a]);
  return far ? d->jump[a] : d->parent[a];
}

static pln_ref common(const pln_dominators *d, pln_ref a, pln_ref b,
                      uint8_t *weight) {
  while (d->depth[a] > d->depth[b])
    a = climb(d, a, d->depth[b], weight);
  while (d->depth[b] > d->depth[a])
    b = climb(d, b, d->depth[a], weight);
  while (a != b) {
    bool far = d->jump[a] != d->jump[b];
    heavier(weight, far ? d->jumped[a] : d->weight[a]);
    heavier(weight, far ? d->jumped[b] : d->weight[b]);
    a = far ? d->jump[a] : d->parent[a];
    b = far ? d->jump[b] : d->parent[b];
  }
  return a;
}

/* ---------------------------------------------------------------- the sweep */

void pln_dominators_escape(pln_dominators *d, pln_ref node) {
  d->escapes[node] = 1;
}

void pln_dominators_use(pln_dominators *d, pln_ref node, pln_ref user,
                        uint8_t weight) {
  if (d->parent[node] == PLN_NONE)
    d->parent[node] = user;
  else if (d->parent[node] != d->n)
    d->parent[node] = common(d, d->parent[node], user, &d->weight[node]);
  heavier(&d->weight[node], weight);
}

/* Jump pointers as in E. Myers, "An applicative random-access stack" (1983),
 * with the maximum weight along the path. */
void pln_dominators_close(pln_dominators *d, pln_ref node) {
  if (d->escapes[node] || d->parent[node] == PLN_NONE)
    d->parent[node] = d->n;
  pln_ref p = d->parent[node], j = d->jump[p];
  bool even = d->depth[p] - d->depth[j] == d->depth[j] - d->depth[d->jump[j]];
  d->depth[node] = d->depth[p] + 1;
  d->jump[node] = even ? d->jump[j] : p;
  d->jumped[node] = d->weight[node];
  if (!even)
    return;
  heavier(&d->jumped[node], d->jumped[p]);
  heavier(&d->jumped[node], d->jumped[j]);
}

/* ------------------------------------------------------------- of any graph */

/* The result of a branch, an arm or a block becomes its owner's value; that of
 * a function escapes. */
static void use_results(pln_dominators *d, const pln_graph *g, pln_ref owner) {
  const pln_node *n = &g->nodes[owner];
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    if (n->kind == PLN_FUNCTION || n->kind == PLN_PRIM_FUNC ||
        pln_kinds[n->kind].kind_class == PLN_CLASS_STMT)
      pln_dominators_escape(d, g->scopes[s].result);
    else
      pln_dominators_use(d, g->scopes[s].result, owner, 0);
}

static void sweep(pln_dominators *d, const pln_graph *g) {
  pln_dominators_escape(d, g->root);
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    if (pln_is_effect_ordered(n))
      pln_dominators_escape(d, ref);
    pln_dominators_close(d, ref);
    for (uint32_t i = 0; i < n->count; i++)
      pln_dominators_use(d, g->operands[n->first + i], ref, 0);
    if (pln_owns(n))
      use_results(d, g, ref);
  }
}

pln_status pln_graph_dominators(const pln_graph *graph, pln_ref *out) {
  pln_dominators d;
  pln_status status = pln_dominators_begin(&d, graph->engine, graph->n_nodes);
  if (status == PLN_OK)
    sweep(&d, graph);
  for (pln_ref i = 0; i < graph->n_nodes && status == PLN_OK; i++)
    out[i] = d.parent[i] == graph->n_nodes ? PLN_NONE : d.parent[i];
  pln_dominators_end(&d);
  return status;
}
