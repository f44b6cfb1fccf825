/* tir/var_scopes.c: checks that the variables of a PrimFunc are used inside
 * their binders (TVM, VerifyWellFormed): each is bound, by a let at most once,
 * and no use lies outside its binder.
 *
 * Called by well_formed.c, which has checked duplicate parameters. A region is
 * a scope, or the part of a let, reduction or combiner in which its variables
 * are bound; regions form a tree. One sweep from users to operands finds the
 * innermost region around all uses of each node. A variable with several
 * binders, none inside another, may be used anywhere, as thread indices are.
 * Nothing recurses. */

#include "ir/graph/describe.h"
#include "ir/graph/layout/scope_tree.h"
#include "ir/tir/tir.h"

typedef struct var_scope_check {
  const pln_graph *g;
  uint32_t *node_scope;  /* a node: the scope that it lies in */
  uint32_t *around;      /* a node: the place around all of its uses */
  uint32_t *inside;      /* a PrimExpr that binds: the place of its variables */
  pln_scope_tree places; /* scopes by number, then those of PrimExprs */
  uint32_t n_places;     /* that are known */
  pln_idmap *bound;      /* an identity: its place + 1, or ANYWHERE */
  pln_ref at;            /* the binder that is looked at */
} var_scope_check;

#define ANYWHERE UINT32_MAX

/* ------------------------------------------------------------------- places */

static bool lies_in(const var_scope_check *s, uint32_t at, uint32_t outer) {
  return pln_scope_tree_lca(&s->places, at, outer) == outer;
}

/* A row follows the row of its parent. */
static void note_scopes(var_scope_check *s) {
  const pln_graph *g = s->g;
  for (pln_scope i = 1; i < g->n_scopes; i++)
    pln_scope_tree_add_child(
        &s->places, i,
        g->scopes[i].parent == PLN_NONE ? 0 : g->scopes[i].parent);
  s->n_places = g->n_scopes;
}

/* --------------------------------------------------------------------- uses */

static bool binds_inside(const pln_node *n) {
  return n->kind == PLN_PRIM_LET || n->kind == PLN_REDUCE ||
         n->kind == PLN_COMM_REDUCER;
}

/* The region in which an operand of a node is used. */
static uint32_t binding_place_of(const var_scope_check *s, pln_ref ref,
                                 uint32_t operand) {
  const pln_node *n = &s->g->nodes[ref];
  if (!pln_is_prim(n))
    return s->node_scope[ref];
  bool inner =
      n->kind == PLN_PRIM_LET ? operand == 2 : binds_inside(n) && operand > 0;
  return inner ? s->inside[ref] : s->around[ref];
}

static void note_uses_of(var_scope_check *s, pln_ref ref) {
  const pln_graph *g = s->g;
  const pln_node *n = &g->nodes[ref];
  for (uint32_t i = 0; i < n->count; i++) {
    if (pln_tir_defines(n, i))
      continue;
    pln_ref operand = g->operands[n->first + i];
    uint32_t at = binding_place_of(s, ref, i), *around = &s->around[operand];
    *around =
        *around == PLN_NONE ? at : pln_scope_tree_lca(&s->places, *around, at);
  }
}

/* From users to operands; an unused node is used where it lies. */
static void collect_var_uses(var_scope_check *s) {
  const pln_graph *g = s->g;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    if (!pln_is_prim(n) && !pln_is_stmt(n))
      continue;
    if (s->around[ref] == PLN_NONE)
      s->around[ref] = s->node_scope[ref];
    if (binds_inside(n)) {
      s->inside[ref] = s->n_places++;
      pln_scope_tree_add_child(&s->places, s->inside[ref], s->around[ref]);
    }
    note_uses_of(s, ref);
  }
}

/* ------------------------------------------------------------------ binders */

