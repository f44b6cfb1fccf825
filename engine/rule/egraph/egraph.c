/* egraph.c: union-find, hash-consing and congruence closure of an e-graph.
 *
 * Each class has a ring of its nodes and a list of its uses. Merging two
 * classes exchanges two links of the rings and appends the shorter list of uses
 * to the longer one; only the e-nodes of the shorter list have other operands
 * then, and are looked up again by the next rebuild. So a use is looked at a
 * logarithmic number of times. Called by saturate.c. */

#include "rule/egraph/egraph.h"

static const pln_enode unknown = {.parent = PLN_NONE,
                                  .first_use = PLN_NONE,
                                  .last_use = PLN_NONE,
                                  .constant = PLN_NONE};

void pln_egraph_begin(pln_egraph *eg, pln_engine *engine) {
  *eg = (pln_egraph){.engine = engine};
}

void pln_egraph_open(pln_egraph *eg, pln_builder *b, pln_scope scope) {
  eg->b = b;
  eg->scope = scope;
  eg->n_live = eg->n_classes = 0;
  eg->n_rehashed = 0;
}

void pln_egraph_close(pln_egraph *eg) {
  size_t slots = eg->mask ? eg->mask + (size_t)1 : 0;
  for (uint32_t i = 0; i < eg->n_added; i++)
    eg->nodes[eg->added[i]] = unknown;
  eg->n_added = eg->n_uses = eg->n_merged = eg->n_changed = 0;
  pln_mem_free(eg->engine, eg->slots, slots * sizeof *eg->slots);
  eg->slots = NULL;
  eg->mask = eg->n_slots = 0;
}

void pln_egraph_end(pln_egraph *eg) {
  pln_engine *e = eg->engine;
  pln_egraph_close(eg);
  pln_mem_free(e, eg->nodes, eg->cap * sizeof *eg->nodes);
  pln_mem_free(e, eg->added, eg->cap_added * sizeof *eg->added);
  pln_mem_free(e, eg->uses, eg->cap_uses * sizeof *eg->uses);
  pln_mem_free(e, eg->merged, eg->cap_merged * sizeof *eg->merged);
  pln_mem_free(e, eg->changed, eg->cap_changed * sizeof *eg->changed);
  pln_mem_free(e, eg->stack, eg->cap_stack * sizeof *eg->stack);
}

pln_ref pln_egraph_class(pln_egraph *eg, pln_ref node) {
  if (node >= eg->n || eg->nodes[node].parent == PLN_NONE)
    return PLN_NONE;
  while (eg->nodes[node].parent != node) {
    uint32_t *parent = &eg->nodes[node].parent;
    *parent = eg->nodes[*parent].parent;
    node = *parent;
  }
  return node;
}

/* ------------------------------------------------------------------- e-nodes
 */

/* Nodes that are no calls of operators, tuples or fields without effect are not
 * taken apart, and neither are those of another scope. */
static bool is_opaque(const pln_egraph *eg, pln_ref node) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  pln_scope scope = eg->b->node_scope[node];
  if ((scope != eg->scope && scope != PLN_NONE) || pln_is_effect_ordered(n))
    return true;
  if (n->kind == PLN_CALL)
    return !n->data || g->typed_from[node] == PLN_TYPED_REFUSED;
  return n->kind != PLN_TUPLE && n->kind != PLN_TUPLE_GET_ITEM;
}

static pln_status cover(pln_egraph *eg, pln_ref node) {
  if (node < eg->n)
    return PLN_OK;
  size_t need = (size_t)pln_egraph_graph(eg)->n_nodes;
  if (need <= node)
    need = (size_t)node + 1;
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->nodes, &eg->cap, need,
                       sizeof *eg->nodes));
  for (; eg->n < need; eg->n++)
    eg->nodes[eg->n] = unknown;
  return PLN_OK;
}

/* The node gets a class. */
static pln_status note_added(pln_egraph *eg, pln_ref node) {
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->added, &eg->cap_added,
                       (size_t)eg->n_added + 1, sizeof *eg->added));
  eg->added[eg->n_added++] = node;
  return PLN_OK;
}

static pln_status note_change(pln_egraph *eg, pln_ref class_) {
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->changed, &eg->cap_changed,
                       (size_t)eg->n_changed + 1, sizeof *eg->changed));
  eg->changed[eg->n_changed++] = class_;
  return PLN_OK;
}

