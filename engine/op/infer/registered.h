/* registered.h: type inference of registered operators. */

#ifndef PLN_OP_INFER_REGISTERED_H
#define PLN_OP_INFER_REGISTERED_H

#include "op/infer/infer.h"

/* pln_op_info.infer of registered operators. */
pln_status pln_infer_registered(pln_infer *call);
/* The types of all results of a call whose operands have these types (0:
 * omitted), with defaults in `attrs`: `results` has as many entries as the
 * operator. 0: unknown. */
pln_status pln_registered_types(pln_engine *engine, pln_op op, pln_attrs attrs,
                                uint32_t n, const pln_type *args,
                                pln_type *results) PLN_CHECKED;

#endif
