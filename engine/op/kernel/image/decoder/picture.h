/* picture.h: an encoded image, and its pixels once it is decoded. */

#ifndef PLN_OP_KERNEL_IMAGE_DECODER_PICTURE_H
#define PLN_OP_KERNEL_IMAGE_DECODER_PICTURE_H

#include "op/kernel/kernel.h"

typedef struct pln_picture {
  const pln_kernel_call *call;
  const uint8_t *data; /* of the file */
  size_t size;
  uint32_t width, height;
  uint8_t *rgb; /* rows from the top, three bytes a pixel; owned */
  size_t bytes;
} pln_picture;

/* Sets the extents and allocates the pixels; refuses extents of 0 and images
 * that are too large. */
pln_status pln_picture_begin(pln_picture *p, uint32_t width,
                             uint32_t height) PLN_CHECKED;

/* Fill a picture, or refuse. */
pln_status pln_decode_bmp(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_pnm(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_png(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_jpeg(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_webp(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_jpeg_2000(pln_picture *p) PLN_CHECKED;
pln_status pln_decode_tiff(pln_picture *p) PLN_CHECKED;

#endif
