/* value_file.c: reads and writes a file with one value: an input or output of a
 * model.
 *
 * A tensor is a TensorProto, a sequence a SequenceProto, a map a MapProto whose
 * values are scalars, an optional an OptionalProto. The file does not say
 * which; the expected type does. Elements stay in the mapped file until they
 * are read. Called by scripts and by commands that run models. */

#include <stdio.h>

#include "ir/tensor/runtime_value.h"
#include "onnx/directory.h"
#include "onnx/export/encode.h"
#include "onnx/import/decode.h"

typedef struct value_reader {
  pln_decoder decoder;
  const char *path;
  pln_slice name; /* the name in the outermost message that has one */
  pln_runtime_value *items;
  uint32_t n_items, cap_items; /* items of the current sequence */
} value_reader;

static size_t describe_value_file_place(void *ud, char *text, size_t size) {
  const value_reader *r = ud;
  int length = snprintf(text, size, "%s", r->path);
  return length < 0 ? 0 : (size_t)length;
}

static pln_status unsupported(const value_reader *r, const char *what) {
  return pln_diag_error(r->decoder.engine, PLN_ERR_UNSUPPORTED, NULL,
                        "%s cannot be read", what);
}

static pln_status read_value_tensor(value_reader *r, pln_message message,
                                    pln_runtime_value *out) {
  pln_slice name;
  pln_tensor *tensor;
  PLN_TRY(pln_decode_tensor(&r->decoder, message, &name, &tensor));
  if (!tensor)
    return unsupported(r, "elements of an unknown dtype");
  if (!r->name.size)
    r->name = name;
  *out = pln_runtime_value_of_tensor(tensor);
  return PLN_OK;
}

/* -------------------------------------------------------------------- maps */

typedef struct map_reader {
  value_reader *reader;
  int64_t *numbers; /* keys */
  pln_slice *texts; /* keys */
  uint32_t n_numbers, cap_numbers, n_texts, cap_texts;
  pln_tensor **values;
  uint32_t n_values, cap_values;
} map_reader;

static pln_status add_number(map_reader *m, uint64_t key) {
  PLN_TRY(pln_mem_grow(m->reader->decoder.engine, (void **)&m->numbers,
                       &m->cap_numbers, (size_t)m->n_numbers + 1,
                       sizeof *m->numbers));
  m->numbers[m->n_numbers++] = (int64_t)key;
  return PLN_OK;
}

static pln_status add_numbers(map_reader *m, pln_slice packed) {
  const uint8_t *at = (const uint8_t *)packed.data, *end = at + packed.size;
  uint64_t key;
  while (at < end) {
    if (!pln_wire_varint(&at, end, &key))
      return pln_diag_error(m->reader->decoder.engine, PLN_ERR_FORMAT, NULL,
                            "the keys of a MapProto are malformed");
    PLN_TRY(add_number(m, key));
  }
  return PLN_OK;
}

static pln_status add_text(map_reader *m, pln_slice key) {
  PLN_TRY(pln_mem_grow(m->reader->decoder.engine, (void **)&m->texts,
                       &m->cap_texts, (size_t)m->n_texts + 1,
                       sizeof *m->texts));
  m->texts[m->n_texts++] = key;
  return PLN_OK;
}

static pln_status add_value(map_reader *m, pln_message message) {
  pln_runtime_value value = {.kind = PLN_RUNTIME_NONE};
  PLN_TRY(pln_mem_grow(m->reader->decoder.engine, (void **)&m->values,
                       &m->cap_values, (size_t)m->n_values + 1,
                       sizeof *m->values));
  PLN_TRY(read_value_tensor(m->reader, message, &value));
  pln_tensor *t = m->values[m->n_values++] = value.of.tensor;
  if (t->count != 1 || t->dtype != m->values[0]->dtype)
    return unsupported(m->reader,
                       "a map whose values are no scalars of one dtype");
  return PLN_OK;
}

static pln_status read_map_values(map_reader *m, pln_message message) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == SEQUENCE_TENSORS)
      PLN_TRY(add_value(m, pln_wire_message(&w, &f)));
    else if (f.tag != SEQUENCE_NAME && f.tag != SEQUENCE_KIND)
      return unsupported(m->reader, "a map whose values are no tensors");
  return pln_wire_done(&w, m->reader->decoder.engine, "SequenceProto");
}

