/* image_band.h: part of an image laid out so that a convolution is a product of
 * matrices whose right one is read in place.
 *
 * A band covers `rows` x `cols` outputs of one depth and some input channels.
 * It holds each channel with its padding, one plane for each way in which the
 * window's taps fall between strides. In a plane, outputs that are neighbours
 * in a row are neighbours, and rows lie `pitch` apart, whatever the stride and
 * the dilation: a tap is an offset. So output (r, c) is column r * pitch + c of
 * the product, and the columns from c = cols on belong to no output. */

#ifndef PLN_OP_KERNEL_CONV_IMAGE_BAND_H
#define PLN_OP_KERNEL_CONV_IMAGE_BAND_H

#include "op/kernel/conv/plan.h"

typedef struct pln_conv_band {
  const pln_conv_plan *plan;
  size_t size;       /* of an element */
  size_t rows, cols; /* of outputs, at most */
  size_t channels;   /* of inputs, at most */
  size_t pitch, plane;
  size_t planes_y, planes_x; /* planes of one depth of a channel */
  size_t elements;           /* of all, with room to read past the end */
} pln_conv_band;

/* Chooses the extents of bands. False when a band cannot be had within `limit`
 * elements. Bands are read in pieces of `width` columns. */
bool pln_conv_band_plan(const pln_conv_plan *plan, size_t size, size_t width,
                        size_t limit, pln_conv_band *out);
/* The offsets of channels * taps rows of the right matrix. */
void pln_conv_band_offsets(const pln_conv_band *band, size_t *out);
/* Lays out `channels` channels that begin at `image`, for the outputs from
 * depth z, row y and column x on. */
void pln_conv_band_fill(const pln_conv_band *band, const char *image,
                        size_t channels, size_t z, size_t y, size_t x,
                        char *out);

#endif
