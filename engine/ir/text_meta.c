/* text_meta.c: TVM's metadata section: a table of nodes in JSON, and the
 * constants' bytes in base64.
 *
 * The printer numbers constants while it plans, and calls this at the end. */

#include "ir/text_meta.h"

#include <stdio.h>

/* Text with more constants than this is for reading, not for keeping. */
enum { MAX_BYTES = 1 << 20 };

pln_status pln_meta_init(pln_meta *meta, pln_engine *engine) {
  *meta = (pln_meta){.engine = engine};
  return pln_idmap_new(engine, &meta->number);
}

void pln_meta_free(pln_meta *meta) {
  if (meta->number)
    pln_idmap_free(meta->number);
  pln_mem_free(meta->engine, meta->tensors,
               meta->capacity * sizeof *meta->tensors);
}

pln_status pln_meta_add(pln_meta *meta, const pln_tensor *tensor,
                        uint32_t *number) {
  if (meta->count == meta->capacity)
    PLN_TRY(pln_mem_grow(meta->engine, (void **)&meta->tensors, &meta->capacity,
                         meta->count + 1u, sizeof *meta->tensors));
  size_t bytes = pln_tensor_bytes(tensor);
  meta->bytes = bytes > SIZE_MAX - meta->bytes ? SIZE_MAX : meta->bytes + bytes;
  meta->tensors[meta->count] = tensor;
  *number = meta->count++;
  return PLN_OK;
}

static pln_status add_once(pln_meta *meta, const pln_tensor *tensor) {
  uint64_t key = (uint64_t)(uintptr_t)tensor;
  uint32_t number;
  if (pln_idmap_get(meta->number, key))
    return PLN_OK;
  PLN_TRY(pln_meta_add(meta, tensor, &number));
  return pln_idmap_set(meta->number, key, number + 1);
}

pln_status pln_meta_add_attrs(pln_meta *meta, pln_attrs attrs) {
  uint32_t n = pln_attrs_count(meta->engine, attrs);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_get(meta->engine, attrs, i);
    if (a->kind == PLN_ATTR_TENSOR)
      PLN_TRY(add_once(meta, a->v.tensor));
    for (uint32_t j = 0; a->kind == PLN_ATTR_TENSORS && j < a->count; j++)
      PLN_TRY(add_once(meta, a->v.tensors[j]));
  }
  return PLN_OK;
}

uint32_t pln_meta_number(const pln_meta *meta, const pln_tensor *tensor) {
  uint64_t key = (uint64_t)(uintptr_t)tensor;
  return pln_idmap_get(meta->number, key) - 1; /* absent: 0 - 1 is PLN_NONE */
}

/* -------------------------------------------------------------------- JSON */

/* Writes "text" with each '$' replaced by the next number. */
static void put_row(pln_writer *w, const char *text, const int64_t *numbers) {
  for (const char *at = text; *at; at++)
    if (*at == '$')
      pln_put_int(w, *numbers++);
    else
      pln_put(w, at, 1);
}

/* How many rows a constant takes: itself, its type, its shape, each dim; the
 * first is followed by its device, which the others refer to. */
static uint32_t rows_of(const pln_tensor *tensor, uint32_t index) {
  return 3 + pln_tensor_rank(tensor) + (index == 0 ? 2 : 0);
}

static void put_list(pln_writer *w, int64_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    pln_put_int(w, first + i);
  }
}

static void put_type_rows(pln_writer *w, const pln_tensor *tensor,
                          int64_t row) {
  uint32_t rank = pln_tensor_rank(tensor);
  pln_put_text(w, ", \n    {\n      \"type_key\": \"relay.TensorType\", \n"
                  "      \"attrs\": {\n        \"dtype\": \"");
  pln_put_text(w, pln_dtype_name(pln_tensor_dtype(tensor)));
  put_row(w,
          "\", \n        \"shape\": \"$\", \n        \"span\": \"0\"\n"
          "      }\n    }, \n    {\n      \"type_key\": \"Array\"",
          &row);
  if (rank > 0) {
    pln_put_text(w, ", \n      \"data\": [");
    put_list(w, row + 1, rank);
    pln_put_text(w, "]");
  }
  pln_put_text(w, "\n    }");
  for (uint32_t i = 0; i < rank; i++) {
    int64_t dim = pln_tensor_dims(tensor)[i];
    pln_put_text(w, ", \n    {\n      \"type_key\": \"IntImm\", \n"
                    "      \"attrs\": {\n        \"dtype\": \"");
    pln_put_text(w, dim > INT32_MAX ? "int64" : "int32");
    put_row(w,
            "\", \n        \"span\": \"0\", \n        \"value\": \"$\"\n"
            "      }\n    }",
            &dim);
  }
}

static const char device_rows[] =
    ", \n    {\n      \"type_key\": \"VirtualDevice\", \n"
    "      \"attrs\": {\n        \"device_type_int\": \"-1\", \n"
    "        \"memory_scope\": \"5\", \n        \"target\": \"0\", \n"
    "        \"virtual_device_id\": \"-1\"\n      }\n    }, \n"
    "    {\n      \"type_key\": \"runtime.String\"\n    }";

