/* weight.c: kernels of the weight transforms of Winograd's convolution:
 * nn.contrib_conv2d_winograd_weight_transform,
 * nn.contrib_conv3d_winograd_weight_transform. Called through ops.def; types
 * are in relay/infer/weight_transform.c. */

#include "op/relay/kernel/winograd/matrices.h"

/* The sum over the last two axes, and the first of three if it is transformed
 * (depth > 1), of the weights times a row of G for each. */
static float transformed_weight(const pln_winograd *w, const float *in,
                                uint32_t depth, const uint32_t *row) {
  float sum = 0;
  for (uint32_t d = 0; d < depth; d++)
    for (uint32_t y = 0; y < w->window; y++)
      for (uint32_t x = 0; x < w->window; x++) {
        float weight = *in++;
        if (depth > 1)
          weight *= w->g[row[0]][d];
        sum += weight * w->g[row[1]][y] * w->g[row[2]][x];
      }
  return sum;
}

/* Transforms `slices` images of each pair of channels, each alone, or three
 * axes at once when depth > 1. */
static pln_status transform_all(const pln_kernel_call *call,
                                const pln_winograd *w, const pln_tensor *x,
                                uint32_t depth, size_t slices, float *out) {
  size_t channels = (size_t)x->dims[0] * (size_t)x->dims[1], polled = 0;
  size_t image = (size_t)depth * w->window * w->window;
  uint32_t deep = depth > 1 ? w->alpha : 1, row[3];
  const float *data = x->data;
  for (row[0] = 0; row[0] < deep; row[0]++)
    for (row[1] = 0; row[1] < w->alpha; row[1]++)
      for (row[2] = 0; row[2] < w->alpha; row[2]++)
        for (size_t i = 0; i < slices * channels; i++) {
          size_t from = i % channels * slices + i / channels;
          *out++ = transformed_weight(w, data + from * image, depth, row);
          PLN_TRY(pln_poll_after(call->engine, &polled, image));
        }
  return PLN_OK;
}

static pln_status transform_weight(pln_kernel_call *call, uint32_t depth,
                                   size_t slices, uint32_t rank,
                                   const int64_t *dims) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_winograd w;
  void *out;
  int64_t window = x->dims[x->rank - 1];
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->dims[x->rank - 2] != window || (depth > 1 && depth != window) ||
      !pln_winograd_make(pln_winograd_tile_size(call), window, &w))
    return pln_kernel_refuse(call, "the extents of the window differ, or there "
                                   "are no matrices for it and tile_size");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, rank, dims, &out));
  return transform_all(call, &w, x, depth, slices, out);
}

static pln_status refuse_rank(pln_kernel_call *call) {
  return pln_kernel_refuse(call, "the weights are of another rank");
}

pln_status pln_kernel_winograd_weight(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (x->rank != 4)
    return refuse_rank(call);
  int64_t reach = x->dims[3] + pln_winograd_tile_size(call) - 1;
  const int64_t dims[] = {reach, reach, x->dims[0], x->dims[1]};
  return transform_weight(call, 1, 1, 4, dims);
}

/* A depth below 3 or above 7 is not transformed and follows the other two. */
pln_status pln_kernel_winograd_weight_3d(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (x->rank != 5)
    return refuse_rank(call);
  int64_t depth = x->dims[2];
  int64_t reach = x->dims[4] + pln_winograd_tile_size(call) - 1;
  bool deep = depth > 2 && depth < 8;
  const int64_t dims[] = {reach, reach, deep ? reach : depth, x->dims[0],
                          x->dims[1]};
  return transform_weight(call, deep ? (uint32_t)depth : 1,
                          deep ? 1 : (size_t)depth, 5, dims);
}
