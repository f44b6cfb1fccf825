/* type/fragment.h: pieces of text that are made once and written often: types
 * and attributes. */

#ifndef PLN_IR_TYPE_FRAGMENT_H
#define PLN_IR_TYPE_FRAGMENT_H

#include "base/base.h"

typedef struct pln_piece {
  size_t from, size;
} pln_piece;

typedef struct pln_pieces {
  pln_engine *engine;
  pln_buffer text;
  pln_piece *rows;
  uint32_t count, capacity;
  pln_idmap *index; /* key -> row + 1 */
} pln_pieces;

pln_status pln_pieces_init(pln_pieces *pieces, pln_engine *engine) PLN_CHECKED;
void pln_pieces_free(pln_pieces *pieces);
/* What was appended to `text` since it had `from` bytes becomes a piece. */
pln_status pln_pieces_add(pln_pieces *pieces, size_t from,
                          uint32_t *out) PLN_CHECKED;
/* The piece kept under a key, to be kept under it; PLN_NONE: none. */
uint32_t pln_pieces_find(const pln_pieces *pieces, uint64_t key);
pln_status pln_pieces_keep(pln_pieces *pieces, uint64_t key,
                           uint32_t piece) PLN_CHECKED;
static inline pln_slice pln_pieces_text(const pln_pieces *pieces,
                                        uint32_t piece) {
  const pln_piece *row = &pieces->rows[piece];
  const char *text = pieces->text.data;
  return (pln_slice){text ? text + row->from : "", row->size};
}

#endif
