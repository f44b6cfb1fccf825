/* convert.h: runs of elements from one dtype to another; what cast stands on.
 */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_CONVERT_H
#define PLN_OP_KERNEL_ELEMENTWISE_CONVERT_H

#include "op/kernel/elementwise/small_float.h"
#include "op/kernel/kernel.h"

typedef struct pln_conversion {
  const pln_engine *engine; /* leaves the rest out when that stops; or NULL */
  pln_dtype from, to;
  bool folding;            /* refuse NaN and what is outside of an integer's
                              range */
  bool saturate;           /* small floats */
  pln_e8m0_round rounding; /* FLOAT8_E8M0FNU */
} pln_conversion;

/* Why a run was not converted. */
typedef enum pln_converted {
  PLN_CONVERTED,
  PLN_CONVERT_NAN,     /* is no integer */
  PLN_CONVERT_OUTSIDE, /* of the integer's range */
  PLN_CONVERT_NEGATIVE /* and the dtype has no sign */
} pln_converted;

/* A number; not a string, a complex number or none. */
bool pln_convertible(pln_dtype dtype);
/* Converts n elements; those of dtypes below a byte begin with one. */
pln_converted pln_convert(const pln_conversion *c, const void *from, size_t n,
                          void *to);

#endif
