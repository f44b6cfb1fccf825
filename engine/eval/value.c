/* value.c: the values of a run: reference counting. Called by the evaluator
 * only. A cell that holds itself lives as long as nothing breaks the circle:
 * the evaluator empties the cells it made when a run ends. */

#include "eval/value.h"

static size_t box_size(uint32_t count) {
  return sizeof(pln_box) + count * sizeof(pln_held);
}

pln_status pln_box_new(pln_engine *engine, uint32_t count, pln_box **out) {
  pln_box *box = pln_mem_zeroed(engine, box_size(count));
  if (!box)
    return pln_nomem(engine);
  box->refs = 1;
  box->count = count;
  *out = box;
  return PLN_OK;
}

static bool is_boxed(const pln_held *held) {
  return held->kind == PLN_HELD_TUPLE || held->kind == PLN_HELD_CELL;
}

pln_held pln_held_copy(pln_held held) {
  if (held.kind == PLN_HELD_TENSOR)
    pln_tensor_retain(held.of.tensor);
  else if (is_boxed(&held))
    held.of.box->refs++;
  return held;
}

/* Releases what needs no other box, and lists the box that dies. */
static void drop(pln_held *held, pln_box **dying) {
  pln_held old = *held;
  *held = (pln_held){.kind = PLN_HELD_NONE};
  if (old.kind == PLN_HELD_TENSOR)
    pln_tensor_release(old.of.tensor);
  if (!is_boxed(&old) || --old.of.box->refs > 0)
    return;
  old.of.box->next = *dying;
  *dying = old.of.box;
}

void pln_held_release(pln_engine *engine, pln_held *held) {
  pln_box *dying = NULL;
  drop(held, &dying);
  while (dying) {
    pln_box *box = dying;
    dying = box->next;
    for (uint32_t i = 0; i < box->count; i++)
      drop(&box->items[i], &dying);
    pln_mem_free(engine, box, box_size(box->count));
  }
}
