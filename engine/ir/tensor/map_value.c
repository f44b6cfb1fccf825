/* map_value.c: maps as values of the evaluator. Called by kernels of
 * ai.onnx.ml, by readers of files and by scripts. Invariant: the keys of a map
 * ascend. */

#include <stdlib.h>

#include "ir/tensor/runtime_value.h"
#include "ir/tensor/tensor.h"

/* A key and its place in the vectors. */
typedef struct map_entry {
  int64_t number;
  pln_slice text; /* empty if keys are numbers */
  size_t at;
} map_entry;

static int compare_entries(const void *a, const void *b) {
  const map_entry *x = a, *y = b;
  size_t size = x->text.size < y->text.size ? x->text.size : y->text.size;
  int order = size ? memcmp(x->text.data, y->text.data, size) : 0;
  if (order)
    return order;
  if (x->text.size != y->text.size)
    return x->text.size < y->text.size ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static pln_status refuse_map(pln_engine *engine, const char *why) {
  return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "a map: %s", why);
}

static pln_status read_entries(const pln_tensor *keys, map_entry *entries) {
  const void *data;
  PLN_TRY(pln_tensor_data(keys, &data));
  bool texts = keys->dtype == PLN_STRING;
  for (size_t i = 0; i < keys->count; i++) {
    entries[i] = (map_entry){.at = i};
    if (texts)
      entries[i].text = ((const pln_slice *)data)[keys->splat ? 0 : i];
    else if (!pln_tensor_int(keys, i, &entries[i].number))
      return refuse_map(keys->engine, "keys are integers or strings");
  }
  return PLN_OK;
}

/* True if the keys ascend already. */
static bool are_sorted(const map_entry *entries, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (compare_entries(&entries[i - 1], &entries[i]) >= 0)
      return false;
  return true;
}

/* The elements of a vector in the order of the entries. */
static pln_status reorder(const pln_tensor *t, const map_entry *entries,
                          pln_tensor **out) {
  const void *data;
  pln_tensor *dense;
  size_t size = t->bytes / t->count; /* entries out of order: not empty */
  PLN_TRY(pln_tensor_dense(t, &dense));
  pln_status status = pln_tensor_data(dense, &data);
  char *moved = pln_mem_new(t->engine, t->bytes + 1);
  if (!moved && status == PLN_OK)
    status = pln_nomem(t->engine);
  for (size_t i = 0; status == PLN_OK && i < t->count; i++)
    memcpy(moved + i * size, (const char *)data + entries[i].at * size, size);
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(t->engine, (pln_dtype)t->dtype, 1, t->dims,
                                   moved, t->bytes, out);
  pln_mem_free(t->engine, moved, t->bytes + 1);
  pln_tensor_release(dense);
  return status;
}

static pln_status fill_cell(pln_ref_cell *cell, const pln_tensor *keys,
                            const pln_tensor *values,
                            const map_entry *entries) {
  const pln_tensor *parts[2] = {keys, values};
  bool sorted = true;
  for (size_t i = 0; i < keys->count; i++)
    sorted = sorted && entries[i].at == i;
  for (uint32_t i = 0; i < 2; i++) {
    pln_tensor *part = NULL;
    PLN_TRY(sorted ? pln_tensor_dense(parts[i], &part)
                   : reorder(parts[i], entries, &part));
    cell->items[i] = pln_runtime_value_of_tensor(part);
  }
  return PLN_OK;
}

static pln_status sort_entries(const pln_tensor *keys, map_entry *entries) {
  size_t n = keys->count;
  PLN_TRY(read_entries(keys, entries));
  if (!are_sorted(entries, n))
    qsort(entries, n, sizeof *entries, compare_entries);
  for (size_t i = 1; i < n; i++)
    if (compare_entries(&entries[i - 1], &entries[i]) == 0)
      return refuse_map(keys->engine, "a key is there twice");
  return PLN_OK;
}

static pln_status make_cell(const pln_tensor *keys, const pln_tensor *values,
                            const map_entry *entries, pln_runtime_value *out) {
  pln_ref_cell *cell;
  PLN_TRY(pln_ref_cell_new(keys->engine, 2, &cell));
  pln_status status = fill_cell(cell, keys, values, entries);
  if (status == PLN_OK)
    *out = (pln_runtime_value){.kind = PLN_RUNTIME_MAP, .of.cell = cell};
  else
    pln_ref_cell_release(keys->engine, cell);
  return status;
}

pln_status pln_runtime_value_map(pln_engine *engine, const pln_tensor *keys,
                                 const pln_tensor *values,
                                 pln_runtime_value *out) {
  if (keys->rank != 1 || values->rank != 1 || keys->count != values->count)
    return refuse_map(engine, "keys and values are two vectors of one length");
  if (pln_dtype_bits((pln_dtype)values->dtype) < 8)
    return refuse_map(engine, "values of a dtype below a byte");
  size_t size = (keys->count + 1) * sizeof(map_entry);
  map_entry *entries = pln_mem_new(engine, size);
  if (!entries)
    return pln_nomem(engine);
  pln_status status = sort_entries(keys, entries);
  if (status == PLN_OK)
    status = make_cell(keys, values, entries, out);
  pln_mem_free(engine, entries, size);
  return status;
}
