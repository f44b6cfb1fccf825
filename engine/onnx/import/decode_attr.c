/* decode_attr.c: decodes AttributeProto.
 *
 * Names and kinds stay those of ONNX. What no attribute can hold (sparse
 * tensors, unknown kinds) is kept as the bytes of the message. */

#include "onnx/import/decode.h"

/* Finds the kind from the value fields present when `type` is missing (IR
 * version 1). */
static uint32_t guess_kind(pln_message message) {
  static const struct {
    uint32_t tag, kind;
  } fields[] = {{ATTRIBUTE_F, ONNX_FLOAT},
                {ATTRIBUTE_I, ONNX_INT},
                {ATTRIBUTE_S, ONNX_STRING},
                {ATTRIBUTE_T, ONNX_TENSOR},
                {ATTRIBUTE_G, ONNX_GRAPH},
                {ATTRIBUTE_FLOATS, ONNX_FLOATS},
                {ATTRIBUTE_FLOATS_PACKED, ONNX_FLOATS},
                {ATTRIBUTE_INTS, ONNX_INTS},
                {ATTRIBUTE_INTS_PACKED, ONNX_INTS},
                {ATTRIBUTE_STRINGS, ONNX_STRINGS},
                {ATTRIBUTE_TENSORS, ONNX_TENSORS},
                {ATTRIBUTE_GRAPHS, ONNX_GRAPHS},
                {ATTRIBUTE_TYPE_PROTO, ONNX_TYPE_PROTO},
                {ATTRIBUTE_TYPE_PROTOS, ONNX_TYPE_PROTOS}};
  pln_wire w = pln_wire_open(message);
  pln_field f;
  while (pln_wire_next(&w, &f))
    for (size_t i = 0; i < PLN_COUNT(fields); i++)
      if (f.tag == fields[i].tag)
        return fields[i].kind;
  return 0;
}

typedef struct attr_fields {
  pln_message whole;
  pln_slice name, ref, text;
  uint32_t kind;
  uint64_t i, f;
} attr_fields;

static pln_status scan(const pln_decoder *d, pln_message message,
                       attr_fields *a) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *a = (attr_fields){
      .whole = message, .name = {"", 0}, .ref = {"", 0}, .text = {"", 0}};
  while (pln_wire_next(&w, &f)) {
    switch (f.tag) {
    case ATTRIBUTE_NAME: a->name = f.bytes; break;
    case ATTRIBUTE_REF_NAME: a->ref = f.bytes; break;
    case ATTRIBUTE_TYPE: a->kind = (uint32_t)f.value; break;
    case ATTRIBUTE_I: a->i = f.value; break;
    case ATTRIBUTE_F: a->f = f.value; break;
    case ATTRIBUTE_S: a->text = f.bytes; break;
    default: break;
    }
  }
  PLN_TRY(pln_wire_done(&w, d->engine, "AttributeProto"));
  if (!a->kind && !a->ref.size)
    a->kind = guess_kind(message);
  return PLN_OK;
}

pln_status pln_decode_attr_kind(const pln_decoder *d, pln_message message,
                                pln_slice *name, uint32_t *kind) {
  attr_fields a;
  PLN_TRY(scan(d, message, &a));
  *name = a.name;
  *kind = a.ref.size ? 0 : a.kind;
  return PLN_OK;
}

static pln_status fail_attr_decode(const pln_decoder *d, const attr_fields *a,
                                   const char *what) {
  return pln_diag_error(d->engine, PLN_ERR_FORMAT, NULL, "attribute '%.*s' %s",
                        (int)(a->name.size < 200 ? a->name.size : 200),
                        a->name.data, what);
}

/* ------------------------------------------------------------------- lists */

static uint32_t list_tag(uint32_t kind) {
  switch (kind) {
  case ONNX_FLOATS: return ATTRIBUTE_FLOATS;
  case ONNX_INTS: return ATTRIBUTE_INTS;
  case ONNX_STRINGS: return ATTRIBUTE_STRINGS;
  case ONNX_TENSORS: return ATTRIBUTE_TENSORS;
  case ONNX_TENSOR: return ATTRIBUTE_T;
  case ONNX_GRAPHS: return ATTRIBUTE_GRAPHS;
  case ONNX_GRAPH: return ATTRIBUTE_G;
  case ONNX_TYPE_PROTOS: return ATTRIBUTE_TYPE_PROTOS;
  default: return ATTRIBUTE_TYPE_PROTO;
  }
}

/* An upper bound on the number of elements of a list: its fields, and the bytes
 * of packed runs. */
static size_t list_size_bound(const attr_fields *a, uint32_t tag) {
  uint32_t packed = PLN_TAG(tag >> 3, PLN_BYTES);
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  size_t n = 0;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == tag)
      n++;
    else if (f.tag == packed)
      n += f.bytes.size;
  }
  return n;
}

