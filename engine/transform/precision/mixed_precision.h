/* mixed_precision.h: in which precision ToMixedPrecision computes an operator.
 */

#ifndef PLN_TRANSFORM_PRECISION_MIXED_PRECISION_H
#define PLN_TRANSFORM_PRECISION_MIXED_PRECISION_H

#include "op/op.h"

typedef enum pln_precision_category {
  PLN_PRECISION_ALWAYS = 0, /* the numbers are TVM's */
  PLN_PRECISION_FOLLOW = 1,
  PLN_PRECISION_NEVER = 2
} pln_precision_category;

/* How one call is converted: the dtype of its sums, and of its result. */
typedef struct pln_precision {
  pln_precision_category category;
  bool listed; /* the operator has a row in mixed_precision.def */
  pln_dtype accumulation, output;
} pln_precision;

/* The attribute of an operator that takes the place of its row: a function of
 * the call and the name of the lower precision that returns { category,
 * accumulation dtype, output dtype }. */
#define PLN_PRECISION_KEY "FTVMMixedPrecisionConversionType"

/* That of a call of an operator, when the lower precision is `to`. */
pln_status pln_precision_of(const pln_graph *graph, pln_ref call, pln_dtype to,
                            pln_precision *out) PLN_CHECKED;
/* False if the lower precision cannot represent the bounds of a clip. */
bool pln_precision_has_range(const pln_graph *graph, pln_ref call,
                             pln_dtype to);
/* The attributes of the call in the lower precision: `out_dtype` of products,
 * `dtype` of operators that make tensors. Unchanged unless it is a float. */
pln_status pln_precision_attrs(const pln_graph *graph, pln_ref call,
                               pln_dtype accumulation,
                               pln_attrs *out) PLN_CHECKED;

#endif
