/* decode_type.c: decodes TypeProto and ValueInfoProto.
 *
 * Types nest (sequences of optionals of ...). The wrappers are collected
 * outside in and then applied to the innermost type, without recursion. */

#include "onnx/import/decode.h"

/* Protobuf's own nesting limit. */
enum { MAX_WRAPPERS = 100 };

pln_status pln_decode_string(const pln_decoder *d, pln_message message,
                             const char *what, uint32_t tag, pln_slice *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *out = (pln_slice){"", 0};
  while (pln_wire_next(&w, &f))
    if (f.tag == tag)
      *out = f.bytes;
  return pln_wire_done(&w, d->engine, what);
}

static pln_dtype dtype_of(uint64_t value) {
  return value < PLN_N_DTYPES ? (pln_dtype)value : PLN_DTYPE_NONE;
}

/* A dim is a number, a symbol or unknown. Some exporters write negative numbers
 * for unknown dims. */
static pln_status read_dim(const pln_decoder *d, pln_message message,
                           pln_dim *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *out = PLN_DIM_UNKNOWN;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == DIM_VALUE)
      *out = (int64_t)f.value < 0 ? PLN_DIM_UNKNOWN : (int64_t)f.value;
    else if (f.tag == DIM_PARAM && f.bytes.size)
      PLN_TRY(pln_dim_named(d->engine, f.bytes, out));
  }
  return pln_wire_done(&w, d->engine, "Dimension");
}

static size_t count_fields(pln_message message, uint32_t tag) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  size_t n = 0;
  while (pln_wire_next(&w, &f))
    n += f.tag == tag;
  return n;
}

static pln_status read_dims(const pln_decoder *d, pln_message message,
                            pln_dim *dims) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == SHAPE_DIM)
      PLN_TRY(read_dim(d, pln_wire_message(&w, &f), dims++));
  return pln_wire_done(&w, d->engine, "TensorShapeProto");
}

static pln_status shaped(const pln_decoder *d, pln_dtype dtype,
                         pln_message shape, pln_type *out) {
  size_t n = count_fields(shape, SHAPE_DIM);
  pln_dim few[8], *dims = few;
  if (n > PLN_COUNT(few) && !(dims = pln_mem_new(d->engine, n * sizeof *dims)))
    return pln_nomem(d->engine);
  pln_status status = n > INT16_MAX
                          ? pln_diag_error(d->engine, PLN_ERR_FORMAT, NULL,
                                           "a shape of %zu dimensions", n)
                          : read_dims(d, shape, dims);
  if (status == PLN_OK)
    status = pln_type_tensor(d->engine, dtype, (int32_t)n, dims, out);
  if (dims != few)
    pln_mem_free(d->engine, dims, n * sizeof *dims);
  return status;
}

static pln_status read_tensor_type(const pln_decoder *d, pln_message message,
                                   pln_type *out) {
  pln_message shape;
  pln_file *joined;
  bool found;
  PLN_TRY(pln_wire_merged(d->engine, message, "TypeProto.Tensor", TYPE_SHAPE,
                          &shape, &joined, &found));
  pln_wire w = pln_wire_open(message);
  pln_field f;
  pln_dtype dtype = PLN_DTYPE_NONE;
  while (pln_wire_next(&w, &f))
    if (f.tag == TYPE_ELEM)
      dtype = dtype_of(f.value);
  pln_status status = found ? shaped(d, dtype, shape, out)
                            : pln_type_tensor(d->engine, dtype, -1, NULL, out);
  pln_file_release(joined);
  return status;
}

static pln_status read_opaque(const pln_decoder *d, pln_message message,
                              pln_type *out) {
  pln_slice domain, name;
  PLN_TRY(pln_decode_string(d, message, "TypeProto.Opaque", OPAQUE_DOMAIN,
                            &domain));
  PLN_TRY(
      pln_decode_string(d, message, "TypeProto.Opaque", OPAQUE_NAME, &name));
  pln_buffer text;
  pln_buffer_init(&text, d->engine);
  pln_symbol symbol = 0;
  pln_status status = pln_buffer_add(&text, domain.data, domain.size);
  if (status == PLN_OK)
    status = pln_buffer_text(&text, "::");
  if (status == PLN_OK)
    status = pln_buffer_add(&text, name.data, name.size);
  if (status == PLN_OK)
    status = pln_symbol_intern(d->engine, (pln_slice){text.data, text.size},
                               &symbol);
  pln_buffer_free(&text);
  return status == PLN_OK
             ? pln_type_make(d->engine, PLN_TYPE_OPAQUE, symbol, 0, NULL, out)
             : status;
}

/* The key type of a map as a scalar tensor type. */
static pln_status read_key(const pln_decoder *d, pln_message message,
                           pln_type *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  pln_dtype dtype = PLN_DTYPE_NONE;
  while (pln_wire_next(&w, &f))
    if (f.tag == TYPE_ELEM)
      dtype = dtype_of(f.value);
  PLN_TRY(pln_wire_done(&w, d->engine, "TypeProto.Map"));
  return pln_type_tensor(d->engine, dtype, 0, NULL, out);
}

/* One step inwards: the kind of `message` (the last field of its oneof) and the
 * message inside. */
