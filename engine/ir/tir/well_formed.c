/* tir/well_formed.c: checks that the blocks of a PrimFunc are self-contained
 * (TVM 0.14, VerifyWellFormed): a block with block variables uses the index of
 * an enclosing loop only in the values that its BlockRealize binds.
 *
 * Called by well_formed.c. One sweep from users to operands records how deep
 * inside such blocks each PrimExpr is used; nothing recurses. */

#include "ir/graph/describe.h"
#include "ir/tir/tir.h"

typedef struct loop_depths {
  const pln_graph *g;
  uint32_t *scope; /* per scope: number of blocks with variables around its
                    * nodes */
  uint32_t *use;   /* per PrimExpr or Var: the maximum of that over its uses */
  pln_ref *block;  /* the innermost such block of that use */
  pln_ref *of;     /* per scope: the innermost such block around it */
  pln_scope *node_scope; /* per node: the innermost scope around it */
} loop_depths;

static bool closes(const pln_graph *g, pln_scope s) {
  pln_ref owner = g->scopes[s].owner;
  return owner != PLN_NONE && g->nodes[owner].kind == PLN_BLOCK &&
         g->nodes[owner].count > 0;
}

static void note_scopes(loop_depths *d) {
  const pln_graph *g = d->g;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_scope parent = g->scopes[s].parent;
    bool closed = closes(g, s);
    d->scope[s] = (parent == PLN_NONE ? 0 : d->scope[parent]) + closed;
    d->of[s] = closed               ? g->scopes[s].owner
               : parent == PLN_NONE ? PLN_NONE
                                    : d->of[parent];
  }
}

static void note_use(loop_depths *d, pln_ref ref, uint32_t depth,
                     pln_ref block) {
  if (depth < d->use[ref])
    return;
  d->use[ref] = depth;
  d->block[ref] = block;
}

/* From users to operands; a statement uses its operands at the depth of its
 * scope. */
static void collect_loop_uses(loop_depths *d) {
  const pln_graph *g = d->g;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    pln_scope here = d->node_scope[ref];
    const pln_node *n = &g->nodes[ref];
    bool prim = pln_is_prim(n);
    if (!prim && !pln_is_stmt(n))
      continue;
    for (uint32_t i = 0; i < n->count; i++)
      note_use(d, g->operands[n->first + i],
               prim ? d->use[ref] : d->scope[here],
               prim ? d->block[ref] : d->of[here]);
  }
}

static pln_status refuse_outer_index(const loop_depths *d, pln_ref var) {
  const pln_graph *g = d->g;
  pln_ref block = d->block[var];
  pln_slice name =
      pln_attrs_string(g->engine, g->nodes[block].attrs, "name_hint", "");
  pln_status status =
      pln_diag_error(g->engine, PLN_ERR_INVALID, NULL,
                     "the loop's index %s is used inside of block \"%.*s\", "
                     "which may use only its own variables",
                     pln_symbol_text(g->engine, g->nodes[var].attrs).data,
                     (int)name.size, name.data);
  pln_annotate_node(g, block);
  return status;
}

static pln_status check(const loop_depths *d) {
  const pln_graph *g = d->g;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner, var = g->scopes[s].begin;
    if (owner != PLN_NONE && g->nodes[owner].kind == PLN_FOR &&
        g->scopes[s].n_params > 0 && d->use[var] > d->scope[s])
      return refuse_outer_index(d, var);
  }
  return PLN_OK;
}

static pln_status check_blocks(loop_depths *d) {
  if (!d->scope || !d->use || !d->block || !d->of || !d->node_scope)
    return pln_nomem(d->g->engine);
  memset(d->use, 0, d->g->n_nodes * sizeof *d->use);
  memset(d->block, 0xff, d->g->n_nodes * sizeof *d->block);
  note_scopes(d);
  pln_graph_node_scopes(d->g, d->node_scope);
  collect_loop_uses(d);
  return check(d);
}

pln_status pln_tir_well_formed(const pln_graph *g) {
  pln_engine *e = g->engine;
  size_t n = g->n_nodes, k = g->n_scopes;
  if (n == 0 || k == 0)
    return PLN_OK;
  loop_depths d = {.g = g,
                   .scope = pln_mem_new(e, k * sizeof *d.scope),
                   .use = pln_mem_new(e, n * sizeof *d.use),
                   .block = pln_mem_new(e, n * sizeof *d.block),
                   .of = pln_mem_new(e, k * sizeof *d.of),
                   .node_scope = pln_mem_new(e, n * sizeof *d.node_scope)};
  pln_status status = check_blocks(&d);
  pln_mem_free(e, d.scope, k * sizeof *d.scope);
  pln_mem_free(e, d.use, n * sizeof *d.use);
  pln_mem_free(e, d.block, n * sizeof *d.block);
  pln_mem_free(e, d.of, k * sizeof *d.of);
  pln_mem_free(e, d.node_scope, n * sizeof *d.node_scope);
  return status;
}
