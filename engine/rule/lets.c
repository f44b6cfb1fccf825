/* lets.c: the values that variables of lets are bound to, in runs that match
 * through them (the option `lets`). Called by drive.c, tree.c, match.c, value.c
 * and explain.c.
 *
 * The sweep meets a let before what is in it, so that the value of each
 * variable that a pattern meets is known. A value with an effect is none: what
 * it computes may not be computed elsewhere. Nor is a function that calls
 * itself, which a rule could unroll without end. The let itself stays; when
 * nothing uses its variable, DeadCodeElimination removes it.
 *
 * A graph without lets has no map, and costs one look at each node's kind. */

#include "rule/set.h"

/* ------------------------------------------------------------ the old graph */

/* A variable that was used before its let: by its own value. */
#define RECURSIVE (PLN_NONE - 1)

static bool has_lets(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET)
      return true;
  return false;
}

static void find_use(const pln_graph *g, pln_ref operand, pln_ref *values) {
  if (g->nodes[operand].kind == PLN_VAR && values[operand] == PLN_NONE)
    values[operand] = RECURSIVE;
}

static void find_value(const pln_graph *g, const pln_node *let,
                       pln_ref *values) {
  pln_ref var = g->operands[let->first], value = g->operands[let->first + 1];
  find_use(g, value, values);
  if (g->nodes[var].kind == PLN_VAR && values[var] == PLN_NONE &&
      !(g->nodes[value].flags & PLN_NODE_EFFECT))
    values[var] = value;
}

static void fill_values(const pln_graph *g, pln_ref *values) {
  memset(values, 0xff, g->n_nodes * sizeof *values);
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    if (n->kind == PLN_LET && n->count >= 2)
      find_value(g, n, values);
    else
      for (uint32_t k = 0; k < n->count; k++)
        find_use(g, g->operands[n->first + k], values);
  }
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (values[i] == RECURSIVE)
      values[i] = PLN_NONE;
}

pln_status pln_rule_find_values(const pln_graph *graph, pln_bound_values *out) {
  if (!has_lets(graph))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(graph->engine, (void **)&out->value, &out->cap,
                       graph->n_nodes, sizeof *out->value));
  out->n = graph->n_nodes;
  fill_values(graph, out->value);
  return PLN_OK;
}

void pln_rule_forget_values(pln_engine *engine, pln_bound_values *v) {
  pln_mem_free(engine, v->value, v->cap * sizeof *v->value);
  *v = (pln_bound_values){0};
}

pln_status pln_rule_begin_lets(pln_rule_driver *r, const pln_graph *old) {
  return pln_rule_find_values(old, &r->lets.old);
}

/* ------------------------------------------------------------ the new graph */

static pln_status set_value(pln_rule_driver *r, pln_bound_values *v,
                            pln_ref node, pln_ref value) {
  if (node >= v->n) {
    PLN_TRY(pln_mem_grow(r->engine, (void **)&v->value, &v->cap,
                         (size_t)node + 1, sizeof *v->value));
    memset(v->value + v->n, 0xff, (node + 1 - v->n) * sizeof *v->value);
    v->n = node + 1;
  }
  v->value[node] = value;
  return PLN_OK;
}

/* `let` is the image of a let whose variable has a value. */
static pln_status note_let(pln_rule_driver *r, pln_ref let) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  if (let == PLN_NONE || g->nodes[let].kind != PLN_LET)
    return PLN_OK;
  pln_ref var = pln_operand(g, let, 0), value = pln_operand(g, let, 1);
  if (g->nodes[var].kind != PLN_VAR ||
      (g->nodes[value].flags & PLN_NODE_EFFECT))
    return PLN_OK;
  PLN_TRY(set_value(r, &r->lets.now, var, value));
  return set_value(r, &r->lets.var, value, var);
}

pln_status pln_rule_note_lets(pln_rule_driver *r) {
  const pln_graph *old = pln_rewrite_old(r->rw);
  pln_let_map *m = &r->lets;
  for (; m->noted < r->old; m->noted++)
    if (old->nodes[m->noted].kind == PLN_LET &&
        m->old.value[pln_operand(old, m->noted, 0)] != PLN_NONE)
      PLN_TRY(note_let(r, pln_rewrite_image(r->rw, m->noted)));
  return PLN_OK;
}

/* The let is no use of its value or of its variable. */
uint32_t pln_rule_bound_uses(const pln_rule_driver *r, pln_ref node,
                             uint32_t uses) {
  const pln_bound_values *v = &r->lets.var;
  uint32_t direct = 0;
  while (node < v->n && v->value[node] != PLN_NONE) {
    pln_ref var = v->value[node];
    if (var >= r->uses.n || !uses || !r->uses.now[var])
      break;
    direct += uses - 1;
    uses = r->uses.now[var] - 1;
    node = var;
  }
  return direct + uses;
}

void pln_rule_forget_lets(pln_rule_driver *r) {
  pln_rule_forget_values(r->engine, &r->lets.old);
  pln_rule_forget_values(r->engine, &r->lets.now);
  pln_rule_forget_values(r->engine, &r->lets.var);
  r->lets = (pln_let_map){0};
}

/* -------------------------------------------------------------------- calls */

pln_ref pln_rule_joined_tuple(const pln_bound_values *v, const pln_graph *g,
                              pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || n->count != 1 || !n->data)
    return PLN_NONE;
  pln_ref tuple = pln_rule_bound_value(v, g->operands[n->first]);
  return g->nodes[tuple].kind == PLN_TUPLE &&
                 (pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_JOIN)
             ? tuple
             : PLN_NONE;
}

const pln_ref *pln_rule_bound_operands(const pln_bound_values *v,
                                       const pln_graph *g, pln_ref node,
                                       uint32_t *count) {
  pln_ref tuple = pln_rule_joined_tuple(v, g, node);
  const pln_node *n = &g->nodes[tuple == PLN_NONE ? node : tuple];
  *count = n->count;
  return g->operands + n->first;
}

uint32_t pln_rule_bound_index(const pln_bound_values *v, const pln_graph *g,
                              const pln_ref *operands, uint32_t count,
                              uint32_t arg) {
  if (arg < PLN_ARG_CONSTANT || count < 2)
    return arg;
  const pln_ref values[] = {pln_rule_bound_value(v, operands[0]),
                            pln_rule_bound_value(v, operands[1])};
  return pln_rule_operand_index(g, values, 2, arg);
}

pln_ref pln_rule_bound_operand(const pln_bound_values *v, const pln_graph *g,
                               pln_ref node, uint32_t arg, bool resolve) {
  const pln_node *n = &g->nodes[node];
  uint32_t count;
  if (!v->n)
    return pln_rule_operand_at(g, node, arg);
  if (pln_owns(n) || n->kind == PLN_LET) {
    node = pln_rule_part(g, node, arg);
  } else {
    const pln_ref *operands = pln_rule_bound_operands(v, g, node, &count);
    arg = pln_rule_bound_index(v, g, operands, count, arg);
    node = arg < count ? operands[arg] : PLN_NONE;
  }
  return resolve && node != PLN_NONE ? pln_rule_bound_value(v, node) : node;
}
