/* hoist.c: copies a node out of a scope that the sweep has left.
 *
 * Called for scripts that replace an If, a call of a literal function, or
 * another owner by what was computed inside. A node is visible only in its own
 * scope and those inside it; after that scope has ended, what it computes is
 * copied to the scope being swept, up to nodes that are visible there. Nothing
 * recurses. */

#include "ir/rewrite/rewrite.h"

/* Nodes to copy, the next one on top, and what became of each. */
typedef struct hoisting {
  pln_builder *b;
  pln_idmap *copies; /* node -> copy + 1 */
  pln_ref *stack;
  uint32_t n, cap;
  pln_ref *operands;
  uint32_t cap_operands;
} hoisting;

bool pln_rewrite_has_left(const pln_rewrite *rw, pln_ref node) {
  if (!rw->b)
    return node < rw->swept &&
           rw->old->scopes[rw->node_scope[node]].end <= rw->at;
  pln_scope scope = rw->b->node_scope[node];
  return scope != PLN_NONE && rw->b->graph->scopes[scope].end != PLN_NONE;
}

static bool is_visible(const hoisting *h, pln_ref node) {
  return h->b->graph->scopes[h->b->node_scope[node]].end == PLN_NONE;
}

static pln_status push_hoisted(hoisting *h, pln_ref node) {
  PLN_TRY(pln_mem_grow(h->b->engine, (void **)&h->stack, &h->cap,
                       (size_t)h->n + 1, sizeof *h->stack));
  h->stack[h->n++] = node;
  return PLN_OK;
}

/* Pushes the operands that need a copy first. *ready: there are none. */
static pln_status push_missing(hoisting *h, pln_ref node, bool *ready) {
  const pln_graph *g = h->b->graph;
  const pln_node *n = &g->nodes[node];
  *ready = true;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = g->operands[n->first + i];
    if (is_visible(h, operand) || pln_idmap_get(h->copies, operand))
      continue;
    *ready = false;
    PLN_TRY(push_hoisted(h, operand));
  }
  return PLN_OK;
}

/* Parameters stay bound where they are, and scopes are not copied. */
static pln_status check_hoisted(const hoisting *h, pln_ref node) {
  const pln_node *n = &h->b->graph->nodes[node];
  if (!pln_owns(n) && n->kind != PLN_LET && !(n->flags & PLN_NODE_PARAM))
    return PLN_OK;
  return pln_diag_error(h->b->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "a %s cannot be used outside of its scope",
                        n->flags & PLN_NODE_PARAM
                            ? "parameter"
                            : pln_kind_name((pln_kind)n->kind));
}

static pln_status copy_hoisted(hoisting *h, pln_ref node) {
  pln_builder *b = h->b;
  pln_node n = b->graph->nodes[node];
  pln_ref copy;
  PLN_TRY(check_hoisted(h, node));
  PLN_TRY(pln_mem_grow(b->engine, (void **)&h->operands, &h->cap_operands,
                       n.count, sizeof *h->operands));
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref operand = b->graph->operands[n.first + i];
    uint32_t image = pln_idmap_get(h->copies, operand);
    h->operands[i] = image ? image - 1 : operand;
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
  return pln_idmap_set(h->copies, node, copy + 1);
}

static pln_status run_hoisting(hoisting *h, pln_ref node) {
  PLN_TRY(push_hoisted(h, node));
  while (h->n > 0) {
    bool ready = true;
    pln_ref next = h->stack[h->n - 1];
    if (!pln_idmap_get(h->copies, next))
      PLN_TRY(push_missing(h, next, &ready));
    if (!ready)
      continue;
    h->n--;
    if (!pln_idmap_get(h->copies, next))
      PLN_TRY(copy_hoisted(h, next));
  }
  return PLN_OK;
}

pln_status pln_rewrite_hoist(pln_rewrite *rw, pln_ref node, pln_ref *out) {
  PLN_TRY(pln_rewrite_materialise(rw));
  hoisting h = {.b = rw->b};
  PLN_TRY(pln_idmap_new(rw->engine, &h.copies));
  pln_status status = run_hoisting(&h, node);
  if (status == PLN_OK)
    *out = pln_idmap_get(h.copies, node) - 1;
  pln_idmap_free(h.copies);
  pln_mem_free(rw->engine, h.stack, h.cap * sizeof *h.stack);
  pln_mem_free(rw->engine, h.operands, h.cap_operands * sizeof *h.operands);
  return status;
}
