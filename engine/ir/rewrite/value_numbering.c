/* value_numbering.c: value numbering during a rewrite: equal computations
 * become one node (hash-consing, Ershov 1958; Cocke 1970).
 *
 * Equal nodes have the same operands, so a node is looked for among those whose
 * latest operand is its own: a list that is in the cache, because the operand
 * was computed a short time ago. What does not fit into the list, and nodes
 * without operands, are in a hash table.
 *
 * An entry is valid while its scope is open, so every node that is found is
 * visible at the current position of the sweep. Entries are removed in reverse
 * order; a list is full as long as the table has more of its nodes. */

#include "ir/rewrite/rewrite.h"

/* The longest list; a bit of an entry's place. */
enum { MAX_LIST = 8 };
#define IN_SLOTS 0x80000000u

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

static bool is_equal(const pln_graph *g, pln_ref a, pln_ref b) {
  return same_type(&g->nodes[a], &g->nodes[b]) &&
         same_node(g, &g->nodes[a], &g->nodes[b]);
}

/* Owners of scopes, variables and nodes with effects are never merged; a
 * pattern belongs to its arm. */
static bool sharable(const pln_node *n) {
  if (n->kind == PLN_CALL)
    return pln_flags_effect(n->flags) == PLN_EFFECT_NONE;
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

/* ---------------------------------------------------------- the hash table */

/* A sweep that numbers many nodes is likely to number most. */
static pln_status grow_entries(pln_rewrite *rw) {
  enum { MANY = 1024 };
  pln_value_numbers *s = &rw->value_numbers;
  size_t need = (size_t)s->count + 1;
  if (need > MANY && need < rw->old->n_nodes)
    need = rw->old->n_nodes;
  return pln_mem_grow(rw->engine, (void **)&s->entries, &s->cap_entries, need,
                      sizeof *s->entries);
}

static pln_status add_entry(pln_rewrite *rw, pln_value_number entry) {
  pln_value_numbers *s = &rw->value_numbers;
  if (s->count == s->cap_entries)
    PLN_TRY(grow_entries(rw));
  s->entries[s->count++] = entry;
  s->valid = s->count;
  return PLN_OK;
}

/* Returns the place of the entry. */
static uint32_t insert_slot(pln_value_numbers *s, pln_value_number_slot slot) {
  uint32_t i = slot.hash & s->mask;
  while (s->slots[i].node)
    i = (i + 1) & s->mask;
  s->slots[i] = slot;
  return i | IN_SLOTS;
}

/* Entries are moved in insertion order, so that they can still be removed in
 * reverse. */
static pln_status grow_slots(pln_engine *e, pln_value_numbers *s) {
  uint32_t capacity = s->mask ? (s->mask + 1) * 2 : 256;
  pln_value_number_slot *old = s->slots;
  size_t n = s->mask ? s->mask + (size_t)1 : 0;
  pln_value_number_slot *slots = pln_mem_zeroed(e, capacity * sizeof *slots);
  if (!slots)
    return pln_nomem(e);
  s->slots = slots;
  s->mask = capacity - 1;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->entries[i].place & IN_SLOTS)
      s->entries[i].place =
          insert_slot(s, old[s->entries[i].place & ~IN_SLOTS]);
  pln_mem_free(e, old, n * sizeof *old);
  return PLN_OK;
}

static pln_status find_in_slots(pln_rewrite *rw, pln_ref node, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_value_numbers *s = &rw->value_numbers;
  uint32_t hash = hash_node(g, &g->nodes[node]);
  for (uint32_t i = hash & s->mask; s->mask && s->slots[i].node;
       i = (i + 1) & s->mask)
    if (s->slots[i].hash == hash && is_equal(g, s->slots[i].node - 1, node)) {
      *out = s->slots[i].node - 1;
      return PLN_OK;
    }
  if (!s->mask || s->n_slots >= s->mask / 2)
    PLN_TRY(grow_slots(rw->engine, s));
  s->n_slots++;
  uint32_t place = insert_slot(s, (pln_value_number_slot){hash, node + 1});
  return add_entry(rw, (pln_value_number){place, node, 0});
}

/* ----------------------------------------------------------------- the lists
 */

/* Makes lists for `n` operands, of `most` at first. */
static pln_status cover_lists(pln_engine *e, pln_value_numbers *s, uint32_t n,
                              uint32_t most) {
  uint32_t old = s->cap_lists;
  if (!old && n < most)
    n = most;
  PLN_TRY(
      pln_mem_grow(e, (void **)&s->lists, &s->cap_lists, n, sizeof *s->lists));
  memset(s->lists + old, 0, (s->cap_lists - old) * sizeof *s->lists);
  return PLN_OK;
}

/* The operand that is the latest node. */
static pln_ref latest_operand(const pln_graph *g, const pln_node *n) {
  pln_ref latest = g->operands[n->first];
  for (uint32_t i = 1; i < n->count; i++)
    if (g->operands[n->first + i] > latest)
      latest = g->operands[n->first + i];
  return latest;
}

/* *found: an equal node is in the list, or this one was added. */
static pln_status find_in_list(pln_rewrite *rw, pln_ref node, pln_ref *out,
                               bool *found) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_value_numbers *s = &rw->value_numbers;
  pln_ref operand = latest_operand(g, &g->nodes[node]);
  if (operand >= s->cap_lists)
    PLN_TRY(cover_lists(rw->engine, s, operand + 1, rw->old->n_nodes));
  uint32_t last = s->lists[operand], length = 0;
  *found = true;
  for (uint32_t i = last; i; i = s->entries[i - 1].next, length++)
    if (is_equal(g, s->entries[i - 1].node, node)) {
      *out = s->entries[i - 1].node;
      return PLN_OK;
    }
  *found = length < MAX_LIST;
  if (!*found)
    return PLN_OK;
  PLN_TRY(add_entry(rw, (pln_value_number){operand, node, last}));
  s->lists[operand] = s->count;
  return PLN_OK;
}

/* ---------------------------------------------------------------- the entries
 */

static void remove_invalid(pln_value_numbers *s) {
  while (s->count > s->valid) {
    pln_value_number e = s->entries[--s->count];
    if (e.place & IN_SLOTS) {
      s->slots[e.place & ~IN_SLOTS] = (pln_value_number_slot){0};
      s->n_slots--;
    } else {
      s->lists[e.place] = e.next;
    }
  }
}

void pln_value_numbers_free(pln_engine *e, pln_value_numbers *s) {
  if (s->mask)
    pln_mem_free(e, s->slots, (s->mask + (size_t)1) * sizeof *s->slots);
  pln_mem_free(e, s->lists, s->cap_lists * sizeof *s->lists);
  pln_mem_free(e, s->entries, s->cap_entries * sizeof *s->entries);
}

pln_status pln_rewrite_number_value(pln_rewrite *rw, pln_ref node,
                                    pln_ref *out) {
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[node];
  bool found = false;
  *out = node;
  if (!sharable(n))
    return PLN_OK;
  remove_invalid(&rw->value_numbers);
  if (n->count)
    PLN_TRY(find_in_list(rw, node, out, &found));
  return found ? PLN_OK : find_in_slots(rw, node, out);
}