static pln_status make_class(pln_egraph *eg, pln_ref node,
                             const pln_eorigin *origin, uint8_t flags) {
  pln_enode *n = &eg->nodes[node];
  PLN_TRY(note_added(eg, node));
  n->parent = n->next = node;
  n->origin = origin ? *origin : (pln_eorigin){.first = node, .last = node};
  n->flags = (uint8_t)(PLN_ENODE_LIVE | flags);
  if (node < eg->n_pinned)
    n->flags |= eg->pinned[node];
  if (pln_egraph_graph(eg)->nodes[node].kind == PLN_CONSTANT)
    n->constant = node;
  eg->n_live++;
  eg->n_classes++;
  return note_change(eg, node);
}

/* ------------------------------------------------------------- hash-consing */

static uint64_t hash_payload(const pln_graph *g, const pln_node *n) {
  return n->kind == PLN_CONSTANT ? pln_tensor_hash(g->tensors[n->data])
                                 : n->data;
}

static uint32_t hash_enode(pln_egraph *eg, pln_ref node) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  uint64_t h = pln_hash_mix(n->kind, n->results);
  h = pln_hash_mix(h, hash_payload(g, n));
  h = pln_hash_mix(h, eg->nodes[node].attrs);
  for (uint32_t i = 0; i < n->count; i++)
    h = pln_hash_mix(h, pln_egraph_class(eg, g->operands[n->first + i]));
  return (uint32_t)(h ^ (h >> 32));
}

static bool is_congruent(pln_egraph *eg, pln_ref a, pln_ref b) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *x = &g->nodes[a], *y = &g->nodes[b];
  if (x->kind != y->kind || x->results != y->results ||
      eg->nodes[a].attrs != eg->nodes[b].attrs || x->count != y->count ||
      x->type != y->type)
    return false;
  if (x->kind == PLN_CONSTANT
          ? !pln_tensor_equal(g->tensors[x->data], g->tensors[y->data])
          : x->data != y->data)
    return false;
  for (uint32_t i = 0; i < x->count; i++)
    if (pln_egraph_class(eg, g->operands[x->first + i]) !=
        pln_egraph_class(eg, g->operands[y->first + i]))
      return false;
  return true;
}

/* The live e-node that is congruent to `node`; PLN_NONE: there is none. Slots
 * whose hash is outdated are not found, and do no harm. */
static pln_ref find_congruent(pln_egraph *eg, pln_ref node, uint32_t hash) {
  if (!eg->mask)
    return PLN_NONE;
  for (uint32_t i = hash & eg->mask; eg->slots[i].node;
       i = (i + 1) & eg->mask) {
    pln_ref found = eg->slots[i].node - 1;
    if (eg->slots[i].hash == hash && pln_enode_is(eg, found, PLN_ENODE_LIVE) &&
        is_congruent(eg, found, node))
      return found;
  }
  return PLN_NONE;
}

static void put(pln_eslot *slots, uint32_t mask, pln_eslot slot) {
  uint32_t i = slot.hash & mask;
  while (slots[i].node)
    i = (i + 1) & mask;
  slots[i] = slot;
}

static bool is_hashed(const pln_egraph *eg, pln_ref node) {
  const pln_enode *n = &eg->nodes[node];
  return (n->flags & PLN_ENODE_LIVE) &&
         (!(n->flags & PLN_ENODE_OPAQUE) ||
          pln_egraph_graph(eg)->nodes[node].kind == PLN_CONSTANT);
}

/* A larger table, without the outdated slots. */
static pln_status grow_slots(pln_egraph *eg) {
  size_t old = eg->mask ? eg->mask + (size_t)1 : 0;
  uint32_t capacity = 256;
  while (capacity / 4 < eg->n_live)
    capacity *= 2;
  pln_eslot *slots = pln_mem_zeroed(eg->engine, capacity * sizeof *slots);
  if (!slots)
    return pln_nomem(eg->engine);
  pln_mem_free(eg->engine, eg->slots, old * sizeof *slots);
  eg->slots = slots;
  eg->mask = capacity - 1;
  eg->n_slots = 0;
  for (uint32_t i = 0; i < eg->n_added; i++)
    if (is_hashed(eg, eg->added[i])) {
      pln_ref node = eg->added[i];
      put(slots, eg->mask, (pln_eslot){hash_enode(eg, node), node + 1});
      eg->n_slots++;
    }
  return PLN_OK;
}

