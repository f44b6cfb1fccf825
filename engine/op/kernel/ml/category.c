/* category.c: operators of ai.onnx.ml that replace categories: label_encoder,
 * category_mapper, one_hot_encoder. Called through ops.def.
 *
 *     LabelEncoder<keys_strings=["a"], values_int64s=[7]>(["a", "b"])
 *         =>   [7, -1]
 *
 * Keys are looked up in a hash table; the first of equal keys counts. NaN is
 * one key, and 0 and -0 are another. Semantics: ONNX Runtime's kernels. */

#include "op/kernel/elementwise/convert.h"
#include "op/kernel/ml/attributes.h"
#include "op/kernel/string/builder.h"

/* -------------------------------------------------------------------- keys */

/* A column of keys or values: strings, or numbers as 64 bits. */
typedef struct column {
  pln_dtype dtype; /* NONE: there is none */
  size_t count;
  const pln_slice *texts;
  const uint64_t *bits; /* of int64, or of float64; NaN and 0 are normalized */
} column;

static uint64_t bits_of_number(double x) {
  uint64_t bits;
  x = x != x ? (double)__builtin_nan("") : x == 0 ? 0 : x;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static column texts_column(pln_ml_list list) {
  return (column){PLN_STRING, list.count, list.strings, NULL};
}

/* A column of `count` numbers to be set, in a tensor that the composition
 * owns. It has none if there is no memory. */
static column numbers_column(pln_composition *s, pln_dtype dtype, size_t count,
                             uint64_t **bits) {
  int64_t dims[1] = {(int64_t)count};
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_unset(s->call->engine, PLN_INT64, 1, dims, &t);
  if (!pln_compose_own(s, t))
    return (column){0};
  *bits = pln_tensor_writable(t);
  return (column){dtype, count, NULL, *bits};
}

/* Floats as bits. */
static column floats_column(pln_composition *s, pln_dtype dtype, size_t count,
                            const double *floats) {
  uint64_t *bits = NULL;
  column c = numbers_column(s, dtype, count, &bits);
  for (size_t i = 0; i < c.count; i++)
    bits[i] = bits_of_number(floats[i]);
  return c;
}

/* The elements of a tensor. */
static column tensor_column(pln_composition *s, const pln_tensor *t) {
  pln_dtype dtype = (pln_dtype)t->dtype;
  if (dtype == PLN_STRING)
    return (column){PLN_STRING, t->count, t->data, NULL};
  if (!pln_convertible(dtype)) {
    pln_composition_refuse(s, "keys or values are neither numbers nor strings");
    return (column){0};
  }
  bool whole = pln_dtype_is_integer(dtype);
  const pln_tensor *wide =
      pln_compose_cast(s, t, whole ? PLN_INT64 : PLN_FLOAT64);
  if (!wide)
    return (column){0};
  return whole ? (column){dtype, wide->count, NULL, wide->data}
               : floats_column(s, dtype, wide->count, wide->data);
}

/* The tensor of an attribute, dense and in memory; NULL if it has none. */
static const pln_tensor *tensor_attribute(pln_composition *s,
                                          const char *name) {
  const pln_attr *a = pln_attrs_find(s->call->engine, s->call->attrs, name);
  bool given = a && a->kind == PLN_ATTR_TENSOR;
  return given ? pln_ml_tensor(s, a->v.tensor) : NULL;
}

/* The attributes keys_*, or values_*, whichever is given. */
static column read_column(pln_composition *s, const char *const names[4]) {
  pln_ml_list list = pln_ml_strings(s->call, names[0]);
  if (list.count)
    return texts_column(list);
  list = pln_ml_ints(s->call, names[1]);
  if (list.count)
    return (column){PLN_INT64, list.count, NULL,
                    (const uint64_t *)(const void *)list.ints};
  list = pln_ml_floats(s, names[2]);
  if (list.count)
    return floats_column(s, PLN_FLOAT32, list.count, list.floats);
  const pln_tensor *t = tensor_attribute(s, names[3]);
  return t ? tensor_column(s, t) : (column){0};
}

/* -------------------------------------------------------------- hash table */

/* Slots hold 1 + the number of a key; 0 is empty. */
typedef struct lookup {
  const column *keys;
  uint32_t *slots;
  size_t mask;
} lookup;

static uint64_t hash_key(const column *c, size_t i) {
  if (c->texts)
    return pln_hash_bytes(c->texts[i].data, c->texts[i].size, 0);
  return pln_hash_bytes(&c->bits[i], sizeof c->bits[i], 0);
}

static bool keys_equal(const column *a, size_t i, const column *b, size_t k) {
  if (a->texts)
    return pln_slice_equal(a->texts[i], b->texts[k]);
  return a->bits[i] == b->bits[k];
}

/* The slot of element `i` of `c`, or the empty one where it belongs. */
static size_t find_slot(const lookup *l, const column *c, size_t i) {
  size_t at = (size_t)hash_key(c, i) & l->mask;
  while (l->slots[at] && !keys_equal(c, i, l->keys, l->slots[at] - 1))
    at = (at + 1) & l->mask;
  return at;
}

/* At most half of the slots are used. */
static pln_status begin_lookup(pln_engine *engine, const column *keys,
                               lookup *l) {
  size_t n = 4;
  while (n < 2 * keys->count)
    n *= 2;
  *l = (lookup){keys, pln_mem_zeroed(engine, n * sizeof *l->slots), n - 1};
  if (!l->slots)
    return pln_nomem(engine);
  for (size_t i = 0; i < keys->count; i++) {
    size_t at = find_slot(l, keys, i);
    if (!l->slots[at])
      l->slots[at] = (uint32_t)i + 1;
  }
  return PLN_OK;
}

static void end_lookup(pln_engine *engine, lookup *l) {
  pln_mem_free(engine, l->slots, (l->mask + 1) * sizeof *l->slots);
}

/* The number of the key that equals element `i`, or -1. */
static int64_t find_key(const lookup *l, const column *c, size_t i) {
  return (int64_t)l->slots[find_slot(l, c, i)] - 1;
}

/* The operand as a column that is comparable with keys. */
static bool read_operand(pln_composition *s, const column *keys, column *out) {
  *out = tensor_column(s, pln_kernel_arg(s->call, 0));
  if (s->status == PLN_OK &&
      (!out->texts != !keys->texts ||
       pln_dtype_is_integer(out->dtype) != pln_dtype_is_integer(keys->dtype)))
    pln_composition_refuse(s, "the keys have another dtype than the operand");
  return s->status == PLN_OK;
}

/* --------------------------------------------------------------- replacing */

static pln_status write_strings(pln_kernel_call *call, const lookup *l,
                                const column *in, const column *values,
                                pln_slice fallback) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_string_builder b;
  PLN_TRY(pln_string_builder_begin(call->engine, in->count, &b));
  pln_status status = PLN_OK;
  for (size_t i = 0; i < in->count && status == PLN_OK; i++) {
    int64_t at = find_key(l, in, i);
    pln_slice text = at < 0 ? fallback : values->texts[at];
    status = pln_string_builder_add(&b, text.data, text.size);
    pln_string_builder_next(&b);
  }
  if (status == PLN_OK)
    status = pln_string_builder_result(&b, call, x->rank, x->dims);
  pln_string_builder_end(&b);
  return status;
}

