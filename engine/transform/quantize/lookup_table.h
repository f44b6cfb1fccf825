/* lookup_table.h: a function of quantised integers as a table of its values. */

#ifndef PLN_TRANSFORM_QUANTIZE_LOOKUP_TABLE_H
#define PLN_TRANSFORM_QUANTIZE_LOOKUP_TABLE_H

#include "transform/relay_builder.h"

/* A table for elements of an integer dtype of 8 or 16 bits. */
typedef struct pln_lookup_table {
  pln_op op; /* the float function, or the qnn operator of it */
  pln_dtype from, to;
  float scale, out_scale;
  int32_t zero, out_zero;
} pln_lookup_table;

/* True if there is a table for the operator and the dtypes. */
bool pln_lookup_table_exists(const pln_lookup_table *table);
/* take(table, reinterpret(x)), where the bits of an element are its index. */
pln_ref pln_build_lookup(pln_relay_builder *r, const pln_lookup_table *table,
                         pln_ref x);

#endif
