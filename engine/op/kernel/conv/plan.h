/* plan.h: what a convolution computes: extents, groups and how its window
 * moves, read from a call and checked. For conv.c and conv_transpose.c. */

#ifndef PLN_OP_KERNEL_CONV_PLAN_H
#define PLN_OP_KERNEL_CONV_PLAN_H

#include <stddef.h>

#include "op/kernel/kernel.h"

/* Axes of space that are computed: depth, rows, columns. */
enum { PLN_CONV_AXES = 3 };

/* Output o and tap t of the window meet at input o * stride + t * dilation -
 * begin; of a transposed convolution input and output change places. No
 * expression of that form overflows within the extents. */
typedef struct pln_conv_axis {
  int64_t in, out, window, stride, dilation, begin;
} pln_conv_axis;

typedef struct pln_conv_plan {
  size_t batch, groups;
  size_t in, out; /* channels of a group */
  uint32_t space; /* axes that the call has; the others, in front, are 1 */
  pln_conv_axis axis[PLN_CONV_AXES];
  size_t taps;      /* elements of the window */
  size_t in_plane;  /* elements of an input channel */
  size_t out_plane; /* and of an output channel */
} pln_conv_plan;

/* Reads operands (x, w, bias) and attributes; refuses what does not fit. */
pln_status pln_conv_read(const pln_kernel_call *call,
                         pln_conv_plan *out) PLN_CHECKED;
pln_status pln_conv_read_transposed(const pln_kernel_call *call,
                                    pln_conv_plan *out) PLN_CHECKED;

/* Of the n positions first, first + stride, ... how many lie in front of
 * [0, extent), and how many of the rest in it. */
void pln_conv_split(int64_t first, int64_t stride, int64_t extent, size_t n,
                    size_t *before, size_t *inside);

/* What convolutions of every dtype go through: halves become floats and the
 * result of `run` becomes halves again. args: x, w, bias or NULL, of FLOAT32 or
 * FLOAT64; `out` is not set yet, every element is to be written. */
typedef pln_status (*pln_conv_fn)(pln_engine *engine, const pln_conv_plan *plan,
                                  pln_tensor *const *args, pln_tensor *out);
pln_status pln_conv_compute(pln_kernel_call *call, const pln_conv_plan *plan,
                            pln_conv_fn run) PLN_CHECKED;

#endif
