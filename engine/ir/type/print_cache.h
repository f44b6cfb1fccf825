/* type/print_cache.h: a cache of printed types.
 *
 * Types nest, and dumps show the type of every node: a thousand nested
 * functions have a thousand types of up to a thousand parts. To keep output
 * from growing with the square of the program, optional texts are omitted when
 * many of them are long. */

#ifndef PLN_IR_TYPE_PRINT_CACHE_H
#define PLN_IR_TYPE_PRINT_CACHE_H

#include "base/text/writer.h"
#include "ir/type/fragment.h"

typedef struct pln_type_cache {
  pln_engine *engine;
  pln_fragments fragments;
  pln_buffer long_text;            /* the current text that is not cached */
  size_t long_bytes;               /* total of long texts returned */
  const struct pln_naming *naming; /* as in pln_writer */
  struct pln_metadata *meta;
} pln_type_cache;

pln_status pln_type_cache_init(pln_type_cache *texts,
                               pln_engine *engine) PLN_CHECKED;
void pln_type_cache_free(pln_type_cache *texts);
/* The text of a type, valid until the next call. With `may_lack`, *out may be
 * empty. */
pln_status pln_type_cache_get(pln_type_cache *texts, pln_type type,
                              bool may_lack, pln_slice *out) PLN_CHECKED;

/* Prints the dim as a metadata reference (relay/metadata/references.c); false
 * when it needs none. */
bool pln_put_meta_dim(pln_writer *w, pln_dim dim);
/* The name of a type variable in a text; relay/print/plan.c gives names. */
pln_slice pln_type_var_name(const struct pln_naming *naming, pln_type var);

#endif
