/* image_band.h: lays out part of an image so that a convolution is a matrix
 * product whose right matrix is read in place.
 *
 * A band covers `rows` x `cols` outputs of one depth and some input channels.
 * It holds each channel with its padding, in one plane per phase of the
 * window's taps relative to the strides. Within a plane, neighbouring outputs
 * of a row are neighbours and rows are `pitch` apart, for any stride and
 * dilation, so that a tap is a constant offset. Output (r, c) is column r *
 * pitch + c of the product; columns with c >= cols belong to no output. */

#ifndef PLN_OP_KERNEL_CONV_IMAGE_BAND_H
#define PLN_OP_KERNEL_CONV_IMAGE_BAND_H

#include "op/kernel/conv/plan.h"

typedef struct pln_conv_band {
  const pln_conv_plan *plan;
  size_t size;       /* of an element */
  size_t rows, cols; /* of outputs, upper bound */
  size_t channels;   /* of inputs, upper bound */
  size_t pitch, plane;
  size_t planes_y, planes_x; /* number of planes of one depth of a channel */
  size_t elements; /* total elements, including slack to read past the end */
} pln_conv_band;

/* Chooses the extents of bands. False if no band fits `limit` elements. Bands
 * are read `width` columns at a time. */
bool pln_conv_band_plan(const pln_conv_plan *plan, size_t size, size_t width,
                        size_t limit, pln_conv_band *out);
/* The offsets of the channels * taps rows of the right matrix. */
void pln_conv_band_offsets(const pln_conv_band *band, size_t *out);
/* Fills a band with `channels` channels that begin at `image`, for the outputs
 * from depth z, row y and column x on. */
void pln_conv_band_fill(const pln_conv_band *band, const char *image,
                        size_t channels, size_t z, size_t y, size_t x,
                        char *out);

#endif
