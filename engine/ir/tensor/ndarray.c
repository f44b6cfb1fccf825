/* tensor/ndarray.c: reads tensors of a metadata section, as
 * relay/metadata/write_array.c writes them: TVM's NDArray in base64, or as an
 * extension a file range or one element for a splat.
 *
 * Called by the readers of Relay's and of TIR's text. The input is not trusted:
 * sizes are checked before use. */

#include "ir/tensor/ndarray.h"
#include "base/text/base64.h"
#include "ir/tensor/tensor.h"

enum { MAX_RANK = 1024, HEAD = 36 }; /* bytes of an NDArray before its dims */

/* ----------------------------------------------------------------- NDArrays */

/* Converts a DLPack type code and width. TVM writes bool with one bit. */
static pln_dtype dtype_of(uint8_t code, uint8_t bits) {
  static const struct {
    uint8_t code, bits;
    uint8_t dtype;
  } rows[] = {{0, 8, PLN_INT8},
              {0, 16, PLN_INT16},
              {0, 32, PLN_INT32},
              {0, 64, PLN_INT64},
              {0, 4, PLN_INT4},
              {0, 2, PLN_INT2},
              {1, 1, PLN_BOOL},
              {1, 8, PLN_UINT8},
              {1, 16, PLN_UINT16},
              {1, 32, PLN_UINT32},
              {1, 64, PLN_UINT64},
              {1, 4, PLN_UINT4},
              {1, 2, PLN_UINT2},
              {2, 16, PLN_FLOAT16},
              {2, 32, PLN_FLOAT32},
              {2, 64, PLN_FLOAT64},
              {3, 128, PLN_STRING},
              {4, 16, PLN_BFLOAT16},
              {5, 64, PLN_COMPLEX64},
              {5, 128, PLN_COMPLEX128},
              {10, 8, PLN_FLOAT8_E4M3FN},
              {11, 8, PLN_FLOAT8_E4M3FNUZ},
              {12, 8, PLN_FLOAT8_E5M2},
              {13, 8, PLN_FLOAT8_E5M2FNUZ},
              {14, 8, PLN_FLOAT8_E8M0FNU},
              {17, 4, PLN_FLOAT4_E2M1FN}};
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (rows[i].code == code && rows[i].bits == bits)
      return (pln_dtype)rows[i].dtype;
  return PLN_DTYPE_NONE;
}

typedef struct head {
  pln_dtype dtype;
  uint32_t rank;
  int64_t dims[MAX_RANK];
  size_t count, bytes;
  size_t size; /* size of the header in bytes */
} head;

static bool read_head(const uint8_t *bytes, size_t size, head *h) {
  uint64_t magic;
  if (size < HEAD - 8)
    return false;
  memcpy(&magic, bytes, sizeof magic);
  memcpy(&h->rank, bytes + 24, sizeof h->rank);
  h->dtype = dtype_of(bytes[28], bytes[29]);
  if (magic != 0xDD5E40F096B4A13F || h->dtype == PLN_DTYPE_NONE ||
      bytes[30] != 1 || h->rank > MAX_RANK)
    return false;
  h->size = 32 + h->rank * sizeof(int64_t) + 8;
  if (size < h->size)
    return false;
  memcpy(h->dims, bytes + 32, h->rank * sizeof(int64_t));
  return pln_tensor_size(h->dtype, h->rank, h->dims, &h->count, &h->bytes) ==
         PLN_OK;
}

/* Reads strings, each stored as a length of 8 bytes followed by its bytes. */
static pln_status read_array_strings(pln_engine *e, const head *h,
                                     const uint8_t *bytes, size_t size,
                                     pln_tensor **out) {
  if (h->count > size / 8)
    return PLN_ERR_FORMAT;
  pln_slice *strings = pln_mem_zeroed(e, h->count * sizeof *strings);
  pln_status status = PLN_OK;
  if (!strings && h->count > 0)
    return pln_nomem(e);
  for (size_t i = 0; i < h->count && status == PLN_OK; i++) {
    uint64_t length = UINT64_MAX;
    if (size >= sizeof length)
      memcpy(&length, bytes, sizeof length);
    if (length == UINT64_MAX || length > size - sizeof length) {
      status = PLN_ERR_FORMAT;
      break;
    }
    strings[i] =
        (pln_slice){(const char *)bytes + sizeof length, (size_t)length};
    bytes += sizeof length + length;
    size -= sizeof length + length;
  }
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(e, h->dtype, h->rank, h->dims, strings,
                                   h->count * sizeof *strings, out);
  pln_mem_free(e, strings, h->count * sizeof *strings);
  return status;
}

/* Decodes the whole text into one buffer; the elements are then read from it.
 * The buffer is no larger than the text implies, so a forged header cannot
 * cause a large allocation. */
