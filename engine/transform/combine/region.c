/* region.c: grows a region of parallel computations from its seed. Called by
 * combine_parallel_ops.c.
 *
 * The users of a tuple's nodes are tried as tuples of their own, in the order
 * in which tuples were added, so that time is proportional to the region. */

#include "transform/combine/region.h"

/* ----------------------------------------------------------------- operands */

/* Returns true for two constants of integers with the same elements. */
static bool are_equal_lists(const pln_graph *g, pln_ref a, pln_ref b) {
  if (g->nodes[a].kind != PLN_CONSTANT || g->nodes[b].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *x = g->tensors[g->nodes[a].data];
  const pln_tensor *y = g->tensors[g->nodes[b].data];
  return x->bytes <= 1024 && y->bytes <= 1024 && !x->external && !y->external &&
         pln_tensor_equal(x, y);
}

static bool is_weight(const pln_graph *g, pln_ref a, pln_ref like) {
  const pln_engine *e = g->engine;
  const pln_node *n = &g->nodes[a], *m = &g->nodes[like];
  return n->kind == PLN_CONSTANT &&
         pln_type_rank(e, n->type) == pln_type_rank(e, m->type) &&
         pln_type_dtype(e, n->type) == pln_type_dtype(e, m->type);
}

pln_operand_class pln_region_operand(const pln_combine *c, const pln_region *r,
                                     const pln_combine_tuple *t, uint32_t i) {
  const pln_graph *g = c->graph;
  pln_ref first = pln_operand(g, t->nodes[0], i);
  uint32_t tuple = pln_region_tuple(c, r, first);
  bool rows = tuple != 0 && r->tuples[tuple - 1].n_differ == 0;
  bool shared = true, weights = true;
  for (uint32_t j = 0; j < r->k; j++) {
    pln_ref arg = pln_operand(g, t->nodes[j], i);
    bool omitted =
        g->nodes[first].kind == PLN_ABSENT && g->nodes[arg].kind == PLN_ABSENT;
    rows = rows && r->tuples[tuple - 1].nodes[j] == arg;
    shared =
        shared && (arg == first || omitted || are_equal_lists(g, arg, first));
    weights = weights && is_weight(g, arg, first);
  }
  if (rows)
    return PLN_OPERAND_TUPLE;
  if (shared && !tuple)
    return PLN_OPERAND_SHARED;
  return weights ? PLN_OPERAND_WEIGHTS : PLN_OPERAND_MISMATCH;
}

const pln_combine_tuple *pln_region_operand_tuple(const pln_combine *c,
                                                  const pln_region *r,
                                                  const pln_combine_tuple *t,
                                                  uint32_t i) {
  return &r->tuples[pln_region_tuple(c, r,
                                     pln_operand(c->graph, t->nodes[0], i)) -
                    1];
}

/* ------------------------------------------------------------------ growing */

static bool can_join(const pln_combine *c, const pln_region *r, pln_ref node) {
  const pln_node *n = &c->graph->nodes[node];
  bool computes = n->kind == PLN_TUPLE_GET_ITEM ||
                  (n->kind == PLN_CALL && n->data && n->count > 0 &&
                   pln_op_is_onnx_form(c->graph, node) &&
                   pln_call_is_valid(c->graph, node));
  return computes && !(n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT)) &&
         !c->tuple_of[node] &&
         c->u.node_scope[node] == c->u.node_scope[r->tuples[0].nodes[0]];
}

static bool is_like(const pln_graph *g, pln_ref node, pln_ref like) {
  const pln_node *n = &g->nodes[node], *m = &g->nodes[like];
  return n->kind == m->kind && n->data == m->data && n->count == m->count &&
         n->results == m->results &&
         (n->attrs == m->attrs || n->data == PLN_OP_TRANSPOSE);
}

/* Returns true if `node` uses node `j` of tuple `at` where `like` uses its
 * first one, and the nodes of other tuples likewise. */
static bool corresponds(const pln_combine *c, const pln_region *r, uint32_t j,
                        pln_ref node, pln_ref like) {
  const pln_graph *g = c->graph;
  for (uint32_t i = 0; i < g->nodes[like].count; i++) {
    uint32_t t = pln_region_tuple(c, r, pln_operand(g, like, i));
    if (t && r->tuples[t - 1].nodes[j] != pln_operand(g, node, i))
      return false;
  }
  return true;
}

/* Finds the node of member `j` that corresponds to `like`, a user of the first
 * node of tuple `at`. */
