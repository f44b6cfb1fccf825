/* type/fragment.c: cached text fragments, stored one behind the other and found
 * by number or key.
 *
 * Used by the printer for types and attributes, of which a module has few
 * distinct ones. */

#include "ir/type/fragment.h"

pln_status pln_fragments_init(pln_fragments *fragments, pln_engine *engine) {
  *fragments = (pln_fragments){.engine = engine};
  pln_buffer_init(&fragments->text, engine);
  return pln_idmap_new(engine, &fragments->index);
}

void pln_fragments_free(pln_fragments *fragments) {
  if (!fragments->engine)
    return;
  if (fragments->index)
    pln_idmap_free(fragments->index);
  pln_mem_free(fragments->engine, fragments->rows,
               fragments->capacity * sizeof *fragments->rows);
  pln_buffer_free(&fragments->text);
}

pln_status pln_fragments_add(pln_fragments *fragments, size_t from,
                             uint32_t *out) {
  if (fragments->count == fragments->capacity)
    PLN_TRY(pln_mem_grow(fragments->engine, (void **)&fragments->rows,
                         &fragments->capacity, fragments->count + 1u,
                         sizeof *fragments->rows));
  fragments->rows[fragments->count] =
      (pln_fragment){from, fragments->text.size - from};
  *out = fragments->count++;
  return PLN_OK;
}

uint32_t pln_fragments_find(const pln_fragments *fragments, uint64_t key) {
  return pln_idmap_get(fragments->index, key) - 1; /* 0 - 1 is PLN_NONE */
}

pln_status pln_fragments_store(pln_fragments *fragments, uint64_t key,
                               uint32_t fragment) {
  return pln_idmap_set(fragments->index, key, fragment + 1);
}
