/* unshare_scalars.h: scalar constants that belong to one operator each. */

#ifndef PLN_TRANSFORM_UNSHARE_SCALARS_H
#define PLN_TRANSFORM_UNSHARE_SCALARS_H

#include "transform/transform.h"

/* True for a scalar that a kernel writes as a literal. */
bool pln_is_literal_scalar(const pln_tensor *tensor);
/* *out is the graph in which each operator that uses such a scalar has its own;
 * the graph itself, retained, if that is so. */
pln_status pln_unshare_scalars(const pln_graph *graph,
                               pln_graph **out) PLN_CHECKED;

#endif
