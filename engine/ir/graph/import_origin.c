/* import_origin.c: copies the origin of a node of another graph into the
 * builder's table, with the origins that it was made from.
 *
 * Called when nodes are imported. Invariants: a builder copies each origin of
 * another table once while it imports from that table only; a builder without a
 * table adopts the first one that it imports from. */

#include "ir/graph/graph.h"

typedef struct origin_import {
  pln_origins *to;
  const pln_origins *from;
  uint32_t first; /* older steps are omitted */
  pln_idmap *map; /* origin in the source table -> origin in the builder's */
  uint32_t n, cap;
  uint32_t *waiting; /* stack; what an origin was made from is on top */
} origin_import;

static bool is_left_out(const origin_import *t, uint32_t origin) {
  return origin & PLN_ORIGIN_STEP && (origin & ~PLN_ORIGIN_STEP) < t->first;
}

/* The nearest origin not omitted whose name and location this one inherits. */
static uint32_t named(const origin_import *t, uint32_t origin) {
  while (is_left_out(t, origin))
    origin = pln_origins_step_at(t->from, origin)->parent;
  return origin;
}

/* The nearest origin not omitted that this one was made from. */
static uint32_t source(const origin_import *t, uint32_t origin) {
  while (is_left_out(t, origin)) {
    const pln_origin_step *step = pln_origins_step_at(t->from, origin);
    origin = step->parent ? step->parent : step->other;
  }
  return origin;
}

static uint32_t origins_made_from(const origin_import *t, uint32_t origin,
                                  int k) {
  if (!(origin & PLN_ORIGIN_STEP))
    return k == 0 ? named(t, pln_origins_row(t->from, origin)->parent) : 0;
  const pln_origin_step *step = pln_origins_step_at(t->from, origin);
  uint32_t parent = named(t, step->parent);
  if (k == 0)
    return parent;
  return source(t, parent || step->other ? step->other : step->parent);
}

static pln_status copy_origin_step(origin_import *t, uint32_t origin,
                                   uint32_t *out) {
  uint32_t parent = pln_idmap_get(t->map, origins_made_from(t, origin, 0));
  if (!(origin & PLN_ORIGIN_STEP)) {
    pln_origin row = *pln_origins_row(t->from, origin);
    row.parent = parent;
    return pln_origins_add(t->to, &row, out);
  }
  pln_origin_step step = *pln_origins_step_at(t->from, origin);
  pln_change change = *pln_origins_change(t->from, &step);
  step.parent = parent;
  step.other = pln_idmap_get(t->map, origins_made_from(t, origin, 1));
  return pln_origins_add_step(t->to, &change, step, out);
}

static pln_status wait_for(origin_import *t, uint32_t origin) {
  PLN_TRY(pln_mem_grow(t->to->engine, (void **)&t->waiting, &t->cap,
                       (size_t)t->n + 1, sizeof *t->waiting));
  t->waiting[t->n++] = origin;
  return PLN_OK;
}

/* Copies an origin whose own sources are copied already. */
static pln_status import_ready_origin(origin_import *t) {
  uint32_t origin = t->waiting[t->n - 1], out;
  for (int k = 0; k < 2; k++) {
    uint32_t before = origins_made_from(t, origin, k);
    if (before && !pln_idmap_get(t->map, before))
      return wait_for(t, before);
  }
  t->n--;
  if (pln_idmap_get(t->map, origin))
    return PLN_OK;
  PLN_TRY(copy_origin_step(t, origin, &out));
  return pln_idmap_set(t->map, origin, out);
}

static pln_status import_origin(origin_import *t, uint32_t origin,
                                uint32_t *out) {
  pln_status status = wait_for(t, origin);
  while (status == PLN_OK && t->n)
    status = import_ready_origin(t);
  pln_mem_free(t->to->engine, t->waiting, t->cap * sizeof *t->waiting);
  t->waiting = NULL;
  t->n = t->cap = 0;
  if (status == PLN_OK)
    *out = pln_idmap_get(t->map, origin);
  return status;
}

void pln_builder_forget_imported_origins(pln_builder *b) {
  pln_origins_release(b->taken.from);
  if (b->taken.map)
    pln_idmap_free(b->taken.map);
  b->taken.from = NULL;
  b->taken.map = NULL;
}