static pln_status read_map_fields(map_reader *m, pln_message message) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    switch (f.tag) {
    case MAP_NAME:
      if (!m->reader->name.size)
        m->reader->name = f.bytes;
      break;
    case MAP_KEYS: PLN_TRY(add_number(m, f.value)); break;
    case MAP_KEYS_PACKED: PLN_TRY(add_numbers(m, f.bytes)); break;
    case MAP_STRING_KEYS: PLN_TRY(add_text(m, f.bytes)); break;
    case MAP_VALUES:
      PLN_TRY(read_map_values(m, pln_wire_message(&w, &f)));
      break;
    default: break;
    }
  return pln_wire_done(&w, m->reader->decoder.engine, "MapProto");
}

/* The scalars as one vector. */
static pln_status join_values(const map_reader *m, pln_dtype dtype,
                              pln_tensor **out) {
  pln_engine *e = m->reader->decoder.engine;
  const int64_t dims[1] = {m->n_values};
  size_t count, bytes;
  PLN_TRY(pln_tensor_size(dtype, 1, dims, &count, &bytes));
  size_t size = count ? bytes / count : 0;
  char *data = pln_mem_new(e, bytes + 1);
  pln_status status = data ? PLN_OK : pln_nomem(e);
  for (uint32_t i = 0; status == PLN_OK && i < m->n_values; i++) {
    const void *element;
    status = pln_tensor_data(m->values[i], &element);
    if (status == PLN_OK)
      memcpy(data + i * size, element, size);
  }
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(e, dtype, 1, dims, data, bytes, out);
  pln_mem_free(e, data, bytes + 1);
  return status;
}

static pln_status make_keys(const map_reader *m, pln_tensor **out) {
  bool texts = m->n_texts > 0;
  const int64_t dims[1] = {texts ? m->n_texts : m->n_numbers};
  const void *data = texts ? (const void *)m->texts : m->numbers;
  size_t size = texts ? sizeof *m->texts : sizeof *m->numbers;
  return pln_tensor_from_bytes(
      m->reader->decoder.engine, texts ? PLN_STRING : PLN_INT64, 1, dims,
      dims[0] ? data : "", (size_t)dims[0] * size, out);
}

/* `type`: that of the map, for maps without entries. */
static pln_status finish_map(const map_reader *m, pln_type type,
                             pln_runtime_value *out) {
  pln_engine *e = m->reader->decoder.engine;
  pln_dtype dtype = m->n_values
                        ? (pln_dtype)m->values[0]->dtype
                        : pln_type_dtype(e, pln_type_part_at(e, type, 1));
  pln_tensor *keys, *values = NULL;
  PLN_TRY(make_keys(m, &keys));
  pln_status status = join_values(m, dtype, &values);
  if (status == PLN_OK)
    status = pln_runtime_value_map(e, keys, values, out);
  pln_tensor_release(values);
  pln_tensor_release(keys);
  return status;
}

static pln_status read_map(value_reader *r, pln_message message, pln_type type,
                           pln_runtime_value *out) {
  pln_engine *e = r->decoder.engine;
  map_reader m = {.reader = r};
  pln_status status = read_map_fields(&m, message);
  if (status == PLN_OK)
    status = finish_map(&m, type, out);
  for (uint32_t i = 0; i < m.n_values; i++)
    pln_tensor_release(m.values[i]);
  pln_mem_free(e, m.values, m.cap_values * sizeof *m.values);
  pln_mem_free(e, m.numbers, m.cap_numbers * sizeof *m.numbers);
  pln_mem_free(e, m.texts, m.cap_texts * sizeof *m.texts);
  return status;
}

/* --------------------------------------------------------------- sequences */

/* A tensor, or a map of that type. */
static pln_status add_item(value_reader *r, pln_message message, bool map,
                           pln_type type) {
  PLN_TRY(pln_mem_grow(r->decoder.engine, (void **)&r->items, &r->cap_items,
                       (size_t)r->n_items + 1, sizeof *r->items));
  pln_runtime_value item;
  PLN_TRY(map ? read_map(r, message, type, &item)
              : read_value_tensor(r, message, &item));
  r->items[r->n_items++] = item;
  return PLN_OK;
}