static void put_constant_rows(pln_writer *w, const pln_tensor *tensor,
                              uint32_t index, int64_t row) {
  int64_t type = row + (index == 0 ? 3 : 1);
  put_row(w,
          ", \n    {\n      \"type_key\": \"relay.Constant\", \n"
          "      \"attrs\": {\n        \"_checked_type_\": \"$\", \n"
          "        \"data\": \"$\", \n        \"span\": \"0\", \n"
          "        \"virtual_device_\": \"4\"\n      }\n    }",
          (int64_t[]){type, index});
  if (index == 0)
    pln_put_text(w, device_rows);
  put_type_rows(w, tensor, type + 1);
}

static void put_nodes(pln_writer *w, const pln_meta *meta) {
  int64_t row = 3;
  pln_put_text(w, "#[metadata]\n{\n  \"root\": 1, \n  \"nodes\": [\n"
                  "    {\n      \"type_key\": \"\"\n    }, \n"
                  "    {\n      \"type_key\": \"Map\", \n      \"keys\": [\n"
                  "        \"relay.Constant\"\n      ], \n"
                  "      \"data\": [2]\n    }, \n"
                  "    {\n      \"type_key\": \"Array\", \n"
                  "      \"data\": [");
  for (uint32_t i = 0; i < meta->count; i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    pln_put_int(w, row);
    row += rows_of(meta->tensors[i], i);
  }
  pln_put_text(w, "]\n    }");
  row = 3;
  for (uint32_t i = 0; i < meta->count; i++) {
    put_constant_rows(w, meta->tensors[i], i, row);
    row += rows_of(meta->tensors[i], i);
  }
  pln_put_text(w, "\n  ]");
}

/* ------------------------------------------------------------------ base64 */

/* Three bytes become four letters; `rest` are those that wait. */
typedef struct base64 {
  pln_writer *w;
  uint8_t rest[3];
  uint32_t n_rest;
} base64;

static void put_letters(base64 *b) {
  static const char letters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t word = (uint32_t)b->rest[0] << 16 | (uint32_t)b->rest[1] << 8 |
                  (uint32_t)b->rest[2];
  char out[4];
  for (uint32_t i = 0; i < 4; i++)
    out[i] = i > b->n_rest ? '=' : letters[word >> (18 - 6 * i) & 63];
  pln_put(b->w, out, sizeof out);
  memset(b->rest, 0, sizeof b->rest);
  b->n_rest = 0;
}

static void put_bytes(base64 *b, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    b->rest[b->n_rest++] = ((const uint8_t *)bytes)[i];
    if (b->n_rest == 3)
      put_letters(b);
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

static void put_strings(base64 *b, const pln_slice *strings, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t size = strings[i].size;
    put_bytes(b, &size, sizeof size);
    put_bytes(b, strings[i].data, strings[i].size);
  }
}

static void put_elements(base64 *b, const pln_tensor *tensor) {
  const void *data;
  size_t bytes = pln_tensor_bytes(tensor), count = pln_tensor_count(tensor);
  if (count == 0)
    return;
  pln_status status = pln_tensor_data(tensor, &data);
  if (status != PLN_OK)
    b->w->status = status;
  else if (pln_tensor_dtype(tensor) == PLN_STRING)
    put_strings(b, data, count);
  else if (pln_tensor_is_splat(tensor))
    for (size_t i = 0; i < count; i++)
      put_bytes(b, data, bytes / count);
  else
    put_bytes(b, data, bytes);
}

/* TVM's NDArray on file: magic, device (1, 0), rank, dtype, dims, bytes. */
static void put_array(pln_writer *w, const pln_tensor *tensor) {
  base64 b = {.w = w};
  pln_dtype dtype = pln_tensor_dtype(tensor);
  uint32_t rank = pln_tensor_rank(tensor);
  uint64_t magic[2] = {0xDD5E40F096B4A13F, 0};
  uint32_t device[3] = {1, 0, rank};
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  uint8_t type[4] = {dlpack_code(dtype), (uint8_t)bits, 1, 0};
  int64_t bytes = (int64_t)pln_tensor_bytes(tensor);
  pln_put_text(w, "\"");
  put_bytes(&b, magic, sizeof magic);
  put_bytes(&b, device, sizeof device);
  put_bytes(&b, type, sizeof type);
  put_bytes(&b, pln_tensor_dims(tensor), rank * sizeof(int64_t));
  put_bytes(&b, &bytes, sizeof bytes);
  put_elements(&b, tensor);
  if (b.n_rest > 0)
    put_letters(&b);
  pln_put_text(w, "\"");
}

static const char omitted[] =
    "/* For debugging purposes the metadata section has been omitted.\n"
    " * If you would like to see the full metadata section you can set the \n"
    " * option to `True` when invoking `astext`. \n"
    " */";

void pln_put_meta(pln_writer *w, const pln_meta *meta) {
  if (meta->count == 0)
    return;
  pln_put_text(w, "\n");
  if (meta->bytes > MAX_BYTES) {
    pln_put_text(w, omitted);
    return;
  }
  put_nodes(w, meta);
  pln_put_text(w, ", \n  \"b64ndarrays\": [\n");
  for (uint32_t i = 0; i < meta->count && !pln_writer_done(w); i++) {
    pln_put_text(w, i > 0 ? ", \n    " : "    ");
    put_array(w, meta->tensors[i]);
  }
  pln_put_text(w, "\n  ], \n  \"attrs\": {\"tvm_version\": \"0.14.0\"}\n}");
}
