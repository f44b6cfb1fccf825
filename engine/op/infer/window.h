/* window.h: output extents of sliding windows, for convolutions and pooling. */

#ifndef PLN_OP_INFER_WINDOW_H
#define PLN_OP_INFER_WINDOW_H

#include "op/infer/infer.h"

/* Spatial extents: of the window, or of the sliding input. */
typedef struct pln_extents {
  int32_t rank; /* -1: unknown */
  pln_dim dims[PLN_MAX_RANK];
} pln_extents;

/* Reads attribute kernel_shape, else the axes of operand `weight` (PLN_NONE:
 * none) from 2 on. */
void pln_window_extents(const pln_infer *call, uint32_t weight,
                        pln_extents *out);
/* The output extents of a window sliding over `in` (batch, channels, space):
 * pads, strides, dilations, auto_pad and ceil_mode are the call's attributes.
 * Sets out->dims from 2 on; out->rank is in's. */
pln_status pln_window_slide(const pln_infer *call, const pln_shape *in,
                            const pln_extents *window,
                            pln_shape *out) PLN_CHECKED;
/* The inverse, for transposed convolution and unpooling. */
pln_status pln_window_unslide(const pln_infer *call, const pln_shape *in,
                              const pln_extents *window,
                              pln_shape *out) PLN_CHECKED;
/* The shape of a convolution, from operand `x` and its weight. */
pln_status pln_infer_conv_shape(const pln_infer *call, uint32_t x, uint32_t w,
                                pln_shape *out) PLN_CHECKED;

/* For Relay's operators: element of the list attribute `name`, of which one may
 * stand for all; `other` if it is missing. */
int64_t pln_window_int(const pln_infer *call, const char *name, uint32_t i,
                       int64_t other);
/* The sum of both pads of spatial axis i. Attribute padding has one element for
 * all, one per axis, or two per axis. */
int64_t pln_window_pads(const pln_infer *call, uint32_t axes, uint32_t i);

/* kernel/shape/pad.c: reads Relay's attribute pad_width, a pair per axis, in
 * ONNX's order: before all axes, then after all. `pads` has 2 * PLN_MAX_RANK
 * elements. Returns the number of pads; 0 if the attribute is not one of pairs
 * of integers, or NULL. */
uint32_t pln_read_pad_widths(const pln_engine *engine, const pln_attr *widths,
                             int64_t *pads);

#endif
