/* value_file.c: reads and writes a file with one value: an input or output of a
 * model.
 *
 * A tensor is a TensorProto, a sequence a SequenceProto, an optional an
 * OptionalProto. The file does not say which; the expected type does. Elements
 * stay in the mapped file until they are read. Called by scripts and by
 * commands that run models. */

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

/* --------------------------------------------------------------- sequences */

static pln_status add_item(value_reader *r, pln_message message) {
  PLN_TRY(pln_mem_grow(r->decoder.engine, (void **)&r->items, &r->cap_items,
                       (size_t)r->n_items + 1, sizeof *r->items));
  pln_runtime_value item;
  PLN_TRY(read_value_tensor(r, message, &item));
  r->items[r->n_items++] = item;
  return PLN_OK;
}

static pln_status read_items(value_reader *r, pln_message message) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    switch (f.tag) {
    case SEQUENCE_NAME:
      if (!r->name.size)
        r->name = f.bytes;
      break;
    case SEQUENCE_TENSORS:
      PLN_TRY(add_item(r, pln_wire_message(&w, &f)));
      break;
    case SEQUENCE_SPARSES:
      return unsupported(r, "a sequence of sparse tensors");
    case SEQUENCE_SEQUENCES: return unsupported(r, "a sequence of sequences");
    case SEQUENCE_MAPS: return unsupported(r, "a sequence of maps");
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

static pln_status read_sequence(value_reader *r, pln_message message,
                                pln_runtime_value *out) {
  PLN_TRY(read_items(r, message));
  return pln_runtime_value_sequence(r->decoder.engine, r->n_items, r->items,
                                    out);
}

/* --------------------------------------------------------------- optionals */

static pln_status read_optional(value_reader *r, pln_message message,
                                pln_runtime_value *out) {
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
    return read_sequence(r, pln_wire_message(&w, &value), out);
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
  case PLN_TYPE_SEQUENCE: return read_sequence(r, whole, out);
  case PLN_TYPE_OPTIONAL: return read_optional(r, whole, out);
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

/* Writes the fields of a SequenceProto. */
static pln_status put_sequence(pln_rope *rope, pln_slice name,
                               const pln_runtime_value *value) {
  if (name.size)
    PLN_TRY(pln_rope_bytes(rope, SEQUENCE_NAME, name));
  PLN_TRY(pln_rope_int(rope, SEQUENCE_KIND, ELEMENT_TENSOR));
  for (uint32_t i = 0; i < pln_runtime_value_count(value); i++) {
    const pln_runtime_value *item = pln_runtime_value_at(value, i);
    if (item->kind != PLN_RUNTIME_TENSOR)
      return pln_diag_error(rope->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "a sequence of sequences cannot be written");
    PLN_TRY(put_item(rope, SEQUENCE_TENSORS, item->of.tensor));
  }
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
