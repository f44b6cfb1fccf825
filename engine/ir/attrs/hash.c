/* attrs/hash.c: a hash of attributes that agrees with equal.c. It depends on
 * content only, never on ids.
 *
 * Called once per dictionary, when attrs.c interns it; nested dictionaries are
 * older and have hashes. Equal floats may differ slightly, so their number is
 * hashed, not their values. */

#include "ir/attrs/attrs.h"
#include "ir/tensor/tensor.h"

static uint64_t hash_text(uint64_t h, pln_slice text) {
  return pln_hash_bytes(text.data, text.size, h);
}

uint64_t pln_tensor_content_hash(const pln_tensor *t) {
  uint64_t h = pln_hash_bytes(t->dims, t->rank * sizeof *t->dims, t->dtype);
  return pln_hash_mix(h,
                      pln_tensor_by_content(t) ? pln_tensor_hash(t) : t->bytes);
}

static uint64_t hash_element(const pln_engine *e, uint64_t h, const pln_attr *a,
                             uint32_t i) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INTS:
  case PLN_ATTR_GRAPHS: return pln_hash_mix(h, (uint64_t)a->v.ints[i]);
  case PLN_ATTR_STRINGS: return hash_text(h, a->v.strings[i]);
  case PLN_ATTR_TENSORS:
    return pln_hash_mix(h, pln_tensor_content_hash(a->v.tensors[i]));
  case PLN_ATTR_TYPES: return pln_hash_mix(h, pln_type_hash(e, a->v.types[i]));
  default: return h;
  }
}

static uint64_t hash_list(const pln_engine *e, uint64_t h, const pln_attr *a) {
  h = pln_hash_mix(h, a->count);
  for (uint32_t i = 0; i < a->count; i++)
    h = hash_element(e, h, a, i);
  return h;
}

static uint64_t hash_value(const pln_engine *e, uint64_t h, const pln_attr *a) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: return pln_hash_mix(h, a->onnx_type);
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
  case PLN_ATTR_GRAPH: return pln_hash_mix(h, (uint64_t)a->v.i);
  case PLN_ATTR_STRING:
  case PLN_ATTR_BYTES: return hash_text(h, a->v.s);
  case PLN_ATTR_OBJECT: return hash_text(h, pln_object_content(a->v.s));
  case PLN_ATTR_TENSOR:
    return pln_hash_mix(h, pln_tensor_content_hash(a->v.tensor));
  case PLN_ATTR_TYPE: return pln_hash_mix(h, pln_type_hash(e, a->v.type));
  case PLN_ATTR_REF: return hash_text(h, pln_symbol_text(e, a->v.symbol));
  case PLN_ATTR_DICT:
  case PLN_ATTR_LIST: return pln_hash_mix(h, pln_attrs_hash(e, a->v.dict));
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: return hash_list(e, h, a);
  case PLN_ATTR_FLOAT:
  case PLN_N_ATTR_KINDS: break;
  }
  return h;
}

uint64_t pln_attr_entries_hash(const pln_engine *engine, uint32_t count,
                               const pln_attr *entries) {
  uint64_t h = count;
  for (uint32_t i = 0; i < count; i++) {
    const pln_attr *a = &entries[i];
    h = pln_hash_mix(h, a->kind);
    h = a->name ? hash_text(h, pln_symbol_text(engine, a->name)) : h;
    h = hash_value(engine, h, a);
  }
  return h;
}
