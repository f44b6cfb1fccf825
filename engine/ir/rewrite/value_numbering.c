/* value_numbering.c: value numbering during a rewrite: equal computations
 * become one node (hash-consing, Ershov 1958; Cocke 1970).
 *
 * An entry is valid while its scope is open, so every node that the table
 * returns is visible at the current position of the sweep. */

#include "ir/rewrite/rewrite.h"

static uint32_t hash_node(const pln_graph *g, const pln_node *n) {
  uint64_t h = pln_hash_mix(n->kind, n->results);
  uint64_t data = n->data;
  if (n->kind == PLN_CONSTANT)
    data = pln_tensor_hash(g->tensors[n->data]);
  h = pln_hash_mix(h, data);
  h = pln_hash_mix(h, n->attrs);
  for (uint32_t i = 0; i < n->count; i++)
    h = pln_hash_mix(h, g->operands[n->first + i]);
  return (uint32_t)(h ^ (h >> 32));
}

static bool same_payload(const pln_graph *g, const pln_node *a,
                         const pln_node *b) {
  if (a->kind == PLN_CONSTANT)
    return pln_tensor_equal(g->tensors[a->data], g->tensors[b->data]);
  return a->data == b->data;
}

/* The result type of an operator follows from its operands and attributes. A
 * generic function or constructor may have another type at each call. */
static bool same_type(const pln_node *a, const pln_node *b) {
  return a->type == b->type || (a->kind == PLN_CALL && a->data);
}

static bool same_node(const pln_graph *g, const pln_node *a,
                      const pln_node *b) {
  return a->kind == b->kind && a->results == b->results &&
         a->attrs == b->attrs && a->count == b->count &&
         same_payload(g, a, b) &&
         (a->count == 0 ||
          !memcmp(g->operands + a->first, g->operands + b->first,
                  a->count * sizeof *g->operands));
}

/* Owners of scopes, variables and nodes with effects are never merged; a
 * pattern belongs to its arm. */
static bool sharable(const pln_node *n) {
  return pln_kinds[n->kind].payload != PLN_PAYLOAD_SCOPE &&
         n->kind != PLN_VAR && n->kind != PLN_LET &&
         pln_kinds[n->kind].kind_class != PLN_CLASS_PATTERN &&
         pln_flags_effect(n->flags) == PLN_EFFECT_NONE;
}

/* No built node would be kept for its effect. */
static bool built_only(const pln_rewrite *rw, const pln_graph *g) {
  for (pln_ref i = rw->built; i < g->n_nodes; i++)
    if (pln_is_effect_ordered(&g->nodes[i]) || pln_owns(&g->nodes[i]))
      return false;
  return true;
}

bool pln_rewrite_is_same_node(pln_rewrite *rw, pln_ref node, pln_ref answer) {
  if (!rw->b || answer == node || answer < rw->built)
    return false;
  pln_graph *g = rw->b->graph;
  if (g->nodes[node].type != g->nodes[answer].type ||
      !same_node(g, &g->nodes[node], &g->nodes[answer]) || !built_only(rw, g))
    return false;
  for (pln_ref i = rw->built; i < g->n_nodes; i++)
    g->nodes[i].flags |= PLN_NODE_DROPPED;
  rw->built = g->n_nodes;
  return true;
}

static void insert_value_number(pln_value_numbers *s, uint32_t hash,
                                pln_ref node, uint32_t log) {
  uint32_t i = hash & s->mask;
  while (s->slots[i].node)
    i = (i + 1) & s->mask;
  s->slots[i] = (pln_value_number_slot){.hash = hash, .node = node + 1};
  s->log[log] = i;
}

/* A table that half of the nodes fill. */
static uint32_t first_capacity(const pln_graph *old) {
  uint32_t capacity = 1024;
  while (capacity < old->n_nodes && capacity < 1u << 30)
    capacity *= 2;
  return capacity;
}

/* Entries are moved in insertion order, so that they can still be removed in
 * reverse. */
static pln_status grow(pln_engine *e, pln_value_numbers *s,
                       const pln_graph *old_graph) {
  uint32_t capacity = s->mask ? (s->mask + 1) * 2 : first_capacity(old_graph);
  pln_value_number_slot *old = s->slots;
  size_t old_size = s->mask ? (s->mask + (size_t)1) * sizeof *old : 0;
  pln_value_number_slot *slots = pln_mem_zeroed(e, capacity * sizeof *slots);
  if (!slots)
    return pln_nomem(e);
  s->slots = slots;
  s->mask = capacity - 1;
  for (uint32_t i = 0; i < s->count; i++) {
    pln_value_number_slot slot = old[s->log[i]];
    insert_value_number(s, slot.hash, slot.node - 1, i);
  }
  pln_mem_free(e, old, old_size);
  return PLN_OK;
}

void pln_value_numbers_truncate(pln_value_numbers *s, uint32_t count) {
  if (count == 0 && s->count > s->mask / 16) {
    memset(s->slots, 0, (s->mask + (size_t)1) * sizeof *s->slots);
    s->count = 0;
  }
  while (s->count > count)
    s->slots[s->log[--s->count]] = (pln_value_number_slot){0};
}

void pln_value_numbers_free(pln_engine *e, pln_value_numbers *s) {
  if (s->mask)
    pln_mem_free(e, s->slots, (s->mask + (size_t)1) * sizeof *s->slots);
  pln_mem_free(e, s->log, s->cap_log * sizeof *s->log);
}

pln_status pln_rewrite_number_value(pln_rewrite *rw, pln_ref node,
                                    pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[node];
  pln_value_numbers *s = &rw->value_numbers;
  *out = node;
  if (!sharable(n))
    return PLN_OK;
  uint32_t hash = hash_node(g, n);
  for (uint32_t i = hash & s->mask; s->mask && s->slots[i].node;
       i = (i + 1) & s->mask)
    if (s->slots[i].hash == hash &&
        same_type(&g->nodes[s->slots[i].node - 1], n) &&
        same_node(g, &g->nodes[s->slots[i].node - 1], n)) {
      *out = s->slots[i].node - 1;
      return PLN_OK;
    }
  if (!s->mask || s->count >= s->mask / 2)
    PLN_TRY(grow(rw->engine, s, rw->old));
  PLN_TRY(pln_mem_grow(rw->engine, (void **)&s->log, &s->cap_log,
                       (size_t)s->count + 1, sizeof *s->log));
  insert_value_number(s, hash, node, s->count);
  s->count++;
  return PLN_OK;
}
