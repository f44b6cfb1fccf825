/* convert.h: converts runs of elements from one dtype to another; the basis of
 * cast. */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_CONVERT_H
#define PLN_OP_KERNEL_ELEMENTWISE_CONVERT_H

#include "op/kernel/elementwise/small_float.h"
#include "op/kernel/kernel.h"

typedef struct pln_conversion {
  /* Polled for stops, which end a conversion early; or NULL. */
  const pln_engine *engine;
  pln_dtype from, to;
  bool folding;  /* refuse NaN and values outside an integer's range */
  bool saturate; /* of small floats */
  pln_e8m0_round rounding; /* of FLOAT8_E8M0FNU */
} pln_conversion;

/* Why a run was not converted. */
typedef enum pln_converted {
  PLN_CONVERTED,
  PLN_CONVERT_NAN,     /* NaN to an integer */
  PLN_CONVERT_OUTSIDE, /* out of the integer's range */
  PLN_CONVERT_NEGATIVE /* negative, and the dtype is unsigned */
} pln_converted;

/* Returns true for numbers: not for strings and complex numbers. */
bool pln_convertible(pln_dtype dtype);
/* Converts n elements. Elements smaller than a byte start at a byte
 * boundary. */
pln_converted pln_convert(const pln_conversion *c, const void *from, size_t n,
                          void *to);

#endif
