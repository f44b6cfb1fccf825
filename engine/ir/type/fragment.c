/* type/fragment.c: pieces of text, one behind the other, found by number or
 * key.
 *
 * Kept by the printer for types and attributes, of which a module has few that
 * differ. */

#include "ir/type/fragment.h"

pln_status pln_pieces_init(pln_pieces *pieces, pln_engine *engine) {
  *pieces = (pln_pieces){.engine = engine};
  pln_buffer_init(&pieces->text, engine);
  return pln_idmap_new(engine, &pieces->index);
}

void pln_pieces_free(pln_pieces *pieces) {
  if (!pieces->engine)
    return;
  if (pieces->index)
    pln_idmap_free(pieces->index);
  pln_mem_free(pieces->engine, pieces->rows,
               pieces->capacity * sizeof *pieces->rows);
  pln_buffer_free(&pieces->text);
}

pln_status pln_pieces_add(pln_pieces *pieces, size_t from, uint32_t *out) {
  if (pieces->count == pieces->capacity)
    PLN_TRY(pln_mem_grow(pieces->engine, (void **)&pieces->rows,
                         &pieces->capacity, pieces->count + 1u,
                         sizeof *pieces->rows));
  pieces->rows[pieces->count] = (pln_piece){from, pieces->text.size - from};
  *out = pieces->count++;
  return PLN_OK;
}

uint32_t pln_pieces_find(const pln_pieces *pieces, uint64_t key) {
  return pln_idmap_get(pieces->index, key) - 1; /* 0 - 1 is PLN_NONE */
}

pln_status pln_pieces_keep(pln_pieces *pieces, uint64_t key, uint32_t piece) {
  return pln_idmap_set(pieces->index, key, piece + 1);
}
