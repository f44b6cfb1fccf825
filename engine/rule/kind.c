/* kind.c: patterns of rules for nodes that are no calls of operators: If(?c,
 * ?t, ?e), Function(?p..., ?body), Call(?f, ?x), Var("name"), Constant.
 *
 * Called by lower.c, match.c and tree.c. The parts of an If are its condition
 * and the results of its branches; those of a Function its body and then its
 * parameters; those of a Call the callee and its arguments. A scope with lets
 * has no part that stands for it. */

#include "rule/set.h"

static const struct kind_row {
  const char *name;
  pln_kind kind;
  int32_t parts; /* -1: any number, at least one */
} kind_rows[] = {{"Var", PLN_VAR, 0},
                 {"GlobalVar", PLN_GLOBAL_VAR, 0},
                 {"Constant", PLN_CONSTANT, 0},
                 {"If", PLN_IF, 3},
                 {"Function", PLN_FUNCTION, -1},
                 {"Call", PLN_CALL, -1}};

bool pln_rule_find_kind(pln_slice name, pln_kind *kind, int32_t *parts) {
  for (uint32_t i = 0; i < PLN_COUNT(kind_rows); i++) {
    if (!pln_slice_is(name, kind_rows[i].name))
      continue;
    *kind = kind_rows[i].kind;
    *parts = kind_rows[i].parts;
    return true;
  }
  return false;
}

/* In a graph that is being built a scope is no interval of its own nodes, but
 * its nodes lie between its ends. */
static bool has_let(const pln_graph *g, const pln_scope_row *row) {
  for (pln_ref i = row->begin; i < row->end && i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET && !(g->nodes[i].flags & PLN_NODE_DROPPED))
      return true;
  return false;
}

static pln_ref scope_value(const pln_graph *g, pln_scope scope) {
  const pln_scope_row *row = &g->scopes[scope];
  return has_let(g, row) ? PLN_NONE : row->result;
}

pln_ref pln_rule_part(const pln_graph *graph, pln_ref node, uint32_t part) {
  const pln_node *n = &graph->nodes[node];
  if (n->kind == PLN_IF) {
    if (part == 0)
      return pln_operand(graph, node, 0);
    pln_scope scope = part == 1 ? n->data : graph->scopes[n->data].next;
    return part < 3 ? scope_value(graph, scope) : PLN_NONE;
  }
  if (n->kind != PLN_FUNCTION)
    return PLN_NONE;
  const pln_scope_row *row = &graph->scopes[n->data];
  if (part == 0)
    return scope_value(graph, n->data);
  return part <= row->n_params ? row->begin + part - 1 : PLN_NONE;
}

uint32_t pln_rule_n_parts(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  if (n->kind == PLN_IF)
    return 3;
  return n->kind == PLN_FUNCTION ? graph->scopes[n->data].n_params + 1
                                 : n->count;
}
