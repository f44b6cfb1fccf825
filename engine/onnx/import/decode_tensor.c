/* decode_tensor.c: decodes TensorProto.
 *
 * raw_data and packed floats become views of the file; external data is only
 * named; varint-coded dtypes are decoded into a new tensor. Invariant: a
 * decoded tensor has exactly as many elements as its dims say. */

#include "onnx/import/decode.h"

/* The fields of one TensorProto. */
typedef struct tensor_fields {
  pln_message whole;
  pln_slice name;
  uint64_t dtype;
  uint64_t location;
  size_t n_dims;
  bool segment;
  bool raw;
  pln_slice raw_data;
  size_t n_strings;
  size_t n_external;
} tensor_fields;

static pln_status scan(const pln_decoder *d, pln_message message,
                       tensor_fields *t) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *t = (tensor_fields){.whole = message, .name = {"", 0}};
  while (pln_wire_next(&w, &f)) {
    switch (f.tag) {
    case TENSOR_DIMS: t->n_dims++; break;
    case TENSOR_DIMS_PACKED:
      t->n_dims += f.bytes.size;
      break; /* an upper bound */
    case TENSOR_DATA_TYPE: t->dtype = f.value; break;
    case TENSOR_SEGMENT: t->segment = true; break;
    case TENSOR_STRING_DATA: t->n_strings++; break;
    case TENSOR_NAME: t->name = f.bytes; break;
    case TENSOR_RAW_DATA:
      t->raw = true;
      t->raw_data = f.bytes;
      break;
    case TENSOR_EXTERNAL_DATA: t->n_external++; break;
    case TENSOR_DATA_LOCATION: t->location = f.value; break;
    default: break;
    }
  }
  return pln_wire_done(&w, d->engine, "TensorProto");
}

static pln_status fail_tensor_decode(const pln_decoder *d,
                                     const tensor_fields *t, const char *what) {
  return pln_diag_error(d->engine, PLN_ERR_FORMAT, NULL, "tensor '%.*s': %s",
                        (int)(t->name.size < 200 ? t->name.size : 200),
                        t->name.data, what);
}

/* Iterates over the values of a repeated number field, packed or not. */
typedef struct numbers {
  pln_wire wire;
  uint32_t number;
  /* Wire type of single values: VARINT, FIXED32 or FIXED64. */
  uint32_t unpacked;
  const uint8_t *at, *end;
  bool bad;
} numbers;

static numbers numbers_of(pln_message message, uint32_t number,
                          uint32_t unpacked) {
  return (numbers){
      .wire = pln_wire_open(message), .number = number, .unpacked = unpacked};
}

static bool packed_number(numbers *n, uint64_t *value) {
  if (n->unpacked == PLN_VARINT) {
    n->bad |= !pln_wire_varint(&n->at, n->end, value);
    return !n->bad;
  }
  size_t size = n->unpacked == PLN_FIXED32 ? 4 : 8;
  if ((size_t)(n->end - n->at) < size) {
    n->bad = true;
    return false;
  }
  *value = 0;
  memcpy(value, n->at, size);
  n->at += size;
  return true;
}

static bool next_number(numbers *n, uint64_t *value) {
  while (n->at == n->end) {
    pln_field f;
    if (!pln_wire_next(&n->wire, &f))
      return false;
    if (f.tag == PLN_TAG(n->number, n->unpacked)) {
      *value = f.value;
      return true;
    }
    if (f.tag == PLN_TAG(n->number, PLN_BYTES)) {
      n->at = (const uint8_t *)f.bytes.data;
      n->end = n->at + f.bytes.size;
    }
  }
  return packed_number(n, value);
}

static pln_status read_dims(const pln_decoder *d, const tensor_fields *t,
                            int64_t *dims, uint32_t *rank) {
  numbers all = numbers_of(t->whole, 1, PLN_VARINT);
  uint64_t value;
  uint32_t n = 0;
  while (next_number(&all, &value)) {
    if ((int64_t)value < 0)
      return fail_tensor_decode(d, t, "a dimension is negative");
    dims[n++] = (int64_t)value;
  }
  if (all.bad)
    return fail_tensor_decode(d, t, "its dimensions are cut off");
  *rank = n;
  return PLN_OK;
}

