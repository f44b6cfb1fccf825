/* registered.h: nodes of custom domains that registered operators stand for
 * (perilune/operator.h). */

#ifndef PLN_ONNX_REGISTERED_H
#define PLN_ONNX_REGISTERED_H

#include "ir/registered_op.h"

/* The operator of a node at that version of its domain: of several the one with
 * the greatest since_version up to it. 0: none. */
pln_op pln_onnx_registered(const pln_engine *engine, pln_slice domain,
                           pln_slice type, int64_t version);
/* The node that the operator is in ONNX; NULL: none, or not registered. */
const pln_operator_onnx *pln_onnx_registered_node(const pln_engine *engine,
                                                  pln_op op);
/* The core's name of an attribute that ONNX calls so. */
pln_slice pln_onnx_registered_attr(const pln_operator_onnx *node,
                                   pln_slice onnx_name);
/* The attributes of a call with the defaults, under ONNX's names. */
pln_status pln_onnx_registered_attrs(pln_engine *engine, pln_op op,
                                     pln_attrs attrs,
                                     pln_attrs *out) PLN_CHECKED;
/* The operand that is input `i` of the operator's node. */
uint32_t pln_onnx_registered_operand(const pln_operator_spec *spec, uint32_t i);

#endif
