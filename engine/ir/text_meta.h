/* text_meta.h: the constants that text refers to as meta[relay.Constant][i],
 * and the section that holds them. */

#ifndef PLN_TEXT_META_H
#define PLN_TEXT_META_H

#include "ir/tensor.h"
#include "ir/text_writer.h"

typedef struct pln_meta {
  pln_engine *engine;
  const pln_tensor **tensors; /* borrowed */
  uint32_t count, capacity;
  size_t bytes;      /* of all of them */
  pln_idmap *number; /* tensor of an attribute -> its number + 1 */
} pln_meta;

pln_status pln_meta_init(pln_meta *meta, pln_engine *engine) PLN_CHECKED;
void pln_meta_free(pln_meta *meta);
/* The next number, for a Constant. */
pln_status pln_meta_add(pln_meta *meta, const pln_tensor *tensor,
                        uint32_t *number) PLN_CHECKED;
/* All tensors in `attrs`. */
pln_status pln_meta_add_attrs(pln_meta *meta, pln_attrs attrs) PLN_CHECKED;
/* Of a tensor that pln_meta_add_attrs met; PLN_NONE for others. */
uint32_t pln_meta_number(const pln_meta *meta, const pln_tensor *tensor);
/* The section, or a remark when it would be too long; nothing when there are
 * no constants. */
void pln_put_meta(pln_writer *w, const pln_meta *meta);

#endif
