/* weight_params.h: passes that replace parameters of a function by others,
 * which hold the same weights in another form. */

#ifndef PLN_TRANSFORM_SPARSE_WEIGHT_PARAMS_H
#define PLN_TRANSFORM_SPARSE_WEIGHT_PARAMS_H

#include "transform/relay_builder.h"

/* A new free variable "NAME.SUFFIX", where NAME is that of `weight`, a Var of
 * the old graph. */
pln_ref pln_weight_param(pln_relay_builder *r, pln_ref weight,
                         const char *suffix, pln_type type);

/* Rewrites the function. If it has free variables then, its parameters become
 * those that it still uses, in order of use, and then these variables. (TVM:
 * FreeVars of the body.) */
pln_status pln_rewrite_weights(pln_pass_run *run,
                               const pln_mutator *mutator) PLN_CHECKED;

/* The place of a parameter's name in the list of strings of an option; -1: it
 * is not listed, or the node is no parameter of the function. */
int64_t pln_weight_index(const pln_graph *graph, pln_ref weight,
                         const pln_attr *names);

/* For the options weight_name and weight_shape: the shape of name `index`.
 * Reports PLN_ERR_ARGUMENT if there are not as many shapes as names, or a shape
 * has fewer than `least` or more than `most` extents. */
typedef struct pln_sparse_options {
  pln_attr names, shapes;
} pln_sparse_options;
pln_status pln_sparse_options_read(pln_pass_run *run, uint32_t least,
                                   uint32_t most,
                                   pln_sparse_options *out) PLN_CHECKED;
/* Replaces *node, the image of the call `old` of two operands, by a call of
 * `op` with weight `index` in BSR format: data, of all its extents but the last
 * two, indices and indptr. PLN_ERR_TYPE if these do not give a result of the
 * type of the call. *replaced is increased if a limit allows it. */
pln_status pln_sparse_replace(pln_rewrite *rw, pln_ref old,
                              const pln_sparse_options *options, int64_t index,
                              pln_op op, uint32_t n_attrs,
                              const pln_relay_attr *attrs, pln_ref *node,
                              int64_t *replaced) PLN_CHECKED;

#endif
