/* type/substitute.h: type substitution: replaces parts of types by other
 * types. */

#ifndef PLN_IR_TYPE_SUBSTITUTE_H
#define PLN_IR_TYPE_SUBSTITUTE_H

#include "base/base.h"

/* Callback for one type; *out is preset to it. If left unchanged, the type's
 * parts are mapped. If set to another type, that replaces it, and is mapped in
 * turn when *again is set. */
typedef pln_status (*pln_type_image_fn)(void *ud, pln_type type, pln_type *out,
                                        bool *again);

typedef struct pln_substitution_frame {
  pln_type type;   /* the type being mapped */
  pln_type walked; /* `type` or its replacement */
  uint32_t done, first;
} pln_substitution_frame;

/* Images are kept between calls of pln_type_substitution_apply. */
typedef struct pln_type_substitution {
  pln_engine *engine;
  uint8_t flags; /* a type without any of these PLN_TYPE_HAS_* flags maps to
                  * itself */
  pln_type_image_fn image; /* NULL: only the preset images apply */
  /* Called with the final image of a replaced type that was mapped in turn; may
   * be NULL. */
  void (*leave)(void *ud, pln_type type, pln_type image);
  void *ud;
  bool afresh;       /* map each occurrence separately, without memoisation */
  pln_idmap *images; /* type -> image + 1; made when first needed */
  pln_substitution_frame *frames;
  pln_type *parts; /* images of the open frames' finished parts */
  uint32_t n_frames, cap_frames, n_parts, cap_parts;
} pln_type_substitution;

/* PLN_ERR_TYPE when a type would contain itself. */
pln_status pln_type_substitution_apply(pln_type_substitution *map,
                                       pln_type type,
                                       pln_type *out) PLN_CHECKED;
/* Sets the image of `type`. */
pln_status pln_type_substitution_bind(pln_type_substitution *map, pln_type type,
                                      pln_type image) PLN_CHECKED;
/* Clears the images; the other function frees everything. */
void pln_type_substitution_reset(pln_type_substitution *map);
void pln_type_substitution_free(pln_type_substitution *map);

/* `type` with each type variable vars[i] replaced by types[i]. */
pln_status pln_type_substitute(pln_engine *engine, pln_type type, uint32_t n,
                               const pln_type *vars, const pln_type *types,
                               pln_type *out) PLN_CHECKED;

#endif