/* ------------------------------------------------------------ external data */

static bool digits(pln_slice text, uint64_t *out) {
  uint64_t value = 0;
  if (text.size == 0 || text.size > 19)
    return false;
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] < '0' || text.data[i] > '9')
      return false;
    value = value * 10 + (uint64_t)(text.data[i] - '0');
  }
  *out = value;
  return true;
}

/* A quick check of the path; opening the file checks it again. */
static bool leads_outside(pln_slice path) {
  if (path.size == 0 || path.data[0] == '/' || memchr(path.data, 0, path.size))
    return true;
  for (size_t from = 0; from <= path.size;) {
    const char *slash = memchr(path.data + from, '/', path.size - from);
    size_t to = slash ? (size_t)(slash - path.data) : path.size;
    if (to - from == 2 && !memcmp(path.data + from, "..", 2))
      return true;
    from = to + 1;
  }
  return false;
}

static pln_status decode_external_entry(const pln_decoder *d,
                                        const tensor_fields *t,
                                        pln_message message,
                                        pln_external *where) {
  pln_slice key, value;
  PLN_TRY(pln_decode_string(d, message, "external_data", ENTRY_KEY, &key));
  PLN_TRY(pln_decode_string(d, message, "external_data", ENTRY_VALUE, &value));
  if (pln_slice_is(key, "offset") && !digits(value, &where->offset))
    return fail_tensor_decode(
        d, t, "the offset of its external data is not a number");
  if (pln_slice_is(key, "length") && !digits(value, &where->length))
    return fail_tensor_decode(
        d, t, "the length of its external data is not a number");
  if (!pln_slice_is(key, "location"))
    return PLN_OK;
  if (leads_outside(value))
    return fail_tensor_decode(
        d, t, "its external data lies outside of the model's folder");
  return pln_symbol_intern(d->engine, value, &where->location);
}

/* Asks the system once per file, as long as its tensors follow each other. */
static uint64_t stamp_of(const pln_decoder *d, pln_symbol location) {
  if (d->known && d->known->location == location)
    return d->known->stamp;
  uint64_t stamp =
      pln_file_stamp_at(pln_symbol_text(d->engine, d->directory).data,
                        pln_symbol_text(d->engine, location));
  if (d->known)
    *d->known = (struct pln_known_stamp){location, stamp};
  return stamp;
}

static pln_status read_external(const pln_decoder *d, const tensor_fields *t,
                                uint32_t rank, const int64_t *dims,
                                size_t bytes, pln_tensor **out) {
  pln_external where = {.directory = d->directory, .length = UINT64_MAX};
  pln_wire w = pln_wire_open(t->whole);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == TENSOR_EXTERNAL_DATA)
      PLN_TRY(decode_external_entry(d, t, pln_wire_message(&w, &f), &where));
  if (!where.location)
    return fail_tensor_decode(d, t, "its external data has no location");
  if (!d->directory)
    return fail_tensor_decode(
        d, t,
        "a model read from memory has no folder for external "
        "data");
  if (where.length != UINT64_MAX && where.length != bytes)
    return fail_tensor_decode(
        d, t,
        "the length of its external data does not match its "
        "dimensions");
  where.stamp = stamp_of(d, where.location);
  return pln_tensor_external(d->engine, (pln_dtype)t->dtype, rank, dims, &where,
                             out);
}

/* ------------------------------------------------------------- inline data */

