/* sliding_window.h: how a window slides over a tensor whose extents are
 * numbers: what infer/window.h infers, for kernels. */

#ifndef PLN_OP_KERNEL_POOL_SLIDING_WINDOW_H
#define PLN_OP_KERNEL_POOL_SLIDING_WINDOW_H

#include "op/kernel/kernel.h"

/* Along one axis. Tap k of the window at position o lies at
 * o * stride + k * dilation - before. */
typedef struct pln_sliding_window {
  int64_t in, out;
  int64_t window; /* taps */
  int64_t reach;  /* from the first tap to behind the last */
  int64_t stride, dilation;
  int64_t before, after; /* padding below the reach; negative: cut off */
} pln_sliding_window;

/* Reads attributes kernel_shape, strides, dilations, pads, auto_pad and
 * ceil_mode for the axes of space of `x` (batch, channels, space...): one
 * pln_sliding_window each, in `axes` that has room for PLN_MAX_RANK. Refuses
 * what is not valid. */
pln_status pln_sliding_window_read(const pln_kernel_call *call,
                                   const pln_tensor *x,
                                   pln_sliding_window *axes) PLN_CHECKED;
/* The taps [*first, *end) of the window at `position` that lie inside of
 * [-before, in + after) when `padded`, else of [0, in). */
void pln_sliding_window_taps(const pln_sliding_window *axis, int64_t position,
                             bool padded, int64_t *first, int64_t *end);

#endif
