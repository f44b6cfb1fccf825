/* isomorphic.c: compares two graphs array by array and remaps a pass result
 * from one to the other.
 *
 * Called by pass/cache/cache.c. Invariant: types, attributes, symbolic values,
 * names and node order are identical on both sides, so a pass that reads only
 * the function gives the same result for both. */

#include "ir/compare/isomorphic.h"

static bool is_var(const pln_node *n) {
  return pln_kinds[n->kind].payload == PLN_PAYLOAD_VAR;
}

/* -------------------------------------------------------------------- hash */

static uint64_t hash_node(uint64_t h, const pln_node *n) {
  uint64_t head = n->kind | n->flags << 8 | (uint32_t)n->results << 16;
  uint32_t data = is_var(n) ? 0 : n->data;
  h = pln_hash_mix(h, head << 32 | n->attrs);
  h = pln_hash_mix(h, (uint64_t)data << 32 | n->type);
  return pln_hash_mix(h, (uint64_t)n->first << 32 | n->count);
}

uint64_t pln_isomorphism_hash(const pln_graph *g) {
  uint64_t h = pln_hash_mix(g->root, g->n_scopes);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    h = hash_node(h, &g->nodes[i]);
  for (uint32_t i = 0; i < g->n_tensors; i++)
    h = pln_hash_mix(h, pln_tensor_hash(g->tensors[i]));
  return pln_hash_bytes(g->operands, g->n_operands * sizeof *g->operands, h);
}

/* ----------------------------------------------------------------- matching */

static pln_status same_var(pln_isomorphism *t, uint32_t x, uint32_t y,
                           bool *same) {
  *same = pln_bijection_allows(&t->vars, x, y);
  if (!*same)
    return PLN_OK;
  return pln_bijection_add(t->a->engine, &t->vars, x, y);
}

static bool is_step(uint32_t origin) {
  return (origin & PLN_ORIGIN_STEP) != 0;
}

/* Names and operators must agree; spans and file ranges may differ. */
static bool same_row(const pln_origin *x, const pln_origin *y) {
  return x->name == y->name && x->script == y->script && x->line == y->line &&
         x->op == y->op && x->attrs == y->attrs && x->whole == y->whole &&
         x->attr_order == y->attr_order &&
         x->place_printed == y->place_printed && !x->file == !y->file;
}

static bool same_step(const pln_origins *a, uint32_t x, const pln_origins *b,
                      uint32_t y) {
  const pln_origin_step *s = pln_origins_step_at(a, x);
  const pln_origin_step *t = pln_origins_step_at(b, y);
  const pln_change *c = pln_origins_change(a, s), *d = pln_origins_change(b, t);
  return s->number == t->number && c->pass == d->pass && c->rule == d->rule &&
         c->run == d->run;
}

static pln_status push_origin_pair(pln_isomorphism *t, uint32_t origin) {
  PLN_TRY(pln_mem_grow(t->a->engine, (void **)&t->stack, &t->cap_stack,
                       (size_t)t->n_stack + 1, sizeof *t->stack));
  t->stack[t->n_stack++] = origin;
  return PLN_OK;
}

static pln_status push_both(pln_isomorphism *t, uint32_t x, uint32_t y) {
  PLN_TRY(push_origin_pair(t, x));
  return push_origin_pair(t, y);
}

/* Pushes the sources of two origins for comparison. */
static pln_status push_parents(pln_isomorphism *t, uint32_t x, uint32_t y) {
  const pln_origins *a = t->a->origins, *b = t->b->origins;
  if (!is_step(x))
    return push_both(t, pln_origins_row(a, x)->parent,
                     pln_origins_row(b, y)->parent);
  const pln_origin_step *s = pln_origins_step_at(a, x);
  const pln_origin_step *u = pln_origins_step_at(b, y);
  PLN_TRY(push_both(t, s->other, u->other));
  return push_both(t, s->parent, u->parent);
}

static pln_status same_origin(pln_isomorphism *t, uint32_t x, uint32_t y,
                              bool *same) {
  const pln_origins *a = t->a->origins, *b = t->b->origins;
  uint32_t known = x ? pln_idmap_get(t->rows, x) : 0;
  *same = x && y ? is_step(x) == is_step(y) : x == y;
  if (!*same || !x || known) {
    *same = *same && (!known || known == y);
    return PLN_OK;
  }
  *same = is_step(x) ? same_step(a, x, b, y)
                     : same_row(pln_origins_row(a, x), pln_origins_row(b, y));
  PLN_TRY(pln_idmap_set(t->rows, x, y));
  return push_parents(t, x, y);
}

