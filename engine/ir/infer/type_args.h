/* infer/type_args.h: the type arguments of a call of a generic function.
 *
 * Usually they follow from the arguments. Others are explicit: a list of types
 * in the call's attribute "type_args", for the first type parameters or all. */

#ifndef PLN_IR_INFER_TYPE_ARGS_H
#define PLN_IR_INFER_TYPE_ARGS_H

#include "ir/graph/graph.h"
#include "ir/type/unify.h"

/* The explicit type arguments; NULL: none. */
const pln_attr *pln_written_type_args(const pln_engine *engine,
                                      pln_attrs attrs);
/* Instantiates a function type: each type parameter becomes its explicit
 * argument or a new hole. `args` (may be NULL) receives them. PLN_ERR_TYPE when
 * there are too many. */
pln_status pln_instantiate(pln_unifier *u, pln_type function,
                           const pln_attr *written, pln_type *args,
                           pln_type *out) PLN_CHECKED;
/* Removes explicit type arguments that follow from the arguments. */
pln_status pln_drop_redundant_type_args(pln_graph *graph,
                                        pln_ref call) PLN_CHECKED;
/* The attributes with explicit type arguments mapped. */
pln_status pln_mutate_type_args(pln_type_mutator *types, pln_engine *engine,
                                pln_attrs attrs, pln_attrs *out) PLN_CHECKED;

#endif
