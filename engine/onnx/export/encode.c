/* encode.c: encodes types and opsets as ONNX messages.
 *
 * Types nest. The messages around the innermost type are opened outside in and
 * closed in reverse order, without recursion. */

#include "onnx/export/encode.h"

enum { MAX_OPEN = 256 };

typedef struct open_messages {
  size_t at[MAX_OPEN];
  uint32_t count;
} open_messages;

static pln_status open_one(pln_rope *rope, open_messages *o, uint32_t tag) {
  if (o->count == MAX_OPEN)
    return pln_diag_error(rope->engine, PLN_ERR_LIMIT, NULL,
                          "a type is nested too deep for ONNX");
  return pln_rope_open(rope, tag, &o->at[o->count++]);
}

static pln_status close_all(pln_rope *rope, open_messages *o) {
  while (o->count > 0)
    PLN_TRY(pln_rope_close(rope, o->at[--o->count]));
  return PLN_OK;
}

static pln_status put_param(pln_rope *rope, pln_engine *engine, pln_dim dim) {
  pln_symbol name = pln_dim_name(engine, dim);
  if (name)
    return pln_rope_bytes(rope, DIM_PARAM, pln_symbol_text(engine, name));
  pln_buffer text;
  pln_buffer_init(&text, engine);
  pln_status status = pln_print_dim(engine, dim, pln_buffer_write, &text);
  if (status == PLN_OK)
    status = pln_rope_bytes(rope, DIM_PARAM, (pln_slice){text.data, text.size});
  pln_buffer_free(&text);
  return status;
}

static pln_status encode_dim(pln_rope *rope, pln_engine *engine, pln_dim dim) {
  size_t at;
  PLN_TRY(pln_rope_open(rope, SHAPE_DIM, &at));
  if (dim != PLN_DIM_UNKNOWN && PLN_DIM_IS_CONST(dim))
    PLN_TRY(pln_rope_int(rope, DIM_VALUE, (uint64_t)dim));
  else if (dim != PLN_DIM_UNKNOWN)
    PLN_TRY(put_param(rope, engine, dim));
  return pln_rope_close(rope, at);
}

static pln_status encode_tensor_type(pln_rope *rope, pln_engine *engine,
                                     open_messages *o, uint32_t tag,
                                     pln_type type) {
  size_t at;
  int32_t rank = pln_type_rank(engine, type);
  const pln_dim *dims = pln_type_dims(engine, type);
  PLN_TRY(open_one(rope, o, tag));
  PLN_TRY(pln_rope_int(rope, TYPE_ELEM, pln_type_dtype(engine, type)));
  if (rank < 0)
    return PLN_OK;
  PLN_TRY(pln_rope_open(rope, TYPE_SHAPE, &at));
  for (int32_t i = 0; i < rank; i++)
    PLN_TRY(encode_dim(rope, engine, dims[i]));
  return pln_rope_close(rope, at);
}

static pln_status put_opaque(pln_rope *rope, pln_engine *engine,
                             open_messages *o, pln_type type) {
  pln_slice text = pln_symbol_text(engine, pln_type_symbol(engine, type));
  size_t domain = 0;
  while (domain + 1 < text.size && memcmp(text.data + domain, "::", 2))
    domain++;
  bool split = domain + 1 < text.size;
  pln_slice name =
      split ? (pln_slice){text.data + domain + 2, text.size - domain - 2}
            : text;
  PLN_TRY(open_one(rope, o, TYPE_OPAQUE));
  if (split && domain)
    PLN_TRY(
        pln_rope_bytes(rope, OPAQUE_DOMAIN, (pln_slice){text.data, domain}));
  return pln_rope_bytes(rope, OPAQUE_NAME, name);
}

/* Opens the message around `*type` and sets *type to the inner type; false at
 * the innermost. */
