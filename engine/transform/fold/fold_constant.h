/* fold_constant.h: FoldConstant on one graph, for passes that go on with what
 * it finds. */

#ifndef PLN_TRANSFORM_FOLD_FOLD_CONSTANT_H
#define PLN_TRANSFORM_FOLD_FOLD_CONSTANT_H

#include "transform/transform.h"

/* Folds constants as FoldConstant does, within the budget of the running pass's
 * option `fold`, and counts what it folded and refused. *out is `graph`,
 * retained, if nothing changed. */
pln_status pln_fold_constants(pln_pass_run *run, const pln_graph *graph,
                              pln_graph **out) PLN_CHECKED;

#endif
