/* infer/type_args.h: what a call gives for the type parameters of what it
 * calls.
 *
 * As a rule the arguments tell. What they do not tell may be written: it stands
 * among the call's attributes as "type_args", a list of types, the first ones
 * or all. */

#ifndef PLN_IR_INFER_TYPE_ARGS_H
#define PLN_IR_INFER_TYPE_ARGS_H

#include "ir/graph/graph.h"
#include "ir/type/unify.h"

/* What is written; NULL: nothing. */
const pln_attr *pln_written_type_args(const pln_engine *engine,
                                      pln_attrs attrs);
/* The function type without its type parameters: for each what is written, else
 * a new hole. `args` (may be NULL) is given them. PLN_ERR_TYPE when more are
 * written than there are. */
pln_status pln_instantiate(pln_unifier *u, pln_type function,
                           const pln_attr *written, pln_type *args,
                           pln_type *out) PLN_CHECKED;
/* What is written goes when the arguments tell the same. */
pln_status pln_drop_redundant_type_args(pln_graph *graph,
                                        pln_ref call) PLN_CHECKED;
/* The attributes with the images of what is written. */
pln_status pln_mutate_type_args(pln_type_mutator *types, pln_engine *engine,
                                pln_attrs attrs, pln_attrs *out) PLN_CHECKED;

#endif
