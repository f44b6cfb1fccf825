/* scoped_names.h: a table from names to numbers whose newest entries can be
 * taken back: the scopes of ONNX's values. Names are borrowed. */

#ifndef PLN_ONNX_SCOPED_NAMES_H
#define PLN_ONNX_SCOPED_NAMES_H

#include "base/base.h"

typedef struct pln_name_row {
  pln_slice name;
  uint32_t hash;
  uint32_t next; /* older row of the same bucket, or PLN_NONE */
  uint32_t value;
} pln_name_row;

typedef struct pln_names {
  pln_engine *engine;
  uint32_t *heads; /* of n_heads buckets: the newest row, or PLN_NONE */
  uint32_t n_heads;
  uint32_t count, capacity;
  pln_name_row *rows; /* oldest first */
} pln_names;

void pln_names_init(pln_names *names, pln_engine *engine);
void pln_names_free(pln_names *names);
/* Hides an older entry of that name. */
pln_status pln_names_add(pln_names *names, pln_slice name,
                         uint32_t value) PLN_CHECKED;
/* The newest row of that name from row `floor` on, or PLN_NONE. */
uint32_t pln_names_find(const pln_names *names, pln_slice name, uint32_t floor);
/* Takes back all rows from `count` on. */
void pln_names_cut(pln_names *names, uint32_t count);

#endif
