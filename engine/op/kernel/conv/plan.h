/* plan.h: the plan of a convolution: extents, groups and window, read from a
 * call and checked. Used by conv.c, transposed.c and others. */

#ifndef PLN_OP_KERNEL_CONV_PLAN_H
#define PLN_OP_KERNEL_CONV_PLAN_H

#include <stddef.h>

#include "op/kernel/kernel.h"

/* The most spatial axes: depth, rows, columns. */
enum { PLN_CONV_AXES = 3 };

/* Output o and tap t of the window read input o * stride + t * dilation -
 * begin; in a transposed convolution input and output are exchanged. No
 * expression of that form overflows within the extents. */
typedef struct pln_conv_axis {
  int64_t in, out, window, stride, dilation, begin;
} pln_conv_axis;

typedef struct pln_conv_plan {
  size_t batch, groups;
  size_t in, out; /* channels per group */
  uint32_t space; /* number of spatial axes of the call; leading ones are 1 */
  pln_conv_axis axis[PLN_CONV_AXES];
  size_t taps;      /* elements of the window */
  size_t in_plane;  /* elements of an input channel */
  size_t out_plane; /* and of an output channel */
} pln_conv_plan;

/* Reads operands (x, w, bias) and attributes; refuses invalid ones. */
pln_status pln_conv_read(const pln_kernel_call *call,
                         pln_conv_plan *out) PLN_CHECKED;
pln_status pln_conv_read_transposed(const pln_kernel_call *call,
                                    pln_conv_plan *out) PLN_CHECKED;

/* Of the n positions first, first + stride, ...: how many lie before [0,
 * extent), and how many inside. */
void pln_conv_split(int64_t first, int64_t stride, int64_t extent, size_t n,
                    size_t *before, size_t *inside);

/* Runs a convolution of any float dtype: 16-bit floats are converted to float32
 * and back. args are x, w, bias (or NULL) as FLOAT32 or FLOAT64; `run` must
 * write every element of `out`. */
typedef pln_status (*pln_conv_fn)(pln_engine *engine, const pln_conv_plan *plan,
                                  pln_tensor *const *args, pln_tensor *out);
pln_status pln_conv_compute(pln_kernel_call *call, const pln_conv_plan *plan,
                            pln_conv_fn run) PLN_CHECKED;

#endif
