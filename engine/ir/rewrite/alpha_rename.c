/* alpha_rename.c: alpha-renaming: gives every variable that a program binds a
 * new identity (TVM's RenewDefs): parameters, lets, patterns, and the variables
 * of loops, blocks and buffers. Free variables stay.
 *
 * Called by scripts that insert the same program twice. The copy is equal node
 * for node except for the identities. */

#include "ir/compare/equal.h"
#include "ir/tir/tir.h"

typedef struct renamer {
  pln_engine *engine;
  pln_idmap *images; /* a bound identity -> its new identity */
} renamer;

static pln_status define(renamer *r, const pln_graph *g, pln_ref var) {
  const pln_node *n = &g->nodes[var];
  if (n->kind != PLN_VAR || pln_idmap_get(r->images, n->data))
    return PLN_OK;
  return pln_idmap_set(r->images, n->data, ++r->engine->n_vars);
}

static pln_status find_defs(renamer *r, const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    bool binds = n->kind == PLN_LET || n->kind == PLN_PATTERN_VAR;
    uint32_t defined = binds ? 1 : pln_n_defined(n);
    if (n->flags & PLN_NODE_PARAM)
      PLN_TRY(define(r, g, i));
    for (uint32_t k = 0; k < defined; k++)
      PLN_TRY(define(r, g, pln_operand(g, i, k)));
  }
  return PLN_OK;
}

static void rename(const renamer *r, pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    pln_node *n = &g->nodes[i];
    uint32_t image = n->kind == PLN_VAR ? pln_idmap_get(r->images, n->data) : 0;
    n->data = image ? image : n->data;
  }
}

pln_status pln_graph_alpha_rename(const pln_graph *graph, pln_graph **out) {
  renamer r = {.engine = graph->engine};
  pln_graph *copy = NULL;
  PLN_TRY(pln_idmap_new(r.engine, &r.images));
  pln_status status = find_defs(&r, graph);
  if (status == PLN_OK)
    status = pln_graph_copy(graph, &copy);
  if (status == PLN_OK) {
    rename(&r, copy);
    *out = copy;
  }
  pln_idmap_free(r.images);
  return status;
}
