/* memory_accounting.c: adds up the memory of graphs and modules: their arrays,
 * their provenance and definition tables, and tensors with memory of their own.
 * Called by cache.c.
 *
 * Invariant: a block is counted as long as one of its users is counted, with
 * the size that it had when the newest user was added. */

#include "pass/cache/memory_accounting.h"

pln_memory_account pln_memory_account_new(pln_engine *engine) {
  return (pln_memory_account){.engine = engine, .table = {.engine = engine}};
}

static uint64_t hash_of(const pln_memory_account *h, const void *block) {
  return pln_hash_mix(h->engine->seed, (uintptr_t)block);
}

static pln_memory_block *find_memory_block(const pln_memory_account *h,
                                           const void *block) {
  pln_hash_link *link = pln_hash_first(&h->table, hash_of(h, block));
  while (link && ((pln_memory_block *)(void *)link)->block != block)
    link = pln_hash_next(link);
  return (pln_memory_block *)(void *)link;
}

/* *first is true if no other user held the block. */
static pln_status add_memory_block(pln_memory_account *h, const void *block,
                                   uint64_t size, bool *first) {
  pln_memory_block *row = find_memory_block(h, block);
  *first = row == NULL;
  if (row) { /* provenance tables grow, so the size is updated */
    row->users++;
    h->bytes += size - row->size;
    row->size = size;
    return PLN_OK;
  }
  row = pln_mem_zeroed(h->engine, sizeof *row);
  if (!row)
    return pln_nomem(h->engine);
  *row = (pln_memory_block){.block = block, .users = 1, .size = size};
  pln_status status = pln_hash_add(&h->table, hash_of(h, block), &row->link);
  if (status != PLN_OK) {
    pln_mem_free(h->engine, row, sizeof *row);
    return status;
  }
  h->bytes += size + sizeof *row;
  return PLN_OK;
}

static void forget(pln_memory_account *h, pln_memory_block *row) {
  h->bytes -= row->size + sizeof *row;
  pln_hash_remove(&h->table, &row->link);
  pln_mem_free(h->engine, row, sizeof *row);
}

/* Returns true if the block has no user left. */
static bool drop_memory_block(pln_memory_account *h, const void *block) {
  pln_memory_block *row = find_memory_block(h, block);
  if (!row || --row->users > 0)
    return false;
  forget(h, row);
  return true;
}

static uint64_t graph_size(const pln_graph *g) {
  return sizeof *g + g->cap_nodes * sizeof *g->nodes +
         g->cap_operands * sizeof *g->operands +
         g->cap_scopes * sizeof *g->scopes +
         g->cap_tensors * sizeof *g->tensors +
         g->cap_values * sizeof *g->values + g->cap_origin * sizeof *g->origin +
         g->cap_typed_from * sizeof *g->typed_from;
}

static uint64_t origins_size(const pln_origins *o) {
  return sizeof *o + pln_idmap_bytes(o->by_line) +
         o->capacity * sizeof *o->rows + o->cap_steps * sizeof *o->steps +
         o->cap_sources * sizeof *o->sources +
         o->cap_changes * sizeof *o->changes;
}

/* Memory mapped from files is not counted. */
static pln_status add_tensor(pln_memory_account *h, const pln_tensor *t) {
  bool first;
  uint64_t own = t->owned ? t->block : 0;
  PLN_TRY(add_memory_block(h, t, sizeof *t + t->rank * sizeof *t->dims + own,
                           &first));
  const pln_tensor *l = t->view_of;
  return l && first ? add_memory_block(h, l, sizeof *l + l->block, &first)
                    : PLN_OK;
}

static void drop_tensor(pln_memory_account *h, const pln_tensor *t) {
  const pln_tensor *view_of = t->view_of;
  if (drop_memory_block(h, t) && view_of)
    (void)drop_memory_block(h, view_of);
}

static pln_status add_graph(pln_memory_account *h, const pln_graph *g) {
  bool first, known;
  PLN_TRY(add_memory_block(h, g, graph_size(g), &first));
  if (g->origins) /* the tables have grown since they were counted */
    PLN_TRY(add_memory_block(h, g->origins, origins_size(g->origins), &known));
  for (uint32_t i = 0; first && i < g->n_tensors; i++)
    PLN_TRY(add_tensor(h, g->tensors[i]));
  return PLN_OK;
}

static void drop_graph(pln_memory_account *h, const pln_graph *g) {
  bool last = drop_memory_block(h, g);
  if (g->origins)
    (void)drop_memory_block(h, g->origins);
  for (uint32_t i = 0; last && i < g->n_tensors; i++)
    drop_tensor(h, g->tensors[i]);
}

static pln_status add_definitions(pln_memory_account *h, const pln_module *m) {
  bool first;
  return m->types ? add_memory_block(h, m->types,
                                     pln_definitions_bytes(m->types), &first)
                  : PLN_OK;
}

/* Bytes of a module's rows and, if it is an overlay, of its base's rows. */
static uint64_t module_size(const pln_module *m) {
  return sizeof *m + m->capacity * sizeof *m->own +
         (m->base ? 0 : pln_idmap_bytes(m->by_name));
}

static pln_status add_module(pln_memory_account *h, const pln_module *m) {
  bool first;
  PLN_TRY(add_memory_block(h, m, module_size(m), &first));
  if (!first)
    return PLN_OK;
  PLN_TRY(add_definitions(h, m));
  for (uint32_t i = 0; i < m->count; i++)
    PLN_TRY(add_graph(h, pln_module_function_at(m, i)));
  return PLN_OK;
}

pln_status pln_memory_account_add(pln_memory_account *h,
                                  const pln_pass_target *s) {
  return s->function ? add_graph(h, s->function) : add_module(h, s->module);
}

void pln_memory_account_remove(pln_memory_account *h,
                               const pln_pass_target *s) {
  const pln_module *m = s->module;
  if (s->function) {
    drop_graph(h, s->function);
    return;
  }
  if (!drop_memory_block(h, m))
    return;
  if (m->types)
    (void)drop_memory_block(h, m->types);
  for (uint32_t i = 0; i < m->count; i++)
    drop_graph(h, pln_module_function_at(m, i));
}

uint64_t *pln_memory_account_slot(pln_memory_account *h,
                                  const pln_graph *graph) {
  pln_memory_block *row = find_memory_block(h, graph);
  return row ? &row->note : NULL;
}

uint64_t pln_memory_account_bytes(const pln_memory_account *h) {
  return h->bytes + pln_hash_table_bytes(&h->table);
}

void pln_memory_account_free(pln_memory_account *h) {
  for (uint32_t i = 0; i < h->table.n_heads; i++)
    while (h->table.n_heads > i && h->table.heads[i])
      forget(h, (pln_memory_block *)(void *)h->table.heads[i]);
}
