/* layout_floating.c: lays out a freely built graph (from Lua): each floating
 * node goes to the innermost scope that encloses all its uses, in Relay's
 * evaluation order, operands left to right.
 *
 * Called by pln_builder_seal of a builder without open scopes. The builder is
 * unchanged, and only what the root reaches is examined (layout_reachable.c).
 * Nodes copied from sealed graphs have a scope already and keep their order.
 * Nothing recurses. */

#include "ir/graph/describe.h"
#include "ir/graph/layout/layout.h"
#include "ir/graph/layout/scope_tree.h"

enum { TAIL = 1, BOUND = 2, LET_BOUND = 4 };

typedef struct floating_layout {
  const pln_graph *g; /* the reachable part, in evaluation order */
  const pln_scope
      *node_scope; /* per node: the scope it was copied to, or PLN_NONE */
  pln_layout *l;
  uint8_t *state;   /* per node */
  uint32_t *uses;   /* per node: number of uses */
  pln_scope *alias; /* per scope: the scope it was dissolved into, or itself */
  pln_scope_tree scopes;
} floating_layout;

/* ------------------------------------------------------------------- tables */

/* Total size of the per-node and per-scope tables in bytes. */
static size_t tables_size(const floating_layout *p) {
  size_t n = p->g->n_nodes + (size_t)1, k = p->g->n_scopes + (size_t)1;
  return n * sizeof *p->uses + k * sizeof *p->alias + n * sizeof *p->state;
}

/* One allocation for all tables; byte tables come last. */
static pln_status prepare_placer(floating_layout *p) {
  pln_engine *e = p->l->engine;
  size_t n = p->g->n_nodes + (size_t)1, k = p->g->n_scopes + (size_t)1;
  p->uses = pln_mem_zeroed(e, tables_size(p));
  if (!p->uses)
    return pln_nomem(e);
  p->alias = p->uses + n;
  p->state = (uint8_t *)(p->alias + k);
  memset(p->l->node_scope, 0xff, n * sizeof *p->l->node_scope);
  for (pln_scope s = 0; s < k; s++)
    p->alias[s] = s;
  return pln_scope_tree_begin(&p->scopes, e, p->g->n_scopes);
}

static void free_placer(floating_layout *p) {
  pln_mem_free(p->l->engine, p->uses, tables_size(p));
  pln_scope_tree_end(&p->scopes);
}

/* ------------------------------------------------------------ what is needed
 */

static void count_floating_uses(floating_layout *p) {
  const pln_graph *g = p->g;
  p->uses[p->l->root] = 1;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    p->uses[ref] += p->node_scope[ref] != PLN_NONE && pln_is_scheduled(n);
    for (uint32_t i = 0; i < n->count; i++)
      p->uses[g->operands[n->first + i]]++;
    if (!pln_owns(n))
      continue;
    for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
      p->uses[g->scopes[s].result]++;
  }
}

/* ------------------------------------------------------------ scopes of nodes
 */

/* Records that `ref` is used from `scope`. */
static void want(floating_layout *p, pln_ref ref, pln_scope scope) {
  pln_scope *node_scope = &p->l->node_scope[ref];
  if (p->state[ref] & BOUND)
    return;
  if (p->node_scope[ref] != PLN_NONE)
    *node_scope = p->alias[p->node_scope[ref]];
  else
    *node_scope = *node_scope == PLN_NONE
                      ? scope
                      : pln_scope_tree_lca(&p->scopes, *node_scope, scope);
}

/* `ref` binds or uses the unbound `var`. */
static pln_status refuse_unbound_var(const floating_layout *p, pln_ref var,
                                     const char *what, pln_ref ref) {
  pln_engine *e = p->l->engine;
  pln_status status =
      pln_diag_error(e, PLN_ERR_TYPE, NULL, "the variable '%s' is %s",
                     pln_symbol_text(e, p->g->nodes[var].attrs).data, what);
  pln_annotate_node(p->g, ref);
  return status;
}

static const char twice[] = "bound more than once";

static pln_status bind_param(floating_layout *p, pln_ref param, pln_scope scope,
                             pln_ref owner) {
  if (p->state[param] & (BOUND | LET_BOUND))
    return refuse_unbound_var(p, param, twice, owner);
  p->state[param] |= BOUND;
  p->l->node_scope[param] = scope;
  return PLN_OK;
}

/* Binds the operands of a floating Function, or the variables of a floating
 * arm, as parameters. */
static pln_status bind_placed_params(floating_layout *p, pln_ref owner,
                                     pln_scope scope) {
  const pln_scope_row *row = &p->g->scopes[scope];
  const pln_node *n = &p->g->nodes[owner];
  if (n->kind == PLN_FUNCTION)
    for (uint32_t i = 0; i < n->count; i++)
      PLN_TRY(bind_param(p, p->g->operands[n->first + i], scope, owner));
  else if (row->begin != PLN_NONE)
    for (uint32_t i = 0; i < row->n_params; i++)
      PLN_TRY(bind_param(p, row->begin + i, scope, owner));
  return PLN_OK;
}

