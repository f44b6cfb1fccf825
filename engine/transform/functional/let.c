/* let.c: queries on lets, and let construction. Called by ToANormalForm,
 * ToBasicBlockNormalForm and ToGraphNormalForm. */

#include "transform/functional/let.h"

pln_status pln_let_new(pln_builder *b, pln_ref value, pln_ref *out) {
  pln_symbol name;
  pln_ref let;
  b->origin = 0;
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("x"), &name));
  PLN_TRY(pln_build_var(b, name, 0, 0, out));
  return pln_build_let(b, *out, value, &let);
}

bool pln_let_is_atom(const pln_node *node) {
  if (pln_kinds[node->kind].kind_class != PLN_CLASS_EXPR)
    return true;
  switch ((pln_kind)node->kind) {
  case PLN_VAR:
  case PLN_GLOBAL_VAR:
  case PLN_OP:
  case PLN_CONSTRUCTOR:
  case PLN_ABSENT:
  case PLN_LET: return true;
  default: return false;
  }
}

void pln_let_operator_functions(const pln_graph *g,
                                uint8_t *is_operator_function) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count && n->kind == PLN_CALL && n->data; i++) {
      pln_ref operand = pln_operand(g, ref, i);
      is_operator_function[operand] = g->nodes[operand].kind == PLN_FUNCTION;
    }
  }
}

static void uses(pln_ref *first, pln_ref node, pln_ref user) {
  if (user < first[node])
    first[node] = user;
}

void pln_let_first_users(const pln_graph *g, pln_ref *first) {
  memset(first, 0xff, g->n_nodes * sizeof *first);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      uses(first, pln_operand(g, ref, i), ref);
  for (pln_scope s = 1; s < g->n_scopes; s++)
    uses(first, g->scopes[s].result, g->scopes[s].owner);
}

void pln_let_primitive_scopes(const pln_graph *g, uint8_t *primitive) {
  primitive[0] = 0;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_node *owner = &g->nodes[g->scopes[s].owner];
    primitive[s] = primitive[g->scopes[s].parent];
    if (owner->kind != PLN_FUNCTION || !owner->attrs)
      continue;
    const pln_attr *mark = pln_attrs_find(g->engine, owner->attrs, "Primitive");
    primitive[s] |= mark && mark->v.i;
  }
}
