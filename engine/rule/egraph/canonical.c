/* canonical.c: the canonical form of a call's attributes: without those that
 * are given as what leaving them out means.
 *
 *     nn.conv(x, w, strides=[1, 1], group=1)   and   nn.conv(x, w)
 *
 * What an attribute means that is left out says value.c: the default of the
 * schema, or that of ONNX's windows. Called by egraph.c for each e-node once.
 */

#include "rule/egraph/canonical.h"

/* Dictionaries of more entries stay as they are. */
enum { MOST_ATTRS = 32 };

static bool is_value(const pln_rule_match *m, const pln_attr *a,
                     const pln_rule_value *v) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL: return v->kind == PLN_VALUE_INT && v->v.i == a->v.i;
  case PLN_ATTR_FLOAT: /* -0 and 0 differ, and a NaN is itself */
    return v->kind == PLN_VALUE_FLOAT &&
           !memcmp(&v->v.f, &a->v.f, sizeof a->v.f);
  case PLN_ATTR_STRING:
    return v->kind == PLN_VALUE_STRING && v->v.s.size == a->v.s.size &&
           !memcmp(v->v.s.data, a->v.s.data, a->v.s.size);
  case PLN_ATTR_INTS:
    return v->kind == PLN_VALUE_LIST && v->count == a->count &&
           (!a->count || !memcmp(pln_rule_list(m, v), a->v.ints,
                                 a->count * sizeof *a->v.ints));
  default: return false;
  }
}

static pln_status is_default(pln_rule_match *m, pln_ref call, const pln_attr *a,
                             bool *out) {
  pln_rule_value v;
  pln_slice name = pln_symbol_text(m->run->engine, a->name);
  PLN_TRY(pln_rule_default(m, call, name, &v));
  *out = is_value(m, a, &v);
  return PLN_OK;
}

static pln_status drop_defaults(pln_rule_match *m, const pln_graph *g,
                                pln_ref call, pln_attrs *out) {
  pln_engine *e = g->engine;
  pln_attrs attrs = g->nodes[call].attrs;
  uint32_t count = pln_attrs_count(e, attrs), n = 0;
  pln_attr kept[MOST_ATTRS];
  *out = attrs;
  if (count > MOST_ATTRS)
    return PLN_OK;
  for (uint32_t i = 0; i < count; i++) {
    const pln_attr *a = pln_attrs_at(e, attrs, i);
    bool omit;
    PLN_TRY(is_default(m, call, a, &omit));
    if (!omit)
      kept[n++] = *a;
  }
  return n < count ? pln_attrs_make(e, n, kept, out) : PLN_OK;
}

static pln_canonical_entry key_of(const pln_graph *g, pln_ref call) {
  const pln_node *n = &g->nodes[call];
  pln_canonical_entry key = {.op = n->data, .attrs = n->attrs};
  for (uint32_t i = 0; i < n->count && i < PLN_COUNT(key.types); i++)
    key.types[i] = g->nodes[g->operands[n->first + i]].type;
  return key;
}

static pln_canonical_entry *place_of(pln_canonical *c,
                                     const pln_canonical_entry *key) {
  uint64_t h = pln_hash_mix(key->op, key->attrs);
  h = pln_hash_mix(h, key->types[0]);
  h = pln_hash_mix(h, key->types[1]);
  return &c->entries[(h ^ (h >> 32)) % PLN_CANONICAL_CACHE];
}

static bool is_same(const pln_canonical_entry *a,
                    const pln_canonical_entry *b) {
  return a->op == b->op && a->attrs == b->attrs && a->types[0] == b->types[0] &&
         a->types[1] == b->types[1];
}

pln_status pln_egraph_canonical_attrs(void *ud, const pln_graph *g,
                                      pln_ref call, pln_attrs *out) {
  pln_canonical *c = ud;
  pln_canonical_entry key = key_of(g, call), *entry = place_of(c, &key);
  uint32_t pool = c->match->run->n_pool;
  if (is_same(entry, &key)) {
    *out = entry->canonical;
    return PLN_OK;
  }
  pln_status status = drop_defaults(c->match, g, call, out);
  c->match->run->n_pool = pool;
  key.canonical = *out;
  if (status == PLN_OK)
    *entry = key;
  return status;
}