typedef struct type_step {
  pln_type_kind kind; /* INCOMPLETE: the oneof is not set */
  pln_message inner;
} type_step;

static pln_status step_in(const pln_decoder *d, pln_message message,
                          type_step *out) {
  static const struct {
    uint32_t tag;
    pln_type_kind kind;
  } parts[] = {
      {TYPE_TENSOR, PLN_TYPE_TENSOR}, {TYPE_SEQUENCE, PLN_TYPE_SEQUENCE},
      {TYPE_MAP, PLN_TYPE_MAP},       {TYPE_OPAQUE, PLN_TYPE_OPAQUE},
      {TYPE_SPARSE, PLN_TYPE_SPARSE}, {TYPE_OPTIONAL, PLN_TYPE_OPTIONAL}};
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *out = (type_step){.kind = PLN_TYPE_INCOMPLETE};
  while (pln_wire_next(&w, &f))
    for (size_t i = 0; i < PLN_COUNT(parts); i++)
      if (f.tag == parts[i].tag)
        *out = (type_step){parts[i].kind, pln_wire_message(&w, &f)};
  return pln_wire_done(&w, d->engine, "TypeProto");
}

static pln_status innermost(const pln_decoder *d, const type_step *step,
                            pln_type *out) {
  *out = 0;
  if (step->kind == PLN_TYPE_TENSOR)
    return read_tensor_type(d, step->inner, out);
  if (step->kind == PLN_TYPE_OPAQUE)
    return read_opaque(d, step->inner, out);
  if (step->kind != PLN_TYPE_SPARSE)
    return PLN_OK;
  pln_type stored;
  PLN_TRY(read_tensor_type(d, step->inner, &stored));
  return pln_type_make(d->engine, PLN_TYPE_SPARSE, 0, 1, &stored, out);
}

static pln_status wrap(const pln_decoder *d, const type_step *step,
                       pln_type *type) {
  pln_type parts[2] = {*type, 0};
  uint32_t n = 1;
  if (step->kind == PLN_TYPE_MAP) {
    PLN_TRY(read_key(d, step->inner, &parts[0]));
    parts[1] = *type;
    n = 2;
  }
  return pln_type_make(d->engine, step->kind, 0, n, parts, type);
}

static bool wraps(pln_type_kind kind) {
  return kind == PLN_TYPE_SEQUENCE || kind == PLN_TYPE_OPTIONAL ||
         kind == PLN_TYPE_MAP;
}

/* The TypeProto inside a wrapper. */
static pln_status unwrap(const pln_decoder *d, const type_step *step,
                         pln_message *out) {
  uint32_t tag = step->kind == PLN_TYPE_MAP ? TYPE_MAP_VALUE : TYPE_PART;
  pln_wire w = pln_wire_open(step->inner);
  pln_field f;
  *out = (pln_message){.file = step->inner.file};
  while (pln_wire_next(&w, &f))
    if (f.tag == tag)
      *out = pln_wire_message(&w, &f);
  return pln_wire_done(&w, d->engine, "TypeProto");
}

/* Elements of a sequence may differ in shape, even if the file declares one
 * shape (runtimes check only the dtype), so the declared shape is dropped. */
static pln_status forget_shape(const pln_decoder *d, pln_type *type) {
  if (pln_type_get_kind(d->engine, *type) != PLN_TYPE_TENSOR)
    return PLN_OK;
  return pln_type_tensor(d->engine, pln_type_dtype(d->engine, *type), -1, NULL,
                         type);
}

pln_status pln_decode_type(const pln_decoder *d, pln_message message,
                           pln_type *out) {
  type_step steps[MAX_WRAPPERS];
  uint32_t n = 0;
  PLN_TRY(step_in(d, message, &steps[0]));
  while (wraps(steps[n].kind)) {
    if (n + 1 == MAX_WRAPPERS)
      return pln_diag_error(d->engine, PLN_ERR_FORMAT, NULL,
                            "a type is nested more than %d deep", MAX_WRAPPERS);
    PLN_TRY(unwrap(d, &steps[n], &message));
    PLN_TRY(step_in(d, message, &steps[++n]));
  }
  PLN_TRY(innermost(d, &steps[n], out));
  while (n-- > 0) {
    if (steps[n].kind == PLN_TYPE_SEQUENCE)
      PLN_TRY(forget_shape(d, out));
    PLN_TRY(wrap(d, &steps[n], out));
  }
  return PLN_OK;
}

pln_status pln_decode_value_info(const pln_decoder *d, pln_message message,
                                 pln_slice *name, pln_type *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  pln_message type = {0};
  size_t slices = 0;
  *name = (pln_slice){"", 0};
  *out = 0;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == VALUE_NAME)
      *name = f.bytes;
    else if (f.tag == VALUE_TYPE && ++slices)
      type = pln_wire_message(&w, &f);
  }
  PLN_TRY(pln_wire_done(&w, d->engine, "ValueInfoProto"));
  if (slices == 0)
    return PLN_OK;
  pln_file *joined = NULL;
  if (slices > 1)
    PLN_TRY(pln_wire_merged(d->engine, message, "ValueInfoProto", VALUE_TYPE,
                            &type, &joined, NULL));
  pln_status status = pln_decode_type(d, type, out);
  pln_file_release(joined);
  return status;
}
