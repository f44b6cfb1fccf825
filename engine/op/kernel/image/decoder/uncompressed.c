/* uncompressed.c: reads BMP and binary PNM images. Called by
 * image_decoder.c. */

#include "op/kernel/image/decoder/picture.h"

static pln_status refuse_file(const pln_picture *p, const char *format) {
  return pln_kernel_refuse(
      p->call, "the %s image is cut off, or of a form that is not decoded",
      format);
}

/* ---------------------------------------------------------------------- BMP */

/* `n` bytes, low bytes first. */
static uint32_t number_at(const uint8_t *data, uint32_t n) {
  uint32_t x = 0;
  for (uint32_t i = 0; i < n; i++)
    x |= (uint32_t)data[i] << 8 * i;
  return x;
}

typedef struct bitmap {
  uint32_t pixels, bits, colours; /* offset of the pixels; of a pixel; number */
  size_t palette, row;            /* offset; bytes of a row in the file */
  bool from_top;
} bitmap;

enum { FILE_HEADER = 14, INFO_HEADER = 40, UNCOMPRESSED = 0, BIT_FIELDS = 3 };

static bool read_info(const pln_picture *p, bitmap *b) {
  const uint8_t *info = p->data + FILE_HEADER;
  uint32_t size = number_at(info, 4), compression = number_at(info + 16, 4);
  b->pixels = number_at(p->data + 10, 4);
  b->bits = number_at(info + 14, 2);
  b->colours = number_at(info + 32, 4);
  b->palette = (size_t)FILE_HEADER + size;
  if (b->bits == 8 && b->colours == 0)
    b->colours = 256;
  return size >= INFO_HEADER && size <= 124 &&
         (b->bits == 8 || b->bits == 24 || b->bits == 32) &&
         (compression == UNCOMPRESSED ||
          (compression == BIT_FIELDS && b->bits == 32)) &&
         (b->bits != 8 || (b->colours <= 256 &&
                           b->palette + 4 * (size_t)b->colours <= p->size));
}

static bool read_pixel(const pln_picture *p, const bitmap *b,
                       const uint8_t *row, uint32_t x, uint8_t *to) {
  const uint8_t *from = row + (size_t)x * (b->bits / 8);
  if (b->bits == 8) {
    if (*from >= b->colours)
      return false;
    from = p->data + b->palette + 4 * (size_t)*from;
  }
  for (uint32_t k = 0; k < 3; k++)
    to[k] = from[2 - k];
  return true;
}

static bool read_rows(const pln_picture *p, const bitmap *b) {
  uint8_t *to = p->rgb;
  for (uint32_t y = 0; y < p->height; y++) {
    const uint8_t *row =
        p->data + b->pixels + b->row * (b->from_top ? y : p->height - 1 - y);
    for (uint32_t x = 0; x < p->width; x++, to += 3)
      if (!read_pixel(p, b, row, x, to))
        return false;
  }
  return true;
}

pln_status pln_decode_bmp(pln_picture *p) {
  bitmap b;
  if (p->size < FILE_HEADER + INFO_HEADER || !read_info(p, &b))
    return refuse_file(p, "BMP");
  uint32_t width = number_at(p->data + FILE_HEADER + 4, 4);
  uint32_t height = number_at(p->data + FILE_HEADER + 8, 4);
  b.from_top = height > INT32_MAX;
  PLN_TRY(pln_picture_begin(p, width, b.from_top ? 0 - height : height));
  b.row = ((size_t)p->width * b.bits + 31) / 32 * 4;
  if (b.pixels > p->size || b.row * p->height > p->size - b.pixels ||
      !read_rows(p, &b))
    return refuse_file(p, "BMP");
  return PLN_OK;
}

/* ---------------------------------------------------------------------- PNM */

static bool is_blank(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Skips blanks and comments, and reads a number. */
static bool read_number(const pln_picture *p, size_t *at, uint32_t *out) {
  size_t first;
  while (*at < p->size && (is_blank(p->data[*at]) || p->data[*at] == '#')) {
    if (p->data[*at] == '#')
      while (*at < p->size && p->data[*at] != '\n')
        ++*at;
    else
      ++*at;
  }
  *out = 0;
  for (first = *at; *at < p->size && p->data[*at] >= '0' &&
                    p->data[*at] <= '9' && *out < 100000000;
       ++*at)
    *out = *out * 10 + (p->data[*at] - '0');
  return *at > first;
}

/* P5 has one sample for a pixel, P6 three. */
pln_status pln_decode_pnm(pln_picture *p) {
  size_t at = 2, samples = p->data[1] == '6' ? 3 : 1;
  uint32_t width, height, most;
  if (!read_number(p, &at, &width) || !read_number(p, &at, &height) ||
      !read_number(p, &at, &most) || at >= p->size || !is_blank(p->data[at]) ||
      most < 1 || most > 255)
    return refuse_file(p, "PNM");
  PLN_TRY(pln_picture_begin(p, width, height));
  if (p->bytes / 3 * samples > p->size - ++at)
    return refuse_file(p, "PNM");
  for (size_t i = 0; i < p->bytes; i++) {
    uint32_t sample = p->data[at + (samples == 3 ? i : i / 3)];
    if (sample > most)
      return refuse_file(p, "PNM");
    p->rgb[i] = (uint8_t)((sample * 255 + most / 2) / most);
  }
  return PLN_OK;
}