static pln_status decode_string_tensor(const pln_decoder *d,
                                       const tensor_fields *t, uint32_t rank,
                                       const int64_t *dims, size_t count,
                                       pln_tensor **out) {
  if (t->n_strings != count)
    return fail_tensor_decode(d, t,
                              "string_data has another number of elements than "
                              "its dimensions require");
  pln_slice *strings = pln_mem_new(d->engine, count * sizeof *strings);
  if (!strings && count)
    return pln_nomem(d->engine);
  pln_wire w = pln_wire_open(t->whole);
  pln_field f;
  size_t n = 0;
  while (pln_wire_next(&w, &f))
    if (f.tag == TENSOR_STRING_DATA)
      strings[n++] = f.bytes;
  pln_status status = pln_tensor_from_bytes(d->engine, PLN_STRING, rank, dims,
                                            strings, n * sizeof *strings, out);
  pln_mem_free(d->engine, strings, count * sizeof *strings);
  return status;
}

/* The field that holds the elements of a dtype, and the width of one number. */
typedef struct typed_field {
  uint32_t number;
  uint32_t wire;
  size_t width; /* bytes that a number adds to the tensor */
} typed_field;

static typed_field field_of(pln_dtype dtype) {
  switch (dtype) {
  case PLN_FLOAT32:
  case PLN_COMPLEX64: return (typed_field){TENSOR_FLOAT_DATA, PLN_FIXED32, 4};
  case PLN_FLOAT64:
  case PLN_COMPLEX128: return (typed_field){TENSOR_DOUBLE_DATA, PLN_FIXED64, 8};
  case PLN_INT64: return (typed_field){TENSOR_INT64_DATA, PLN_VARINT, 8};
  case PLN_UINT64: return (typed_field){TENSOR_UINT64_DATA, PLN_VARINT, 8};
  case PLN_UINT32: return (typed_field){TENSOR_UINT64_DATA, PLN_VARINT, 4};
  case PLN_INT32: return (typed_field){TENSOR_INT32_DATA, PLN_VARINT, 4};
  case PLN_INT16:
  case PLN_UINT16:
  case PLN_FLOAT16:
  case PLN_BFLOAT16: return (typed_field){TENSOR_INT32_DATA, PLN_VARINT, 2};
  default: return (typed_field){TENSOR_INT32_DATA, PLN_VARINT, 1};
  }
}

/* Returns true if the elements are one packed run of floats, whose bytes are
 * those of the tensor. */
static bool one_run(const tensor_fields *t, typed_field field, size_t bytes,
                    pln_slice *out) {
  pln_wire w = pln_wire_open(t->whole);
  pln_field f;
  size_t runs = 0;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == PLN_TAG(field.number, field.wire))
      return false;
    if (f.tag == PLN_TAG(field.number, PLN_BYTES) && ++runs)
      *out = f.bytes;
  }
  return runs == 1 && out->size == bytes && field.wire != PLN_VARINT;
}

static pln_status fill_tensor_elements(const pln_decoder *d,
                                       const tensor_fields *t,
                                       typed_field field, size_t bytes,
                                       uint8_t *to) {
  numbers all = numbers_of(t->whole, field.number, field.wire);
  uint64_t value;
  size_t at = 0;
  while (next_number(&all, &value)) {
    if (bytes - at < field.width)
      return fail_tensor_decode(
          d, t, "it has more elements than its dimensions require");
    memcpy(to + at, &value, field.width);
    at += field.width;
  }
  if (all.bad)
    return fail_tensor_decode(d, t, "its elements are cut off");
  return at == bytes
             ? PLN_OK
             : fail_tensor_decode(
                   d, t, "it has fewer elements than its dimensions require");
}

static pln_status view(const pln_decoder *d, const tensor_fields *t,
                       uint32_t rank, const int64_t *dims, pln_slice bytes,
                       pln_tensor **out) {
  pln_file *file = t->whole.file;
  uint64_t offset =
      bytes.size ? (uint64_t)((const uint8_t *)bytes.data - pln_file_data(file))
                 : 0;
  return pln_tensor_view(d->engine, (pln_dtype)t->dtype, rank, dims, file,
                         offset, bytes.size, out);
}

