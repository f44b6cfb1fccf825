/* jpeg_2000.c: reads JPEG 2000 images, in JP2 files or bare, through
 * libopenjp2, which is opened at run time. Called by image_decoder.c.
 *
 * Declared here is what is used of the library's interface (version 2). Grey
 * images and images of three or four components, the last one alpha, are read;
 * components have one size. Others, as of CMYK or with halved colours, are
 * refused. */

#include "base/library.h"
#include "op/kernel/image/decoder/picture.h"

/* opj_image_comp_t and the beginning of opj_image_t. */
typedef struct jp2_component {
  uint32_t dx, dy, width, height, x0, y0, precision, bpp, is_signed, resolution,
      factor;
  int32_t *data;
  uint16_t alpha;
} jp2_component;

typedef struct jp2_image {
  uint32_t x0, y0, x1, y1, n_components;
  int colours;
  jp2_component *components;
} jp2_image;

enum { JP2_SRGB = 1, JP2_GREY = 2 };
enum { JP2_BARE = 0, JP2_FILE = 2 };

typedef size_t (*jp2_read)(void *to, size_t n, void *reader);
typedef int64_t (*jp2_skip)(int64_t n, void *reader);
typedef int (*jp2_seek)(int64_t at, void *reader);

typedef struct jp2_library {
  void *library;
  void *(*new_stream)(size_t buffer, int input);
  void (*on_read)(void *stream, jp2_read read);
  void (*on_skip)(void *stream, jp2_skip skip);
  void (*on_seek)(void *stream, jp2_seek seek);
  void (*set_reader)(void *stream, void *reader, void (*free)(void *));
  void (*set_length)(void *stream, uint64_t length);
  void (*free_stream)(void *stream);
  void *(*new_codec)(int format);
  void (*defaults)(void *parameters);
  int (*setup)(void *codec, void *parameters);
  int (*header)(void *stream, void *codec, jp2_image **image);
  int (*decode)(void *codec, void *stream, jp2_image *image);
  void (*free_codec)(void *codec);
  void (*free_image)(jp2_image *image);
} jp2_library;

static bool open_jp2(jp2_library *lib) {
  void *l = lib->library = pln_library_open("libopenjp2.so.7");
  return l && pln_library_find(l, "opj_stream_create", &lib->new_stream) &&
         pln_library_find(l, "opj_stream_set_read_function", &lib->on_read) &&
         pln_library_find(l, "opj_stream_set_skip_function", &lib->on_skip) &&
         pln_library_find(l, "opj_stream_set_seek_function", &lib->on_seek) &&
         pln_library_find(l, "opj_stream_set_user_data", &lib->set_reader) &&
         pln_library_find(l, "opj_stream_set_user_data_length",
                          &lib->set_length) &&
         pln_library_find(l, "opj_stream_destroy", &lib->free_stream) &&
         pln_library_find(l, "opj_create_decompress", &lib->new_codec) &&
         pln_library_find(l, "opj_set_default_decoder_parameters",
                          &lib->defaults) &&
         pln_library_find(l, "opj_setup_decoder", &lib->setup) &&
         pln_library_find(l, "opj_read_header", &lib->header) &&
         pln_library_find(l, "opj_decode", &lib->decode) &&
         pln_library_find(l, "opj_destroy_codec", &lib->free_codec) &&
         pln_library_find(l, "opj_image_destroy", &lib->free_image);
}

/* ----------------------------------------------------------------- the bytes
 */

typedef struct byte_reader {
  const uint8_t *data;
  size_t size, at;
} byte_reader;

static size_t read_bytes(void *to, size_t n, void *ud) {
  byte_reader *r = ud;
  size_t left = r->size - r->at;
  n = n < left ? n : left;
  if (n == 0)
    return (size_t)-1;
  memcpy(to, r->data + r->at, n);
  r->at += n;
  return n;
}

static int64_t skip_bytes(int64_t n, void *ud) {
  byte_reader *r = ud;
  if (n < 0 || (uint64_t)n > r->size - r->at)
    return -1;
  r->at += (size_t)n;
  return n;
}

