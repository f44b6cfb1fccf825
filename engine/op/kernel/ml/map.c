/* map.c: the operators of ai.onnx.ml on maps: zip_map, cast_map,
 * dict_vectorizer. Called through ops.def; kernels work on runtime values. What
 * their specification leaves open (the order of keys, how numbers are written,
 * what stands for missing keys) is as in ONNX Runtime. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/tensor/runtime_value.h"
#include "op/kernel/element.h"
#include "op/kernel/ml/attributes.h"

typedef struct map_operand {
  const pln_tensor *keys, *values;
  const void *key_data, *value_data;
} map_operand;

static pln_status read_map(const pln_kernel_call *call, map_operand *out) {
  const pln_runtime_value *x = &call->data[0];
  if (x->kind != PLN_RUNTIME_MAP)
    return pln_kernel_refuse(call, "the operand is no map");
  out->keys = pln_runtime_value_at(x, 0)->of.tensor;
  out->values = pln_runtime_value_at(x, 1)->of.tensor;
  PLN_TRY(pln_tensor_data(out->keys, &out->key_data));
  return pln_tensor_data(out->values, &out->value_data);
}

static int64_t key_number(const map_operand *m, size_t i) {
  int64_t key = 0;
  (void)pln_tensor_int(m->keys, i, &key);
  return key;
}

static pln_slice text_at(const pln_tensor *t, const void *data, size_t i) {
  return ((const pln_slice *)data)[t->splat ? 0 : i];
}

/* ----------------------------------------------------------------- zip_map */

/* One map: row `r` of the scores under the labels. */
static pln_status zip_row(const pln_kernel_call *call, const pln_tensor *labels,
                          const pln_tensor *scores, const char *data, size_t r,
                          pln_runtime_value *out) {
  size_t n = labels->count, size = pln_element_size((pln_dtype)scores->dtype);
  const int64_t dims[1] = {(int64_t)n};
  pln_tensor *row;
  PLN_TRY(pln_tensor_from_bytes(call->engine, (pln_dtype)scores->dtype, 1, dims,
                                data + r * n * size, n * size, &row));
  pln_status status = pln_runtime_value_map(call->engine, labels, row, out);
  pln_tensor_release(row);
  return status;
}

static pln_status zip_rows(pln_kernel_call *call, const pln_tensor *labels,
                           const pln_tensor *scores) {
  const void *data;
  size_t rows = scores->rank == 2 ? (size_t)scores->dims[0] : 1;
  pln_ref_cell *cell;
  if (rows > UINT32_MAX / 2)
    return pln_kernel_refuse(call, "too many rows");
  PLN_TRY(pln_tensor_data(scores, &data));
  PLN_TRY(pln_ref_cell_new(call->engine, (uint32_t)rows, &cell));
  pln_status status = PLN_OK;
  for (size_t r = 0; r < rows && status == PLN_OK; r++)
    status = zip_row(call, labels, scores, data, r, &cell->items[r]);
  if (status == PLN_OK)
    *call->made =
        (pln_runtime_value){.kind = PLN_RUNTIME_SEQUENCE, .of.cell = cell};
  else
    pln_ref_cell_release(call->engine, cell);
  return status;
}

static pln_status make_labels(const pln_kernel_call *call, pln_tensor **out) {
  pln_ml_list texts = pln_ml_strings(call, "classlabels_strings");
  pln_ml_list ints = pln_ml_ints(call, "classlabels_int64s");
  bool strings = texts.count > 0;
  if (!strings == !ints.count)
    return pln_kernel_refuse(
        call, "either classlabels_int64s or classlabels_strings is given");
  const int64_t dims[1] = {(int64_t)(strings ? texts.count : ints.count)};
  return pln_tensor_from_bytes(
      call->engine, strings ? PLN_STRING : PLN_INT64, 1, dims,
      strings ? (const void *)texts.strings : ints.ints,
      (size_t)dims[0] * (strings ? sizeof(pln_slice) : sizeof(int64_t)), out);
}

pln_status pln_kernel_zip_map(pln_kernel_call *call) {
  pln_tensor *labels, *scores = NULL;
  const pln_runtime_value *x = &call->data[0];
  if (x->kind != PLN_RUNTIME_TENSOR || x->of.tensor->rank < 1 ||
      x->of.tensor->rank > 2 || x->of.tensor->dtype != PLN_FLOAT32)
    return pln_kernel_refuse(call, "the operand is no matrix of float32");
  PLN_TRY(make_labels(call, &labels));
  pln_status status = pln_tensor_dense(x->of.tensor, &scores);
  if (status == PLN_OK &&
      (size_t)scores->dims[scores->rank - 1] != labels->count)
    status = pln_kernel_refuse(call, "%zu labels for rows of %lld scores",
                               labels->count,
                               (long long)scores->dims[scores->rank - 1]);
  if (status == PLN_OK)
    status = zip_rows(call, labels, scores);
  pln_tensor_release(scores);
  pln_tensor_release(labels);
  return status;
}

