/* kind.c: patterns of rules for nodes that are no calls of operators: If(?c,
 * ?t, ?e), Function(?p..., ?body), Let(?v, ?x, ?body), Call(?f, ?x),
 * Var("name"), Constant.
 *
 * Called by lower.c, match.c, tree.c and by dataflow patterns. The parts of an
 * If are its condition and the values of its branches; those of a Function its
 * body and then its parameters; those of a Let its variable, its value and its
 * body; those of a Call the callee and its arguments. Relay's view of lets is
 * used: the value of a scope is its first Let, or else its result, and the body
 * of a Let is the next one, or the result. */

#include "rule/set.h"

static const struct kind_row {
  const char *name;
  pln_kind kind;
  int32_t parts; /* -1: any number, at least one */
} kind_rows[] = {
    {"Var", PLN_VAR, 0},           {"GlobalVar", PLN_GLOBAL_VAR, 0},
    {"Constant", PLN_CONSTANT, 0}, {"If", PLN_IF, 3},
    {"Let", PLN_LET_BLOCK, 3},     {"Function", PLN_FUNCTION, -1},
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

const char *pln_rule_kind_text(pln_kind kind) {
  return kind == PLN_LET_BLOCK ? "Let" : pln_kind_name(kind);
}

/* --------------------------------------------------------------------- lets
 */

static bool is_let(const pln_node *n) {
  return n->kind == PLN_LET && !(n->flags & PLN_NODE_DROPPED);
}

pln_ref pln_rule_next_let(const pln_graph *g, pln_scope scope, pln_ref from) {
  pln_ref end = g->scopes[scope].end, i = from;
  pln_scope inner = pln_graph_scope_from(g, scope + 1, from);
  end = end < g->n_nodes ? end : g->n_nodes;
  while (i < end) {
    if (inner < g->n_scopes && g->scopes[inner].begin <= i) {
      pln_ref past = g->scopes[inner].end;
      i = past > i ? past : i;
      inner = pln_graph_scope_from(g, inner + 1, i); /* not those inside */
    } else if (is_let(&g->nodes[i])) {
      return i;
    } else {
      i++;
    }
  }
  return PLN_NONE;
}

/* What a scope gives from a node on. */
static pln_ref scope_value(const pln_graph *g, pln_scope scope, pln_ref from) {
  pln_ref let = pln_rule_next_let(g, scope, from);
  return let != PLN_NONE ? let : g->scopes[scope].result;
}

/* -------------------------------------------------------------------- parts
 */

/* `part` of a Let, or of the first one of a block. */
static pln_ref part_of_let(const pln_graph *g, pln_ref node, uint32_t part) {
  const pln_node *n = &g->nodes[node];
  pln_ref let = node;
  if (n->kind == PLN_LET_BLOCK)
    let = pln_rule_next_let(g, n->data, g->scopes[n->data].begin);
  if (let == PLN_NONE || part > 2)
    return PLN_NONE;
  if (part < 2)
    return pln_operand(g, let, part);
  pln_scope scope =
      n->kind == PLN_LET_BLOCK ? n->data : pln_graph_scope_of(g, let);
  return scope_value(g, scope, let + 1);
}

static pln_ref part_of_if(const pln_graph *g, pln_ref node, uint32_t part) {
  pln_scope scope = g->nodes[node].data;
  if (part == 0 || part > 2)
    return part ? PLN_NONE : pln_operand(g, node, 0);
  if (part == 2)
    scope = g->scopes[scope].next;
  return scope_value(g, scope, g->scopes[scope].begin);
}

static pln_ref part_of_function(const pln_graph *g, pln_ref node,
                                uint32_t part) {
  pln_scope scope = g->nodes[node].data;
  const pln_scope_row *row = &g->scopes[scope];
  if (part == 0)
    return scope_value(g, scope, row->begin);
  return part <= row->n_params ? row->begin + part - 1 : PLN_NONE;
}

pln_ref pln_rule_part(const pln_graph *graph, pln_ref node, uint32_t part) {
  switch ((int)graph->nodes[node].kind) {
  case PLN_IF: return part_of_if(graph, node, part);
  case PLN_FUNCTION: return part_of_function(graph, node, part);
  case PLN_LET:
  case PLN_LET_BLOCK: return part_of_let(graph, node, part);
  default: return PLN_NONE;
  }
}

uint32_t pln_rule_n_parts(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  if (n->kind == PLN_IF || n->kind == PLN_LET || n->kind == PLN_LET_BLOCK)
    return 3;
  return n->kind == PLN_FUNCTION ? graph->scopes[n->data].n_params + 1
                                 : n->count;
}
