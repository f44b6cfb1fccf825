/* runtime_value.c: reference-counted values of the evaluator. A reference cell
 * that contains itself leaks until its cycle is broken: the evaluator empties
 * the cells it made when a run ends. */

#include "ir/tensor/runtime_value.h"

static size_t box_size(uint32_t capacity) {
  return sizeof(pln_ref_cell) + capacity * sizeof(pln_runtime_value);
}

pln_status pln_ref_cell_new(pln_engine *engine, uint32_t count,
                            pln_ref_cell **out) {
  pln_ref_cell *cell = pln_mem_zeroed(engine, box_size(count));
  if (!cell)
    return pln_nomem(engine);
  cell->refs = 1;
  cell->count = cell->capacity = count;
  *out = cell;
  return PLN_OK;
}

pln_status pln_ref_cell_reserve(pln_engine *engine, pln_ref_cell **cell) {
  uint32_t count = (*cell)->count, capacity = (*cell)->capacity;
  if (count < capacity)
    return PLN_OK;
  if (capacity > UINT32_MAX / 2 - 8)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "a sequence has at most %u elements", UINT32_MAX / 2);
  uint32_t wanted = 2 * capacity + 8;
  pln_ref_cell *moved =
      pln_mem_resize(engine, *cell, box_size(capacity), box_size(wanted));
  if (!moved)
    return pln_nomem(engine);
  moved->capacity = wanted;
  *cell = moved;
  return PLN_OK;
}

static bool is_boxed(const pln_runtime_value *value) {
  return value->kind == PLN_RUNTIME_TUPLE ||
         value->kind == PLN_RUNTIME_SEQUENCE ||
         value->kind == PLN_RUNTIME_MAP ||
         value->kind == PLN_RUNTIME_REF_CELL ||
         value->kind == PLN_RUNTIME_ADT_VALUE;
}

pln_runtime_value pln_runtime_value_copy(pln_runtime_value value) {
  if (value.kind == PLN_RUNTIME_TENSOR)
    pln_tensor_retain(value.of.tensor);
  else if (is_boxed(&value))
    value.of.cell->refs++;
  return value;
}

/* Releases a value without recursion; adds a cell whose count reaches zero to
 * the list. */
static void drop_runtime_value(pln_runtime_value *value,
                               pln_ref_cell **unreferenced) {
  pln_runtime_value old = *value;
  *value = (pln_runtime_value){.kind = PLN_RUNTIME_NONE};
  if (old.kind == PLN_RUNTIME_TENSOR)
    pln_tensor_release(old.of.tensor);
  if (!is_boxed(&old) || --old.of.cell->refs > 0)
    return;
  old.of.cell->next = *unreferenced;
  *unreferenced = old.of.cell;
}

void pln_runtime_value_release(pln_engine *engine, pln_runtime_value *value) {
  pln_ref_cell *unreferenced = NULL;
  drop_runtime_value(value, &unreferenced);
  while (unreferenced) {
    pln_ref_cell *cell = unreferenced;
    unreferenced = cell->next;
    for (uint32_t i = 0; i < cell->count; i++)
      drop_runtime_value(&cell->items[i], &unreferenced);
    pln_mem_free(engine, cell, box_size(cell->capacity));
  }
}

void pln_ref_cell_release(pln_engine *engine, pln_ref_cell *cell) {
  pln_runtime_value value = {.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  pln_runtime_value_release(engine, &value);
}

pln_runtime_value pln_runtime_value_tensor(const pln_tensor *tensor) {
  return pln_runtime_value_of_tensor(tensor ? pln_tensor_retain(tensor) : NULL);
}

pln_status pln_runtime_value_sequence(pln_engine *engine, uint32_t n,
                                      const pln_runtime_value *items,
                                      pln_runtime_value *out) {
  pln_ref_cell *cell = NULL;
  PLN_TRY(pln_ref_cell_new(engine, n, &cell));
  for (uint32_t i = 0; i < n; i++)
    cell->items[i] = pln_runtime_value_copy(items[i]);
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_SEQUENCE, .of.cell = cell};
  return PLN_OK;
}

uint32_t pln_runtime_value_count(const pln_runtime_value *value) {
  return is_boxed(value) ? value->of.cell->count : 0;
}

const pln_runtime_value *pln_runtime_value_at(const pln_runtime_value *value,
                                              uint32_t i) {
  return &value->of.cell->items[i];
}