static pln_status look_at(pln_builder *b, pln_origins *from) {
  if (b->taken.from == from)
    return PLN_OK;
  pln_builder_forget_imported_origins(b);
  PLN_TRY(pln_idmap_new(b->engine, &b->taken.map));
  b->taken.from = pln_origins_retain(from);
  return PLN_OK;
}

pln_status pln_builder_import_origin_row(pln_builder *b, pln_origins *from,
                                         uint32_t origin, uint32_t *out) {
  *out = 0;
  if (!from || (!origin && !from->declares && !from->mismatched_calls))
    return PLN_OK;
  if (!b->graph->origins && from->engine == b->engine)
    b->graph->origins = pln_origins_retain(from);
  pln_origins *to = pln_builder_origins(b);
  if (!to)
    return PLN_ERR_NOMEM;
  *out = origin;
  to->declares |= from->declares;
  to->mismatched_calls |= from->mismatched_calls;
  if (to == from || !origin)
    return PLN_OK;
  PLN_TRY(look_at(b, from));
  *out = pln_idmap_get(b->taken.map, origin);
  if (*out)
    return PLN_OK;
  if (!to->names)
    to->names = from->names;
  origin_import t = {.to = to, .from = from, .map = b->taken.map};
  return import_origin(&t, origin, out);
}

pln_status pln_builder_import_origin(pln_builder *b, const pln_graph *from,
                                     pln_ref ref, uint32_t *out) {
  return pln_builder_import_origin_row(b, from->origins, from->origin[ref],
                                       out);
}

/* ----------------------------------------------------------------- trimming
 */

/* Limits of the history: beyond this many steps per node the older half is
 * dropped. */
enum { STEPS_PER_NODE = 16, MAX_STEPS = 1 << 16 };

static pln_status trim_one(origin_import *t, uint32_t *origin) {
  uint32_t old = *origin, wanted = named(t, old);
  *origin = 0;
  if (!wanted && old) /* unnamed, and a step describes its source */
    wanted = source(t, old);
  if (!wanted)
    return PLN_OK;
  uint32_t at = pln_idmap_get(t->map, wanted);
  if (!at)
    PLN_TRY(import_origin(t, wanted, &at));
  *origin = at;
  if (named(t, old))
    return PLN_OK;
  pln_change change =
      *pln_origins_change(t->from, pln_origins_step_at(t->from, old));
  return pln_origins_add_step(t->to, &change, (pln_origin_step){.other = at},
                              origin);
}

static pln_status trim_all(origin_import *t, pln_graph *g) {
  PLN_TRY(pln_idmap_new(g->engine, &t->map));
  t->to->names = t->from->names;
  t->to->declares = t->from->declares;
  t->to->mismatched_calls = t->from->mismatched_calls;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    PLN_TRY(trim_one(t, &g->origin[i]));
  for (pln_scope s = 0; s < g->n_scopes; s++)
    PLN_TRY(trim_one(t, &g->scopes[s].origin));
  return PLN_OK;
}

pln_status pln_origins_trim(pln_graph *g) {
  pln_origins *from = g->origins, *to;
  uint64_t most = (uint64_t)STEPS_PER_NODE * g->n_nodes + MAX_STEPS;
  if (!from || from->base || from->engine != g->engine || from->n_steps <= most)
    return PLN_OK;
  PLN_TRY(pln_origins_new(g->engine, &to));
  origin_import t = {.to = to, .from = from};
  t.first = from->n_steps - (uint32_t)(most / 2);
  pln_status status = trim_all(&t, g);
  if (t.map)
    pln_idmap_free(t.map);
  /* On failure the graph is discarded: its numbers refer to both tables. */
  g->origins = to;
  pln_origins_release(from);
  return status;
}

/* A TupleGetItem has the row of the node whose field it takes. */
void pln_origins_note_types(pln_graph *graph) {
  pln_origins *o = graph->origins;
  for (pln_ref i = 0; o && i < graph->n_nodes; i++) {
    uint32_t row = graph->origin[i];
    pln_kind kind = (pln_kind)graph->nodes[i].kind;
    if ((kind == PLN_CALL || kind == PLN_IF || kind == PLN_CONSTANT) &&
        row >= o->below && row < o->count)
      o->rows[row - o->below].type = graph->nodes[i].type;
  }
}
