/* relay/metadata/write_array.c: writes tensors in the metadata section.
 *
 * Called by relay/metadata/write_section.c. TVM's form is the base64 of its
 * serialised NDArray. As extensions, which TVM cannot read, a large tensor in a
 * file is written as a file range, and a large splat as one element. Brief text
 * (PLN_CONSTANTS_BRIEF) has a hash in place of the elements. */

#include "base/text/base64.h"
#include "ir/relay/metadata/references.h"

#include <stdio.h>

/* Tensors up to this size are written out in any case, but for brief text. */
enum { MAX_INLINE = 1 << 20 };

/* ------------------------------------------------------------------ base64 */

/* Bytes on their way to base64; `rest` are those that wait for a third. */
typedef struct base64_writer {
  pln_writer *w;
  uint8_t rest[3];
  uint32_t n_rest;
} base64_writer;

static void end_base64(base64_writer *b) {
  char letters[4];
  if (b->n_rest == 0)
    return;
  pln_base64_encode(b->rest, b->n_rest, letters);
  pln_put(b->w, letters, sizeof letters);
  b->n_rest = 0;
}

static void put_base64(base64_writer *b, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    b->rest[b->n_rest++] = ((const uint8_t *)bytes)[i];
    if (b->n_rest == 3)
      end_base64(b);
  }
}

/* DLPack's code of a dtype; those that it does not know are opaque (3). */
static uint8_t dlpack_code(pln_dtype dtype) {
  switch (dtype) {
  case PLN_INT8:
  case PLN_INT16:
  case PLN_INT32:
  case PLN_INT64:
  case PLN_INT4:
  case PLN_INT2: return 0;
  case PLN_UINT8:
  case PLN_UINT16:
  case PLN_UINT32:
  case PLN_UINT64:
  case PLN_UINT4:
  case PLN_UINT2:
  case PLN_BOOL: return 1;
  case PLN_FLOAT16:
  case PLN_FLOAT32:
  case PLN_FLOAT64: return 2;
  case PLN_BFLOAT16: return 4;
  case PLN_COMPLEX64:
  case PLN_COMPLEX128: return 5;
  case PLN_FLOAT8_E4M3FN: return 10;
  case PLN_FLOAT8_E4M3FNUZ: return 11;
  case PLN_FLOAT8_E5M2: return 12;
  case PLN_FLOAT8_E5M2FNUZ: return 13;
  case PLN_FLOAT8_E8M0FNU: return 14;
  case PLN_FLOAT4_E2M1FN: return 17;
  case PLN_STRING:
  case PLN_DTYPE_NONE:
  case PLN_N_DTYPES: break;
  }
  return 3;
}

static void put_strings(base64_writer *b, const pln_tensor *t) {
  const pln_slice *strings = t->data;
  for (size_t i = 0; i < t->count; i++) {
    pln_slice s = strings[t->splat ? 0 : i];
    uint64_t size = s.size;
    put_base64(b, &size, sizeof size);
    put_base64(b, s.data, s.size);
  }
}

static void put_repeated(base64_writer *b, const pln_tensor *t) {
  size_t size = pln_splat_bytes((pln_dtype)t->dtype);
  bool packed = pln_dtype_bits((pln_dtype)t->dtype) < 8;
  uint8_t last = pln_splat_last_byte(t);
  for (size_t at = 0; at + packed < t->bytes; at += size)
    put_base64(b, t->data, size);
  if (packed)
    put_base64(b, &last, 1);
}

static void write_base64_elements(base64_writer *b, const pln_tensor *tensor) {
  const void *data;
  size_t bytes = pln_tensor_bytes(tensor);
  if (bytes == 0)
    return;
  pln_status status = pln_tensor_data(tensor, &data);
  if (status != PLN_OK)
    b->w->status = status;
  else if (pln_tensor_dtype(tensor) == PLN_STRING)
    put_strings(b, tensor);
  else if (pln_tensor_is_splat(tensor))
    put_repeated(b, tensor);
  else
    put_base64(b, data, bytes);
}