/* The node is live already; growing enters it. */
static pln_status enter(pln_egraph *eg, pln_ref node, uint32_t hash) {
  if ((uint64_t)eg->n_slots * 2 >= eg->mask)
    return grow_slots(eg);
  put(eg->slots, eg->mask, (pln_eslot){hash, node + 1});
  eg->n_slots++;
  return PLN_OK;
}

/* ------------------------------------------------------------------- adding */

static pln_status add_use(pln_egraph *eg, pln_ref operand, pln_ref user) {
  pln_enode *n = &eg->nodes[pln_egraph_class(eg, operand)];
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->uses, &eg->cap_uses,
                       (size_t)eg->n_uses + 1, sizeof *eg->uses));
  eg->uses[eg->n_uses] = (pln_euse){user, PLN_NONE};
  if (n->last_use == PLN_NONE)
    n->first_use = eg->n_uses;
  else
    eg->uses[n->last_use].next = eg->n_uses;
  n->last_use = eg->n_uses++;
  n->n_uses++;
  return PLN_OK;
}

static pln_status find_attrs(pln_egraph *eg, pln_ref node) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  eg->nodes[node].attrs = n->attrs;
  return eg->canonical && n->kind == PLN_CALL && n->attrs
             ? eg->canonical(eg->ud, g, node, &eg->nodes[node].attrs)
             : PLN_OK;
}

/* Of two ways to make an e-node the shorter one counts. */
static void take_generation(pln_egraph *eg, pln_ref node, uint32_t generation) {
  if (generation < eg->nodes[node].origin.generation)
    eg->nodes[node].origin.generation = generation;
}

/* A class of its own, unless a congruent e-node is there. */
static pln_status add_hashed(pln_egraph *eg, pln_ref node,
                             const pln_eorigin *origin, uint8_t flags) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  PLN_TRY(find_attrs(eg, node));
  uint32_t hash = hash_enode(eg, node);
  pln_ref found = find_congruent(eg, node, hash);
  if (found != PLN_NONE) {
    eg->nodes[node].parent = found;
    take_generation(eg, found, origin ? origin->generation : 0);
    return note_added(eg, node);
  }
  PLN_TRY(make_class(eg, node, origin, flags));
  for (uint32_t i = 0; i < n->count && !(flags & PLN_ENODE_OPAQUE); i++)
    PLN_TRY(add_use(eg, g->operands[n->first + i], node));
  return enter(eg, node, hash);
}

static pln_status add_opaque(pln_egraph *eg, pln_ref node) {
  PLN_TRY(cover(eg, node));
  if (eg->nodes[node].parent != PLN_NONE)
    return PLN_OK;
  return pln_egraph_graph(eg)->nodes[node].kind == PLN_CONSTANT
             ? add_hashed(eg, node, NULL, PLN_ENODE_OPAQUE)
             : make_class(eg, node, NULL, PLN_ENODE_OPAQUE);
}

pln_status pln_egraph_add(pln_egraph *eg, pln_ref node,
                          const pln_eorigin *origin) {
  PLN_TRY(cover(eg, node));
  if (eg->nodes[node].parent != PLN_NONE)
    return PLN_OK;
  if (is_opaque(eg, node))
    return add_opaque(eg, node);
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(add_opaque(eg, g->operands[n->first + i]));
  return add_hashed(eg, node, origin, 0);
}

static pln_status push(pln_egraph *eg, uint32_t *top, pln_ref node) {
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->stack, &eg->cap_stack,
                       (size_t)*top + 1, sizeof *eg->stack));
  eg->stack[(*top)++] = node;
  return PLN_OK;
}

/* Pushes the operands that are no e-nodes yet; *more: there are some. */
static pln_status push_operands(pln_egraph *eg, uint32_t *top, pln_ref node,
                                bool *more) {
  const pln_graph *g = pln_egraph_graph(eg);
  const pln_node *n = &g->nodes[node];
  *more = false;
  for (uint32_t i = n->count; i-- > 0 && !is_opaque(eg, node);) {
    pln_ref operand = g->operands[n->first + i];
    if (pln_egraph_class(eg, operand) != PLN_NONE)
      continue;
    *more = true;
    PLN_TRY(push(eg, top, operand));
  }
  return PLN_OK;
}

