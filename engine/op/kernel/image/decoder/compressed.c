/* compressed.c: reads PNG, JPEG and WebP images through libpng, libturbojpeg
 * and libwebp, which are opened at run time. Called by image_decoder.c.
 *
 * Declared here is what is used of the libraries' interfaces, all of which
 * report errors by return values. */

#include "base/library.h"
#include "op/kernel/image/decoder/picture.h"

static pln_status refuse_library(const pln_picture *p, const char *library) {
  return pln_kernel_refuse(p->call, "%s cannot be opened", library);
}

/* ---------------------------------------------------------------------- PNG */

/* png_image of png.h, its version 1. */
typedef struct png_image {
  void *opaque;
  uint32_t version, width, height, format, flags, colormap_entries, result;
  char message[64];
} png_image;

typedef struct png_library {
  void *library;
  int (*begin_read)(png_image *image, const void *data, size_t size);
  int (*finish_read)(png_image *image, const void *background, void *to,
                     int32_t row_stride, void *colormap);
  void (*free)(png_image *image);
} png_library;

enum { PNG_RGBA = 3 };

static bool open_png(png_library *lib) {
  void *l = lib->library = pln_library_open("libpng16.so.16");
  return l &&
         pln_library_find(l, "png_image_begin_read_from_memory",
                          &lib->begin_read) &&
         pln_library_find(l, "png_image_finish_read", &lib->finish_read) &&
         pln_library_find(l, "png_image_free", &lib->free);
}

/* Reads four bytes a pixel; alpha is dropped, as Pillow does. */
static pln_status read_png(const png_library *lib, png_image *image,
                           pln_picture *p) {
  PLN_TRY(pln_picture_begin(p, image->width, image->height));
  size_t n = (size_t)p->width * p->height;
  uint8_t *pixels = pln_mem_new(p->call->engine, n * 4);
  if (!pixels)
    return pln_nomem(p->call->engine);
  image->format = PNG_RGBA;
  bool read = lib->finish_read(image, NULL, pixels, 0, NULL) != 0;
  for (size_t i = 0; read && i < n; i++)
    memcpy(p->rgb + 3 * i, pixels + 4 * i, 3);
  pln_mem_free(p->call->engine, pixels, n * 4);
  return read ? PLN_OK : pln_kernel_refuse(p->call, "PNG: %s", image->message);
}

pln_status pln_decode_png(pln_picture *p) {
  png_image image = {.version = 1};
  png_library lib;
  pln_status status = PLN_OK;
  if (!open_png(&lib))
    status = refuse_library(p, "libpng16");
  else if (!lib.begin_read(&image, p->data, p->size))
    status = pln_kernel_refuse(p->call, "PNG: %s", image.message);
  else
    status = read_png(&lib, &image, p);
  if (status != PLN_OK && lib.library && image.opaque)
    lib.free(&image);
  if (lib.library)
    pln_library_close(lib.library);
  return status;
}

/* --------------------------------------------------------------------- JPEG */

typedef struct jpeg_library {
  void *library;
  void *(*begin)(void);
  int (*header)(void *handle, const unsigned char *data, unsigned long size,
                int *width, int *height, int *sampling, int *colours);
  int (*decompress)(void *handle, const unsigned char *data, unsigned long size,
                    unsigned char *to, int width, int pitch, int height,
                    int format, int flags);
  int (*end)(void *handle);
} jpeg_library;

enum { JPEG_RGB = 0, JPEG_ACCURATE = 4096 };

static bool open_jpeg(jpeg_library *lib) {
  void *l = lib->library = pln_library_open("libturbojpeg.so.0");
  return l && pln_library_find(l, "tjInitDecompress", &lib->begin) &&
         pln_library_find(l, "tjDecompressHeader3", &lib->header) &&
         pln_library_find(l, "tjDecompress2", &lib->decompress) &&
         pln_library_find(l, "tjDestroy", &lib->end);
}

static pln_status read_jpeg(const jpeg_library *lib, void *handle,
                            pln_picture *p) {
  int width = 0, height = 0, sampling, colours;
  if (lib->header(handle, p->data, p->size, &width, &height, &sampling,
                  &colours) != 0 ||
      width < 0 || height < 0)
    return pln_kernel_refuse(p->call, "the JPEG image has no valid header");
  PLN_TRY(pln_picture_begin(p, (uint32_t)width, (uint32_t)height));
  if (lib->decompress(handle, p->data, p->size, p->rgb, width, 0, height,
                      JPEG_RGB, JPEG_ACCURATE) != 0)
    return pln_kernel_refuse(p->call, "the JPEG image is not valid");
  return PLN_OK;
}

pln_status pln_decode_jpeg(pln_picture *p) {
  jpeg_library lib;
  pln_status status;
  void *handle = NULL;
  if (!open_jpeg(&lib))
    status = refuse_library(p, "libturbojpeg");
  else if (!(handle = lib.begin()))
    status = pln_nomem(p->call->engine);
  else
    status = read_jpeg(&lib, handle, p);
  if (handle)
    lib.end(handle);
  if (lib.library)
    pln_library_close(lib.library);
  return status;
}

/* --------------------------------------------------------------------- WebP */

typedef struct webp_library {
  void *library;
  int (*info)(const uint8_t *data, size_t size, int *width, int *height);
  uint8_t *(*decode)(const uint8_t *data, size_t size, uint8_t *to,
                     size_t bytes, int stride);
} webp_library;

static bool open_webp(webp_library *lib) {
  void *l = lib->library = pln_library_open("libwebp.so.7");
  return l && pln_library_find(l, "WebPGetInfo", &lib->info) &&
         pln_library_find(l, "WebPDecodeRGBInto", &lib->decode);
}

static pln_status read_webp(const webp_library *lib, pln_picture *p) {
  int width = 0, height = 0;
  if (!lib->info(p->data, p->size, &width, &height) || width < 0 || height < 0)
    return pln_kernel_refuse(p->call, "the WebP image has no valid header");
  PLN_TRY(pln_picture_begin(p, (uint32_t)width, (uint32_t)height));
  if (!lib->decode(p->data, p->size, p->rgb, p->bytes, 3 * width))
    return pln_kernel_refuse(p->call, "the WebP image is not valid");
  return PLN_OK;
}

pln_status pln_decode_webp(pln_picture *p) {
  webp_library lib;
  pln_status status =
      open_webp(&lib) ? read_webp(&lib, p) : refuse_library(p, "libwebp");
  if (lib.library)
    pln_library_close(lib.library);
  return status;
}
