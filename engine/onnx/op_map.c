/* op_map.c: maps ONNX operators and their versions to core operators, by
 * ops.def. Used by import for each new pair of domain and type, and by export
 * for nodes that come from no file. */

#include "onnx/op_map.h"

#include <stdlib.h>

static const pln_onnx_op rows[] = {
#define ONNX(domain, type, from, since, CORE, implied) \
  {domain, type, from, since, PLN_OP_##CORE, implied},
#include "onnx/ops.def"
};

bool pln_onnx_same_domain(pln_slice a, pln_slice b) {
  bool core_a = a.size == 0 || pln_slice_is(a, "ai.onnx");
  bool core_b = b.size == 0 || pln_slice_is(b, "ai.onnx");
  return core_a || core_b ? core_a == core_b : pln_slice_equal(a, b);
}

int64_t pln_onnx_opset(const pln_engine *engine, pln_attrs opsets,
                       pln_slice domain, int64_t fallback) {
  if (domain.size == 0)
    domain = pln_text("ai.onnx");
  for (uint32_t i = 0; i < pln_attrs_count(engine, opsets); i++) {
    const pln_attr *a = pln_attrs_at(engine, opsets, i);
    if (a->kind == PLN_ATTR_INT &&
        pln_slice_equal(pln_symbol_text(engine, a->name), domain))
      return a->v.i;
  }
  return fallback;
}

static int by_bytes(pln_slice a, const char *row) {
  size_t size = strlen(row);
  size_t least = a.size < size ? a.size : size;
  int order = least ? memcmp(a.data, row, least) : 0; /* NULL when empty */
  return order ? order : (a.size > size) - (a.size < size);
}

/* The order of the table: by domain, then by type. */
static int compare_onnx_op(pln_slice domain, pln_slice type,
                           const pln_onnx_op *row) {
  if (pln_slice_is(domain, "ai.onnx"))
    domain.size = 0;
  int order = by_bytes(domain, row->domain);
  return order ? order : by_bytes(type, row->type);
}

const pln_onnx_op *pln_onnx_op_find(pln_slice domain, pln_slice type,
                                    int64_t version) {
  const pln_onnx_op *best = NULL;
  size_t low = 0, high = PLN_COUNT(rows);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_onnx_op(domain, type, &rows[middle]) > 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < PLN_COUNT(rows) && rows[low].from <= version &&
         compare_onnx_op(domain, type, &rows[low]) == 0;
       low++)
    best = &rows[low];
  return best;
}

const pln_onnx_op *pln_onnx_op_row(size_t i) {
  return i < PLN_COUNT(rows) ? &rows[i] : NULL;
}

const pln_onnx_op *pln_onnx_op_next(const pln_onnx_op *from, pln_op op) {
  for (size_t i = from ? (size_t)(from - rows) + 1 : 0; i < PLN_COUNT(rows);
       i++)
    if (rows[i].op == op)
      return &rows[i];
  return NULL;
}

bool pln_onnx_op_current(const pln_onnx_op *row, int64_t version) {
  return row ==
         pln_onnx_op_find(pln_text(row->domain), pln_text(row->type), version);
}

/* Parses one "name=value": an integer, else a string. */
static pln_status read_implied(pln_engine *engine, pln_slice item,
                               pln_attr *out) {
  bool core_only = item.data[0] == '!';
  item.data += core_only;
  item.size -= core_only;
  const char *is = memchr(item.data, '=', item.size);
  size_t name = (size_t)(is - item.data);
  pln_slice value = {is + 1, item.size - name - 1};
  *out = (pln_attr){.kind = PLN_ATTR_STRING, .v.s = value};
  if (strchr("-0123456789", value.data[0])) {
    out->kind = PLN_ATTR_INT;
    out->v.i = strtoll(value.data, NULL, 10);
  }
  return pln_symbol_intern(engine, (pln_slice){item.data, name}, &out->name);
}

pln_status pln_onnx_implied(pln_engine *engine, const pln_onnx_op *row,
                            pln_attrs *out) {
  enum { MOST = 8 };
  pln_attr entries[MOST];
  uint32_t n = 0;
  for (const char *at = row->implied; *at && n < MOST;) {
    size_t size = strcspn(at, " ");
    PLN_TRY(read_implied(engine, (pln_slice){at, size}, &entries[n++]));
    at += size + (at[size] == ' ');
  }
  return pln_attrs_make(engine, n, entries, out);
}