/* Compares two origins and their sources. */
static pln_status same_rows(pln_isomorphism *t, uint32_t x, uint32_t y,
                            bool *same) {
  t->n_stack = 0;
  PLN_TRY(push_both(t, x, y));
  while (*same && t->n_stack > 0) {
    y = t->stack[--t->n_stack];
    x = t->stack[--t->n_stack];
    PLN_TRY(same_origin(t, x, y, same));
  }
  return PLN_OK;
}

static pln_status same_nodes(pln_isomorphism *t, bool *same) {
  const pln_graph *a = t->a, *b = t->b;
  for (uint32_t i = 0; *same && i < a->n_nodes; i++) {
    pln_node x = a->nodes[i], y = b->nodes[i];
    if (is_var(&x) && is_var(&y)) {
      PLN_TRY(same_var(t, x.data, y.data, same));
      x.data = y.data;
    }
    *same = *same && !memcmp(&x, &y, sizeof x);
    if (*same && a->origins)
      PLN_TRY(same_rows(t, a->origin[i], b->origin[i], same));
  }
  return PLN_OK;
}

static pln_status same_scopes(pln_isomorphism *t, bool *same) {
  for (uint32_t i = 0; *same && i < t->a->n_scopes; i++) {
    pln_scope_row x = t->a->scopes[i], y = t->b->scopes[i];
    if (t->a->origins)
      PLN_TRY(same_rows(t, x.origin, y.origin, same));
    x.origin = y.origin;
    *same = *same && !memcmp(&x, &y, sizeof x);
  }
  return PLN_OK;
}

/* By content when small, else by location; both must be identified the same
 * way. */
static bool same_tensor(const pln_tensor *x, const pln_tensor *y) {
  return x == y || (x->splat == y->splat && x->owned == y->owned &&
                    x->external == y->external && !x->file == !y->file &&
                    pln_tensor_equal(x, y));
}

static pln_status same_tensors(pln_isomorphism *t, bool *same) {
  for (uint32_t i = 0; *same && i < t->a->n_tensors; i++) {
    const pln_tensor *x = t->a->tensors[i];
    *same = same_tensor(x, t->b->tensors[i]);
    PLN_TRY(pln_idmap_set(t->tensors, (uintptr_t)x, i + 1));
  }
  return PLN_OK;
}

static bool same_sizes(const pln_graph *a, const pln_graph *b) {
  return a->n_nodes == b->n_nodes && a->n_operands == b->n_operands &&
         a->n_scopes == b->n_scopes && a->n_tensors == b->n_tensors &&
         a->root == b->root && !a->origins == !b->origins;
}

static bool same_bytes(const void *x, const void *y, size_t n) {
  return n == 0 || !memcmp(x, y, n);
}

static bool same_arrays(const pln_graph *a, const pln_graph *b) {
  return same_sizes(a, b) &&
         same_bytes(a->operands, b->operands,
                    a->n_operands * sizeof *a->operands) &&
         same_bytes(a->values, b->values, a->n_nodes * sizeof *a->values);
}

pln_status pln_isomorphism_match(pln_isomorphism *t, const pln_graph *a,
                                 const pln_graph *b, bool *same) {
  *t = (pln_isomorphism){.a = a, .b = b};
  *same = same_arrays(a, b);
  if (!*same)
    return PLN_OK;
  PLN_TRY(pln_idmap_new(a->engine, &t->rows));
  PLN_TRY(pln_idmap_new(a->engine, &t->tensors));
  PLN_TRY(same_tensors(t, same));
  PLN_TRY(same_scopes(t, same));
  return same_nodes(t, same);
}

void pln_isomorphism_end(pln_isomorphism *t) {
  pln_bijection_free(&t->vars);
  pln_idmap_free(t->rows);
  pln_idmap_free(t->tensors);
  pln_mem_free(t->a->engine, t->stack, t->cap_stack * sizeof *t->stack);
  *t = (pln_isomorphism){.a = t->a, .b = t->b};
}

/* ----------------------------------------------------------------- carrying */

static pln_status remap_vars(pln_isomorphism *t, pln_graph *g) {
  pln_engine *e = g->engine;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    pln_node *n = &g->nodes[i];
    if (!is_var(n))
      continue;
    if (!t->vars.to)
      PLN_TRY(pln_idmap_new(e, &t->vars.to));
    uint32_t image = pln_idmap_get(t->vars.to, n->data);
    if (!image) {
      image = ++e->n_vars;
      PLN_TRY(pln_idmap_set(t->vars.to, n->data, image));
    }
    n->data = image;
  }
  return PLN_OK;
}

