/* held.c: adds up what graphs and modules hold: their arrays, their tables of
 * origins, tensors with memory of their own. Called by cache.c.
 *
 * What always holds: a block is counted as long as one of its users is there,
 * with the size that it had when the first came. */

#include "pass/held.h"

/* *first: nobody held it before. */
static pln_status add(pln_held *h, const void *block, uint64_t size,
                      bool *first) {
  if (!h->at)
    PLN_TRY(pln_idmap_new(h->engine, &h->at));
  uint32_t id = pln_idmap_get(h->at, (uintptr_t)block);
  *first = id == 0;
  if (id) {
    h->blocks[id - 1].users++;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(h->engine, (void **)&h->blocks, &h->cap,
                       (size_t)h->n + 1, sizeof *h->blocks));
  PLN_TRY(pln_idmap_set(h->at, (uintptr_t)block, h->n + 1));
  h->blocks[h->n++] = (pln_held_block){block, 1, size, 0};
  h->bytes += size;
  return PLN_OK;
}

/* Whether nobody holds it any more. The last block takes its row. */
static bool drop(pln_held *h, const void *block) {
  uint32_t id = pln_idmap_get(h->at, (uintptr_t)block);
  if (--h->blocks[id - 1].users > 0)
    return false;
  h->bytes -= h->blocks[id - 1].size;
  (void)!pln_idmap_set(h->at, (uintptr_t)block, 0);
  h->blocks[id - 1] = h->blocks[--h->n];
  if (id <= h->n) /* it is there: nothing grows */
    (void)!pln_idmap_set(h->at, (uintptr_t)h->blocks[id - 1].block, id);
  return true;
}

static uint64_t graph_size(const pln_graph *g) {
  return sizeof *g + g->cap_nodes * sizeof *g->nodes +
         g->cap_operands * sizeof *g->operands +
         g->cap_scopes * sizeof *g->scopes +
         g->cap_tensors * sizeof *g->tensors +
         g->cap_values * sizeof *g->values + g->cap_origin * sizeof *g->origin;
}

static uint64_t origins_size(const pln_origins *o) {
  return sizeof *o + o->capacity * sizeof *o->rows +
         o->cap_steps * sizeof *o->steps + o->cap_changes * sizeof *o->changes;
}

static pln_status add_graph(pln_held *h, const pln_graph *g) {
  bool first;
  PLN_TRY(add(h, g, graph_size(g), &first));
  if (!first)
    return PLN_OK;
  if (g->origins)
    PLN_TRY(add(h, g->origins, origins_size(g->origins), &first));
  for (uint32_t i = 0; i < g->n_tensors; i++)
    if (g->tensors[i]->owned)
      PLN_TRY(add(h, g->tensors[i], g->tensors[i]->block, &first));
  return PLN_OK;
}

static void drop_graph(pln_held *h, const pln_graph *g) {
  if (!drop(h, g))
    return;
  if (g->origins)
    (void)drop(h, g->origins);
  for (uint32_t i = 0; i < g->n_tensors; i++)
    if (g->tensors[i]->owned)
      (void)drop(h, g->tensors[i]);
}

pln_status pln_held_add(pln_held *h, const pln_subject *s) {
  const pln_module *m = s->module;
  bool first;
  if (s->function)
    return add_graph(h, s->function);
  PLN_TRY(add(h, m, sizeof *m + m->capacity * sizeof *m->rows, &first));
  for (uint32_t i = 0; first && i < m->count; i++)
    PLN_TRY(add_graph(h, m->rows[i].function));
  return PLN_OK;
}

void pln_held_drop(pln_held *h, const pln_subject *s) {
  const pln_module *m = s->module;
  if (s->function)
    drop_graph(h, s->function);
  else if (drop(h, m))
    for (uint32_t i = 0; i < m->count; i++)
      drop_graph(h, m->rows[i].function);
}

uint64_t *pln_held_note(pln_held *h, const pln_graph *graph) {
  uint32_t id = h->at ? pln_idmap_get(h->at, (uintptr_t)graph) : 0;
  return id ? &h->blocks[id - 1].note : NULL;
}

void pln_held_free(pln_held *h) {
  pln_mem_free(h->engine, h->blocks, h->cap * sizeof *h->blocks);
  pln_idmap_free(h->at);
  *h = (pln_held){.engine = h->engine};
}