/* TVM's NDArray on file: magic, device (1, 0), rank, dtype, dims, bytes. */
static void put_ndarray(pln_writer *w, const pln_tensor *tensor) {
  base64_writer b = {.w = w};
  pln_dtype dtype = pln_tensor_dtype(tensor);
  uint32_t rank = pln_tensor_rank(tensor);
  uint64_t magic[2] = {0xDD5E40F096B4A13F, 0};
  uint32_t device[3] = {1, 0, rank};
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  uint8_t type[4] = {dlpack_code(dtype), (uint8_t)bits, 1, 0};
  int64_t bytes = (int64_t)pln_tensor_bytes(tensor);
  pln_put_text(w, "\"");
  put_base64(&b, magic, sizeof magic);
  put_base64(&b, device, sizeof device);
  put_base64(&b, type, sizeof type);
  put_base64(&b, pln_tensor_dims(tensor), rank * sizeof(int64_t));
  put_base64(&b, &bytes, sizeof bytes);
  write_base64_elements(&b, tensor);
  end_base64(&b);
  pln_put_text(w, "\"");
}

/* ------------------------------------------------------------ by reference */

static void put_head(pln_writer *w, const pln_tensor *tensor) {
  pln_put_text(w, "{\"dtype\": \"");
  pln_put_text(w, pln_dtype_name(pln_tensor_dtype(tensor)));
  pln_put_text(w, "\", \"shape\": [");
  for (uint32_t i = 0; i < pln_tensor_rank(tensor); i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    pln_put_int(w, pln_tensor_dims(tensor)[i]);
  }
  pln_put_text(w, "], ");
}

/* What is behind "file": or "location":, to the end. */
static void write_array_place(pln_writer *w, pln_slice path, uint64_t offset,
                              const pln_tensor *tensor) {
  pln_put_json(w, path);
  pln_put_text(w, ", \"offset\": ");
  pln_put_int(w, (int64_t)offset);
  pln_put_text(w, ", \"length\": ");
  pln_put_int(w, (int64_t)pln_tensor_bytes(tensor));
  pln_put_text(w, "}");
}

static void put_slice(pln_writer *w, const pln_tensor *tensor, pln_slice folder,
                      pln_slice path, uint64_t offset) {
  put_head(w, tensor);
  pln_put_text(w, "\"file\": ");
  if (folder.size > 0) {
    pln_put_json(w, folder);
    pln_put_text(w, ", \"location\": ");
  }
  write_array_place(w, path, offset, tensor);
}

static void put_splat(pln_writer *w, const pln_tensor *tensor) {
  base64_writer b = {.w = w};
  const void *data;
  pln_status status = pln_tensor_data(tensor, &data);
  if (status != PLN_OK) {
    w->status = status;
    return;
  }
  put_head(w, tensor);
  pln_put_text(w, "\"splat\": \"");
  put_base64(&b, data, pln_splat_bytes((pln_dtype)tensor->dtype));
  end_base64(&b);
  pln_put_text(w, "\"}");
}

/* ------------------------------------------------------------------ digest */

static uint64_t hash_string(pln_slice s, uint64_t hash) {
  return pln_hash_bytes(s.data, s.size, hash);
}

static pln_status hash_elements(const pln_tensor *tensor, uint64_t *hash) {
  const void *data;
  size_t bytes = pln_tensor_bytes(tensor), count = pln_tensor_count(tensor);
  if (count == 0)
    return PLN_OK;
  PLN_TRY(pln_tensor_data(tensor, &data));
  if (pln_tensor_dtype(tensor) != PLN_STRING) {
    size_t unit = pln_splat_bytes((pln_dtype)tensor->dtype);
    *hash = pln_hash_bytes(data, tensor->splat ? unit : bytes, *hash);
    return PLN_OK;
  }
  const pln_slice *strings = data;
  for (size_t i = 0; i < count; i++)
    *hash = hash_string(strings[tensor->splat ? 0 : i], *hash);
  return PLN_OK;
}