static pln_status put_wrapper(pln_rope *rope, pln_engine *engine,
                              open_messages *o, pln_type *type, bool *more) {
  pln_type_kind kind = pln_type_get_kind(engine, *type);
  bool map = kind == PLN_TYPE_MAP;
  *more = map || kind == PLN_TYPE_SEQUENCE || kind == PLN_TYPE_OPTIONAL;
  if (!*more)
    return PLN_OK;
  uint32_t tag = kind == PLN_TYPE_SEQUENCE ? TYPE_SEQUENCE : TYPE_OPTIONAL;
  PLN_TRY(open_one(rope, o, map ? (uint32_t)TYPE_MAP : tag));
  if (map) {
    pln_type key = pln_type_part_at(engine, *type, 0);
    PLN_TRY(pln_rope_int(rope, TYPE_ELEM, pln_type_dtype(engine, key)));
  }
  *type = pln_type_part_at(engine, *type, map);
  if (!*type)
    return PLN_OK;
  return open_one(rope, o, map ? TYPE_MAP_VALUE : TYPE_PART);
}

static pln_status encode_type_message(pln_rope *rope, pln_engine *engine,
                                      open_messages *o, pln_type type) {
  for (bool more = true; more;)
    PLN_TRY(put_wrapper(rope, engine, o, &type, &more));
  switch (pln_type_get_kind(engine, type)) {
  case PLN_TYPE_TENSOR:
    return encode_tensor_type(rope, engine, o, TYPE_TENSOR, type);
  case PLN_TYPE_SPARSE:
    return encode_tensor_type(rope, engine, o, TYPE_SPARSE,
                              pln_type_part_at(engine, type, 0));
  case PLN_TYPE_OPAQUE: return put_opaque(rope, engine, o, type);
  case PLN_TYPE_GLOBAL_VAR:
  case PLN_TYPE_RELATION:
  case PLN_TYPE_HOLE:
  case PLN_TYPE_PRIM:
  case PLN_TYPE_POINTER:
  case PLN_TYPE_INCOMPLETE:
  case PLN_TYPE_TUPLE:
  case PLN_TYPE_FUNC:
  case PLN_TYPE_REF:
  case PLN_TYPE_VAR:
  case PLN_TYPE_CALL:
  case PLN_TYPE_SEQUENCE:
  case PLN_TYPE_OPTIONAL:
  case PLN_TYPE_MAP:
  case PLN_N_TYPE_KINDS: break;
  }
  return PLN_OK;
}

pln_status pln_encode_type(pln_rope *rope, pln_engine *engine, uint32_t tag,
                           pln_type type) {
  open_messages o = {.count = 0};
  bool is_tensor = pln_type_get_kind(engine, type) == PLN_TYPE_TENSOR;
  /* Readers refuse a TypeProto without an element type, and read a missing
   * TypeProto as unknown. */
  if (!type || (is_tensor && pln_type_dtype(engine, type) == PLN_DTYPE_NONE))
    return PLN_OK;
  PLN_TRY(open_one(rope, &o, tag));
  PLN_TRY(encode_type_message(rope, engine, &o, type));
  return close_all(rope, &o);
}

pln_status pln_encode_value_info(pln_rope *rope, pln_engine *engine,
                                 uint32_t tag, pln_slice name, pln_type type) {
  size_t at;
  PLN_TRY(pln_rope_open(rope, tag, &at));
  PLN_TRY(pln_rope_bytes(rope, VALUE_NAME, name));
  PLN_TRY(pln_encode_type(rope, engine, VALUE_TYPE, type));
  return pln_rope_close(rope, at);
}

pln_status pln_encode_opsets(pln_rope *rope, pln_engine *engine, uint32_t tag,
                             pln_attrs opsets) {
  for (uint32_t i = 0; i < pln_attrs_count(engine, opsets); i++) {
    const pln_attr *a = pln_attrs_at(engine, opsets, i);
    pln_slice domain = pln_symbol_text(engine, a->name);
    size_t at;
    PLN_TRY(pln_rope_open(rope, tag, &at));
    if (pln_slice_is(domain, "ai.onnx"))
      domain.size = 0;
    PLN_TRY(pln_rope_bytes(rope, OPSET_DOMAIN, domain));
    PLN_TRY(pln_rope_int(rope, OPSET_VERSION,
                         a->kind == PLN_ATTR_INT ? (uint64_t)a->v.i : 1));
    PLN_TRY(pln_rope_close(rope, at));
  }
  return PLN_OK;
}
