/* pattern_table.c: the engine's tables of dataflow patterns, by name.
 *
 * Registered by scripts (pl.pattern_table), read by MergeComposite, which keeps
 * a table while it runs. Semantics: TVM's register_pattern_table. */

#include "rule/dataflow/pattern_table.h"

struct pln_pattern_tables {
  pln_idmap *by_name; /* symbol -> index + 1 */
  uint32_t n, capacity;
  pln_pattern_table **items; /* retained */
};

static pln_status tables_of(pln_engine *engine,
                            struct pln_pattern_tables **out) {
  *out = engine->pattern_tables;
  if (*out)
    return PLN_OK;
  struct pln_pattern_tables *tables = pln_mem_zeroed(engine, sizeof *tables);
  if (!tables)
    return pln_nomem(engine);
  pln_status status = pln_idmap_new(engine, &tables->by_name);
  if (status == PLN_OK)
    *out = engine->pattern_tables = tables;
  else
    pln_mem_free(engine, tables, sizeof *tables);
  return status;
}

void pln_pattern_table_release(pln_pattern_table *table) {
  if (!table || --table->refs > 0)
    return;
  for (uint32_t i = 0; i < table->n; i++)
    if (table->rows[i].check.release)
      table->rows[i].check.release(table->rows[i].check.ud);
  if (table->release)
    table->release(table->ud);
  pln_mem_free(table->engine, table->rows,
               ((size_t)table->n + 1) * sizeof *table->rows);
  pln_mem_free(table->engine, table, sizeof *table);
}

void pln_pattern_tables_free(pln_engine *engine) {
  struct pln_pattern_tables *tables = engine->pattern_tables;
  if (!tables)
    return;
  for (uint32_t i = 0; i < tables->n; i++)
    pln_pattern_table_release(tables->items[i]);
  pln_mem_free(engine, tables->items, tables->capacity * sizeof *tables->items);
  pln_idmap_free(tables->by_name);
  pln_mem_free(engine, tables, sizeof *tables);
  engine->pattern_tables = NULL;
}

/* A table without what it takes from the caller. */
static pln_status new_table(pln_engine *engine, pln_symbol name, uint32_t n,
                            const pln_pattern_row *rows,
                            pln_pattern_table **out) {
  pln_pattern_table *table = pln_mem_zeroed(engine, sizeof *table);
  pln_pattern_row *copy = pln_mem_new(engine, ((size_t)n + 1) * sizeof *copy);
  if (!table || !copy) {
    pln_mem_free(engine, copy, ((size_t)n + 1) * sizeof *copy);
    pln_mem_free(engine, table, sizeof *table);
    return pln_nomem(engine);
  }
  if (n)
    memcpy(copy, rows, n * sizeof *copy);
  *table = (pln_pattern_table){
      .engine = engine, .refs = 1, .name = name, .n = n, .rows = copy};
  *out = table;
  return PLN_OK;
}

/* The place of the name, with room for a table. */
static pln_status find_place(pln_engine *engine, pln_symbol name,
                             struct pln_pattern_tables **tables, uint32_t *at) {
  PLN_TRY(tables_of(engine, tables));
  struct pln_pattern_tables *t = *tables;
  *at = pln_idmap_get(t->by_name, name);
  if (*at)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(engine, (void **)&t->items, &t->capacity,
                       (size_t)t->n + 1, sizeof *t->items));
  PLN_TRY(pln_idmap_set(t->by_name, name, t->n + 1));
  t->items[t->n++] = NULL;
  *at = t->n;
  return PLN_OK;
}

pln_status pln_pattern_table_register(pln_engine *engine, pln_slice name,
                                      uint32_t n, const pln_pattern_row *rows,
                                      void (*release)(void *ud), void *ud) {
  struct pln_pattern_tables *tables;
  pln_pattern_table *table = NULL;
  pln_symbol symbol;
  uint32_t at;
  if (engine->parent)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "pattern tables cannot be registered while passes "
                          "run on threads");
  PLN_TRY(pln_symbol_intern(engine, name, &symbol));
  PLN_TRY(find_place(engine, symbol, &tables, &at));
  PLN_TRY(new_table(engine, symbol, n, rows, &table));
  table->release = release;
  table->ud = ud;
  pln_pattern_table *former = tables->items[at - 1];
  tables->items[at - 1] = table;
  pln_pattern_table_release(former);
  return PLN_OK;
}

pln_status pln_pattern_table_find(pln_engine *engine, pln_slice name,
                                  pln_pattern_table **out) {
  const struct pln_pattern_tables *tables = engine->pattern_tables;
  pln_symbol symbol = pln_intern_find(engine->symbols, name.data, name.size);
  uint32_t at = tables && symbol ? pln_idmap_get(tables->by_name, symbol) : 0;
  *out = at ? tables->items[at - 1] : NULL;
  if (!*out)
    return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                          "no pattern table is called '%.*s'", (int)name.size,
                          name.data);
  (*out)->refs++;
  return PLN_OK;
}
