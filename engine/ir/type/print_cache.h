/* type/print_cache.h: texts of types, each made once.
 *
 * Types nest, and a text shows them at every node: a thousand functions in each
 * other have a thousand types of a thousand parts. Such texts would grow with
 * the square of the program, so those that need not be there are left out when
 * many of them are long. */

#ifndef PLN_IR_TYPE_PRINT_CACHE_H
#define PLN_IR_TYPE_PRINT_CACHE_H

#include "ir/type/fragment.h"

typedef struct pln_type_cache {
  pln_engine *engine;
  pln_fragments fragments;
  pln_buffer long_text;            /* one that is not kept */
  size_t long_bytes;               /* given out, of long texts */
  const struct pln_naming *naming; /* as in pln_writer */
  struct pln_metadata *meta;
} pln_type_cache;

pln_status pln_type_cache_init(pln_type_cache *texts,
                               pln_engine *engine) PLN_CHECKED;
void pln_type_cache_free(pln_type_cache *texts);
/* The text of a type until the next call. When it `may_lack`, *out may be
 * empty. */
pln_status pln_type_cache_get(pln_type_cache *texts, pln_type type,
                              bool may_lack, pln_slice *out) PLN_CHECKED;

#endif
