/* hoist.c: copies a node out of a scope that the sweep has left.
 *
 * Called for callbacks that replace an If, a call of a literal function, or
 * another owner by what was computed inside. A node is visible only in its own
 * scope and those inside it; after that scope has ended, what it computes is
 * copied to the scope being swept, up to nodes that are visible there. Nothing
 * recurses. */

#include "ir/rewrite/rewrite.h"

enum { VISITED = 1, FIRST_COPY }; /* else: the copy + FIRST_COPY */

/* The nodes to copy, operands first, and what became of each. */
typedef struct hoisting {
  pln_builder *b;
  pln_idmap *copies; /* node -> VISITED or a copy */
  pln_ref *stack, *order, *operands;
  uint32_t top, cap_stack, n, cap_order, cap_operands;
} hoisting;

static bool is_visible(const hoisting *h, pln_ref node) {
  pln_scope scope = h->b->node_scope[node];
  return scope == PLN_NONE || h->b->graph->scopes[scope].end == PLN_NONE;
}

bool pln_rewrite_has_left(const pln_rewrite *rw, pln_ref node) {
  if (rw->b) {
    hoisting h = {.b = rw->b};
    return !is_visible(&h, node);
  }
  return node < rw->swept &&
         rw->old->scopes[pln_graph_scope_of(rw->old, node)].end <= rw->at;
}

/* Scopes and what belongs to them are not copied. */
static bool can_be_copied(const pln_node *n) {
  return !pln_owns(n) && n->kind != PLN_LET && !(n->flags & PLN_NODE_PARAM);
}

static pln_status push_hoisted(hoisting *h, pln_ref node) {
  PLN_TRY(pln_mem_grow(h->b->engine, (void **)&h->stack, &h->cap_stack,
                       (size_t)h->top + 1, sizeof *h->stack));
  h->stack[h->top++] = node;
  return PLN_OK;
}

#define LEAVE 0x80000000u

static pln_status list_node(hoisting *h, pln_ref node) {
  PLN_TRY(pln_mem_grow(h->b->engine, (void **)&h->order, &h->cap_order,
                       (size_t)h->n + 1, sizeof *h->order));
  h->order[h->n++] = node;
  return PLN_OK;
}

static pln_status list_operands(hoisting *h, pln_ref node) {
  const pln_graph *g = h->b->graph;
  const pln_node *n = &g->nodes[node];
  PLN_TRY(pln_idmap_set(h->copies, node, VISITED));
  PLN_TRY(push_hoisted(h, node | LEAVE));
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_visible(h, g->operands[n->first + i]))
      PLN_TRY(push_hoisted(h, g->operands[n->first + i]));
  return PLN_OK;
}

/* Lists what must be copied. *possible: all of it can be. */
static pln_status list_hoisted(hoisting *h, pln_ref node, bool *possible) {
  *possible = true;
  PLN_TRY(push_hoisted(h, node));
  while (*possible && h->top > 0) {
    pln_ref entry = h->stack[--h->top];
    if (entry & LEAVE) {
      PLN_TRY(list_node(h, entry & ~LEAVE));
    } else if (!pln_idmap_get(h->copies, entry)) {
      *possible = can_be_copied(&h->b->graph->nodes[entry]);
      PLN_TRY(list_operands(h, entry));
    }
  }
  return PLN_OK;
}

static pln_status copy_hoisted(hoisting *h, pln_ref node) {
  pln_builder *b = h->b;
  pln_node n = b->graph->nodes[node];
  pln_ref copy;
  PLN_TRY(pln_mem_grow(b->engine, (void **)&h->operands, &h->cap_operands,
                       n.count, sizeof *h->operands));
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref operand = b->graph->operands[n.first + i];
    uint32_t image = pln_idmap_get(h->copies, operand);
    h->operands[i] = image ? image - FIRST_COPY : operand;
  }
  uint32_t origin = b->origin;
  b->origin = b->graph->origin[node];
  pln_status status = pln_builder_append(b, &n, n.count, h->operands, &copy);
  b->origin = origin;
  PLN_TRY(status);
  b->graph->values[copy] = b->graph->values[node];
  b->graph->typed_from[copy] = b->graph->typed_from[node];
  uint8_t *inside = &b->effects[b->node_scope[copy]];
  uint8_t effect = n.flags & PLN_NODE_EFFECT;
  *inside = effect > *inside ? effect : *inside;
  return pln_idmap_set(h->copies, node, copy + FIRST_COPY);
}

static pln_status run_hoisting(hoisting *h, pln_ref node, pln_ref *out) {
  bool possible;
  *out = node;
  PLN_TRY(list_hoisted(h, node, &possible));
  if (!possible)
    return PLN_OK;
  for (uint32_t i = 0; i < h->n; i++)
    PLN_TRY(copy_hoisted(h, h->order[i]));
  *out = pln_idmap_get(h->copies, node) - FIRST_COPY;
  return PLN_OK;
}

pln_status pln_rewrite_hoist(pln_rewrite *rw, pln_ref node, pln_ref *out) {
  PLN_TRY(pln_rewrite_materialise(rw));
  hoisting h = {.b = rw->b};
  PLN_TRY(pln_idmap_new(rw->engine, &h.copies));
  pln_status status = run_hoisting(&h, node, out);
  pln_idmap_free(h.copies);
  pln_mem_free(rw->engine, h.stack, h.cap_stack * sizeof *h.stack);
  pln_mem_free(rw->engine, h.order, h.cap_order * sizeof *h.order);
  pln_mem_free(rw->engine, h.operands, h.cap_operands * sizeof *h.operands);
  return status;
}

void pln_rewrite_raise(pln_rewrite *rw, pln_ref node) {
  hoisting h = {.b = rw->b};
  pln_scope *scope = &rw->b->node_scope[node];
  while (!is_visible(&h, node))
    *scope = rw->b->graph->scopes[*scope].parent;
}
