/* lets.c: the values that variables of lets are bound to, in runs that match
 * through them (the option `lets`). Called by drive.c and match.c.
 *
 * The sweep meets a let before what is in it, so that the value of each
 * variable that a pattern meets is known. A value with an effect is none: what
 * it computes may not be computed elsewhere. The let itself stays; when nothing
 * uses its variable, DeadCodeElimination removes it. */

#include "rule/set.h"

static pln_status cover_lets(pln_rule_driver *r, uint32_t n) {
  pln_let_map *m = &r->lets;
  if (n <= m->n)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(r->engine, (void **)&m->value, &m->cap_value, n,
                       sizeof *m->value));
  PLN_TRY(pln_mem_grow(r->engine, (void **)&m->var, &m->cap_var, n,
                       sizeof *m->var));
  memset(m->value + m->n, 0xff, (n - m->n) * sizeof *m->value);
  memset(m->var + m->n, 0xff, (n - m->n) * sizeof *m->var);
  m->n = n;
  return PLN_OK;
}

pln_status pln_rule_note_let(pln_rule_driver *r, pln_ref let) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  const pln_node *n = &g->nodes[let];
  if (n->kind != PLN_LET || n->count < 2)
    return PLN_OK;
  pln_ref var = g->operands[n->first], value = g->operands[n->first + 1];
  if (g->nodes[var].kind != PLN_VAR ||
      (g->nodes[value].flags & PLN_NODE_EFFECT))
    return PLN_OK;
  PLN_TRY(cover_lets(r, (var > value ? var : value) + 1));
  r->lets.value[var] = value;
  r->lets.var[value] = var;
  return PLN_OK;
}

pln_ref pln_rule_bound_value(const pln_rule_driver *r, pln_ref node) {
  const pln_let_map *m = &r->lets;
  while (node < m->n && m->value[node] != PLN_NONE)
    node = m->value[node];
  return node;
}

/* The let is no use of its value or of its variable. */
uint32_t pln_rule_bound_uses(const pln_rule_driver *r, pln_ref node,
                             uint32_t uses) {
  const pln_let_map *m = &r->lets;
  pln_ref var = node < m->n ? m->var[node] : PLN_NONE;
  if (var == PLN_NONE || var >= r->uses.n || !uses || !r->uses.now[var])
    return uses;
  return uses - 1 + r->uses.now[var] - 1;
}

void pln_rule_forget_lets(pln_rule_driver *r) {
  pln_let_map *m = &r->lets;
  pln_mem_free(r->engine, m->value, m->cap_value * sizeof *m->value);
  pln_mem_free(r->engine, m->var, m->cap_var * sizeof *m->var);
  *m = (pln_let_map){0};
}
