/* bounds.h: bounds of integer expressions. */

#ifndef PLN_CODEGEN_BOUNDS_H
#define PLN_CODEGEN_BOUNDS_H

#include "codegen/writer.h"

/* Bounds of a result in a dtype. False when it may not fit: then they are those
 * of the dtype. */
bool pln_c_bounds(pln_kind kind, pln_dtype dtype, const pln_c_value *a,
                  const pln_c_value *b, int64_t *lo, int64_t *hi);

/* Whether a comparison of integers holds: 0, 1, or -1 where that is not known.
 */
int pln_c_known(pln_kind kind, const pln_c_value *a, const pln_c_value *b);

#endif