static pln_status read_typed(const pln_decoder *d, const tensor_fields *t,
                             uint32_t rank, const int64_t *dims, size_t bytes,
                             pln_tensor **out) {
  typed_field field = field_of((pln_dtype)t->dtype);
  pln_slice run = {NULL, 0};
  if (one_run(t, field, bytes, &run))
    return view(d, t, rank, dims, run, out);
  /* check before allocating: dims may be wrong */
  if (bytes / field.width > t->whole.size)
    return fail_tensor_decode(
        d, t, "it has fewer elements than its dimensions require");
  PLN_TRY(pln_tensor_new(d->engine, (pln_dtype)t->dtype, rank, dims, out));
  pln_status status =
      fill_tensor_elements(d, t, field, bytes, pln_tensor_writable(*out));
  if (status != PLN_OK) {
    pln_tensor_release(*out);
    *out = NULL;
  }
  return status;
}

static pln_status read_data(const pln_decoder *d, const tensor_fields *t,
                            uint32_t rank, const int64_t *dims,
                            pln_tensor **out) {
  enum { EXTERNAL = 1 };
  size_t count, bytes;
  if (pln_tensor_size((pln_dtype)t->dtype, rank, dims, &count, &bytes) !=
      PLN_OK)
    return fail_tensor_decode(d, t, "its dimensions overflow");
  if (t->location == EXTERNAL && t->dtype != PLN_STRING)
    return read_external(d, t, rank, dims, bytes, out);
  if (t->location != 0)
    return fail_tensor_decode(d, t, "its data_location is unknown");
  if (t->dtype == PLN_STRING)
    return decode_string_tensor(d, t, rank, dims, count, out);
  if (!t->raw)
    return read_typed(d, t, rank, dims, bytes, out);
  if (t->raw_data.size != bytes)
    return fail_tensor_decode(
        d, t, "the size of raw_data does not match its dimensions");
  return view(d, t, rank, dims, t->raw_data, out);
}

static pln_status read_fields(const pln_decoder *d, const tensor_fields *t,
                              pln_tensor **out) {
  int64_t few[8], *dims = few;
  size_t size = t->n_dims * sizeof *dims;
  if (t->n_dims > PLN_COUNT(few) && !(dims = pln_mem_new(d->engine, size)))
    return pln_nomem(d->engine);
  uint32_t rank = 0;
  pln_status status = read_dims(d, t, dims, &rank);
  if (status == PLN_OK)
    status = read_data(d, t, rank, dims, out);
  if (dims != few)
    pln_mem_free(d->engine, dims, size);
  return status;
}

pln_status pln_decode_tensor(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_tensor **out) {
  tensor_fields t;
  *out = NULL;
  PLN_TRY(scan(d, message, &t));
  *name = t.name;
  if (t.segment)
    return fail_tensor_decode(
        d, &t, "segments are not supported by any reader of ONNX");
  if (t.dtype == 0)
    return fail_tensor_decode(d, &t, "it has no data_type");
  if (t.dtype >= PLN_N_DTYPES)
    return PLN_OK;
  return read_fields(d, &t, out);
}

/* In a SparseTensorProto dims are field 3; the dtype is that of its values. */
pln_status pln_decode_sparse(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_type *out) {
  pln_message values;
  pln_file *joined;
  PLN_TRY(pln_wire_merged(d->engine, message, "SparseTensorProto",
                          SPARSE_VALUES, &values, &joined, NULL));
  pln_file_release(joined);
  if (joined)
    return pln_diag_error(d->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "the values of a sparse tensor are in segments");
  tensor_fields t;
  PLN_TRY(scan(d, values, &t));
  *name = t.name;
  pln_dim dims[16];
  int32_t rank = 0;
  numbers all = numbers_of(message, 3, PLN_VARINT);
  uint64_t value;
  while (next_number(&all, &value)) {
    if (rank == (int32_t)PLN_COUNT(dims) || (int64_t)value < 0)
      return fail_tensor_decode(d, &t, "its dimensions are out of range");
    dims[rank++] = (int64_t)value;
  }
  pln_dtype dtype =
      t.dtype < PLN_N_DTYPES ? (pln_dtype)t.dtype : PLN_DTYPE_NONE;
  return pln_type_tensor(d->engine, dtype, rank, dims, out);
}