static pln_status room(const pln_decoder *d, pln_attr_scratch *scratch,
                       size_t n, size_t size, void **out) {
  *out = pln_arena_new(&scratch->arena, n * size + 1);
  return *out ? PLN_OK : pln_nomem(d->engine);
}

static pln_status decode_int_list(const pln_decoder *d, const attr_fields *a,
                                  pln_attr_scratch *scratch, pln_attr *out) {
  void *block;
  PLN_TRY(room(d, scratch, list_size_bound(a, ATTRIBUTE_INTS), sizeof(int64_t),
               &block));
  int64_t *ints = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == ATTRIBUTE_INTS)
      ints[out->count++] = (int64_t)f.value;
    if (f.tag != ATTRIBUTE_INTS_PACKED)
      continue;
    const uint8_t *at = (const uint8_t *)f.bytes.data, *end = w.at;
    uint64_t value;
    while (at < end) {
      if (!pln_wire_varint(&at, end, &value))
        return fail_attr_decode(d, a, "has a list that is cut off");
      ints[out->count++] = (int64_t)value;
    }
  }
  out->v.ints = ints;
  return PLN_OK;
}

static pln_status read_floats(const pln_decoder *d, const attr_fields *a,
                              pln_attr_scratch *scratch, pln_attr *out) {
  void *block;
  PLN_TRY(room(d, scratch, list_size_bound(a, ATTRIBUTE_FLOATS), sizeof(double),
               &block));
  double *floats = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == ATTRIBUTE_FLOATS)
      floats[out->count++] = (double)pln_wire_float(f.value);
    if (f.tag != ATTRIBUTE_FLOATS_PACKED)
      continue;
    if (f.bytes.size % sizeof(float))
      return fail_attr_decode(d, a, "has a list that is cut off");
    for (size_t i = 0; i < f.bytes.size; i += sizeof(float)) {
      float value;
      memcpy(&value, f.bytes.data + i, sizeof value);
      floats[out->count++] = (double)value;
    }
  }
  out->v.floats = floats;
  return PLN_OK;
}

static pln_status decode_string_list(const pln_decoder *d, const attr_fields *a,
                                     pln_attr_scratch *scratch, pln_attr *out) {
  void *block;
  PLN_TRY(room(d, scratch, list_size_bound(a, ATTRIBUTE_STRINGS),
               sizeof(pln_slice), &block));
  pln_slice *strings = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == ATTRIBUTE_STRINGS)
      strings[out->count++] = f.bytes;
  out->v.strings = strings;
  return PLN_OK;
}

/* The scratch owns the tensor. *out is NULL for unknown dtypes. */
static pln_status decode_attr_tensor(const pln_decoder *d, pln_message message,
                                     pln_attr_scratch *scratch,
                                     pln_tensor **out) {
  pln_slice name;
  PLN_TRY(pln_mem_grow(d->engine, (void **)&scratch->tensors,
                       &scratch->cap_tensors, (size_t)scratch->n_tensors + 1,
                       sizeof *scratch->tensors));
  PLN_TRY(pln_decode_tensor(d, message, &name, out));
  if (*out)
    scratch->tensors[scratch->n_tensors++] = *out;
  return PLN_OK;
}

static void keep_bytes(const attr_fields *a, pln_attr *out) {
  out->kind = PLN_ATTR_BYTES;
  out->count = 0;
  out->v.s = (pln_slice){(const char *)a->whole.data, a->whole.size};
}

static pln_status read_tensors(const pln_decoder *d, const attr_fields *a,
                               pln_attr_scratch *scratch, pln_attr *out) {
  uint32_t tag = list_tag(a->kind);
  void *block;
  PLN_TRY(
      room(d, scratch, list_size_bound(a, tag), sizeof(pln_tensor *), &block));
  pln_tensor **tensors = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag != tag)
      continue;
    pln_tensor *tensor;
    PLN_TRY(decode_attr_tensor(d, pln_wire_message(&w, &f), scratch, &tensor));
    if (!tensor) {
      keep_bytes(a, out);
      return PLN_OK;
    }
    tensors[out->count++] = tensor;
  }
  out->v.tensors = tensors;
  return PLN_OK;
}

static pln_status read_types(const pln_decoder *d, const attr_fields *a,
                             pln_attr_scratch *scratch, pln_attr *out) {
  uint32_t tag = list_tag(a->kind);
  void *block;
  PLN_TRY(room(d, scratch, list_size_bound(a, tag), sizeof(pln_type), &block));
  pln_type *types = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == tag)
      PLN_TRY(
          pln_decode_type(d, pln_wire_message(&w, &f), &types[out->count++]));
  out->v.types = types;
  return PLN_OK;
}