pln_status pln_egraph_add_tree(pln_egraph *eg, pln_ref root) {
  uint32_t top = 0;
  bool more;
  PLN_TRY(cover(eg, root));
  PLN_TRY(push(eg, &top, root));
  while (top) {
    pln_ref node = eg->stack[top - 1];
    PLN_TRY(push_operands(eg, &top, node, &more));
    if (more)
      continue;
    top--;
    PLN_TRY(pln_egraph_add(eg, node, NULL));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ merging */

/* Appends the uses of class `b` to those of `a`. */
static void join_uses(pln_egraph *eg, pln_enode *a, const pln_enode *b) {
  if (b->first_use == PLN_NONE)
    return;
  if (a->last_use == PLN_NONE)
    a->first_use = b->first_use;
  else
    eg->uses[a->last_use].next = b->first_use;
  a->last_use = b->last_use;
  a->n_uses += b->n_uses;
}

/* Class `a` gets the narrower of both spans; of two as wide, the earlier. */
static void join_spans(pln_eorigin *a, const pln_eorigin *b) {
  uint32_t x = a->last - a->first, y = b->last - b->first;
  if (y > x || (y == x && b->first >= a->first))
    return;
  a->first = b->first;
  a->last = b->last;
}

pln_status pln_egraph_merge(pln_egraph *eg, pln_ref a, pln_ref b,
                            bool *merged) {
  const pln_graph *g = pln_egraph_graph(eg);
  *merged = false;
  a = pln_egraph_class(eg, a);
  b = pln_egraph_class(eg, b);
  if (a == b || g->nodes[a].type != g->nodes[b].type)
    return PLN_OK;
  if (eg->nodes[a].n_uses < eg->nodes[b].n_uses) {
    pln_ref other = a;
    a = b;
    b = other;
  }
  pln_enode *x = &eg->nodes[a], *y = &eg->nodes[b];
  PLN_TRY(pln_mem_grow(eg->engine, (void **)&eg->merged, &eg->cap_merged,
                       (size_t)eg->n_merged + 1, sizeof *eg->merged));
  PLN_TRY(note_change(eg, a));
  if (y->first_use != PLN_NONE)
    eg->merged[eg->n_merged++] = (pln_emerge){y->first_use, y->last_use};
  join_uses(eg, x, y);
  join_spans(&x->origin, &y->origin);
  uint32_t next = x->next;
  x->next = y->next;
  y->next = next;
  y->parent = a;
  if (x->constant == PLN_NONE)
    x->constant = y->constant;
  eg->n_classes--;
  *merged = true;
  return PLN_OK;
}

/* Of two congruent e-nodes the older one stays. */
static pln_status unify(pln_egraph *eg, pln_ref a, pln_ref b) {
  bool merged;
  pln_ref gone = a < b ? b : a;
  eg->nodes[gone].flags &= (uint8_t)~PLN_ENODE_LIVE;
  take_generation(eg, gone == a ? b : a, eg->nodes[gone].origin.generation);
  eg->n_live--;
  return pln_egraph_merge(eg, a, b, &merged);
}

static pln_status rehash(pln_egraph *eg, pln_ref user) {
  if (!pln_enode_is(eg, user, PLN_ENODE_LIVE))
    return PLN_OK;
  uint32_t hash = hash_enode(eg, user);
  pln_ref found = find_congruent(eg, user, hash);
  eg->n_rehashed++;
  if (found == user)
    return PLN_OK;
  if (found != PLN_NONE)
    PLN_TRY(unify(eg, user, found));
  return pln_enode_is(eg, user, PLN_ENODE_LIVE) ? enter(eg, user, hash)
                                                : PLN_OK;
}

pln_status pln_egraph_rebuild(pln_egraph *eg) {
  while (eg->n_merged) {
    pln_emerge m = eg->merged[--eg->n_merged];
    for (uint32_t u = m.first;; u = eg->uses[u].next) {
      PLN_TRY(rehash(eg, eg->uses[u].user));
      if (u == m.last)
        break;
    }
  }
  return PLN_OK;
}
