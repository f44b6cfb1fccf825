/* sliding_window.h: window positions over a tensor with known extents, for
 * kernels; infer/window.h is the symbolic counterpart. */

#ifndef PLN_OP_KERNEL_POOL_SLIDING_WINDOW_H
#define PLN_OP_KERNEL_POOL_SLIDING_WINDOW_H

#include "op/kernel/kernel.h"

/* The window along one axis. Tap k at position o reads o * stride + k *
 * dilation - before. */
typedef struct pln_sliding_window {
  int64_t in, out;
  int64_t window; /* number of taps */
  int64_t reach;  /* from the first tap to the end of the last */
  int64_t stride, dilation;
  int64_t before, after; /* padding; negative: cropping */
} pln_sliding_window;

/* Reads attributes kernel_shape, strides, dilations, pads, auto_pad and
 * ceil_mode for the spatial axes of `x` (batch, channels, space...) into
 * `axes`, which has room for PLN_MAX_RANK. Refuses invalid ones. */
pln_status pln_sliding_window_read(const pln_kernel_call *call,
                                   const pln_tensor *x,
                                   pln_sliding_window *axes) PLN_CHECKED;
/* The taps [*first, *end) of the window at `position` inside [-before, in +
 * after) if `padded`, else inside [0, in). */
void pln_sliding_window_taps(const pln_sliding_window *axis, int64_t position,
                             bool padded, int64_t *first, int64_t *end);

#endif
