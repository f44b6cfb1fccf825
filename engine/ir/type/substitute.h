/* type/substitute.h: types with other types in place of some of their parts. */

#ifndef PLN_IR_TYPE_SUBSTITUTE_H
#define PLN_IR_TYPE_SUBSTITUTE_H

#include "base/base.h"

/* What stands for a type: *out is preset to it. Left so, its parts are mapped;
 * set to another type, that one stands for it, mapped in turn when *again. */
typedef pln_status (*pln_type_image_fn)(void *ud, pln_type type, pln_type *out,
                                        bool *again);

typedef struct pln_substitution_frame {
  pln_type type;   /* whose image is sought */
  pln_type walked; /* `type`, or what stands for it */
  uint32_t done, first;
} pln_substitution_frame;

/* Images are kept from one call of pln_type_substitution_apply to the next. */
typedef struct pln_type_substitution {
  pln_engine *engine;
  uint8_t flags; /* a type without any of these PLN_TYPE_HAS_* is its own
                    image */
  pln_type_image_fn image; /* NULL: only what is preset changes */
  /* Told the image of what stood for another type, mapped in turn; or NULL. */
  void (*leave)(void *ud, pln_type type, pln_type image);
  void *ud;
  bool afresh;       /* each occurrence of a part is mapped by itself */
  pln_idmap *images; /* type -> image + 1; made when first needed */
  pln_substitution_frame *frames;
  pln_type *parts; /* images of the open frames' finished parts */
  uint32_t n_frames, cap_frames, n_parts, cap_parts;
} pln_type_substitution;

/* PLN_ERR_TYPE when a type would contain itself. */
pln_status pln_type_substitution_apply(pln_type_substitution *map,
                                       pln_type type,
                                       pln_type *out) PLN_CHECKED;
/* From here on `image` stands for `type`. */
pln_status pln_type_substitution_bind(pln_type_substitution *map, pln_type type,
                                      pln_type image) PLN_CHECKED;
/* Forgets the images, or frees all. */
void pln_type_substitution_reset(pln_type_substitution *map);
void pln_type_substitution_free(pln_type_substitution *map);

/* `type` with types[i] in place of the type variable vars[i]. */
pln_status pln_type_substitute(pln_engine *engine, pln_type type, uint32_t n,
                               const pln_type *vars, const pln_type *types,
                               pln_type *out) PLN_CHECKED;

#endif