pln_status pln_ndarray_read_base64(pln_engine *e, pln_slice text,
                                   pln_tensor **out) {
  size_t room = text.size / 4 * 3 + 3;
  uint8_t *bytes = pln_mem_new(e, room);
  head h;
  pln_status status = PLN_ERR_FORMAT;
  if (!bytes)
    return pln_nomem(e);
  size_t size = pln_base64_decode(text, bytes, room);
  if (size <= room && read_head(bytes, size, &h)) {
    const uint8_t *elements = bytes + h.size;
    if (h.dtype == PLN_STRING)
      status = read_array_strings(e, &h, elements, size - h.size, out);
    else if (size - h.size == h.bytes)
      status = pln_tensor_from_bytes(e, h.dtype, h.rank, h.dims, elements,
                                     h.bytes, out);
  }
  pln_mem_free(e, bytes, room);
  return status;
}

/* ------------------------------------------------------------ by reference */

static bool read_shape(const pln_json *json, const pln_json_value *value,
                       head *h) {
  const pln_json_value *shape = pln_json_get(json, value, "shape");
  const pln_json_value *dtype = pln_json_get(json, value, "dtype");
  if (!shape || shape->kind != PLN_JSON_ARRAY || shape->count > MAX_RANK ||
      !dtype)
    return false;
  h->dtype = pln_dtype_find(dtype->text);
  h->rank = shape->count;
  uint32_t at = (uint32_t)(shape - json->values) + 1;
  for (uint32_t i = 0; i < h->rank; i++) {
    uint64_t dim;
    if (!pln_json_number(&json->values[at], &dim) || dim > INT64_MAX)
      return false;
    h->dims[i] = (int64_t)dim;
    at = json->values[at].next;
  }
  return h->dtype != PLN_DTYPE_NONE && h->dtype != PLN_STRING &&
         pln_tensor_size(h->dtype, h->rank, h->dims, &h->count, &h->bytes) ==
             PLN_OK;
}

static pln_status read_splat(pln_engine *e, const head *h, pln_slice text,
                             pln_tensor **out) {
  uint8_t element[16];
  size_t size = pln_base64_decode(text, element, sizeof element);
  if (size != pln_splat_bytes(h->dtype))
    return PLN_ERR_FORMAT;
  return pln_tensor_splat(e, h->dtype, h->rank, h->dims, element, out);
}

static pln_status text_symbol(pln_engine *e, const pln_json_value *value,
                              pln_symbol *out) {
  pln_buffer text;
  pln_buffer_init(&text, e);
  pln_status status = pln_json_text(value, &text);
  if (status == PLN_OK)
    status = pln_symbol_intern(e, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

/* Makes a tensor in an external data file, {"file": folder, "location": name}.
 * The file is opened when the elements are first read. */
static pln_status read_external(pln_engine *e, const head *h,
                                const pln_json_value *folder,
                                const pln_json_value *name, uint64_t offset,
                                uint64_t length, pln_tensor **out) {
  pln_external where = {.offset = offset, .length = length};
  PLN_TRY(text_symbol(e, folder, &where.directory));
  PLN_TRY(text_symbol(e, name, &where.location));
  return pln_tensor_external(e, h->dtype, h->rank, h->dims, &where, out);
}

static pln_status read_mapped(pln_engine *e, const head *h,
                              const pln_json_value *name, uint64_t offset,
                              uint64_t length, pln_tensor **out) {
  pln_symbol path;
  pln_file *file;
  PLN_TRY(text_symbol(e, name, &path));
  PLN_TRY(pln_file_map(e, pln_symbol_text(e, path).data, &file));
  pln_status status =
      pln_tensor_view(e, h->dtype, h->rank, h->dims, file, offset, length, out);
  pln_file_release(file);
  return status;
}

pln_status pln_ndarray_read(pln_engine *engine, const pln_json *json,
                            const pln_json_value *value, pln_tensor **out) {
  head h;
  uint64_t offset, length;
  if (value->kind == PLN_JSON_STRING)
    return pln_ndarray_read_base64(engine, value->text, out);
  if (value->kind != PLN_JSON_OBJECT || !read_shape(json, value, &h))
    return PLN_ERR_FORMAT;
  const pln_json_value *splat = pln_json_get(json, value, "splat");
  if (splat)
    return read_splat(engine, &h, splat->text, out);
  const pln_json_value *file = pln_json_get(json, value, "file");
  const pln_json_value *location = pln_json_get(json, value, "location");
  if (!file || !pln_json_number(pln_json_get(json, value, "offset"), &offset) ||
      !pln_json_number(pln_json_get(json, value, "length"), &length))
    return PLN_ERR_FORMAT;
  return location
             ? read_external(engine, &h, file, location, offset, length, out)
             : read_mapped(engine, &h, file, offset, length, out);
}
