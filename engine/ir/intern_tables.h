/* intern_tables.h: the engine's tables of interned dims, types and attributes.
 *
 * engine.c makes them after base, in this order, and frees them in reverse;
 * pass/parallel/child_engine.c does so for a child. A failed pln_x_new leaves
 * nothing behind; pln_x_free accepts a missing table. */

#ifndef PLN_IR_INTERN_TABLES_H
#define PLN_IR_INTERN_TABLES_H

#include "base/base.h"

/* Dim expressions, and symbolic values, which consist of dims. */
pln_status pln_dims_new(pln_engine *engine) PLN_CHECKED;
void pln_dims_free(pln_engine *engine);
pln_status pln_types_new(pln_engine *engine) PLN_CHECKED;
void pln_types_free(pln_engine *engine);
pln_status pln_attrs_new(pln_engine *engine) PLN_CHECKED;
void pln_attrs_free(pln_engine *engine);

/* A child engine's tables over those of its parent. On failure, whatever was
 * made is freed with the child. */
pln_status pln_dims_child(pln_engine *child) PLN_CHECKED;
pln_status pln_types_child(pln_engine *child) PLN_CHECKED;
pln_status pln_attrs_child(pln_engine *child) PLN_CHECKED;

struct pln_dims {
  pln_interner *exprs;  /* type/dim.c: pln_dim_row */
  pln_interner *values; /* type/symbolic_value.c: rank, then elements */
};

#endif
