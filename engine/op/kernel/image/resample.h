/* resample.h: resamples a tensor axis by axis: which elements each output
 * position takes, with which weights. */

#ifndef PLN_OP_KERNEL_IMAGE_RESAMPLE_H
#define PLN_OP_KERNEL_IMAGE_RESAMPLE_H

#include "op/kernel/kernel.h"

typedef enum pln_resample {
  PLN_RESAMPLE_NEAREST,
  PLN_RESAMPLE_LINEAR,
  PLN_RESAMPLE_CUBIC
} pln_resample;

/* Maps an output position to an input coordinate, with ONNX Resize's names. */
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
  PLN_SIMPLE /* before opset 11: rounds up when shrinking, else down */
} pln_nearest;

/* How all axes are sampled. */
typedef struct pln_sampling {
  pln_resample mode;
  pln_coordinates coordinates;
  pln_nearest nearest;
  float cubic;          /* the coefficient a of the cubic kernel */
  bool antialias;       /* when shrinking, the kernel is stretched to cover all
                           elements */
  bool exclude_outside; /* elements outside have weight 0, not the edge's value
                         */
} pln_sampling;

/* One axis: position o takes elements at[o * n], ..., at[o * n + n - 1] with
 * their weights. */
typedef struct pln_sampled_axis {
  int64_t in, out;
  float scale;
  float length;     /* `out` before rounding; align_corners needs it */
  float begin, end; /* region of interest */
  bool same;        /* each position takes exactly its own element */
  int64_t repeat;   /* each element is repeated so often; 0: no such pattern */
  uint32_t n;
  int32_t *at;
  float *weight; /* NULL for nearest */
  bool *outside; /* positions outside the tensor, for tf_crop_and_resize */
  size_t room;   /* allocated bytes at `at` */
} pln_sampled_axis;

/* Computes the elements and weights of the axis; the caller has set in, out,
 * scale, length, begin, end. Freed by pln_sampled_axis_free, also after a
 * failure. */
pln_status pln_sample_axis(pln_engine *engine, const pln_sampling *how,
                           pln_sampled_axis *axis) PLN_CHECKED;
void pln_sampled_axis_free(pln_engine *engine, pln_sampled_axis *axis);

/* Resample each axis of x, from `in` to `out` (both dense): by nearest elements
 * of any `size`; by weighted sums of float32 (size 4) or float64. */
void pln_resample_nearest(const pln_engine *engine, uint32_t rank,
                          const pln_sampled_axis *axes, size_t size,
                          const void *in, void *out);
pln_status pln_resample_sums(pln_engine *engine, uint32_t rank,
                             const pln_sampled_axis *axes, size_t size,
                             const void *in, void *out) PLN_CHECKED;

#endif