static pln_ref find_member(const pln_combine *c, const pln_region *r,
                           uint32_t at, uint32_t j, pln_ref like) {
  pln_ref node = r->tuples[at].nodes[j];
  uint32_t begin = c->u.first[node], end = c->u.first[node + 1];
  if (end - begin > PLN_MAX_USERS)
    return PLN_NONE;
  for (uint32_t i = begin; i < end; i++)
    if (can_join(c, r, c->u.users[i]) &&
        is_like(c->graph, c->u.users[i], like) &&
        corresponds(c, r, j, c->u.users[i], like))
      return c->u.users[i];
  return PLN_NONE;
}

static bool is_in_tuple(const pln_combine_tuple *t, uint32_t n, pln_ref node) {
  for (uint32_t j = 0; j < n; j++)
    if (t->nodes[j] == node)
      return true;
  return false;
}

static void find_lead(pln_combine_tuple *t, uint32_t k) {
  t->lead = 0;
  for (uint32_t j = 1; j < k; j++)
    if (t->nodes[j] < t->nodes[t->lead])
      t->lead = j;
}

/* Adds the tuple of `like`, if the other members have such a node. */
static void try_tuple(pln_combine *c, pln_region *r, uint32_t at,
                      pln_ref like) {
  pln_combine_tuple *t = &r->tuples[r->n];
  *t = (pln_combine_tuple){.nodes = {like}};
  if (r->n == PLN_MAX_TUPLES || !can_join(c, r, like))
    return;
  for (uint32_t j = 1; j < r->k; j++) {
    t->nodes[j] = find_member(c, r, at, j, like);
    if (t->nodes[j] == PLN_NONE || is_in_tuple(t, j, t->nodes[j]))
      return;
  }
  find_lead(t, r->k);
  if (!pln_region_find_axis(c, r, t))
    return;
  r->n++;
  for (uint32_t j = 0; j < r->k; j++)
    c->tuple_of[t->nodes[j]] = r->base + r->n;
}

void pln_region_grow(pln_combine *c, pln_region *r) {
  for (uint32_t at = 0; at < r->n; at++) {
    pln_ref node = r->tuples[at].nodes[0];
    uint32_t begin = c->u.first[node], end = c->u.first[node + 1];
    if (end - begin > PLN_MAX_USERS || r->tuples[at].n_differ)
      continue;
    for (uint32_t i = begin; i < end && r->n < PLN_MAX_TUPLES; i++)
      try_tuple(c, r, at, c->u.users[i]);
  }
}

/* --------------------------------------------------------------------- gain
 */

static bool has_other_users(const pln_combine *c, const pln_region *r,
                            pln_ref node) {
  for (uint32_t i = c->u.first[node]; i < c->u.first[node + 1]; i++)
    if (!pln_region_tuple(c, r, c->u.users[i]))
      return true;
  return false;
}

/* A use of a field of a tuple of calls is a use of the calls. */
static bool is_used_outside(const pln_combine *c, const pln_region *r,
                            const pln_combine_tuple *t) {
  for (uint32_t j = 0; j < r->k; j++)
    if (has_other_users(c, r, t->nodes[j]) || c->u.is_result[t->nodes[j]])
      return true;
  return t->n_differ > 0;
}

/* 16-bit floats are rounded where elements are moved, and backends compute what
 * is between in float32. A Split would round where nothing was moved before. */
static bool rounds_more(const pln_combine *c, const pln_combine_tuple *t) {
  const pln_node *n = &c->graph->nodes[t->nodes[0]];
  return t->used_outside && n->kind == PLN_CALL &&
         pln_dtype_is_half(pln_type_dtype(c->engine, n->type)) &&
         !(pln_op_row(c->engine, n->data)->traits & PLN_TRAIT_INJECTIVE);
}

int64_t pln_region_gain(const pln_combine *c, pln_region *r) {
  int64_t gain = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    pln_combine_tuple *t = &r->tuples[i];
    const pln_node *n = &c->graph->nodes[t->nodes[0]];
    bool is_call = n->kind == PLN_CALL;
    t->used_outside = is_used_outside(c, r, t);
    if (t->used_outside && (n->results || rounds_more(c, t)))
      return 0;
    gain += is_call ? (int64_t)r->k - 1 : 0;
    if (i > 0 || r->split == PLN_NONE)
      gain -= t->used_outside + (int64_t)t->n_differ;
  }
  if (r->split == PLN_NONE)
    return gain;
  if (r->is_whole)
    return gain + !r->tuples[0].used_outside;
  return gain - r->tuples[0].used_outside;
}
