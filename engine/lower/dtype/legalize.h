/* legalize.h: floating-point dtypes that processors do not compute, as dtypes
 * that they do: bfloat16 and the two of 8 bits. For the passes of lower/dtype.
 */

#ifndef PLN_LOWER_DTYPE_LEGALIZE_H
#define PLN_LOWER_DTYPE_LEGALIZE_H

#include "lower/emit.h"
#include "lower/lower.h"

typedef enum pln_narrow_family {
  PLN_NARROW_BFLOAT16,
  PLN_NARROW_FLOAT8
} pln_narrow_family;

/* Whether a scalar, vector or pointer type is of the family. */
bool pln_is_narrow(const pln_engine *engine, pln_type type,
                   pln_narrow_family family);
/* The type with the same lanes, or pointer with the same scope, of elements of
 * another dtype. */
pln_status pln_type_with_dtype(pln_engine *engine, pln_type type,
                               pln_dtype dtype, pln_type *out) PLN_CHECKED;
/* The unsigned integers of the same width. */
pln_dtype pln_storage_dtype(pln_dtype dtype);

/* A floating-point value as one of another dtype, by operations on its bits;
 * rounds to even. */
pln_ref pln_emit_float_bits(pln_emit *e, pln_ref value, pln_dtype dtype);

#endif