/* Numbers as int64, or as the bits of float64, then cast to their dtype. */
static const pln_tensor *number_results(pln_composition *s, const lookup *l,
                                        const column *in, const column *values,
                                        uint64_t fallback) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  bool whole = pln_dtype_is_integer(values->dtype);
  pln_tensor *t = NULL;
  s->status = pln_tensor_unset(s->call->engine, whole ? PLN_INT64 : PLN_FLOAT64,
                               x->rank, x->dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  uint64_t *out = pln_tensor_writable(t);
  for (size_t i = 0; i < in->count; i++) {
    int64_t at = find_key(l, in, i);
    out[i] = at < 0 ? fallback : values->bits[at];
  }
  return pln_compose_cast(s, t, values->dtype);
}

/* Strings by `text`, numbers by `number`, where a key is unknown. */
static pln_status replace(pln_composition *s, const column *keys,
                          const column *values, pln_slice text,
                          uint64_t number) {
  column in;
  lookup l;
  if (s->status == PLN_OK &&
      (!keys->dtype || !values->dtype || keys->count != values->count))
    s->status = pln_kernel_refuse(s->call, "%zu keys and %zu values",
                                  keys->count, values->count);
  if (s->status != PLN_OK || !read_operand(s, keys, &in))
    return pln_composition_end(s);
  s->status = begin_lookup(s->call->engine, keys, &l);
  if (s->status != PLN_OK)
    return pln_composition_end(s);
  if (values->texts)
    s->status = write_strings(s->call, &l, &in, values, text);
  else
    pln_composition_set_result(s, 0,
                               number_results(s, &l, &in, values, number));
  end_lookup(s->call->engine, &l);
  return pln_composition_end(s);
}

/* 0, 1, 2, ... as a column, for lists whose positions are the values. */
static column positions_column(pln_composition *s, size_t count) {
  uint64_t *bits = NULL;
  column c = numbers_column(s, PLN_INT64, count, &bits);
  for (size_t i = 0; i < c.count; i++)
    bits[i] = i;
  return c;
}

