/* registered_op.h: what the IR knows of a registered operator
 * (perilune/operator.h): its operands and attributes by name. */

#ifndef PLN_IR_REGISTERED_OP_H
#define PLN_IR_REGISTERED_OP_H

#include "ir/op_info.h"

/* The most operands that a spec names; also attributes, and results. */
enum { PLN_MAX_OPERATOR_ARGS = 64 };

/* Lives as long as the engine and never changes. */
typedef struct pln_registered_op {
  pln_operator_spec spec; /* texts are symbols; doc is never NULL */
  pln_symbol *attr_names; /* of the attributes in the spec */
  pln_attrs *alone;   /* of each attribute: its default as the only entry; 0 */
  pln_attrs defaults; /* all of them */
} pln_registered_op;

/* Attributes in the form in which calls of the operator have them: values have
 * the kinds of the schema where they can be converted, and those equal to a
 * default are left out. Nothing is refused. */
pln_status pln_registered_normal(pln_engine *engine,
                                 const pln_registered_op *op, pln_attrs attrs,
                                 pln_attrs *out) PLN_CHECKED;
/* PLN_ERR_NAME for an unknown attribute; PLN_ERR_TYPE for one of the wrong
 * kind, or a missing one. */
pln_status pln_registered_check(pln_engine *engine, pln_op op,
                                pln_attrs attrs) PLN_CHECKED;
/* Adds the defaults of attributes that are not set. */
pln_status pln_registered_full(pln_engine *engine, const pln_registered_op *op,
                               pln_attrs attrs, pln_attrs *out) PLN_CHECKED;

#endif