static void remap_tensors(pln_isomorphism *t, pln_graph *g) {
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    uint32_t at = pln_idmap_get(t->tensors, (uintptr_t)g->tensors[i]);
    if (!at)
      continue;
    pln_tensor *old = g->tensors[i];
    g->tensors[i] = pln_tensor_retain(t->b->tensors[at - 1]);
    pln_tensor_release(old);
  }
}

/* The first source of an origin of a that has no counterpart in b, or 0. */
static uint32_t missing_parent(const pln_isomorphism *t, uint32_t origin) {
  const pln_origins *a = t->a->origins;
  bool step = is_step(origin);
  uint32_t parent = step ? pln_origins_step_at(a, origin)->parent
                         : pln_origins_row(a, origin)->parent;
  uint32_t other = step ? pln_origins_step_at(a, origin)->other : 0;
  if (parent && !pln_idmap_get(t->rows, parent))
    return parent;
  return other && !pln_idmap_get(t->rows, other) ? other : 0;
}

static uint32_t image_of(const pln_isomorphism *t, uint32_t origin) {
  return origin ? pln_idmap_get(t->rows, origin) : 0;
}

/* Copies an origin of a, whose sources have counterparts, to b's table.
 * *placed: it contains a location of a. */
static pln_status copy_origin(pln_isomorphism *t, uint32_t origin,
                              bool *placed) {
  const pln_origins *a = t->a->origins;
  uint32_t image;
  if (is_step(origin)) {
    pln_origin_step step = *pln_origins_step_at(a, origin);
    pln_change change = *pln_origins_change(a, &step);
    step.parent = image_of(t, step.parent);
    step.other = image_of(t, step.other);
    PLN_TRY(pln_origins_add_step(t->b->origins, &change, step, &image));
  } else {
    pln_origin row = *pln_origins_row(a, origin);
    *placed = *placed || row.file || row.place.source;
    if (*placed)
      return PLN_OK;
    row.parent = image_of(t, row.parent);
    PLN_TRY(pln_origins_add(t->b->origins, &row, &image));
  }
  return pln_idmap_set(t->rows, origin, image);
}

/* Replaces *origin, an origin of a, by its counterpart in b. */
static pln_status remap_origin(pln_isomorphism *t, uint32_t *origin,
                               bool *placed) {
  t->n_stack = 0;
  if (*origin && !pln_idmap_get(t->rows, *origin))
    PLN_TRY(push_origin_pair(t, *origin));
  while (t->n_stack > 0 && !*placed) {
    uint32_t top = t->stack[t->n_stack - 1];
    uint32_t before = missing_parent(t, top);
    if (before) {
      PLN_TRY(push_origin_pair(t, before));
      continue;
    }
    t->n_stack--;
    if (!pln_idmap_get(t->rows, top))
      PLN_TRY(copy_origin(t, top, placed));
  }
  *origin = image_of(t, *origin);
  return PLN_OK;
}

static pln_status remap_origins(pln_isomorphism *t, pln_graph *g,
                                bool *placed) {
  if (!g->origins)
    return PLN_OK;
  *placed = g->origins != t->a->origins;
  for (uint32_t i = 0; i < g->n_nodes && !*placed; i++)
    PLN_TRY(remap_origin(t, &g->origin[i], placed));
  for (uint32_t i = 0; i < g->n_scopes && !*placed; i++)
    PLN_TRY(remap_origin(t, &g->scopes[i].origin, placed));
  pln_origins *former = g->origins;
  g->origins = pln_origins_retain(t->b->origins);
  pln_origins_release(former);
  return PLN_OK;
}

static pln_status remap_graph(pln_isomorphism *t, pln_graph *g, bool *placed) {
  PLN_TRY(remap_origins(t, g, placed));
  remap_tensors(t, g);
  return remap_vars(t, g);
}

pln_status pln_isomorphism_remap(pln_isomorphism *t, const pln_graph *made,
                                 pln_graph **out) {
  bool placed = false;
  pln_graph *copy;
  *out = NULL;
  PLN_TRY(pln_graph_copy(made, &copy));
  pln_status status = remap_graph(t, copy, &placed);
  if (status == PLN_OK && !placed)
    *out = copy;
  else
    pln_graph_release(copy);
  return status;
}