bool pln_onnx_core_only(const pln_onnx_op *row, const char *name) {
  const pln_onnx_op *other = NULL;
  while ((other = pln_onnx_op_next(other, row->op))) {
    const char *at = other->implied;
    while ((at = strchr(at, '!')))
      if (!strncmp(++at, name, strlen(name)) && at[strlen(name)] == '=')
        return true;
  }
  return false;
}

/* ------------------------------------------------------ names of attributes */

static const struct {
  pln_op op;
  const char *onnx, *core;
} attr_names[] = {
#define ATTR_NAME(CORE, onnx, core) {PLN_OP_##CORE, onnx, core},
#include "onnx/attr_names.def"
};

bool pln_onnx_renames_attrs(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(attr_names); i++)
    if (attr_names[i].op == op)
      return true;
  return false;
}

pln_slice pln_onnx_attr_name(pln_op op, pln_slice name) {
  for (size_t i = 0; i < PLN_COUNT(attr_names); i++) {
    if (attr_names[i].op != op)
      continue;
    if (pln_slice_is(name, attr_names[i].onnx))
      return pln_text(attr_names[i].core);
    if (pln_slice_is(name, attr_names[i].core))
      return pln_text(attr_names[i].onnx);
  }
  return name;
}

pln_status pln_onnx_rename_attrs(pln_engine *engine, pln_op op, pln_attrs attrs,
                                 pln_attrs *out) {
  uint32_t n = pln_attrs_count(engine, attrs);
  pln_attr *entries = pln_mem_new(engine, (n + (size_t)1) * sizeof *entries);
  pln_status status = entries ? PLN_OK : pln_nomem(engine);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    entries[i] = *pln_attrs_at(engine, attrs, i);
    pln_slice name = pln_symbol_text(engine, entries[i].name);
    status = pln_symbol_intern(engine, pln_onnx_attr_name(op, name),
                               &entries[i].name);
  }
  if (status == PLN_OK)
    status = pln_attrs_make(engine, n, entries, out);
  pln_mem_free(engine, entries, (n + (size_t)1) * sizeof *entries);
  return status;
}

/* ---------------------------------------------------------------- constants */

static pln_status float_list(pln_engine *engine, const pln_attr *a,
                             pln_tensor **out) {
  int64_t count = a->count;
  PLN_TRY(pln_tensor_new(engine, PLN_FLOAT32, 1, &count, out));
  float *to = pln_tensor_writable(*out);
  for (int64_t i = 0; i < count; i++)
    to[i] = (float)a->v.floats[i];
  return PLN_OK;
}

pln_status pln_onnx_constant(pln_engine *engine, pln_attrs attrs,
                             pln_tensor **out) {
  *out = NULL;
  if (pln_attrs_count(engine, attrs) != 1)
    return PLN_OK;
  const pln_attr *a = pln_attrs_at(engine, attrs, 0);
  pln_slice name = pln_symbol_text(engine, a->name);
  int64_t count = a->count;
  float f = a->kind == PLN_ATTR_FLOAT ? (float)a->v.f : 0;
  if (a->kind == PLN_ATTR_TENSOR && pln_slice_is(name, "value"))
    *out = pln_tensor_retain(a->v.tensor);
  else if (a->kind == PLN_ATTR_INT && pln_slice_is(name, "value_int"))
    return pln_tensor_from_bytes(engine, PLN_INT64, 0, NULL, &a->v.i,
                                 sizeof a->v.i, out);
  else if (a->kind == PLN_ATTR_INTS && pln_slice_is(name, "value_ints"))
    return pln_tensor_from_bytes(engine, PLN_INT64, 1, &count, a->v.ints,
                                 a->count * sizeof *a->v.ints, out);
  else if (a->kind == PLN_ATTR_FLOAT && pln_slice_is(name, "value_float"))
    return pln_tensor_from_bytes(engine, PLN_FLOAT32, 0, NULL, &f, sizeof f,
                                 out);
  else if (a->kind == PLN_ATTR_FLOATS && pln_slice_is(name, "value_floats"))
    return float_list(engine, a, out);
  else if (a->kind == PLN_ATTR_STRING && pln_slice_is(name, "value_string"))
    return pln_tensor_from_bytes(engine, PLN_STRING, 0, NULL, &a->v.s,
                                 sizeof a->v.s, out);
  else if (a->kind == PLN_ATTR_STRINGS && pln_slice_is(name, "value_strings"))
    return pln_tensor_from_bytes(engine, PLN_STRING, 1, &count, a->v.strings,
                                 a->count * sizeof *a->v.strings, out);
  return PLN_OK;
}