static pln_status refuse_var_scope(const var_scope_check *s, pln_ref var,
                                   const char *what, pln_ref node) {
  const pln_graph *g = s->g;
  pln_status status = pln_diag_error(
      g->engine, PLN_ERR_INVALID, NULL,
      "the variable %s is %s; this is not valid IR",
      pln_symbol_text(g->engine, g->nodes[var].attrs).data, what);
  pln_annotate_node(g, node);
  return status;
}

static pln_status bind_in(var_scope_check *s, pln_ref var, uint32_t at) {
  uint32_t id = s->g->nodes[var].data, known = pln_idmap_get(s->bound, id);
  if (!known || (known != ANYWHERE && lies_in(s, known - 1, at)))
    return pln_idmap_set(s->bound, id, at + 1);
  if (known == ANYWHERE || lies_in(s, at, known - 1))
    return PLN_OK;
  return pln_idmap_set(s->bound, id, ANYWHERE);
}

/* The region in which a binder's variables may be used. */
static uint32_t place_inside(const var_scope_check *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  if (binds_inside(n))
    return s->inside[ref];
  return pln_owns(n) ? n->data : s->node_scope[ref];
}

static pln_status bind_var(void *ud, const pln_graph *g, pln_ref var) {
  var_scope_check *s = ud;
  if (g->nodes[s->at].kind == PLN_PRIM_LET &&
      pln_idmap_get(s->bound, g->nodes[var].data))
    return refuse_var_scope(s, var, "bound more than once", s->at);
  return bind_in(s, var, place_inside(s, s->at));
}

static pln_status note_binders(var_scope_check *s) {
  const pln_graph *g = s->g;
  for (pln_scope i = 0; i < g->n_scopes; i++)
    for (uint32_t k = 0; k < g->scopes[i].n_params; k++)
      PLN_TRY(bind_in(s, g->scopes[i].begin + k, i));
  for (s->at = 0; s->at < g->n_nodes; s->at++)
    PLN_TRY(pln_tir_bound_vars(g, s->at, bind_var, s));
  return PLN_OK;
}

static pln_status check_vars(const var_scope_check *s) {
  const pln_graph *g = s->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind != PLN_VAR || s->around[ref] == PLN_NONE)
      continue;
    uint32_t known = pln_idmap_get(s->bound, n->data);
    if (!known)
      return refuse_var_scope(s, ref, "used but not bound", ref);
    if (known != ANYWHERE && !lies_in(s, s->around[ref], known - 1))
      return refuse_var_scope(s, ref, "used outside of its binder", ref);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- driver */

static pln_status check(var_scope_check *s) {
  const pln_graph *g = s->g;
  if (!s->node_scope || !s->around || !s->inside)
    return pln_nomem(g->engine);
  PLN_TRY(
      pln_scope_tree_begin(&s->places, g->engine, g->n_nodes + g->n_scopes));
  memset(s->around, 0xff, g->n_nodes * sizeof *s->around);
  note_scopes(s);
  pln_graph_node_scopes(g, s->node_scope);
  collect_var_uses(s);
  PLN_TRY(pln_idmap_new(g->engine, &s->bound));
  PLN_TRY(note_binders(s));
  return check_vars(s);
}

pln_status pln_tir_check_var_scopes(const pln_graph *g) {
  pln_engine *e = g->engine;
  size_t n = g->n_nodes;
  var_scope_check s = {.g = g,
                       .node_scope = pln_mem_new(e, n * sizeof *s.node_scope),
                       .around = pln_mem_new(e, n * sizeof *s.around),
                       .inside = pln_mem_new(e, n * sizeof *s.inside)};
  pln_status status = check(&s);
  pln_idmap_free(s.bound);
  pln_mem_free(e, s.node_scope, n * sizeof *s.node_scope);
  pln_mem_free(e, s.around, n * sizeof *s.around);
  pln_mem_free(e, s.inside, n * sizeof *s.inside);
  pln_scope_tree_end(&s.places);
  return status;
}