static pln_status bind_let(floating_layout *p, pln_ref let) {
  pln_ref var = p->g->operands[p->g->nodes[let].first];
  if (p->state[var] & (BOUND | LET_BOUND))
    return refuse_unbound_var(p, var, twice, let);
  p->state[var] |= LET_BOUND;
  return PLN_OK;
}

/* A block of lets that is the result of its scope is dissolved into it, unless
 * it is evaluated earlier. */
static void want_result(floating_layout *p, pln_scope inner, pln_scope scope) {
  pln_ref result = p->g->scopes[inner].result;
  want(p, result, scope);
  p->l->result[scope] = result;
  const pln_node *n = &p->g->nodes[result];
  if (n->kind == PLN_LET_BLOCK && p->uses[result] == 1 &&
      !(n->flags & PLN_NODE_KEEP))
    p->state[result] |= TAIL;
}

static pln_status place_owner(floating_layout *p, pln_ref ref,
                              pln_scope node_scope) {
  const pln_node *n = &p->g->nodes[ref];
  if (pln_is_tir(n))
    return pln_diag_error(p->l->engine, PLN_ERR_TYPE, NULL,
                          "a %s cannot be the value of an expression",
                          pln_kinds[n->kind].name);
  if (p->state[ref] & TAIL) {
    p->alias[n->data] = node_scope;
    want_result(p, n->data, node_scope);
    return PLN_OK;
  }
  for (pln_scope s = n->data; s != PLN_NONE; s = p->g->scopes[s].next) {
    PLN_TRY(bind_placed_params(p, ref, s));
    pln_scope_tree_add_child(&p->scopes, s, node_scope);
    want_result(p, s, s);
  }
  return PLN_OK;
}

static pln_status place_nodes(floating_layout *p) {
  const pln_graph *g = p->g;
  pln_ref root = p->l->root;
  p->l->node_scope[root] = 0;
  p->l->result[0] = root;
  for (pln_ref ref = root + 1; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    pln_scope node_scope = p->l->node_scope[ref];
    PLN_TRY(pln_poll_round(p->l->engine, ref));
    if (p->node_scope[ref] != PLN_NONE && !(p->state[ref] & BOUND))
      node_scope = p->l->node_scope[ref] = p->alias[p->node_scope[ref]];
    bool binds = n->kind == PLN_FUNCTION;
    if (n->kind == PLN_LET)
      PLN_TRY(bind_let(p, ref));
    for (uint32_t i = 0; i < n->count && !binds; i++)
      want(p, g->operands[n->first + i], node_scope);
    if (pln_owns(n))
      PLN_TRY(place_owner(p, ref, node_scope));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- driver
 */

/* All uses of a let variable must lie in the scope of the let. */
static pln_status list_nodes(floating_layout *p) {
  const pln_graph *g = p->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (p->state[ref] & TAIL)
      continue;
    p->l->order[p->l->n++] = ref;
    pln_ref var = n->kind == PLN_LET ? g->operands[n->first] : ref;
    if (n->kind == PLN_LET && p->l->node_scope[var] != p->l->node_scope[ref])
      return refuse_unbound_var(p, var, "used outside of the let that binds it",
                                ref);
  }
  return PLN_OK;
}

static pln_status arrange(floating_layout *p) {
  PLN_TRY(prepare_placer(p));
  count_floating_uses(p);
  PLN_TRY(place_nodes(p));
  PLN_TRY(list_nodes(p));
  p->l->root = p->l->result[0];
  return pln_layout_place(p->l);
}

static pln_status lay_out(const pln_reachable_copy *r, pln_graph **out) {
  pln_layout l;
  floating_layout p = {.g = &r->part, .node_scope = r->node_scope, .l = &l};
  pln_status status = pln_layout_begin(&l, p.g, p.g->root);
  if (status == PLN_OK)
    status = arrange(&p);
  free_placer(&p);
  if (status == PLN_OK)
    status = pln_layout_emit(&l, out);
  pln_layout_end(&l);
  return status;
}

pln_status pln_layout_free(pln_builder *b, pln_ref root, pln_graph **out) {
  const pln_node *n = &b->graph->nodes[root];
  if (pln_is_prim(n) || pln_is_tir(n))
    return pln_layout_tir(b, root, out);
  pln_reachable_copy r;
  pln_graph *g = NULL;
  pln_status status = pln_reachable_copy_begin(&r, b, root);
  if (status == PLN_OK)
    status = lay_out(&r, &g);
  pln_reachable_copy_end(&r);
  return pln_layout_verified(status, g, out);
}