static int seek_byte(int64_t at, void *ud) {
  byte_reader *r = ud;
  if (at < 0 || (uint64_t)at > r->size)
    return 0;
  r->at = (size_t)at;
  return 1;
}

static void *new_stream(const jp2_library *lib, byte_reader *reader) {
  void *stream = lib->new_stream(1 << 16, 1);
  if (!stream)
    return NULL;
  lib->on_read(stream, read_bytes);
  lib->on_skip(stream, skip_bytes);
  lib->on_seek(stream, seek_byte);
  lib->set_reader(stream, reader, NULL);
  lib->set_length(stream, reader->size);
  return stream;
}

/* ---------------------------------------------------------------- the pixels
 */

/* A sample as a byte. */
static uint8_t byte_of(const jp2_component *c, size_t i) {
  int64_t x = c->data[i];
  if (c->is_signed)
    x += (int64_t)1 << (c->precision - 1);
  x = c->precision > 8 ? x >> (c->precision - 8) : x << (8 - c->precision);
  return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

static bool is_readable(const pln_picture *p, const jp2_image *image,
                        bool decoded) {
  uint32_t n = image->n_components;
  bool good = (n >= 3 && n <= 4 && image->colours <= JP2_SRGB) ||
              (n >= 1 && n <= 2 && image->colours <= JP2_GREY);
  for (uint32_t i = 0; good && i < n; i++) {
    const jp2_component *c = &image->components[i];
    good = c->width == p->width && c->height == p->height && c->dx == 1 &&
           c->dy == 1 && c->precision >= 1 && c->precision <= 31 &&
           (!decoded || c->data);
  }
  return good;
}

static pln_status copy_pixels(pln_picture *p, const jp2_image *image) {
  size_t n = (size_t)p->width * p->height;
  if (!is_readable(p, image, true))
    return pln_kernel_refuse(p->call, "the JPEG 2000 image is not valid");
  for (size_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < 3; k++)
      p->rgb[3 * i + k] =
          byte_of(&image->components[image->n_components < 3 ? 0 : k], i);
  return PLN_OK;
}

static pln_status read_image(const jp2_library *lib, void *stream, void *codec,
                             pln_picture *p, jp2_image **image) {
  /* opj_dparameters_t has some 8 KiB, most of them names of files. */
  uint64_t parameters[2048] = {0};
  lib->defaults(parameters);
  if (!lib->setup(codec, parameters) || !lib->header(stream, codec, image))
    return pln_kernel_refuse(p->call,
                             "the JPEG 2000 image has no valid header");
  const jp2_image *i = *image;
  if (i->x1 <= i->x0 || i->y1 <= i->y0)
    return pln_kernel_refuse(p->call, "the JPEG 2000 image is empty");
  PLN_TRY(pln_picture_begin(p, i->x1 - i->x0, i->y1 - i->y0));
  if (!is_readable(p, i, false))
    return pln_kernel_refuse(p->call,
                             "JPEG 2000 of other colours than grey or RGB, "
                             "or of components of several sizes");
  if (!lib->decode(codec, stream, *image))
    return pln_kernel_refuse(p->call, "the JPEG 2000 image is not valid");
  return copy_pixels(p, i);
}

pln_status pln_decode_jpeg_2000(pln_picture *p) {
  byte_reader reader = {p->data, p->size, 0};
  jp2_library lib;
  jp2_image *image = NULL;
  void *stream = NULL, *codec = NULL;
  pln_status status;
  if (!open_jp2(&lib))
    status = pln_kernel_refuse(p->call, "libopenjp2 cannot be opened");
  else if (!(stream = new_stream(&lib, &reader)) ||
           !(codec = lib.new_codec(p->data[0] == 0xff ? JP2_BARE : JP2_FILE)))
    status = pln_nomem(p->call->engine);
  else
    status = read_image(&lib, stream, codec, p, &image);
  if (image)
    lib.free_image(image);
  if (codec)
    lib.free_codec(codec);
  if (stream)
    lib.free_stream(stream);
  if (lib.library)
    pln_library_close(lib.library);
  return status;
}
