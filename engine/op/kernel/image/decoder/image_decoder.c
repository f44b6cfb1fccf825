/* image_decoder.c: image_decoder: the pixels of an encoded image. Type and
 * kernel. Called through ops.def.
 *
 * The result is (height, width, channels), of bytes: three channels in the
 * order of pixel_format, or one for Grayscale, which is the luma of ITU-R
 * BT.601 as Pillow rounds it. An alpha channel is dropped. */

#include "op/kernel/image/decoder/picture.h"

pln_status pln_infer_image_decoder(pln_infer *call) {
  pln_shape out;
  pln_shape_ranked(&out, 3);
  bool grey = pln_call_string_is(call, "pixel_format", "RGB", "Grayscale");
  out.dims[2] = grey ? 1 : 3;
  return pln_result_tensor(call, 0, PLN_UINT8, &out);
}

/* How files of a format begin; a '?' is any byte. */
typedef struct image_format {
  const char *start;
  size_t size;
  pln_status (*decode)(pln_picture *p);
} image_format;

static const image_format formats[] = {
    {"BM", 2, pln_decode_bmp},
    {"P5", 2, pln_decode_pnm},
    {"P6", 2, pln_decode_pnm},
    {"\x89PNG\r\n\x1a\n", 8, pln_decode_png},
    {"\xff\xd8\xff", 3, pln_decode_jpeg},
    {"RIFF????WEBP", 12, pln_decode_webp},
    {"II*", 3, pln_decode_tiff},
    {"MM", 2, pln_decode_tiff},
    {"????jP  ", 8, pln_decode_jpeg_2000},
    {"\xffO\xffQ", 4, pln_decode_jpeg_2000},
};

static bool starts_with(const pln_picture *p, const image_format *f) {
  if (p->size < f->size)
    return false;
  for (size_t i = 0; i < f->size; i++)
    if (f->start[i] != '?' && (uint8_t)f->start[i] != p->data[i])
      return false;
  return true;
}

static pln_status decode(pln_picture *p) {
  for (size_t i = 0; i < PLN_COUNT(formats); i++) {
    if (!starts_with(p, &formats[i]))
      continue;
    return formats[i].decode(p);
  }
  return pln_kernel_refuse(p->call, "the format of the image is not known");
}

pln_status pln_picture_begin(pln_picture *p, uint32_t width, uint32_t height) {
  enum { MOST = 1 << 16 };
  if (width == 0 || height == 0 || width > MOST || height > MOST)
    return pln_kernel_refuse(p->call,
                             "an image has %u x %u pixels, not 1 to %d each",
                             width, height, MOST);
  p->width = width;
  p->height = height;
  p->bytes = (size_t)width * height * 3;
  p->rgb = pln_mem_new(p->call->engine, p->bytes);
  return p->rgb ? PLN_OK : pln_nomem(p->call->engine);
}

/* Luma in fixed point with 16 bits behind the point. */
static uint8_t luma(const uint8_t *rgb) {
  return (
      uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >>
               16);
}

static pln_status write_pixels(pln_kernel_call *call, const pln_picture *p,
                               bool grey, bool reversed) {
  const int64_t dims[3] = {p->height, p->width, grey ? 1 : 3};
  size_t n = (size_t)p->width * p->height;
  const uint8_t *from = p->rgb;
  void *data;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_UINT8, 3, dims, &data));
  uint8_t *to = data;
  for (size_t i = 0; i < n; i++, from += 3) {
    if (grey) {
      *to++ = luma(from);
      continue;
    }
    for (uint32_t k = 0; k < 3; k++)
      *to++ = from[reversed ? 2 - k : k];
  }
  return PLN_OK;
}

pln_status pln_kernel_image_decoder(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool grey = pln_kernel_string_is(call, "pixel_format", "RGB", "Grayscale");
  bool reversed = pln_kernel_string_is(call, "pixel_format", "RGB", "BGR");
  pln_picture p = {.call = call, .data = x->data, .size = x->count};
  if (x->dtype != PLN_UINT8)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!grey && !reversed &&
      !pln_kernel_string_is(call, "pixel_format", "RGB", "RGB"))
    return pln_kernel_refuse(call, "pixel_format is not RGB, BGR or Grayscale");
  pln_status status = decode(&p);
  if (status == PLN_OK)
    status = write_pixels(call, &p, grey, reversed);
  pln_mem_free(call->engine, p.rgb, p.bytes);
  return status;
}
