/* attrs/equal.c: equality of attributes as in Relay: floats within 1e-9 are
 * equal. Called by comparisons of graphs, types and modules. Dictionaries with
 * equal ids are equal; others are compared entry by entry, nested ones with a
 * stack. */

#include <math.h>

#include "ir/attrs/attrs.h"
#include "ir/tensor/tensor.h"

static const double tolerance = 1e-9;

static bool same_float(double a, double b) {
  return a == b || fabs(a - b) <= tolerance || (isnan(a) && isnan(b));
}

static bool same_text(pln_slice a, pln_slice b) {
  return a.size == b.size && (a.size == 0 || !memcmp(a.data, b.data, a.size));
}

/* The number that ends at *at, which moves before it; -1: none. */
static int64_t read_number_before(pln_slice s, size_t *at) {
  int64_t value = 0, scale = 1;
  size_t end = *at;
  for (; *at > 0 && s.data[*at - 1] >= '0' && s.data[*at - 1] <= '9'; --*at) {
    if (end - *at > 10)
      return -1;
    value += (s.data[*at - 1] - '0') * scale;
    scale *= 10;
  }
  return *at < end ? value : -1;
}

/* "CONTENT#INDEX", or "ORDERED CONTENT#INDEX,SIZE" with the content's size. */
pln_slice pln_object_content(pln_slice object) {
  size_t at = object.size;
  int64_t size = read_number_before(object, &at);
  bool sized = size >= 0 && at > 0 && object.data[at - 1] == ',';
  if (sized) {
    at--;
    (void)read_number_before(object, &at);
  }
  if (at == 0 || object.data[at - 1] != '#')
    return object;
  at--;
  if (!sized || (uint64_t)size > at)
    return (pln_slice){object.data, at};
  return (pln_slice){object.data + (at - (size_t)size), (size_t)size};
}

static bool same_element(const pln_attr *a, const pln_attr *b, uint32_t i) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_FLOATS: return same_float(a->v.floats[i], b->v.floats[i]);
  case PLN_ATTR_STRINGS: return same_text(a->v.strings[i], b->v.strings[i]);
  case PLN_ATTR_TENSORS:
    return pln_tensor_equal(a->v.tensors[i], b->v.tensors[i]);
  case PLN_ATTR_TYPES: return a->v.types[i] == b->v.types[i];
  default: return a->v.ints[i] == b->v.ints[i];
  }
}

static bool same_list(const pln_attr *a, const pln_attr *b) {
  bool same = a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++)
    same = same_element(a, b, i);
  return same;
}

/* Assumes that nested dictionaries and lists are equal. */
static bool same_value(const pln_attr *a, const pln_attr *b) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: return a->onnx_type == b->onnx_type;
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
  case PLN_ATTR_GRAPH: return a->v.i == b->v.i;
  case PLN_ATTR_FLOAT: return same_float(a->v.f, b->v.f);
  case PLN_ATTR_STRING: return same_text(a->v.s, b->v.s);
  case PLN_ATTR_OBJECT:
    return same_text(pln_object_content(a->v.s), pln_object_content(b->v.s));
  case PLN_ATTR_BYTES:
    return a->onnx_type == b->onnx_type && same_text(a->v.s, b->v.s);
  case PLN_ATTR_TENSOR: return pln_tensor_equal(a->v.tensor, b->v.tensor);
  case PLN_ATTR_TYPE: return a->v.type == b->v.type;
  case PLN_ATTR_REF:
    return a->onnx_type == b->onnx_type && a->v.symbol == b->v.symbol;
  case PLN_ATTR_DICT:
  case PLN_ATTR_LIST: return true;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: return same_list(a, b);
  case PLN_N_ATTR_KINDS: break;
  }
  return false;
}

/* Pairs of dictionaries to compare. */
typedef struct pending {
  pln_engine *engine;
  pln_attrs *pairs;
  uint32_t top, capacity;
  pln_idmap *seen; /* pairs already pushed */
} pending;

static pln_status push_attrs_pair(pending *p, pln_attrs a, pln_attrs b) {
  uint64_t key = (uint64_t)a << 32 | b;
  if (!p->seen)
    PLN_TRY(pln_idmap_new(p->engine, &p->seen));
  if (pln_idmap_get(p->seen, key))
    return PLN_OK;
  PLN_TRY(pln_idmap_set(p->seen, key, 1));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->pairs, &p->capacity,
                       (size_t)p->top + 2, sizeof *p->pairs));
  p->pairs[p->top++] = a;
  p->pairs[p->top++] = b;
  return PLN_OK;
}

static bool is_nested(const pln_attr *a) {
  return a->kind == PLN_ATTR_DICT || a->kind == PLN_ATTR_LIST;
}

static pln_status compare_attrs(pending *p, const pln_attr *x,
                                const pln_attr *y, bool *same) {
  *same = x->name == y->name && x->kind == y->kind && same_value(x, y);
  return *same && is_nested(x) && x->v.dict != y->v.dict
             ? push_attrs_pair(p, x->v.dict, y->v.dict)
             : PLN_OK;
}

static pln_status compare_sets(pending *p, pln_attrs a, pln_attrs b,
                               bool *same) {
  const pln_engine *e = p->engine;
  uint32_t n = pln_attrs_count(e, a);
  *same = n == pln_attrs_count(e, b);
  for (uint32_t i = 0; *same && i < n; i++)
    PLN_TRY(
        compare_attrs(p, pln_attrs_at(e, a, i), pln_attrs_at(e, b, i), same));
  return PLN_OK;
}

static pln_status end_attrs_comparison(pending *p, pln_status status,
                                       bool *same) {
  while (status == PLN_OK && *same && p->top > 0) {
    p->top -= 2;
    status = compare_sets(p, p->pairs[p->top], p->pairs[p->top + 1], same);
  }
  pln_idmap_free(p->seen);
  pln_mem_free(p->engine, p->pairs, p->capacity * sizeof *p->pairs);
  return status;
}

pln_status pln_attr_equal(pln_engine *engine, const pln_attr *a,
                          const pln_attr *b, bool *same) {
  pending p = {.engine = engine};
  return end_attrs_comparison(&p, compare_attrs(&p, a, b, same), same);
}

pln_status pln_attrs_equal(pln_engine *engine, pln_attrs a, pln_attrs b,
                           bool *same) {
  *same = a == b;
  if (*same)
    return PLN_OK;
  pending p = {.engine = engine};
  return end_attrs_comparison(&p, compare_sets(&p, a, b, same), same);
}