/* A hash of dtype, dims and elements, the same in every run. */
static void put_hash(pln_writer *w, const pln_tensor *tensor) {
  char digits[20];
  uint32_t rank = pln_tensor_rank(tensor);
  uint64_t hash = pln_hash_bytes(pln_tensor_dims(tensor),
                                 rank * sizeof(int64_t), tensor->dtype);
  pln_status status = hash_elements(tensor, &hash);
  if (status != PLN_OK) {
    w->status = w->status == PLN_OK ? status : w->status;
    return;
  }
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
  pln_put_text(w, digits);
}

/* The base name of the file whose slice the tensor is, when its elements are
 * not to be read for a digest; else empty. */
static pln_slice mapped_file_name(const pln_writer *w,
                                  const pln_tensor *tensor) {
  pln_slice name = {NULL, 0};
  if (tensor->where.location)
    name = pln_symbol_text(w->engine, tensor->where.location);
  else if (pln_tensor_bytes(tensor) > MAX_INLINE && tensor->file &&
           pln_file_is_mapped(tensor->file))
    name = pln_text(pln_file_path(tensor->file));
  for (size_t i = name.size; i > 0; i--)
    if (name.data[i - 1] == '/')
      return (pln_slice){name.data + i, name.size - i};
  return name;
}

static int64_t offset_of(const pln_tensor *tensor) {
  return (int64_t)(tensor->where.location ? tensor->where.offset
                                          : tensor->offset);
}

void pln_put_constant_digest(pln_writer *w, const pln_tensor *tensor) {
  pln_slice name = mapped_file_name(w, tensor);
  pln_put_text(w, "meta[relay.Constant][");
  if (name.size > 0) {
    pln_put_quoted(w, name);
    pln_put_text(w, ":");
    pln_put_int(w, offset_of(tensor));
    pln_put_text(w, "+");
    pln_put_int(w, (int64_t)pln_tensor_bytes(tensor));
  } else {
    put_hash(w, tensor);
  }
  pln_put_text(w, "]");
}

static void put_omitted(pln_writer *w, const pln_tensor *tensor) {
  pln_slice name = mapped_file_name(w, tensor);
  put_head(w, tensor);
  if (name.size > 0) {
    pln_put_text(w, "\"" PLN_META_OMITTED "\": true, \"file\": ");
    write_array_place(w, name, (uint64_t)offset_of(tensor), tensor);
  } else {
    pln_put_text(w, "\"" PLN_META_OMITTED "\": \"");
    put_hash(w, tensor);
    pln_put_text(w, "\"}");
  }
}

/* A splat is told whole by its one element. */
static void put_brief(pln_writer *w, const pln_tensor *tensor) {
  if (tensor->splat && tensor->dtype != PLN_STRING)
    put_splat(w, tensor);
  else
    put_omitted(w, tensor);
}

void pln_put_array(pln_writer *w, const pln_tensor *tensor) {
  pln_slice none = {NULL, 0};
  bool large = pln_tensor_bytes(tensor) > MAX_INLINE;
  if (w->constants == PLN_CONSTANTS_BRIEF &&
      pln_tensor_count(tensor) > PLN_BRIEF_ELEMENTS)
    put_brief(w, tensor);
  else if (large && tensor->splat && tensor->dtype != PLN_STRING)
    put_splat(w, tensor);
  else if (!large || w->constants == PLN_CONSTANTS_EMBEDDED)
    put_ndarray(w, tensor);
  else if (tensor->where.location)
    put_slice(w, tensor, pln_symbol_text(w->engine, tensor->where.directory),
              pln_symbol_text(w->engine, tensor->where.location),
              tensor->where.offset);
  else if (tensor->file && pln_file_is_mapped(tensor->file))
    put_slice(w, tensor, none, pln_text(pln_file_path(tensor->file)),
              tensor->offset);
  else
    put_ndarray(w, tensor);
}
