/* tiff.c: reads the first image of a TIFF file through libtiff (4.5 or later),
 * which is opened at run time. Called by image_decoder.c.
 *
 * Declared here is what is used of the library's interface. Errors and warnings
 * of the file are not printed; alpha is dropped. */

#include <stdarg.h>
#include <stdio.h>

#include "base/library.h"
#include "op/kernel/image/decoder/picture.h"

enum { TIFF_WIDTH = 256, TIFF_LENGTH = 257, TIFF_TOP_LEFT = 1 };
/* The most bytes that the library may allocate at once. */
enum { TIFF_MOST_BYTES = 1 << 30 };

typedef int64_t (*tiff_transfer)(void *reader, void *to, int64_t n);
typedef uint64_t (*tiff_seek)(void *reader, uint64_t offset, int whence);
typedef int (*tiff_close)(void *reader);
typedef uint64_t (*tiff_size)(void *reader);
typedef int (*tiff_map)(void *reader, void **base, uint64_t *size);
typedef void (*tiff_unmap)(void *reader, void *base, uint64_t size);
typedef int (*tiff_message)(void *tiff, void *ud, const char *module,
                            const char *format, va_list args);

typedef struct tiff_library {
  void *library;
  void *(*new_options)(void);
  void (*free_options)(void *options);
  void (*on_error)(void *options, tiff_message message, void *ud);
  void (*on_warning)(void *options, tiff_message message, void *ud);
  void (*limit)(void *options, int64_t bytes);
  void *(*open)(const char *name, const char *mode, void *reader,
                tiff_transfer read, tiff_transfer write, tiff_seek seek,
                tiff_close close, tiff_size size, tiff_map map,
                tiff_unmap unmap, void *options);
  int (*field)(void *tiff, uint32_t tag, ...);
  int (*read)(void *tiff, uint32_t width, uint32_t height, uint32_t *pixels,
              int orientation, int stop);
  void (*close)(void *tiff);
} tiff_library;

static bool open_tiff(tiff_library *lib) {
  void *l = lib->library = pln_library_open("libtiff.so.6");
  return l && pln_library_find(l, "TIFFOpenOptionsAlloc", &lib->new_options) &&
         pln_library_find(l, "TIFFOpenOptionsFree", &lib->free_options) &&
         pln_library_find(l, "TIFFOpenOptionsSetErrorHandlerExtR",
                          &lib->on_error) &&
         pln_library_find(l, "TIFFOpenOptionsSetWarningHandlerExtR",
                          &lib->on_warning) &&
         pln_library_find(l, "TIFFOpenOptionsSetMaxSingleMemAlloc",
                          &lib->limit) &&
         pln_library_find(l, "TIFFClientOpenExt", &lib->open) &&
         pln_library_find(l, "TIFFGetField", &lib->field) &&
         pln_library_find(l, "TIFFReadRGBAImageOriented", &lib->read) &&
         pln_library_find(l, "TIFFClose", &lib->close);
}

/* ----------------------------------------------------------------- the bytes
 */

typedef struct tiff_reader {
  const uint8_t *data;
  uint64_t size, at;
} tiff_reader;

static int64_t read_part(void *ud, void *to, int64_t n) {
  tiff_reader *r = ud;
  uint64_t left = r->at < r->size ? r->size - r->at : 0;
  if (n < 0)
    return -1;
  if ((uint64_t)n > left)
    n = (int64_t)left;
  if (n > 0)
    memcpy(to, r->data + r->at, (size_t)n);
  r->at += (uint64_t)n;
  return n;
}

static int64_t write_nothing(void *ud, void *from, int64_t n) {
  (void)ud;
  (void)from;
  (void)n;
  return -1;
}

static uint64_t seek_to(void *ud, uint64_t offset, int whence) {
  tiff_reader *r = ud;
  if (whence == SEEK_CUR)
    offset += r->at;
  else if (whence == SEEK_END)
    offset += r->size;
  r->at = offset;
  return offset;
}

static int close_nothing(void *ud) {
  (void)ud;
  return 0;
}

static uint64_t size_of(void *ud) {
  return ((const tiff_reader *)ud)->size;
}

static int map_nothing(void *ud, void **base, uint64_t *size) {
  (void)ud;
  (void)base;
  (void)size;
  return 0;
}

static void unmap_nothing(void *ud, void *base, uint64_t size) {
  (void)ud;
  (void)base;
  (void)size;
}

static int print_nothing(void *tiff, void *ud, const char *module,
                         const char *format, va_list args) {
  (void)tiff;
  (void)ud;
  (void)module;
  (void)format;
  (void)args;
  return 1;
}

/* ---------------------------------------------------------------- the pixels
 */

static pln_status read_pixels(const tiff_library *lib, void *tiff,
                              pln_picture *p) {
  size_t n = (size_t)p->width * p->height;
  uint32_t *pixels = pln_mem_new(p->call->engine, n * sizeof *pixels);
  if (!pixels)
    return pln_nomem(p->call->engine);
  bool read =
      lib->read(tiff, p->width, p->height, pixels, TIFF_TOP_LEFT, 1) == 1;
  for (size_t i = 0; read && i < n; i++)
    for (uint32_t k = 0; k < 3; k++)
      p->rgb[3 * i + k] = (uint8_t)(pixels[i] >> 8 * k);
  pln_mem_free(p->call->engine, pixels, n * sizeof *pixels);
  return read ? PLN_OK
              : pln_kernel_refuse(p->call, "the TIFF image is not valid");
}

static pln_status read_tiff(const tiff_library *lib, void *options,
                            pln_picture *p) {
  tiff_reader reader = {p->data, p->size, 0};
  uint32_t width = 0, height = 0;
  lib->on_error(options, print_nothing, NULL);
  lib->on_warning(options, print_nothing, NULL);
  lib->limit(options, TIFF_MOST_BYTES);
  void *tiff =
      lib->open("image", "r", &reader, read_part, write_nothing, seek_to,
                close_nothing, size_of, map_nothing, unmap_nothing, options);
  if (!tiff)
    return pln_kernel_refuse(p->call, "the TIFF image has no valid header");
  pln_status status;
  if (!lib->field(tiff, TIFF_WIDTH, &width) ||
      !lib->field(tiff, TIFF_LENGTH, &height))
    status = pln_kernel_refuse(p->call, "the TIFF image has no extents");
  else
    status = pln_picture_begin(p, width, height);
  if (status == PLN_OK)
    status = read_pixels(lib, tiff, p);
  lib->close(tiff);
  return status;
}

pln_status pln_decode_tiff(pln_picture *p) {
  tiff_library lib;
  pln_status status;
  void *options = NULL;
  if (!open_tiff(&lib))
    status = pln_kernel_refuse(p->call, "libtiff cannot be opened");
  else if (!(options = lib.new_options()))
    status = pln_nomem(p->call->engine);
  else
    status = read_tiff(&lib, options, p);
  if (options)
    lib.free_options(options);
  if (lib.library)
    pln_library_close(lib.library);
  return status;
}
