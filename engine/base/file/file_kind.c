/* file_kind.c: guesses the format of a file that is not a model (archive,
 * pickle, HTML, ...) for diagnostics.
 *
 * Called when a file could not be parsed. The first bytes decide, as in
 * file(1). */

#include "base/file/file.h"

typedef struct magic {
  uint32_t offset;
  const char *bytes;
  uint32_t size;
  const char *kind;
} magic;

#define ROW(offset, bytes, kind) \
  { offset, bytes, sizeof bytes - 1, kind }

static const magic magics[] = {
    ROW(0, "#[version", PLN_FILE_RELAY),
    ROW(0, "\x1f\x8b", "gzip data; decompress it first (gunzip)"),
    ROW(0, "BZh", "bzip2 data; decompress it first (bunzip2)"),
    ROW(0,
        "\xfd"
        "7zXZ",
        "xz data; decompress it first (unxz)"),
    ROW(0, "\x28\xb5\x2f\xfd", "Zstandard data; decompress it first (unzstd)"),
    ROW(0, "PK\x03\x04",
        "a zip archive, as PyTorch's .pt files and NumPy's .npz files are"),
    ROW(0, "\x80\x02", "a Python pickle, as PyTorch's older .pt files are"),
    ROW(0, "\x80\x03", "a Python pickle, as PyTorch's older .pt files are"),
    ROW(0, "\x80\x04\x95", "a Python pickle, as PyTorch's older .pt files are"),
    ROW(0, "\x80\x05\x95", "a Python pickle, as PyTorch's older .pt files are"),
    ROW(8, "{\"", "safetensors: weights without a graph"),
    ROW(0, "\x93NUMPY", "a NumPy array"),
    ROW(0, "\x89HDF", "HDF5 data, as Keras models are"),
    ROW(4, "TFL3", "a TensorFlow Lite model"),
    ROW(0,
        "\x7f"
        "ELF",
        "a program or library"),
    ROW(0, "version https://git-lfs",
        "a pointer of Git LFS, not the file itself (git lfs pull)"),
    ROW(0, "<!DOCTYPE", "a web page"),
    ROW(0, "<html", "a web page"),
};

/* No control characters except whitespace; UTF-8 bytes count as letters. */
static bool is_text(pln_slice bytes) {
  size_t n = bytes.size < 512 ? bytes.size : 512;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)bytes.data[i];
    if ((c < ' ' && (c < '\t' || c > '\r')) || c == 0x7f)
      return false;
  }
  return true;
}

/* Comments and empty lines may precede Relay's header. */
static bool is_relay(pln_slice text) {
  static const char header[] = "#[version";
  size_t n = sizeof header - 1;
  for (size_t i = 0; i + n <= text.size && i < 4096; i++)
    if (!memcmp(text.data + i, header, n))
      return true;
  return false;
}

const char *pln_file_kind(pln_slice bytes) {
  if (bytes.size == 0)
    return "an empty file";
  for (size_t i = 0; i < PLN_COUNT(magics); i++) {
    const magic *m = &magics[i];
    if (bytes.size >= m->offset + m->size &&
        !memcmp(bytes.data + m->offset, m->bytes, m->size))
      return m->kind;
  }
  if (!is_text(bytes))
    return NULL;
  return is_relay(bytes) ? PLN_FILE_RELAY : "text";
}
