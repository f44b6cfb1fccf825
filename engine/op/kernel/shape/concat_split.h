/* concat_split.h: splits a tensor along an axis and concatenates tensors along
 * one. For sequences and for results of loop iterations. */

#ifndef PLN_OP_KERNEL_SHAPE_CONCAT_SPLIT_H
#define PLN_OP_KERNEL_SHAPE_CONCAT_SPLIT_H

#include "ir/tensor/runtime_value.h"
#include "op/kernel/kernel.h"

/* Errors name the operator of `call`; its results are not touched. */

/* Elements [begin, end) along the axis. With `drop`, for a single element, the
 * axis is removed. */
pln_status pln_split_part(const pln_kernel_call *call, const pln_tensor *x,
                          uint32_t axis, int64_t begin, int64_t end, bool drop,
                          pln_tensor **out) PLN_CHECKED;
static inline pln_status pln_split_part_at(const pln_kernel_call *call,
                                           const pln_tensor *x, uint32_t axis,
                                           int64_t index, pln_tensor **out) {
  return pln_split_part(call, x, axis, index, index + 1, true, out);
}
/* Concatenates n > 0 tensors along an existing axis. */
pln_status pln_concat_parts(const pln_kernel_call *call, uint32_t n,
                            const pln_runtime_value *parts, int64_t axis,
                            pln_tensor **out) PLN_CHECKED;
/* Stacks n > 0 tensors of equal shape along a new axis; `backwards`: last one
 * first. */
pln_status pln_stack_parts(const pln_kernel_call *call, uint32_t n,
                           const pln_runtime_value *parts, int64_t axis,
                           bool backwards, pln_tensor **out) PLN_CHECKED;

#endif