/* -------------------------------------------------------- vectors of a map */

/* The values at those places of the map, (size_t)-1 for zero or the empty
 * string, as a matrix of one row. */
static pln_status gather_values(const pln_kernel_call *call,
                                const map_operand *m, size_t n,
                                const size_t *places) {
  pln_dtype dtype = (pln_dtype)m->values->dtype;
  size_t size = pln_element_size(dtype), bytes = n * size;
  const int64_t dims[2] = {1, (int64_t)n};
  const pln_slice empty = {"", 0};
  pln_tensor *result;
  char *out = pln_mem_zeroed(call->engine, bytes + 1);
  if (!out)
    return pln_nomem(call->engine);
  for (size_t i = 0; i < n; i++) {
    size_t at = m->values->splat ? 0 : places[i];
    if (places[i] != SIZE_MAX)
      memcpy(out + i * size, (const char *)m->value_data + at * size, size);
    else if (dtype == PLN_STRING)
      memcpy(out + i * size, &empty, size);
  }
  pln_status status =
      pln_tensor_from_bytes(call->engine, dtype, 2, dims, out, bytes, &result);
  pln_mem_free(call->engine, out, bytes + 1);
  if (status == PLN_OK)
    *call->made = pln_runtime_value_of_tensor(result);
  return status;
}

/* ---------------------------------------------------------- dict_vectorizer */

static int order_of(const map_operand *m, size_t i, const pln_slice *text,
                    int64_t number) {
  if (!text) {
    int64_t key = key_number(m, i);
    return (key > number) - (key < number);
  }
  pln_slice key = text_at(m->keys, m->key_data, i);
  size_t size = key.size < text->size ? key.size : text->size;
  int order = size ? memcmp(key.data, text->data, size) : 0;
  return order ? order : (key.size > text->size) - (key.size < text->size);
}

/* The place of a key, which ascend; SIZE_MAX: it is not there. */
static size_t find_key(const map_operand *m, const pln_slice *text,
                       int64_t number) {
  size_t low = 0, high = m->keys->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = order_of(m, middle, text, number);
    if (order == 0)
      return middle;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return SIZE_MAX;
}

pln_status pln_kernel_dict_vectorizer(pln_kernel_call *call) {
  pln_ml_list texts = pln_ml_strings(call, "string_vocabulary");
  pln_ml_list ints = pln_ml_ints(call, "int64_vocabulary");
  bool strings = texts.count > 0;
  size_t n = strings ? texts.count : ints.count;
  map_operand m;
  PLN_TRY(read_map(call, &m));
  if (strings != (m.keys->dtype == PLN_STRING))
    return pln_kernel_refuse(call, "the vocabulary has no keys of the map");
  size_t *places = pln_mem_new(call->engine, (n + 1) * sizeof *places);
  if (!places)
    return pln_nomem(call->engine);
  for (size_t i = 0; i < n; i++)
    places[i] = strings ? find_key(&m, &texts.strings[i], 0)
                        : find_key(&m, NULL, ints.ints[i]);
  pln_status status = gather_values(call, &m, n, places);
  pln_mem_free(call->engine, places, (n + 1) * sizeof *places);
  return status;
}

/* ---------------------------------------------------------------- cast_map */

typedef struct map_cast {
  const pln_kernel_call *call;
  map_operand m;
  pln_dtype to;
  size_t n; /* elements of the result */
} map_cast;

/* The number that a value is or that its text says. */
static pln_status number_at(const map_cast *c, size_t i, double *out) {
  char text[64], *end;
  if (c->m.values->dtype != PLN_STRING) {
    *out = pln_element_at(c->m.values, i);
    return PLN_OK;
  }
  pln_slice s = text_at(c->m.values, c->m.value_data, i);
  if (s.size == 0 || s.size >= sizeof text)
    return pln_kernel_refuse(c->call, "a value is no number");
  memcpy(text, s.data, s.size);
  text[s.size] = '\0';
  *out = strtod(text, &end);
  return *end ? pln_kernel_refuse(c->call, "the value '%s' is no number", text)
              : PLN_OK;
}

/* Writes a value as element `k` of the result. */
static pln_status cast_number(const map_cast *c, size_t i, size_t k,
                              void *out) {
  double x = 0;
  PLN_TRY(number_at(c, i, &x));
  if (c->to == PLN_FLOAT32) {
    ((float *)out)[k] = (float)x;
    return PLN_OK;
  }
  if (!(x > -9.2233720368547758e18 && x < 9.2233720368547758e18))
    return pln_kernel_refuse(c->call, "the value %g is no int64", x);
  ((int64_t *)out)[k] = (int64_t)x;
  return PLN_OK;
}

