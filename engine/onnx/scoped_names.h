/* scoped_names.h: a symbol table with nested scopes: the newest entries are
 * removed when a scope ends. Names are borrowed. */

#ifndef PLN_ONNX_SCOPED_NAMES_H
#define PLN_ONNX_SCOPED_NAMES_H

#include "base/base.h"

typedef struct pln_scoped_name {
  pln_slice name;
  uint32_t hash;
  uint32_t next; /* an older row of the same bucket, or PLN_NONE */
  uint32_t value;
} pln_scoped_name;

typedef struct pln_scoped_names {
  pln_engine *engine;
  uint32_t *heads; /* by bucket: its newest row, or PLN_NONE */
  uint32_t n_heads;
  uint32_t count, capacity;
  pln_scoped_name *rows; /* oldest first */
} pln_scoped_names;

void pln_scoped_names_init(pln_scoped_names *names, pln_engine *engine);
void pln_scoped_names_free(pln_scoped_names *names);
/* Adds a row; it hides older rows of the same name. */
pln_status pln_scoped_names_add(pln_scoped_names *names, pln_slice name,
                                uint32_t value) PLN_CHECKED;
/* The newest row of that name from row `floor` on, or PLN_NONE. */
uint32_t pln_scoped_names_find(const pln_scoped_names *names, pln_slice name,
                               uint32_t floor);
/* Removes all rows from `count` on. */
void pln_scoped_names_truncate(pln_scoped_names *names, uint32_t count);

#endif
