/* zero_point.c: subtracts zero points before quantised operands are multiplied.
 * Called by the kernels of qnn.*. */

#include "op/relay/kernel/zero_point.h"

const pln_tensor *pln_compose_centred(pln_composition *s, uint32_t arg,
                                      uint32_t zero, int32_t axis) {
  const pln_tensor *x = pln_kernel_arg(s->call, arg);
  const pln_tensor *z = pln_kernel_arg(s->call, zero);
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank = 0;
  if (z->count != 1) {
    rank = x->rank;
    if (axis < 0 || axis >= (int32_t)rank || rank > PLN_MAX_RANK ||
        z->count != (size_t)x->dims[axis]) {
      pln_composition_refuse(s, "the zero points do not match the operand");
      return NULL;
    }
    for (uint32_t i = 0; i < rank; i++)
      dims[i] = i == (uint32_t)axis ? (int64_t)z->count : 1;
  }
  return pln_compose_binary(
      s, PLN_OP_SUB, pln_compose_cast(s, x, PLN_INT32),
      pln_compose_reshape(s, pln_compose_cast(s, z, PLN_INT32), rank, dims));
}
