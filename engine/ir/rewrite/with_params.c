/* rewrite/with_params.c: gives a function other parameters (TVM: a Function of
 * the same body).
 *
 * Called by passes whose rewritten body has new free variables, or needs a
 * parameter no longer.
 *
 *     fn (%x, %w) { f(%x, %w.data) }, parameters x, w.data
 *       =>   fn (%x, %w.data) { f(%x, %w.data) }
 *
 * The new list overwrites the nodes of the old one, because parameters come
 * first in their scope. */

#include "ir/rewrite/with_params.h"

typedef struct param_list {
  const pln_graph *old;
  uint32_t n;
  const pln_node *vars;
  pln_idmap *index; /* identity of a variable -> place in the list + 1 */
  pln_scope scope;  /* of the function */
  pln_ref begin;    /* the first parameter in the new graph */
} param_list;

static bool is_last_param(const param_list *p, pln_ref old) {
  const pln_scope_row *row = &p->old->scopes[p->scope];
  return old + 1 == row->begin + row->n_params;
}

/* Only parameters have been appended to the scope so far. */
static pln_status put_param(const param_list *p, pln_builder *b, uint32_t at) {
  pln_ref slot = p->begin + at;
  pln_node n = p->vars[at];
  n.flags = PLN_NODE_PARAM;
  n.first = n.count = 0;
  if (slot >= b->graph->n_nodes)
    return pln_builder_append(b, &n, 0, NULL, &slot);
  b->graph->nodes[slot] = n;
  return PLN_OK;
}

static pln_status put_params(param_list *p, pln_rewrite *rw, pln_ref *node) {
  const pln_scope_row *row = &p->old->scopes[p->scope];
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_ref end = b->graph->n_nodes;
  p->begin = b->graph->scopes[p->scope].begin;
  for (uint32_t i = 0; i < p->n; i++)
    PLN_TRY(put_param(p, b, i));
  for (pln_ref i = p->begin + p->n; i < end; i++)
    b->graph->nodes[i].flags &= (uint8_t)~PLN_NODE_PARAM;
  b->graph->scopes[p->scope].n_params = p->n;
  for (uint32_t i = 0; i < row->n_params; i++) {
    uint32_t at = pln_idmap_get(p->index, p->old->nodes[row->begin + i].data);
    if (at)
      pln_rewrite_bind(rw, row->begin + i, p->begin + at - 1);
  }
  *node = pln_rewrite_image(rw, *node);
  return PLN_OK;
}

/* A variable that becomes a parameter is that parameter wherever it is used. */
static pln_status replace_var(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  param_list *p = ud;
  const pln_node *n = &p->old->nodes[old];
  if (is_last_param(p, old))
    return put_params(p, rw, node);
  if (n->kind == PLN_VAR && !(n->flags & PLN_NODE_PARAM)) {
    uint32_t at = pln_idmap_get(p->index, n->data);
    if (at)
      *node = p->begin + at - 1;
    return PLN_OK;
  }
  if (old != p->old->root)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[*node].type = 0;
  return pln_builder_infer(b, *node);
}

pln_status pln_graph_with_params(const pln_graph *function, uint32_t n,
                                 const pln_node *vars, pln_graph **out) {
  const pln_node *root = &function->nodes[function->root];
  param_list p = {.old = function, .n = n, .vars = vars, .scope = root->data};
  pln_mutator m = {.ud = &p, .visit = replace_var};
  if (root->kind != PLN_FUNCTION || !function->scopes[p.scope].n_params)
    return pln_diag_error(function->engine, PLN_ERR_ARGUMENT, NULL,
                          "not a function with parameters");
  pln_status status = pln_idmap_new(function->engine, &p.index);
  for (uint32_t i = 0; status == PLN_OK && i < n; i++)
    status = pln_idmap_set(p.index, vars[i].data, i + 1);
  if (status == PLN_OK)
    status = pln_graph_rewrite(function, &m, out);
  pln_idmap_free(p.index);
  return status;
}
