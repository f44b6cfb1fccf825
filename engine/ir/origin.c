/* origin.c: the table of where nodes come from. Importers and builders append
 * rows; a graph and all that is rewritten from it share one table. */

#include "ir/origin.h"

#include <stdio.h>

pln_status pln_origins_new(pln_engine *engine, pln_origins **out) {
  pln_origins *origins = pln_mem_zeroed(engine, sizeof *origins);
  if (!origins)
    return pln_nomem(engine);
  origins->engine = engine;
  origins->refs = 1;
  uint32_t none;
  pln_status status = pln_origins_add(origins, &(pln_origin){0}, &none);
  if (status != PLN_OK) {
    pln_origins_release(origins);
    return status;
  }
  *out = origins;
  return PLN_OK;
}

pln_status pln_origins_over(pln_engine *child, pln_origins *base,
                            pln_origins **out) {
  pln_origins *origins = pln_mem_zeroed(child, sizeof *origins);
  if (!origins)
    return pln_nomem(child);
  origins->engine = child;
  origins->refs = 1;
  origins->base = base;
  origins->below = origins->count = base->count;
  origins->tell = base->tell;
  origins->declares = base->declares;
  *out = origins;
  return PLN_OK;
}

pln_origins *pln_origins_retain(pln_origins *origins) {
  origins->refs++;
  return origins;
}

void pln_origins_release(pln_origins *origins) {
  if (!origins || --origins->refs > 0)
    return;
  pln_engine *engine = origins->engine;
  for (uint32_t i = 0; i < origins->n_files; i++)
    pln_file_release(origins->files[i]);
  pln_mem_free(engine, origins->files,
               origins->cap_files * sizeof *origins->files);
  pln_mem_free(engine, origins->rows,
               origins->capacity * sizeof *origins->rows);
  pln_mem_free(engine, origins, sizeof *origins);
}

/* Rows of one file come in runs, so looking from the end finds it at once. */
static pln_status pin_file(pln_origins *origins, pln_file *file) {
  for (uint32_t i = origins->n_files; i-- > 0;)
    if (origins->files[i] == file)
      return PLN_OK;
  PLN_TRY(pln_mem_grow(origins->engine, (void **)&origins->files,
                       &origins->cap_files, origins->n_files + 1,
                       sizeof *origins->files));
  origins->files[origins->n_files++] = pln_file_retain(file);
  return PLN_OK;
}

pln_status pln_origins_add(pln_origins *origins, const pln_origin *row,
                           uint32_t *out) {
  if (row->file)
    PLN_TRY(pin_file(origins, row->file));
  PLN_TRY(pln_mem_grow(
      origins->engine, (void **)&origins->rows, &origins->capacity,
      (size_t)(origins->count - origins->below) + 1, sizeof *origins->rows));
  origins->rows[origins->count - origins->below] = *row;
  *out = origins->count++;
  return PLN_OK;
}

size_t pln_origins_tell(const pln_origins *origins, uint32_t row, char *text,
                        size_t size) {
  while (row) {
    const pln_origin *o = pln_origins_row(origins, row);
    if (o->name) {
      int n = snprintf(text, size, "value '%.200s'",
                       pln_symbol_text(origins->engine, o->name).data);
      return n < 0 ? 0 : (size_t)n;
    }
    if (o->file && origins->tell)
      return origins->tell(o, text, size);
    row = o->parent < row ? o->parent : 0;
  }
  return 0;
}

/* What a row was named from says the same of its source. */
static uint32_t named_from(const pln_origins *origins, uint32_t row) {
  const pln_origin *o = pln_origins_row(origins, row);
  return o->pass == 0 && o->parent < row ? o->parent : 0;
}

uint32_t pln_origins_place(const pln_origins *origins, uint32_t row) {
  while (row && !pln_origins_row(origins, row)->place.row)
    row = named_from(origins, row);
  return row;
}

pln_attrs pln_origins_attr_order(const pln_origins *origins, uint32_t row) {
  while (row && !pln_origins_row(origins, row)->attr_order)
    row = named_from(origins, row);
  return pln_origins_row(origins, row)->attr_order;
}
