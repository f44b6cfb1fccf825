/* runtime_value.c: what evaluation takes and gives: reference counting. A cell
 * that holds itself lives as long as nothing breaks the circle: the evaluator
 * empties the cells it made when a run ends. */

#include "ir/tensor/runtime_value.h"

static size_t box_size(uint32_t capacity) {
  return sizeof(pln_box) + capacity * sizeof(pln_datum);
}

pln_status pln_box_new(pln_engine *engine, uint32_t count, pln_box **out) {
  pln_box *box = pln_mem_zeroed(engine, box_size(count));
  if (!box)
    return pln_nomem(engine);
  box->refs = 1;
  box->count = box->capacity = count;
  *out = box;
  return PLN_OK;
}

pln_status pln_box_room(pln_engine *engine, pln_box **box) {
  uint32_t count = (*box)->count, capacity = (*box)->capacity;
  if (count < capacity)
    return PLN_OK;
  if (capacity > UINT32_MAX / 2 - 8)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "a sequence has at most %u elements", UINT32_MAX / 2);
  uint32_t wanted = 2 * capacity + 8;
  pln_box *moved =
      pln_mem_resize(engine, *box, box_size(capacity), box_size(wanted));
  if (!moved)
    return pln_nomem(engine);
  moved->capacity = wanted;
  *box = moved;
  return PLN_OK;
}

static bool is_boxed(const pln_datum *datum) {
  return datum->kind == PLN_DATUM_TUPLE || datum->kind == PLN_DATUM_SEQUENCE ||
         datum->kind == PLN_DATUM_CELL || datum->kind == PLN_DATUM_MADE;
}

pln_datum pln_datum_copy(pln_datum datum) {
  if (datum.kind == PLN_DATUM_TENSOR)
    pln_tensor_retain(datum.of.tensor);
  else if (is_boxed(&datum))
    datum.of.box->refs++;
  return datum;
}

/* Releases what needs no other box, and lists the box that dies. */
static void drop(pln_datum *datum, pln_box **dying) {
  pln_datum old = *datum;
  *datum = (pln_datum){.kind = PLN_DATUM_NONE};
  if (old.kind == PLN_DATUM_TENSOR)
    pln_tensor_release(old.of.tensor);
  if (!is_boxed(&old) || --old.of.box->refs > 0)
    return;
  old.of.box->next = *dying;
  *dying = old.of.box;
}

void pln_datum_release(pln_engine *engine, pln_datum *datum) {
  pln_box *dying = NULL;
  drop(datum, &dying);
  while (dying) {
    pln_box *box = dying;
    dying = box->next;
    for (uint32_t i = 0; i < box->count; i++)
      drop(&box->items[i], &dying);
    pln_mem_free(engine, box, box_size(box->capacity));
  }
}

void pln_box_release(pln_engine *engine, pln_box *box) {
  pln_datum datum = {.kind = PLN_DATUM_TUPLE, .of.box = box};
  pln_datum_release(engine, &datum);
}

pln_datum pln_datum_tensor(const pln_tensor *tensor) {
  return pln_datum_take(tensor ? pln_tensor_retain(tensor) : NULL);
}

pln_status pln_datum_sequence(pln_engine *engine, uint32_t n,
                              const pln_datum *items, pln_datum *out) {
  pln_box *box = NULL;
  PLN_TRY(pln_box_new(engine, n, &box));
  for (uint32_t i = 0; i < n; i++)
    box->items[i] = pln_datum_copy(items[i]);
  *out = (pln_datum){.kind = PLN_DATUM_SEQUENCE, .of.box = box};
  return PLN_OK;
}

uint32_t pln_datum_count(const pln_datum *datum) {
  return is_boxed(datum) ? datum->of.box->count : 0;
}

const pln_datum *pln_datum_item(const pln_datum *datum, uint32_t i) {
  return &datum->of.box->items[i];
}
