/* attributes.h: list attributes of calls of ai.onnx.ml, and matrices of
 * features. */

#ifndef PLN_OP_KERNEL_ML_ATTRIBUTES_H
#define PLN_OP_KERNEL_ML_ATTRIBUTES_H

#include "op/kernel/composed.h"

/* A list attribute; an omitted one has no elements. */
typedef struct pln_ml_list {
  size_t count;
  const int64_t *ints;
  const double *floats;
  const pln_slice *strings;
} pln_ml_list;

pln_ml_list pln_ml_ints(const pln_kernel_call *call, const char *name);
/* Also of attribute NAME_as_tensor, whose elements must be as many floats;
 * `s` owns what is made. */
pln_ml_list pln_ml_floats(pln_composition *s, const char *name);
pln_ml_list pln_ml_strings(const pln_kernel_call *call, const char *name);

/* The tensor of an attribute, dense, in memory and aligned; NULL after a
 * failure. `s` owns it. */
const pln_tensor *pln_ml_tensor(pln_composition *s, const pln_tensor *tensor);

/* Operand 0 as rows of features, as float32 or float64; a vector is one row. */
typedef struct pln_ml_rows {
  const pln_tensor *tensor;
  int64_t rows, columns;
} pln_ml_rows;

/* False after a refusal: other ranks, or other dtypes than numbers. */
bool pln_ml_read_rows(pln_composition *s, pln_dtype dtype, pln_ml_rows *out);

#endif
