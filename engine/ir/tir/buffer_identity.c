/* tir/buffer_identity.c: recognises a Buffer that is imported again. A Buffer
 * has no identity number as a Var has; two buffers with equal name, data
 * pointer and shape are the same.
 *
 * Called when a Buffer is built in, or imported into, a free builder, which
 * keeps a chain of Buffers per pointer in its table of Vars. */

#include "ir/graph/layout/compact.h"
#include "ir/tir/tir.h"

enum { FEW = 64 };

static uint64_t by_pointer(const pln_graph *g, pln_ref data) {
  return UINT64_C(1) << 40 | g->nodes[data].data;
}

static uint64_t by_buffer(pln_ref buffer) {
  return UINT64_C(1) << 41 | buffer;
}

static bool same_head(const pln_node *m, const pln_node *n) {
  return m->kind == n->kind && m->count == n->count && m->data == n->data &&
         m->type == n->type && m->results == n->results &&
         m->attrs == n->attrs && !pln_owns(m);
}

/* Long expressions are assumed to differ. */
bool pln_same_expr(const pln_graph *g, pln_ref x, pln_ref y) {
  pln_ref stack[2 * FEW];
  uint32_t top = 0, steps = 0;
  stack[top++] = x;
  stack[top++] = y;
  while (top > 0 && ++steps < 8 * FEW) {
    pln_ref p = stack[--top], q = stack[--top];
    const pln_node *m = &g->nodes[p], *n = &g->nodes[q];
    if (p == q)
      continue;
    if (!same_head(m, n) || top + 2 * (size_t)m->count > 2 * FEW)
      return false;
    for (uint32_t i = 0; i < m->count; i++) {
      stack[top++] = g->operands[n->first + i];
      stack[top++] = g->operands[m->first + i];
    }
  }
  return top == 0;
}

static bool same_buffer(const pln_graph *g, pln_ref ref, const pln_node *n,
                        const pln_ref *operands) {
  const pln_node *m = &g->nodes[ref];
  if (!same_head(m, n) || (m->flags & PLN_NODE_DROPPED))
    return false;
  for (uint32_t i = 0; i < m->count; i++)
    if (!pln_same_expr(g, g->operands[m->first + i], operands[i]))
      return false;
  return true;
}

pln_ref pln_buffer_find(const pln_builder *b, const pln_node *n,
                        const pln_ref *operands) {
  if (!b->vars)
    return PLN_NONE;
  uint32_t at = pln_idmap_get(b->vars, by_pointer(b->graph, operands[0]));
  while (at > 0 && !same_buffer(b->graph, at - 1, n, operands))
    at = pln_idmap_get(b->vars, by_buffer(at - 1));
  return at > 0 ? at - 1 : PLN_NONE;
}

/* `buffer` becomes the first one of the chain of its pointer. */
static pln_status remember(pln_idmap *known, uint64_t pointer, pln_ref buffer) {
  uint32_t last = pln_idmap_get(known, pointer);
  if (last == buffer + 1)
    return PLN_OK;
  if (last)
    PLN_TRY(pln_idmap_set(known, by_buffer(buffer), last));
  return pln_idmap_set(known, pointer, buffer + 1);
}

pln_status pln_buffer_remember(pln_builder *b, pln_ref buffer) {
  const pln_graph *g = b->graph;
  pln_ref data = g->operands[g->nodes[buffer].first];
  if (!b->vars)
    PLN_TRY(pln_idmap_new(b->engine, &b->vars));
  return remember(b->vars, by_pointer(g, data), buffer);
}

pln_status pln_buffer_remember_as(const pln_graph *g, pln_ref buffer,
                                  pln_idmap *known, pln_ref moved) {
  pln_ref data = g->operands[g->nodes[buffer].first];
  return remember(known, by_pointer(g, data), moved);
}