/* The place in the result of each value; SIZE_MAX: none. */
static pln_status place_of(const map_cast *c, bool sparse, size_t i,
                           size_t *out) {
  *out = i;
  if (!sparse)
    return PLN_OK;
  int64_t key = key_number(&c->m, i);
  if (key < 0)
    return pln_kernel_refuse(c->call, "the key %lld is negative",
                             (long long)key);
  *out = (uint64_t)key < c->n ? (size_t)key : SIZE_MAX;
  return PLN_OK;
}

static pln_status cast_numbers(const map_cast *c, bool sparse) {
  const int64_t dims[2] = {1, (int64_t)c->n};
  pln_tensor *t;
  PLN_TRY(pln_tensor_new(c->call->engine, c->to, 2, dims, &t));
  void *out = pln_tensor_writable(t);
  pln_status status = PLN_OK;
  for (size_t i = 0; i < c->m.keys->count && status == PLN_OK; i++) {
    size_t at;
    status = place_of(c, sparse, i, &at);
    if (status == PLN_OK && at != SIZE_MAX)
      status = cast_number(c, i, at, out);
  }
  if (status == PLN_OK)
    *c->call->made = pln_runtime_value_of_tensor(t);
  else
    pln_tensor_release(t);
  return status;
}

/* Writes number `i` into `text`, which has room for any, and adds it. */
static pln_status add_text(const map_cast *c, size_t at, char text[64],
                           pln_slice *out) {
  if (at == SIZE_MAX) {
    *out = pln_text("0.f");
    return PLN_OK;
  }
  if (c->m.values->dtype == PLN_STRING) {
    *out = text_at(c->m.values, c->m.value_data, at);
    return PLN_OK;
  }
  int size = snprintf(text, 64, "%f", pln_element_at(c->m.values, at));
  *out = (pln_slice){text, (size_t)size};
  return PLN_OK;
}

static pln_status fill_texts(const map_cast *c, bool sparse, size_t *places,
                             char (*room)[64], pln_slice *texts) {
  for (size_t k = 0; k < c->n; k++)
    places[k] = SIZE_MAX;
  for (size_t i = 0; i < c->m.keys->count; i++) {
    size_t at;
    PLN_TRY(place_of(c, sparse, i, &at));
    if (at != SIZE_MAX)
      places[at] = i;
  }
  for (size_t k = 0; k < c->n; k++)
    PLN_TRY(add_text(c, places[k], room[k], &texts[k]));
  return PLN_OK;
}

static pln_status cast_texts(const map_cast *c, bool sparse) {
  pln_engine *e = c->call->engine;
  const int64_t dims[2] = {1, (int64_t)c->n};
  size_t n = c->n + 1;
  pln_tensor *t;
  size_t *places = pln_mem_new(e, n * sizeof *places);
  char(*room)[64] = pln_mem_new(e, n * sizeof *room);
  pln_slice *texts = pln_mem_new(e, n * sizeof *texts);
  pln_status status = places && room && texts
                          ? fill_texts(c, sparse, places, room, texts)
                          : pln_nomem(e);
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(e, PLN_STRING, 2, dims, texts,
                                   c->n * sizeof *texts, &t);
  if (status == PLN_OK)
    *c->call->made = pln_runtime_value_of_tensor(t);
  pln_mem_free(e, places, n * sizeof *places);
  pln_mem_free(e, room, n * sizeof *room);
  pln_mem_free(e, texts, n * sizeof *texts);
  return status;
}

pln_status pln_kernel_cast_map(pln_kernel_call *call) {
  map_cast c = {.call = call, .to = PLN_FLOAT32};
  bool sparse = pln_kernel_string_is(call, "map_form", "DENSE", "SPARSE");
  int64_t most = pln_kernel_int(call, "max_map", 1);
  PLN_TRY(read_map(call, &c.m));
  if (c.m.keys->dtype == PLN_STRING)
    return pln_kernel_refuse(call, "the keys are no integers");
  if (sparse && (most < 1 || most > INT32_MAX))
    return pln_kernel_refuse(call, "max_map is %lld", (long long)most);
  c.n = sparse ? (size_t)most : c.m.keys->count;
  if (pln_kernel_string_is(call, "cast_to", "TO_FLOAT", "TO_INT64"))
    c.to = PLN_INT64;
  if (pln_kernel_string_is(call, "cast_to", "TO_FLOAT", "TO_STRING"))
    return cast_texts(&c, sparse);
  return cast_numbers(&c, sparse);
}
