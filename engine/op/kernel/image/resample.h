/* resample.h: an axis sampled at other positions: which elements each position
 * takes, with which weights; and the walk over a tensor. */

#ifndef PLN_OP_KERNEL_IMAGE_RESAMPLE_H
#define PLN_OP_KERNEL_IMAGE_RESAMPLE_H

#include "op/kernel/kernel.h"

typedef enum pln_resample {
  PLN_RESAMPLE_NEAREST,
  PLN_RESAMPLE_LINEAR,
  PLN_RESAMPLE_CUBIC
} pln_resample;

/* Where position i lies among the elements, as ONNX Resize names it. */
typedef enum pln_coordinates {
  PLN_HALF_PIXEL,
  PLN_HALF_PIXEL_SYMMETRIC,
  PLN_PYTORCH_HALF_PIXEL,
  PLN_ALIGN_CORNERS,
  PLN_ASYMMETRIC,
  PLN_TF_CROP_AND_RESIZE,
  PLN_TF_HALF_PIXEL_FOR_NN
} pln_coordinates;

typedef enum pln_nearest {
  PLN_ROUND_PREFER_FLOOR,
  PLN_ROUND_PREFER_CEIL,
  PLN_FLOOR,
  PLN_CEIL,
  PLN_SIMPLE /* before opset 11: up when shrinking, else down */
} pln_nearest;

/* How all axes are sampled. */
typedef struct pln_sampling {
  pln_resample mode;
  pln_coordinates coordinates;
  pln_nearest nearest;
  float cubic;    /* the coefficient a */
  bool antialias; /* when shrinking, all elements between positions count */
  bool exclude_outside; /* what lies outside has weight 0, else the edge's */
} pln_sampling;

/* One axis: position o takes elements at[o * n] ... with their weights. */
typedef struct pln_sampled_axis {
  int64_t in, out;
  float scale;
  float length; /* `out` before it was rounded down; align_corners needs it */
  float begin, end; /* of the region of interest */
  bool same;        /* each position is its element */
  int64_t repeat;   /* each element so often, one after the other; 0: not so */
  uint32_t n;
  int32_t *at;
  float *weight; /* none of nearest */
  bool *outside; /* positions outside of the tensor, of tf_crop_and_resize */
  size_t room;   /* bytes at `at` */
} pln_sampled_axis;

/* Fills in the last part of the axis; the caller has set in, out, scale,
 * length, begin, end. Freed by pln_sampled_axis_free, also after a failure. */
pln_status pln_sample_axis(pln_engine *engine, const pln_sampling *how,
                           pln_sampled_axis *axis) PLN_CHECKED;
void pln_sampled_axis_free(pln_engine *engine, pln_sampled_axis *axis);

/* Each axis of x, from `in` to `out` (both dense): by nearest elements of any
 * `size`; and by weighted sums of float32 (size 4) or float64 elements. */
void pln_resample_nearest(const pln_engine *engine, uint32_t rank,
                          const pln_sampled_axis *axes, size_t size,
                          const void *in, void *out);
pln_status pln_resample_sums(pln_engine *engine, uint32_t rank,
                             const pln_sampled_axis *axes, size_t size,
                             const void *in, void *out) PLN_CHECKED;

#endif
