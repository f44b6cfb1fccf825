/* intern_tables.h: the engine's tables of interned dims, types and attributes.
 *
 * Made by engine.c (of a child by pass/parallel/child_engine.c) in this order
 * after base, freed in the opposite one. A failed pln_x_new leaves nothing
 * behind; pln_x_free takes an absent table. */

#ifndef PLN_IR_INTERN_TABLES_H
#define PLN_IR_INTERN_TABLES_H

#include "base/base.h"

/* Dim expressions, and the values made of dims. */
pln_status pln_dims_new(pln_engine *engine) PLN_CHECKED;
void pln_dims_free(pln_engine *engine);
pln_status pln_types_new(pln_engine *engine) PLN_CHECKED;
void pln_types_free(pln_engine *engine);
pln_status pln_attrs_new(pln_engine *engine) PLN_CHECKED;
void pln_attrs_free(pln_engine *engine);

/* The same for a child engine, over the tables of its parent. What fails is
 * freed with the child. */
pln_status pln_dims_child(pln_engine *child) PLN_CHECKED;
pln_status pln_types_child(pln_engine *child) PLN_CHECKED;
pln_status pln_attrs_child(pln_engine *child) PLN_CHECKED;

struct pln_dims {
  pln_interner *exprs;  /* type/dim.c: pln_dim_row */
  pln_interner *values; /* type/symbolic_value.c: rank, then elements */
};

#endif
