/* tensor.c: writes tensors, inline or to OUT.data.
 *
 * Invariant: no tensor is read here. Ropes hold slices of files and pointers,
 * which are read when they are streamed. */

#include <stdio.h>
#include <sys/stat.h>

#include "onnx/export/encode.h"
#include "onnx/export/export.h"
#include "onnx/export/file_pair.h"

enum { EXTERNAL = 1, PAGE = 4096, LARGE = 1024 * 1024, ALIGNED = 64 };

static bool is_external(const pln_tensor *t) {
  return t->where.location != 0;
}

/* Returns true if both names mean the same directory. */
static bool same_folder(const char *a, const char *b) {
  struct stat x, y;
  return !strcmp(a, b) || (stat(a, &x) == 0 && stat(b, &y) == 0 &&
                           x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* ------------------------------------------------------------ external data */

static pln_status open_file(pln_export *ex, const pln_external *where,
                            pln_file **out) {
  if (!ex->file_rows)
    PLN_TRY(pln_idmap_new(ex->engine, &ex->file_rows));
  uint64_t key = (uint64_t)where->directory << 32 | where->location;
  key ^= where->stamp;
  uint32_t known = pln_idmap_get(ex->file_rows, key);
  if (known) {
    *out = ex->files[known - 1].file;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->files, &ex->cap_files,
                       (size_t)ex->n_files + 1, sizeof *ex->files));
  PLN_TRY(pln_external_open(ex->engine, where, out));
  ex->files[ex->n_files++] =
      (pln_data_source){*out, where->directory, where->location};
  return pln_idmap_set(ex->file_rows, key, ex->n_files);
}

static pln_status external_slice(pln_export *ex, const pln_tensor *t,
                                 pln_segment *out) {
  pln_file *file;
  PLN_TRY(open_file(ex, &t->where, &file));
  uint64_t size = pln_file_size(file);
  if (t->where.offset > size || size - t->where.offset < t->bytes) {
    pln_slice name = pln_symbol_text(ex->engine, t->where.location);
    return pln_diag_error(ex->engine, PLN_ERR_FORMAT, NULL,
                          "external data '%.*s' ends before byte %llu",
                          (int)name.size, name.data,
                          (unsigned long long)(t->where.offset + t->bytes));
  }
  *out = (pln_segment){.kind = PLN_SEGMENT_FILE,
                       .size = t->bytes,
                       .offset = t->where.offset,
                       .file = file};
  return PLN_OK;
}

/* External data that stays must exist: a model that could not be run is not
 * written. */
pln_status pln_export_must_rewrite_data(pln_export *ex, const pln_tensor *t,
                                        bool *out) {
  *out = false;
  if (t->dtype == PLN_STRING)
    return PLN_OK;
  if (ex->data) {
    *out = is_external(t) || t->bytes >= ex->data->threshold;
    return PLN_OK;
  }
  if (ex->embeds) {
    *out = is_external(t);
    return PLN_OK;
  }
  if (!is_external(t) || !ex->directory || ex->moved)
    return PLN_OK;
  pln_segment segment;
  PLN_TRY(external_slice(ex, t, &segment));
  pln_slice from = pln_symbol_text(ex->engine, t->where.directory);
  ex->moved =
      !same_folder(from.data, ex->directory) ||
      pln_is_temporary_name(pln_symbol_text(ex->engine, t->where.location));
  return PLN_OK;
}

/* The tensor's bytes as a segment. */
static pln_status data_segment(pln_export *ex, const pln_tensor *t,
                               pln_segment *out) {
  if (is_external(t))
    return external_slice(ex, t, out);
  if (t->file && !t->splat) {
    *out = (pln_segment){.kind = PLN_SEGMENT_FILE,
                         .size = t->bytes,
                         .offset = t->offset,
                         .file = t->file};
    return PLN_OK;
  }
  const void *data;
  PLN_TRY(pln_tensor_data(t, &data));
  *out = (pln_segment){.kind = t->splat ? PLN_SEGMENT_SPLAT : PLN_SEGMENT_DATA,
                       .size = t->bytes,
                       .data = data};
  if (t->splat)
    out->offset = pln_splat_bytes((pln_dtype)t->dtype);
  return PLN_OK;
}

pln_status pln_encode_elements(pln_rope *rope, const pln_tensor *t,
                               pln_segment segment) {
  if (!t->splat || pln_dtype_bits((pln_dtype)t->dtype) >= 8 || !segment.size)
    return pln_rope_segment(rope, segment);
  uint8_t last = pln_splat_last_byte(t);
  segment.size--;
  PLN_TRY(pln_rope_segment(rope, segment));
  return pln_rope_raw(rope, &last, 1);
}

static pln_status put_entry(pln_rope *rope, const char *key,
                            const char *value) {
  size_t at;
  PLN_TRY(pln_rope_open(rope, TENSOR_EXTERNAL_DATA, &at));
  PLN_TRY(pln_rope_bytes(rope, ENTRY_KEY, pln_text(key)));
  PLN_TRY(pln_rope_bytes(rope, ENTRY_VALUE, pln_text(value)));
  return pln_rope_close(rope, at);
}

static pln_status write_external_number(pln_rope *rope, const char *key,
                                        uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return put_entry(rope, key, text);
}

/* Appends the data to OUT.data and writes its location. */
static pln_status put_external(pln_export *ex, const pln_tensor *t) {
  pln_segment segment;
  pln_rope *data = &ex->data->rope;
  PLN_TRY(data_segment(ex, t, &segment));
  PLN_TRY(pln_rope_segment(
      data, (pln_segment){.kind = PLN_SEGMENT_ALIGN,
                          .offset = t->bytes >= LARGE ? PAGE : ALIGNED}));
  uint64_t offset = data->size;
  PLN_TRY(pln_encode_elements(data, t, segment));
  PLN_TRY(put_entry(ex->rope, "location", ex->data->name));
  PLN_TRY(write_external_number(ex->rope, "offset", offset));
  PLN_TRY(write_external_number(ex->rope, "length", t->bytes));
  return pln_rope_int(ex->rope, TENSOR_DATA_LOCATION, EXTERNAL);
}

/* Writes a reference to the data at its present location. */
static pln_status put_reference(pln_export *ex, const pln_tensor *t) {
  pln_slice location = pln_symbol_text(ex->engine, t->where.location);
  PLN_TRY(put_entry(ex->rope, "location", location.data));
  PLN_TRY(write_external_number(ex->rope, "offset", t->where.offset));
  PLN_TRY(write_external_number(ex->rope, "length", t->bytes));
  return pln_rope_int(ex->rope, TENSOR_DATA_LOCATION, EXTERNAL);
}

/* ------------------------------------------------------------- inline data */

static pln_status put_strings(pln_export *ex, const pln_tensor *t) {
  const void *data;
  PLN_TRY(pln_tensor_data(t, &data));
  const pln_slice *strings = data;
  for (size_t i = 0; i < t->count; i++)
    PLN_TRY(pln_rope_bytes(ex->rope, TENSOR_STRING_DATA,
                           strings[t->splat ? 0 : i]));
  return PLN_OK;
}

static pln_status put_data(pln_export *ex, const pln_tensor *t) {
  bool moves;
  PLN_TRY(pln_export_must_rewrite_data(ex, t, &moves));
  if (moves && ex->data)
    return put_external(ex, t);
  if (is_external(t) && !moves)
    return put_reference(ex, t);
  if (t->dtype == PLN_STRING)
    return put_strings(ex, t);
  pln_segment segment;
  PLN_TRY(data_segment(ex, t, &segment));
  PLN_TRY(pln_rope_int(ex->rope, TENSOR_RAW_DATA, segment.size));
  if (segment.kind == PLN_SEGMENT_DATA && segment.size < PAGE)
    return pln_rope_raw(ex->rope, segment.data, (size_t)segment.size);
  return pln_encode_elements(ex->rope, t, segment);
}

/* Fields that hold data or describe it; all others are copied from the
 * source. */
static bool is_data_field(uint32_t tag) {
  switch (tag >> 3) {
  case 1: /* dims */
  case 2: /* data_type */
  case TENSOR_FLOAT_DATA:
  case TENSOR_INT32_DATA:
  case TENSOR_STRING_DATA >> 3:
  case TENSOR_INT64_DATA:
  case TENSOR_NAME >> 3:
  case TENSOR_RAW_DATA >> 3:
  case TENSOR_DOUBLE_DATA:
  case TENSOR_UINT64_DATA:
  case TENSOR_EXTERNAL_DATA >> 3:
  case TENSOR_DATA_LOCATION >> 3: return true;
  default: return false;
  }
}

static pln_status put_kept(pln_export *ex, pln_message source) {
  pln_wire w = pln_wire_open(source);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (!is_data_field(f.tag))
      PLN_TRY(pln_rope_raw(ex->rope, f.start, (size_t)(f.next - f.start)));
  return PLN_OK;
}

pln_status pln_export_tensor(pln_export *ex, uint32_t tag, pln_slice name,
                             const pln_tensor *t, pln_message source) {
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(ex->rope, tag, &nest));
  for (uint32_t i = 0; i < t->rank; i++)
    PLN_TRY(pln_rope_int(ex->rope, TENSOR_DIMS, (uint64_t)t->dims[i]));
  PLN_TRY(pln_rope_int(ex->rope, TENSOR_DATA_TYPE, t->dtype));
  if (name.size)
    PLN_TRY(pln_rope_bytes(ex->rope, TENSOR_NAME, name));
  PLN_TRY(put_data(ex, t));
  PLN_TRY(put_kept(ex, source));
  return pln_rope_end(ex->rope, nest);
}
