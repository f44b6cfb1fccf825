/* infer/check_kind.h: kind checking of types, see infer/check_kind.c. */

#ifndef PLN_IR_INFER_CHECK_KIND_H
#define PLN_IR_INFER_CHECK_KIND_H

#include "ir/graph/graph.h"

/* Checks the kinds of the types of nodes and definitions, and that no type
 * variable is free. */
pln_status pln_module_check_kinds(const pln_module *module) PLN_CHECKED;

#endif