/* What stands for unknown keys: default_tensor, or the attribute of the values'
 * dtype. */
static uint64_t default_number(pln_composition *s, const column *values) {
  const pln_tensor *t = tensor_attribute(s, "default_tensor");
  column c = t && t->count == 1 ? tensor_column(s, t) : (column){0};
  if (c.bits &&
      pln_dtype_is_integer(c.dtype) == pln_dtype_is_integer(values->dtype))
    return c.bits[0];
  if (pln_dtype_is_integer(values->dtype))
    return (uint64_t)pln_kernel_int(s->call, "default_int64", -1);
  return bits_of_number(pln_kernel_float(s->call, "default_float", 0));
}

static pln_slice default_text(pln_composition *s) {
  const pln_tensor *t = tensor_attribute(s, "default_tensor");
  if (t && t->dtype == PLN_STRING && t->count == 1)
    return *(const pln_slice *)t->data;
  return pln_attrs_string(s->call->engine, s->call->attrs, "default_string",
                          "_Unused");
}

/* Strings to their positions in a list, or integers to what stands there. */
static pln_status replace_by_list(pln_composition *s, const column *texts,
                                  const column *numbers) {
  bool forward = pln_kernel_arg(s->call, 0)->dtype == PLN_STRING;
  return replace(s, forward ? texts : numbers, forward ? numbers : texts,
                 default_text(s),
                 (uint64_t)pln_kernel_int(s->call, "default_int64", -1));
}

pln_status pln_kernel_label_encoder(pln_kernel_call *call) {
  static const char *const key_names[] = {"keys_strings", "keys_int64s",
                                          "keys_floats", "keys_tensor"};
  static const char *const value_names[] = {"values_strings", "values_int64s",
                                            "values_floats", "values_tensor"};
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_ml_list classes = pln_ml_strings(call, "classes_strings");
  if (classes.count) {
    column texts = texts_column(classes);
    column numbers = positions_column(&s, classes.count);
    return replace_by_list(&s, &texts, &numbers);
  }
  column keys = read_column(&s, key_names);
  column values = read_column(&s, value_names);
  return replace(&s, &keys, &values, default_text(&s),
                 default_number(&s, &values));
}

pln_status pln_kernel_category_mapper(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  column texts = texts_column(pln_ml_strings(call, "cats_strings"));
  pln_ml_list ints = pln_ml_ints(call, "cats_int64s");
  column numbers = {PLN_INT64, ints.count, NULL,
                    (const uint64_t *)(const void *)ints.ints};
  return replace_by_list(&s, &texts, &numbers);
}

/* ----------------------------------------------------------------- one hot */

/* The operand as int64: floats are cut. */
static const pln_tensor *whole_operand(pln_composition *s) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  return x->dtype == PLN_STRING ? x : pln_compose_cast(s, x, PLN_INT64);
}

static pln_status mark_categories(pln_composition *s, const pln_tensor *x,
                                  const column *keys, float *out) {
  bool zeros = pln_kernel_int(s->call, "zeros", 1) != 0;
  column in = tensor_column(s, x);
  lookup l;
  PLN_TRY(s->status);
  PLN_TRY(begin_lookup(s->call->engine, keys, &l));
  pln_status status = PLN_OK;
  for (size_t i = 0; i < in.count && status == PLN_OK; i++) {
    int64_t at = find_key(&l, &in, i);
    if (at >= 0)
      out[i * keys->count + (size_t)at] = 1;
    else if (!zeros)
      status = pln_kernel_refuse(s->call, "element %zu is no category", i);
  }
  end_lookup(s->call->engine, &l);
  return status;
}

pln_status pln_kernel_one_hot_encoder(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_ml_list ints = pln_ml_ints(call, "cats_int64s");
  column keys = ints.count ? (column){PLN_INT64, ints.count, NULL,
                                      (const uint64_t *)(const void *)ints.ints}
                           : texts_column(pln_ml_strings(call, "cats_strings"));
  const pln_tensor *x = whole_operand(&s);
  int64_t dims[PLN_MAX_RANK];
  void *data;
  if (x &&
      (!keys.texts != (x->dtype != PLN_STRING) || x->rank + 1 > PLN_MAX_RANK))
    pln_composition_refuse(&s, "the categories have another dtype than the "
                               "operand");
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank] = (int64_t)keys.count;
  s.status = pln_kernel_result(call, 0, PLN_FLOAT32, x->rank + 1, dims, &data);
  if (s.status == PLN_OK)
    s.status = mark_categories(&s, x, &keys, data);
  return pln_composition_end(&s);
}