static pln_status read_items(value_reader *r, pln_message message,
                             pln_type element) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    switch (f.tag) {
    case SEQUENCE_NAME:
      if (!r->name.size)
        r->name = f.bytes;
      break;
    case SEQUENCE_TENSORS:
      PLN_TRY(add_item(r, pln_wire_message(&w, &f), false, element));
      break;
    case SEQUENCE_SPARSES:
      return unsupported(r, "a sequence of sparse tensors");
    case SEQUENCE_SEQUENCES: return unsupported(r, "a sequence of sequences");
    case SEQUENCE_MAPS:
      PLN_TRY(add_item(r, pln_wire_message(&w, &f), true, element));
      break;
    case SEQUENCE_OPTIONALS: return unsupported(r, "a sequence of optionals");
    default: break;
    }
  return pln_wire_done(&w, r->decoder.engine, "SequenceProto");
}

static void free_items(value_reader *r) {
  pln_engine *engine = r->decoder.engine;
  for (uint32_t i = 0; i < r->n_items; i++)
    pln_runtime_value_release(engine, &r->items[i]);
  pln_mem_free(engine, r->items, r->cap_items * sizeof *r->items);
}

/* `type`: that of the sequence. */
static pln_status read_sequence(value_reader *r, pln_message message,
                                pln_type type, pln_runtime_value *out) {
  PLN_TRY(read_items(r, message, pln_type_part_at(r->decoder.engine, type, 0)));
  return pln_runtime_value_sequence(r->decoder.engine, r->n_items, r->items,
                                    out);
}

/* --------------------------------------------------------------- optionals */

static pln_status read_optional(value_reader *r, pln_message message,
                                pln_type type, pln_runtime_value *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f, value = {0};
  pln_slice name = {"", 0};
  while (pln_wire_next(&w, &f)) {
    if (f.tag == OPTIONAL_NAME)
      name = f.bytes;
    else if (f.tag == OPTIONAL_TENSOR || f.tag == OPTIONAL_SEQUENCE)
      value = f;
    else if (f.tag >> 3 >= 3) /* sparse, map, optional */
      return unsupported(r, "this kind of optional");
  }
  PLN_TRY(pln_wire_done(&w, r->decoder.engine, "OptionalProto"));
  r->name = name;
  if (value.tag == OPTIONAL_TENSOR)
    return read_value_tensor(r, pln_wire_message(&w, &value), out);
  if (value.tag == OPTIONAL_SEQUENCE)
    return read_sequence(r, pln_wire_message(&w, &value),
                         pln_type_part_at(r->decoder.engine, type, 0), out);
  *out = pln_runtime_value_tensor(NULL);
  return PLN_OK;
}

/* ------------------------------------------------------------------- files */

static pln_status read_as(value_reader *r, pln_file *file, pln_type type,
                          pln_runtime_value *out) {
  pln_message whole = {file, pln_file_data(file), (size_t)pln_file_size(file)};
  switch (pln_type_get_kind(r->decoder.engine, type)) {
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_TENSOR: return read_value_tensor(r, whole, out);
  case PLN_TYPE_SEQUENCE: return read_sequence(r, whole, type, out);
  case PLN_TYPE_MAP: return read_map(r, whole, type, out);
  case PLN_TYPE_OPTIONAL: return read_optional(r, whole, type, out);
  default: return unsupported(r, "a value of this kind of type");
  }
}

static pln_status read_file(value_reader *r, pln_file *file, pln_type type,
                            pln_runtime_value *out, pln_symbol *name) {
  pln_engine *engine = r->decoder.engine;
  pln_place before = pln_diag_place(
      engine, (pln_place){.fn = describe_value_file_place, .ud = r});
  pln_status status = read_as(r, file, type, out);
  if (status == PLN_OK && name) {
    status = pln_symbol_intern(engine, r->name, name);
    if (status != PLN_OK)
      pln_runtime_value_release(engine, out);
  }
  pln_diag_place(engine, before);
  free_items(r);
  return status;
}

pln_status pln_onnx_load_value(pln_engine *engine, const char *path,
                               pln_type type, pln_runtime_value *out,
                               pln_symbol *name) {
  value_reader r = {
      .decoder = {.engine = engine}, .path = path, .name = {"", 0}};
  pln_file *file;
  PLN_TRY(pln_onnx_directory(engine, path, &r.decoder.directory));
  PLN_TRY(pln_file_map(engine, path, &file));
  pln_status status = read_file(&r, file, type, out, name);
  pln_file_release(file);
  return status;
}

