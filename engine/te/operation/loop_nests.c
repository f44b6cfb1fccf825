/* loop_nests.c: the loops of a statement that are axes of its operation.
 *
 * Called once for an extern that has axes (the operation of a hybrid function).
 * A nest is a list of loops of which each is all there is in the body of the
 * one around it: only inside of a nest may loops be fused and reordered. */

#include "te/te.h"

typedef struct nest_search {
  pln_te_op *op;
  const pln_graph *g;
  pln_idmap *axis_of;    /* identity of a variable -> 1 + axis */
  pln_scope *node_scope; /* by node: its scope */
  uint32_t *n_stmts;     /* by scope: statements in it */
  uint32_t *around;      /* by node: the nest of the innermost loop around or at
                          * it; 0: none */
  uint32_t n_nests;
} nest_search;

static pln_status refuse_axis(const pln_te_op *op, uint32_t i,
                              const char *why) {
  return pln_diag_error(op->engine, PLN_ERR_TYPE, NULL,
                        "te.extern '%s': axis %u %s",
                        pln_symbol_text(op->engine, op->name).data, i, why);
}

static uint32_t axis_var(const pln_te_op *op, uint32_t i) {
  const pln_graph *g = op->graph;
  const pln_node *axis = &g->nodes[pln_te_part(op, op->n_outputs + i)];
  return g->nodes[g->operands[axis->first]].data;
}

/* The axis of a loop; PLN_NONE: it is another statement, or no axis. */
static uint32_t axis_of_stmt(const nest_search *f, pln_ref stmt) {
  const pln_node *n = &f->g->nodes[stmt];
  if (n->kind != PLN_FOR || !pln_owns(n))
    return PLN_NONE;
  pln_ref var = f->g->scopes[n->data].begin;
  return pln_idmap_get(f->axis_of, f->g->nodes[var].data) - 1;
}

static pln_status note_loop(nest_search *f, pln_ref stmt, uint32_t axis,
                            pln_ref owner) {
  pln_te_op *op = f->op;
  uint32_t outer = owner == PLN_NONE ? 0 : f->around[owner];
  bool alone = owner != PLN_NONE && f->n_stmts[f->node_scope[stmt]] == 1 &&
               axis_of_stmt(f, owner) != PLN_NONE;
  if (op->nests[axis].nest != 0)
    return refuse_axis(op, axis, "is the variable of two loops");
  if (!alone) {
    op->nests[f->n_nests++].around = outer;
    outer = f->n_nests;
  }
  op->nests[axis].nest = outer;
  f->around[stmt] = outer;
  return PLN_OK;
}

/* An owner comes behind what it owns: from the end, outer loops come first. */
static pln_status note_loops(nest_search *f) {
  const pln_graph *g = f->g;
  for (pln_ref r = 0; r < g->n_nodes; r++)
    f->n_stmts[f->node_scope[r]] += pln_is_stmt(&g->nodes[r]);
  for (pln_ref r = g->n_nodes; r-- > 0;) {
    if (!pln_is_stmt(&g->nodes[r]))
      continue;
    pln_ref owner = g->scopes[f->node_scope[r]].owner;
    uint32_t axis = axis_of_stmt(f, r);
    f->around[r] = owner == PLN_NONE ? 0 : f->around[owner];
    if (axis != PLN_NONE)
      PLN_TRY(note_loop(f, r, axis, owner));
  }
  for (uint32_t i = 0; i < f->op->n_axis; i++)
    if (f->op->nests[i].nest == 0)
      return refuse_axis(f->op, i, "is the variable of no loop");
  return PLN_OK;
}

static pln_status search(nest_search *f) {
  for (uint32_t i = 0; i < f->op->n_axis; i++)
    PLN_TRY(pln_idmap_set(f->axis_of, axis_var(f->op, i), i + 1));
  pln_graph_node_scopes(f->g, f->node_scope);
  return note_loops(f);
}

pln_status pln_te_find_nests(pln_te_op *op) {
  pln_engine *e = op->engine;
  size_t axes = op->n_axis * sizeof *op->nests;
  size_t nodes = op->stmt->n_nodes * sizeof(uint32_t);
  size_t scopes = op->stmt->n_scopes * sizeof(uint32_t);
  nest_search f = {.op = op, .g = op->stmt};
  op->nests = pln_mem_zeroed(e, axes);
  f.node_scope = pln_mem_new(e, nodes);
  f.around = pln_mem_zeroed(e, nodes);
  f.n_stmts = pln_mem_zeroed(e, scopes);
  pln_status status = op->nests && f.node_scope && f.around && f.n_stmts
                          ? pln_idmap_new(e, &f.axis_of)
                          : pln_nomem(e);
  if (status == PLN_OK)
    status = search(&f);
  pln_idmap_free(f.axis_of);
  pln_mem_free(e, f.node_scope, nodes);
  pln_mem_free(e, f.around, nodes);
  pln_mem_free(e, f.n_stmts, scopes);
  return status;
}
