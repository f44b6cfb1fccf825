/* hash.c: a structural hash that agrees with equal.c: equal expressions have
 * equal hashes, and the number of distinct shared nodes tells sharing from
 * repetition. Stable from run to run: it is made of content, never of ids.
 *
 * Bottom-up over the array: operands and scopes stand before their users. */

#include "ir/graph.h"

typedef struct hasher {
  const pln_graph *g;
  bool map_free;
  uint64_t *hash;   /* a node */
  uint64_t *inside; /* a scope: its anchors so far */
  uint32_t *vars;   /* a scope: Vars bound in it so far */
} hasher;

static uint64_t hash_symbol(const pln_engine *e, pln_symbol symbol) {
  pln_slice text = pln_symbol_text(e, symbol);
  return pln_hash_bytes(text.data, text.size, 1);
}

static uint64_t hash_type(const pln_engine *e, pln_type type) {
  int32_t rank = pln_type_rank(e, type);
  uint64_t h = pln_hash_mix(pln_type_kind_of(e, type), pln_type_dtype(e, type));
  h = pln_hash_mix(h, (uint64_t)rank);
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (PLN_DIM_IS_CONST(dims[i]))
      h = pln_hash_mix(h, (uint64_t)dims[i]);
  return h;
}

static uint64_t hash_attrs(const pln_engine *e, pln_attrs attrs) {
  uint32_t n = pln_attrs_count(e, attrs);
  uint64_t h = n;
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_get(e, attrs, i);
    h = pln_hash_mix(h, hash_symbol(e, a->name) + a->kind);
    if (a->kind == PLN_ATTR_INT || a->kind == PLN_ATTR_FLOAT)
      h = pln_hash_mix(h, (uint64_t)a->v.i);
    if (a->kind == PLN_ATTR_STRING)
      h = pln_hash_mix(h, pln_hash_bytes(a->v.s.data, a->v.s.size, 1));
    for (uint32_t k = 0; a->kind == PLN_ATTR_INTS && k < a->count; k++)
      h = pln_hash_mix(h, (uint64_t)a->v.ints[k]);
  }
  return h;
}

/* A bound Var is told by the number of its binding; a free one by identity. */
static uint64_t hash_var(hasher *s, const pln_node *n, pln_scope home) {
  uint64_t type = hash_type(s->g->engine, n->type);
  if (n->flags & PLN_NODE_PARAM)
    return pln_hash_mix(type, ++s->vars[home]);
  return s->map_free ? type : pln_hash_mix(type, 1000003u + n->data);
}

static uint64_t hash_payload(hasher *s, const pln_node *n, pln_scope home) {
  const pln_graph *g = s->g;
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_SCOPE: return 0;
  case PLN_PAYLOAD_TENSOR: {
    const pln_tensor *t = g->tensors[n->data];
    uint64_t h = pln_hash_mix(t->dtype, t->rank);
    return t->bytes <= PLN_TENSOR_BY_CONTENT && !t->external
               ? pln_hash_mix(h, pln_tensor_hash(t))
               : pln_hash_mix(h, t->bytes);
  }
  case PLN_PAYLOAD_VAR: return hash_var(s, n, home);
  case PLN_PAYLOAD_OP: {
    pln_slice name = n->data ? pln_op_name(g->engine, n->data) : pln_text("");
    return pln_hash_bytes(name.data, name.size, 1);
  }
  case PLN_PAYLOAD_SYMBOL: return hash_symbol(g->engine, n->data);
  case PLN_PAYLOAD_INDEX: return n->data;
  }
  return 0;
}

static uint64_t hash_node(hasher *s, pln_ref ref, pln_scope home) {
  const pln_graph *g = s->g;
  const pln_node *n = &g->nodes[ref];
  uint64_t h = pln_hash_mix(n->kind, n->results);
  h = pln_hash_mix(h, hash_payload(s, n, home));
  if (pln_kinds[n->kind].has_attrs)
    h = pln_hash_mix(h, hash_attrs(g->engine, n->attrs));
  for (uint32_t i = 0; i < n->count; i++)
    h = pln_hash_mix(h, s->hash[g->operands[n->first + i]]);
  if (!pln_owns(n))
    return h;
  for (pln_scope c = n->data; c != PLN_NONE; c = g->scopes[c].next) {
    h = pln_hash_mix(h, s->hash[g->scopes[c].result]);
    h = pln_hash_mix(h, s->inside[c]);
  }
  return h;
}

/* A Let binds its variable for what follows: its hash becomes its number. */
static void bind_let(hasher *s, const pln_node *n, pln_scope home) {
  s->hash[s->g->operands[n->first]] = pln_hash_mix(0x1e7, ++s->vars[home]);
}

static void sweep(hasher *s) {
  const pln_graph *g = s->g;
  pln_scope next = 0, here = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    while (next < g->n_scopes && g->scopes[next].begin <= ref)
      here = next++;
    while (g->scopes[here].end <= ref)
      here = g->scopes[here].parent;
    const pln_node *n = &g->nodes[ref];
    s->hash[ref] = hash_node(s, ref, here);
    if (pln_is_anchored(n))
      s->inside[here] = pln_hash_mix(s->inside[here], s->hash[ref]);
    if (n->kind == PLN_LET)
      bind_let(s, n, here);
  }
}

/* Distinct shared nodes that `root` needs: users come before operands. */
static uint64_t count_shared(const pln_graph *g, pln_ref root,
                             uint64_t *needed) {
  uint64_t count = 0;
  memset(needed, 0, ((size_t)root + 1) * sizeof *needed);
  needed[root] = 1;
  for (pln_ref ref = root + 1; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    if (!needed[ref])
      continue;
    count += pln_kinds[n->kind].shared;
    for (uint32_t i = 0; i < n->count; i++)
      needed[g->operands[n->first + i]] = 1;
    if (pln_owns(n))
      for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
        needed[g->scopes[s].result] = 1;
  }
  return count;
}

pln_status pln_graph_hash(const pln_graph *graph, pln_ref node,
                          bool map_free_vars, uint64_t *out) {
  pln_engine *e = graph->engine;
  hasher s = {.g = graph, .map_free = map_free_vars};
  size_t nodes = ((size_t)graph->n_nodes + 1) * sizeof *s.hash;
  size_t scopes = ((size_t)graph->n_scopes + 1) * sizeof *s.inside;
  s.hash = pln_mem_zeroed(e, nodes);
  s.inside = pln_mem_zeroed(e, scopes);
  s.vars = pln_mem_zeroed(e, scopes);
  pln_status status = s.hash && s.inside && s.vars ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK) {
    sweep(&s);
    uint64_t hash = s.hash[node];
    *out = pln_hash_mix(hash, count_shared(graph, node, s.hash));
  }
  pln_mem_free(e, s.hash, nodes);
  pln_mem_free(e, s.inside, scopes);
  pln_mem_free(e, s.vars, scopes);
  return status;
}
