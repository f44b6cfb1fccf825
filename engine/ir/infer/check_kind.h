/* infer/check_kind.h: the kinds of types, see type/check_kind.c. */

#ifndef PLN_IR_INFER_CHECK_KIND_H
#define PLN_IR_INFER_CHECK_KIND_H

#include "ir/graph/graph.h"

/* Types of nodes and definitions are of the kinds that their places want, and
 * no type variable is free. */
pln_status pln_module_check_kinds(const pln_module *module) PLN_CHECKED;

#endif