/* ----------------------------------------------------------------- writing */

static pln_status put_strings(pln_rope *rope, const pln_tensor *t,
                              const pln_slice *strings) {
  for (size_t i = 0; i < t->count; i++)
    PLN_TRY(
        pln_rope_bytes(rope, TENSOR_STRING_DATA, strings[t->splat ? 0 : i]));
  return PLN_OK;
}

static pln_status write_tensor_elements(pln_rope *rope, const pln_tensor *t) {
  const void *data;
  PLN_TRY(pln_tensor_data(t, &data));
  if (t->dtype == PLN_STRING)
    return put_strings(rope, t, data);
  pln_segment segment = {.kind =
                             t->splat ? PLN_SEGMENT_SPLAT : PLN_SEGMENT_DATA,
                         .size = t->bytes,
                         .data = data};
  if (t->splat)
    segment.offset = pln_splat_bytes((pln_dtype)t->dtype);
  PLN_TRY(pln_rope_int(rope, TENSOR_RAW_DATA, segment.size));
  return pln_encode_elements(rope, t, segment);
}

/* Writes the fields of a TensorProto. */
static pln_status write_tensor_proto(pln_rope *rope, pln_slice name,
                                     const pln_tensor *t) {
  for (uint32_t i = 0; i < t->rank; i++)
    PLN_TRY(pln_rope_int(rope, TENSOR_DIMS, (uint64_t)t->dims[i]));
  PLN_TRY(pln_rope_int(rope, TENSOR_DATA_TYPE, t->dtype));
  if (name.size)
    PLN_TRY(pln_rope_bytes(rope, TENSOR_NAME, name));
  return write_tensor_elements(rope, t);
}

static pln_status put_item(pln_rope *rope, uint32_t tag,
                           const pln_tensor *tensor) {
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(rope, tag, &nest));
  PLN_TRY(write_tensor_proto(rope, (pln_slice){"", 0}, tensor));
  return pln_rope_end(rope, nest);
}

static pln_status put_keys(pln_rope *rope, const pln_tensor *keys) {
  const void *data;
  PLN_TRY(pln_tensor_data(keys, &data));
  bool texts = keys->dtype == PLN_STRING;
  PLN_TRY(pln_rope_int(rope, MAP_KEY_TYPE, keys->dtype));
  for (size_t i = 0; i < keys->count; i++) {
    int64_t key = 0;
    if (texts) {
      PLN_TRY(pln_rope_bytes(rope, MAP_STRING_KEYS,
                             ((const pln_slice *)data)[keys->splat ? 0 : i]));
    } else if (pln_tensor_int(keys, i, &key)) {
      PLN_TRY(pln_rope_int(rope, MAP_KEYS, (uint64_t)key));
    }
  }
  return PLN_OK;
}

/* An element as a scalar TensorProto. */
static pln_status put_scalar(pln_rope *rope, const pln_tensor *t,
                             const void *element, size_t size) {
  size_t at;
  PLN_TRY(pln_rope_open(rope, SEQUENCE_TENSORS, &at));
  PLN_TRY(pln_rope_int(rope, TENSOR_DATA_TYPE, t->dtype));
  if (t->dtype == PLN_STRING)
    PLN_TRY(
        pln_rope_bytes(rope, TENSOR_STRING_DATA, *(const pln_slice *)element));
  else
    PLN_TRY(pln_rope_bytes(rope, TENSOR_RAW_DATA, (pln_slice){element, size}));
  return pln_rope_close(rope, at);
}

/* The values of a map: a SequenceProto of scalars. */
static pln_status put_map_values(pln_rope *rope, const pln_tensor *values) {
  const void *data;
  size_t size = values->count ? values->bytes / values->count : 0;
  PLN_TRY(pln_tensor_data(values, &data));
  PLN_TRY(pln_rope_int(rope, SEQUENCE_KIND, ELEMENT_TENSOR));
  for (size_t i = 0; i < values->count; i++)
    PLN_TRY(put_scalar(rope, values,
                       (const char *)data + (values->splat ? 0 : i * size),
                       size));
  return PLN_OK;
}

