/* zero_point.h: quantised operands without their zero points. */

#ifndef PLN_OP_RELAY_KERNEL_ZERO_POINT_H
#define PLN_OP_RELAY_KERNEL_ZERO_POINT_H

#include "op/kernel/composed.h"

/* Argument `arg` minus its zero point, argument `zero`, in int32. The zero
 * point is one number, or a vector along `axis` of the operand; `axis` -1: one
 * number only. */
const pln_tensor *pln_compose_centred(pln_composition *s, uint32_t arg,
                                      uint32_t zero, int32_t axis);

#endif
