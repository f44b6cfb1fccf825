/* well_formed.c: checks Relay's well-formedness (TVM 0.14, WellFormed): each
 * variable is bound at most once, is not free before its binding, and is not
 * used after its scope ended.
 *
 * Called by scripts and for programs from outside. analysis/verify.c has
 * checked nodes and scopes before; here variables are compared by identity,
 * because several nodes may stand for one variable. */

#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/tir/tir.h"

/* State of an identity; 0: not seen. */
enum { FREE = 1, IN_SCOPE, ENDED };

typedef struct well_formed_check {
  pln_engine *engine;
  pln_idmap *state;
} well_formed_check;

/* "The variable x is ..., this is not valid IR: in Let(...)". */
static pln_status refuse_var_use(const well_formed_check *c, const pln_graph *g,
                                 pln_ref var, const char *what, pln_ref node) {
  pln_status status = pln_diag_error(
      c->engine, PLN_ERR_INVALID, NULL,
      "the variable %s is %s; this is not valid IR",
      pln_symbol_text(c->engine, g->nodes[var].attrs).data, what);
  pln_annotate_node(g, node);
  return status;
}

static pln_status bind_checked_var(well_formed_check *c, const pln_graph *g,
                                   pln_ref var, pln_ref node) {
  uint32_t id = g->nodes[var].data, known = pln_idmap_get(c->state, id);
  if (known == FREE)
    return refuse_var_use(c, g, var, "bound after it appeared free", node);
  if (known)
    return refuse_var_use(c, g, var, "bound more than once", node);
  return pln_idmap_set(c->state, id, IN_SCOPE);
}

static pln_status end(well_formed_check *c, const pln_graph *g, pln_ref var) {
  return pln_idmap_set(c->state, g->nodes[var].data, ENDED);
}

static pln_status check_var_use(well_formed_check *c, const pln_graph *g,
                                pln_ref var) {
  uint32_t id = g->nodes[var].data, known = pln_idmap_get(c->state, id);
  if (known == ENDED)
    return refuse_var_use(c, g, var, "used after its scope ended", var);
  return known ? PLN_OK : pln_idmap_set(c->state, id, FREE);
}

/* Each parameter of the owner's scopes. */
static pln_status each_param(well_formed_check *c, const pln_graph *g,
                             pln_ref owner, bool begins) {
  for (pln_scope s = g->nodes[owner].data; s != PLN_NONE;
       s = g->scopes[s].next) {
    const pln_scope_row *row = &g->scopes[s];
    for (uint32_t i = 0; i < row->n_params; i++)
      PLN_TRY(begins ? bind_checked_var(c, g, row->begin + i, owner)
                     : end(c, g, row->begin + i));
  }
  return PLN_OK;
}

static pln_status enter_checked_node(void *ud, const pln_graph *g, pln_ref node,
                                     bool *skip) {
  well_formed_check *c = ud;
  const pln_node *n = &g->nodes[node];
  *skip = false;
  if (n->kind == PLN_VAR)
    return check_var_use(c, g, node);
  if (n->kind == PLN_LET)
    return bind_checked_var(c, g, g->operands[n->first], node);
  return pln_owns(n) ? each_param(c, g, node, true) : PLN_OK;
}

static pln_status leave_checked_node(void *ud, const pln_graph *g,
                                     pln_ref node) {
  well_formed_check *c = ud;
  const pln_node *n = &g->nodes[node];
  if (n->kind == PLN_LET)
    return end(c, g, g->operands[n->first]);
  return pln_owns(n) ? each_param(c, g, node, false) : PLN_OK;
}

pln_status pln_graph_well_formed(const pln_graph *graph) {
  well_formed_check c = {.engine = graph->engine};
  pln_visitor visitor = {
      .ud = &c, .enter = enter_checked_node, .leave = leave_checked_node};
  PLN_TRY(pln_graph_verify(graph));
  PLN_TRY(pln_tir_well_formed(graph));
  PLN_TRY(pln_idmap_new(graph->engine, &c.state));
  pln_status status = pln_walk(graph, graph->root, &visitor);
  pln_idmap_free(c.state);
  if (status != PLN_OK || pln_node_kind(graph, graph->root) != PLN_PRIM_FUNC)
    return status;
  return pln_tir_check_var_scopes(graph);
}

pln_status pln_module_well_formed(const pln_module *module) {
  PLN_TRY(pln_module_verify(module));
  for (uint32_t i = 0; i < module->count; i++)
    PLN_TRY(pln_graph_well_formed(pln_module_function_at(module, i)));
  return PLN_OK;
}
