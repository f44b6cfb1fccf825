/* take_origin.c: the origin of a node of another graph, in the builder's own
 * table: with all that it was made from.
 *
 * Called when nodes are imported. What always holds: a builder copies each
 * origin of another table once, as long as it takes from that table only; the
 * first table that it takes from, when it has none, becomes its own. */

#include "ir/graph.h"

typedef struct taking {
  pln_origins *to;
  const pln_origins *from;
  pln_idmap *map; /* origin there -> origin here */
  uint32_t n, cap;
  uint32_t *waiting; /* what others are made from is on top */
} taking;

static uint32_t made_from(const pln_origins *from, uint32_t origin, int k) {
  if (!(origin & PLN_ORIGIN_STEP))
    return k == 0 ? pln_origins_row(from, origin)->parent : 0;
  const pln_origin_step *step = pln_origins_step_at(from, origin);
  return k == 0 ? step->parent : step->other;
}

static pln_status copy(taking *t, uint32_t origin, uint32_t *out) {
  uint32_t parent = pln_idmap_get(t->map, made_from(t->from, origin, 0));
  if (!(origin & PLN_ORIGIN_STEP)) {
    pln_origin row = *pln_origins_row(t->from, origin);
    row.parent = parent;
    return pln_origins_add(t->to, &row, out);
  }
  pln_origin_step step = *pln_origins_step_at(t->from, origin);
  pln_change change = *pln_origins_change(t->from, &step);
  step.parent = parent;
  step.other = pln_idmap_get(t->map, step.other);
  return pln_origins_add_step(t->to, &change, step, out);
}

static pln_status wait_for(taking *t, uint32_t origin) {
  PLN_TRY(pln_mem_grow(t->to->engine, (void **)&t->waiting, &t->cap,
                       (size_t)t->n + 1, sizeof *t->waiting));
  t->waiting[t->n++] = origin;
  return PLN_OK;
}

/* One that is made from nothing, or from what is here already. */
static pln_status settle(taking *t) {
  uint32_t origin = t->waiting[t->n - 1], out;
  for (int k = 0; k < 2; k++) {
    uint32_t before = made_from(t->from, origin, k);
    if (before && !pln_idmap_get(t->map, before))
      return wait_for(t, before);
  }
  t->n--;
  if (pln_idmap_get(t->map, origin))
    return PLN_OK;
  PLN_TRY(copy(t, origin, &out));
  return pln_idmap_set(t->map, origin, out);
}

static pln_status take(taking *t, uint32_t origin, uint32_t *out) {
  pln_status status = wait_for(t, origin);
  while (status == PLN_OK && t->n)
    status = settle(t);
  pln_mem_free(t->to->engine, t->waiting, t->cap * sizeof *t->waiting);
  if (status == PLN_OK)
    *out = pln_idmap_get(t->map, origin);
  return status;
}

void pln_builder_forget_taken(pln_builder *b) {
  pln_origins_release(b->taken.from);
  if (b->taken.map)
    pln_idmap_free(b->taken.map);
  b->taken.from = NULL;
  b->taken.map = NULL;
}

static pln_status look_at(pln_builder *b, pln_origins *from) {
  if (b->taken.from == from)
    return PLN_OK;
  pln_builder_forget_taken(b);
  PLN_TRY(pln_idmap_new(b->engine, &b->taken.map));
  b->taken.from = pln_origins_retain(from);
  return PLN_OK;
}

pln_status pln_builder_take(pln_builder *b, pln_origins *from, uint32_t origin,
                            uint32_t *out) {
  *out = 0;
  if (!from || (!origin && !from->declares))
    return PLN_OK;
  if (!b->graph->origins && from->engine == b->engine)
    b->graph->origins = pln_origins_retain(from);
  pln_origins *to = pln_builder_origins(b);
  if (!to)
    return PLN_ERR_NOMEM;
  *out = origin;
  to->declares |= from->declares;
  if (to == from || !origin)
    return PLN_OK;
  PLN_TRY(look_at(b, from));
  *out = pln_idmap_get(b->taken.map, origin);
  if (*out)
    return PLN_OK;
  if (!to->names)
    to->names = from->names;
  taking t = {.to = to, .from = from, .map = b->taken.map};
  return take(&t, origin, out);
}

pln_status pln_builder_take_origin(pln_builder *b, const pln_graph *from,
                                   pln_ref ref, uint32_t *out) {
  return pln_builder_take(b, from->origins, from->origin[ref], out);
}
