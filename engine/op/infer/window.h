/* window.h: the extents that sliding windows give, for convolutions and
 * pooling, plain and quantised. */

#ifndef PLN_OP_INFER_WINDOW_H
#define PLN_OP_INFER_WINDOW_H

#include "op/infer/infer.h"

/* The extents of space: of the window, or of what slides. */
typedef struct pln_extents {
  int32_t rank; /* -1: unknown */
  pln_dim dims[PLN_MAX_RANK];
} pln_extents;

/* Attribute kernel_shape, else the axes of operand `weight` (PLN_NONE: there is
 * none) from 2 on. */
void pln_window_extents(const pln_infer *call, uint32_t weight,
                        pln_extents *out);
/* What a window that slides over `in` (batch, channels, space) gives along the
 * axes of space: pads, strides, dilations, auto_pad, ceil_mode as in the
 * call's attributes. out->dims from 2 on are set; out->rank is in's. */
pln_status pln_window_slide(const pln_infer *call, const pln_shape *in,
                            const pln_extents *window,
                            pln_shape *out) PLN_CHECKED;
/* The inverse, as transposed convolution and unpooling need it. */
pln_status pln_window_unslide(const pln_infer *call, const pln_shape *in,
                              const pln_extents *window,
                              pln_shape *out) PLN_CHECKED;
/* A convolution's shape, from operand `x` and its weight. */
pln_status pln_infer_conv_shape(const pln_infer *call, uint32_t x, uint32_t w,
                                pln_shape *out) PLN_CHECKED;

/* Attributes of Relay's operators. An integer of list `name`, of which one may
 * stand for all; `other` when there is none. */
int64_t pln_window_int(const pln_infer *call, const char *name, uint32_t i,
                       int64_t other);
/* Both pads of axis i of space together: attribute padding has one for all, one
 * an axis, or two. */
int64_t pln_window_pads(const pln_infer *call, uint32_t axes, uint32_t i);

#endif