static pln_status read_graphs(const pln_decoder *d, const attr_fields *a,
                              pln_attr_scratch *scratch, uint32_t *graph,
                              pln_attr *out) {
  void *block;
  uint32_t tag = list_tag(a->kind);
  PLN_TRY(room(d, scratch, list_size_bound(a, tag), sizeof(int64_t), &block));
  int64_t *operands = block;
  pln_wire w = pln_wire_open(a->whole);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == tag)
      operands[out->count++] = (*graph)++;
  out->v.ints = operands;
  return PLN_OK;
}

/* Unwraps a list of one element. */
static pln_status only(const pln_decoder *d, const attr_fields *a,
                       pln_attr_kind kind, pln_attr *out) {
  if (out->kind == PLN_ATTR_BYTES)
    return PLN_OK;
  if (out->count != 1)
    return fail_attr_decode(
        d, a, out->count ? "has more than one value" : "has no value");
  out->kind = (uint8_t)kind;
  out->count = 0;
  if (kind == PLN_ATTR_TENSOR)
    out->v.tensor = out->v.tensors[0];
  else if (kind == PLN_ATTR_TYPE)
    out->v.type = out->v.types[0];
  else
    out->v.i = out->v.ints[0];
  return PLN_OK;
}

/* ------------------------------------------------------------------ values */

static pln_status set_kind(pln_attr *out, pln_attr_kind kind,
                           pln_status status) {
  if (out->kind == PLN_ATTR_NONE)
    out->kind = (uint8_t)kind;
  return status;
}

static pln_status decode_attr_value(const pln_decoder *d, const attr_fields *a,
                                    pln_attr_scratch *scratch, uint32_t *graph,
                                    pln_attr *out) {
  switch (a->kind) {
  case ONNX_FLOAT:
    out->v.f = (double)pln_wire_float(a->f);
    return set_kind(out, PLN_ATTR_FLOAT, PLN_OK);
  case ONNX_INT:
    out->v.i = (int64_t)a->i;
    return set_kind(out, PLN_ATTR_INT, PLN_OK);
  case ONNX_STRING:
    out->v.s = a->text;
    return set_kind(out, PLN_ATTR_STRING, PLN_OK);
  case ONNX_FLOATS:
    return set_kind(out, PLN_ATTR_FLOATS, read_floats(d, a, scratch, out));
  case ONNX_INTS:
    return set_kind(out, PLN_ATTR_INTS, decode_int_list(d, a, scratch, out));
  case ONNX_STRINGS:
    return set_kind(out, PLN_ATTR_STRINGS,
                    decode_string_list(d, a, scratch, out));
  case ONNX_TENSOR:
    PLN_TRY(read_tensors(d, a, scratch, out));
    return only(d, a, PLN_ATTR_TENSOR, out);
  case ONNX_TENSORS:
    return set_kind(out, PLN_ATTR_TENSORS, read_tensors(d, a, scratch, out));
  case ONNX_TYPE_PROTO:
    PLN_TRY(read_types(d, a, scratch, out));
    return only(d, a, PLN_ATTR_TYPE, out);
  case ONNX_TYPE_PROTOS:
    return set_kind(out, PLN_ATTR_TYPES, read_types(d, a, scratch, out));
  case ONNX_GRAPH:
    PLN_TRY(read_graphs(d, a, scratch, graph, out));
    return only(d, a, PLN_ATTR_GRAPH, out);
  case ONNX_GRAPHS:
    return set_kind(out, PLN_ATTR_GRAPHS,
                    read_graphs(d, a, scratch, graph, out));
  default: keep_bytes(a, out); return PLN_OK;
  }
}

pln_status pln_decode_attr(const pln_decoder *d, pln_message message,
                           pln_attr_scratch *scratch, uint32_t *graph,
                           pln_attr *out) {
  attr_fields a;
  PLN_TRY(scan(d, message, &a));
  *out = (pln_attr){.kind = PLN_ATTR_NONE};
  if (a.name.size == 0)
    return fail_attr_decode(d, &a, "has no name");
  PLN_TRY(pln_symbol_intern(d->engine, a.name, &out->name));
  if (a.ref.size == 0)
    return decode_attr_value(d, &a, scratch, graph, out);
  out->kind = PLN_ATTR_REF;
  out->onnx_type = (uint8_t)(a.kind < 256 ? a.kind : 0);
  return pln_symbol_intern(d->engine, a.ref, &out->v.symbol);
}

void pln_attr_scratch_clear(pln_engine *engine, pln_attr_scratch *scratch) {
  for (uint32_t i = 0; i < scratch->n_tensors; i++)
    pln_tensor_release(scratch->tensors[i]);
  pln_mem_free(engine, scratch->tensors,
               scratch->cap_tensors * sizeof *scratch->tensors);
  pln_arena_free(&scratch->arena);
  scratch->tensors = NULL;
  scratch->n_tensors = scratch->cap_tensors = 0;
}
