/* scale_paths.h: moves a factor to the weights that it comes from, through all
 * paths between them; for fold_constant_scale.c. */

#ifndef PLN_TRANSFORM_FOLD_SCALE_PATHS_H
#define PLN_TRANSFORM_FOLD_SCALE_PATHS_H

#include "eval/eval.h"
#include "transform/transform.h"

/* Replaces *graph. *folded is increased by the number of factors moved. */
pln_status pln_fold_scale_paths(pln_engine *engine, pln_budget *budget,
                                bool halves, pln_graph **graph,
                                int64_t *folded) PLN_CHECKED;

#endif
