/* memory.c: the allocator that an engine was given, and the account of it.
 *
 * Everything that the engine allocates goes through here. What always holds:
 * memory.used is the sum of the sizes of the living blocks; a failed call
 * changes nothing. */

#include "base/base.h"

void *pln_mem_new(pln_engine *engine, size_t size) {
  return pln_mem_resize(engine, NULL, 0, size);
}

void *pln_mem_zeroed(pln_engine *engine, size_t size) {
  void *block = pln_mem_new(engine, size);
  if (block)
    memset(block, 0, size);
  return block;
}

void *pln_mem_resize(pln_engine *engine, void *block, size_t old_size,
                     size_t new_size) {
  pln_memory *m = &engine->memory;
  if (new_size == 0) {
    pln_mem_free(engine, block, old_size);
    return NULL;
  }
  if (new_size > PTRDIFF_MAX)
    return NULL;
  void *moved = m->fn(m->ud, block, block ? old_size : 0, new_size);
  if (!moved)
    return NULL;
  m->used += new_size - (block ? old_size : 0);
  if (m->used > m->peak)
    m->peak = m->used;
  return moved;
}

void pln_mem_free(pln_engine *engine, void *block, size_t size) {
  if (!block)
    return;
  engine->memory.used -= size;
  engine->memory.fn(engine->memory.ud, block, size, 0);
}

pln_status pln_mem_grow(pln_engine *engine, void **items, uint32_t *capacity,
                        size_t need, size_t item) {
  if (need <= *capacity)
    return PLN_OK;
  if (need > UINT32_MAX)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "a table has at most %lu rows, not %zu",
                          (unsigned long)UINT32_MAX, need);
  size_t wanted = *capacity < 8 ? 8 : (size_t)*capacity * 2;
  if (wanted < need)
    wanted = need;
  if (wanted > UINT32_MAX)
    wanted = UINT32_MAX;
  if (wanted > PTRDIFF_MAX / item)
    return pln_nomem(engine);
  void *moved = pln_mem_resize(engine, *items, *capacity * item, wanted * item);
  if (!moved)
    return pln_nomem(engine);
  *items = moved;
  *capacity = (uint32_t)wanted;
  return PLN_OK;
}

size_t pln_engine_memory(const pln_engine *engine, size_t *peak) {
  if (peak)
    *peak = engine->memory.peak;
  return engine->memory.used;
}
