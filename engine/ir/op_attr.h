/* op_attr.h: the life cycle of the attributes of operators
 * (perilune/op_attr.h). */

#ifndef PLN_IR_OP_ATTR_H
#define PLN_IR_OP_ATTR_H

#include "base/base.h"

void pln_op_attrs_free(pln_engine *engine);
/* How often attributes have been set or removed: a result that was computed at
 * another version may depend on values that are gone. */
uint64_t pln_op_attrs_version(const pln_engine *engine);
/* The same, where calls of functions count too. */
uint64_t pln_op_attrs_uses(const pln_engine *engine);

#endif