/* Writes the fields of a MapProto. */
static pln_status put_map(pln_rope *rope, pln_slice name,
                          const pln_runtime_value *value) {
  pln_open_message nest;
  if (name.size)
    PLN_TRY(pln_rope_bytes(rope, MAP_NAME, name));
  PLN_TRY(put_keys(rope, pln_runtime_value_at(value, 0)->of.tensor));
  PLN_TRY(pln_rope_begin(rope, MAP_VALUES, &nest));
  PLN_TRY(put_map_values(rope, pln_runtime_value_at(value, 1)->of.tensor));
  return pln_rope_end(rope, nest);
}

static pln_status put_element(pln_rope *rope, const pln_runtime_value *item) {
  pln_open_message nest;
  if (item->kind == PLN_RUNTIME_TENSOR)
    return put_item(rope, SEQUENCE_TENSORS, item->of.tensor);
  if (item->kind != PLN_RUNTIME_MAP)
    return pln_diag_error(rope->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "a sequence of sequences cannot be written");
  PLN_TRY(pln_rope_begin(rope, SEQUENCE_MAPS, &nest));
  PLN_TRY(put_map(rope, (pln_slice){"", 0}, item));
  return pln_rope_end(rope, nest);
}

/* Writes the fields of a SequenceProto. */
static pln_status put_sequence(pln_rope *rope, pln_slice name,
                               const pln_runtime_value *value) {
  uint32_t n = pln_runtime_value_count(value);
  bool maps = n && pln_runtime_value_at(value, 0)->kind == PLN_RUNTIME_MAP;
  if (name.size)
    PLN_TRY(pln_rope_bytes(rope, SEQUENCE_NAME, name));
  PLN_TRY(
      pln_rope_int(rope, SEQUENCE_KIND, maps ? ELEMENT_MAP : ELEMENT_TENSOR));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(put_element(rope, pln_runtime_value_at(value, i)));
  return PLN_OK;
}

/* Writes the fields of an OptionalProto. */
static pln_status put_optional(pln_rope *rope, pln_slice name,
                               const pln_runtime_value *value) {
  bool sequence = value->kind == PLN_RUNTIME_SEQUENCE;
  uint32_t kind = sequence                            ? ELEMENT_SEQUENCE
                  : value->kind == PLN_RUNTIME_TENSOR ? ELEMENT_TENSOR
                                                      : 0;
  if (name.size)
    PLN_TRY(pln_rope_bytes(rope, OPTIONAL_NAME, name));
  PLN_TRY(pln_rope_int(rope, OPTIONAL_KIND, kind));
  if (kind == ELEMENT_TENSOR)
    return put_item(rope, OPTIONAL_TENSOR, value->of.tensor);
  if (!sequence)
    return PLN_OK;
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(rope, OPTIONAL_SEQUENCE, &nest));
  PLN_TRY(put_sequence(rope, (pln_slice){"", 0}, value));
  return pln_rope_end(rope, nest);
}

static pln_status write_value(pln_rope *rope, const pln_runtime_value *value,
                              pln_type type, pln_slice name) {
  if (pln_type_get_kind(rope->engine, type) == PLN_TYPE_OPTIONAL)
    return put_optional(rope, name, value);
  if (value->kind == PLN_RUNTIME_TENSOR)
    return write_tensor_proto(rope, name, value->of.tensor);
  if (value->kind == PLN_RUNTIME_SEQUENCE)
    return put_sequence(rope, name, value);
  if (value->kind == PLN_RUNTIME_MAP)
    return put_map(rope, name, value);
  return pln_diag_error(rope->engine, PLN_ERR_ARGUMENT, NULL,
                        "an omitted value can be written only as an optional");
}

static pln_status stream(pln_rope *rope, const char *path) {
  pln_output *output;
  PLN_TRY(pln_output_open(rope->engine, path, &output));
  pln_status status = pln_rope_output(rope, output);
  if (status == PLN_OK)
    return pln_output_commit(output);
  pln_output_abort(output);
  return status;
}

pln_status pln_onnx_save_value(pln_engine *engine,
                               const pln_runtime_value *value, pln_type type,
                               pln_slice name, const char *path) {
  pln_rope rope;
  pln_rope_init(&rope, engine);
  pln_status status = write_value(&rope, value, type, name);
  if (status == PLN_OK)
    status = stream(&rope, path);
  pln_rope_free(&rope);
  return status;
}
