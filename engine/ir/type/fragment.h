/* type/fragment.h: cached text fragments (types, attributes): printed once,
 * written often. */

#ifndef PLN_IR_TYPE_FRAGMENT_H
#define PLN_IR_TYPE_FRAGMENT_H

#include "base/base.h"

typedef struct pln_fragment {
  size_t from, size;
} pln_fragment;

typedef struct pln_fragments {
  pln_engine *engine;
  pln_buffer text;
  pln_fragment *rows;
  uint32_t count, capacity;
  pln_idmap *index; /* key -> row + 1 */
} pln_fragments;

pln_status pln_fragments_init(pln_fragments *fragments,
                              pln_engine *engine) PLN_CHECKED;
void pln_fragments_free(pln_fragments *fragments);
/* The text appended to `text` since it had `from` bytes becomes a fragment. */
pln_status pln_fragments_add(pln_fragments *fragments, size_t from,
                             uint32_t *out) PLN_CHECKED;
/* The fragment stored under a key, or PLN_NONE. */
uint32_t pln_fragments_find(const pln_fragments *fragments, uint64_t key);
pln_status pln_fragments_store(pln_fragments *fragments, uint64_t key,
                               uint32_t fragment) PLN_CHECKED;
static inline pln_slice pln_fragments_text(const pln_fragments *fragments,
                                           uint32_t fragment) {
  const pln_fragment *row = &fragments->rows[fragment];
  const char *text = fragments->text.data;
  return (pln_slice){text ? text + row->from : "", row->size};
}

#endif
