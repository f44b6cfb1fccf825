/* keep_type.c: preserves type information when one node replaces another.
 * Called by passes that forward or rebuild nodes. */

#include "ir/rewrite/rewrite.h"

/* *out is the meet of both types; *more is true if it is more precise than the
 * node's own type. */
static pln_status meet_node_type(pln_rewrite *rw, pln_ref node, pln_type *type,
                                 bool *more) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[node];
  bool conflict;
  *more = false;
  if (n->type == *type || !*type || n->kind == PLN_VAR)
    return PLN_OK;
  PLN_TRY(pln_type_meet(g->engine, n->type, *type, type, &conflict));
  *more = !conflict && *type != n->type;
  return PLN_OK;
}

/* The type of a tuple with one field's type replaced. */
static pln_status with_field(const pln_graph *g, pln_ref tuple, uint32_t field,
                             pln_type type, pln_type *out) {
  pln_type old = g->nodes[tuple].type;
  uint32_t n = pln_type_n_parts(g->engine, old);
  pln_type *parts = pln_mem_new(g->engine, n * sizeof *parts);
  if (!parts)
    return pln_nomem(g->engine);
  for (uint32_t i = 0; i < n; i++)
    parts[i] = i == field ? type : pln_type_part_at(g->engine, old, i);
  pln_status status =
      pln_type_make(g->engine, PLN_TYPE_TUPLE, 0, n, parts, out);
  pln_mem_free(g->engine, parts, n * sizeof *parts);
  return status;
}

static uint32_t count_uses_by(const pln_graph *g, pln_ref user, pln_ref node) {
  const pln_node *n = &g->nodes[user];
  uint32_t uses = 0;
  for (uint32_t i = 0; n->kind == PLN_CALL && i < n->count; i++)
    uses += g->operands[n->first + i] == node;
  return uses;
}

/* True if a call other than the one being replaced may use a node of a file's
 * graph: its type may be a declared one that contradicts what is learnt of the
 * node now. Looks at the newest nodes only. */
static bool may_be_relied_on(const pln_rewrite *rw, const pln_graph *g,
                             pln_ref node) {
  enum { NEWEST = 1024 };
  const pln_origins *origins = pln_rewrite_old(rw)->origins;
  uint32_t uses = 0;
  if (!origins || !origins->lenient)
    return false;
  for (pln_ref i = node + 1; i < g->n_nodes && g->n_nodes - node < NEWEST; i++)
    uses += count_uses_by(g, i, node);
  return uses > 1 || g->n_nodes - node >= NEWEST;
}

/* A type learnt for a field of a tuple is stored in the tuple's type too, as
 * the parser does. */
pln_status pln_keep_type(pln_rewrite *rw, pln_ref node, pln_type type) {
  bool more;
  PLN_TRY(meet_node_type(rw, node, &type, &more));
  while (more) {
    pln_builder *b = pln_rewrite_builder(rw);
    if (!b)
      return PLN_ERR_NOMEM;
    if (may_be_relied_on(rw, b->graph, node))
      return PLN_OK;
    PLN_TRY(pln_builder_declare(b, node, type));
    pln_rewrite_note_type(rw, node);
    const pln_graph *g = b->graph;
    const pln_node *n = &g->nodes[node];
    if (n->kind != PLN_TUPLE_GET_ITEM)
      return PLN_OK;
    node = g->operands[n->first];
    if (pln_type_get_kind(g->engine, g->nodes[node].type) != PLN_TYPE_TUPLE ||
        n->data >= pln_type_n_parts(g->engine, g->nodes[node].type))
      return PLN_OK;
    PLN_TRY(with_field(g, node, n->data, type, &type));
    PLN_TRY(meet_node_type(rw, node, &type, &more));
  }
  return PLN_OK;
}

/* The result of a scope keeps its declared type: more precise dims from a
 * replacement do not change a declaration. */
pln_status pln_keep_rank(pln_rewrite *rw, pln_ref node, pln_type type) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_type own = g->nodes[node].type;
  if (pln_type_get_kind(g->engine, own) == PLN_TYPE_TENSOR &&
      pln_type_rank(g->engine, own) >= 0 && pln_type_dtype(g->engine, own))
    return PLN_OK;
  return pln_keep_type(rw, node, type);
}
