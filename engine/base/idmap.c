/* idmap.c: a table from 64-bit keys to 32-bit numbers, for registries and name
 * scopes. Open addressing, linear probing, at most three quarters full; a slot
 * whose value is 0 is free, and no probe run has a free slot inside. */

#include "base/base.h"

enum { FIRST_SLOTS = 16 };

typedef struct slot {
  uint64_t key;
  uint32_t value;
} slot;

struct pln_idmap {
  pln_engine *engine;
  slot *slots;
  uint32_t mask; /* slots - 1; the number of slots is a power of two */
  uint32_t used;
};

pln_status pln_idmap_new(pln_engine *engine, pln_idmap **out) {
  pln_idmap *map = pln_mem_new(engine, sizeof *map);
  slot *slots = pln_mem_zeroed(engine, FIRST_SLOTS * sizeof(slot));
  if (!map || !slots) {
    pln_mem_free(engine, slots, FIRST_SLOTS * sizeof(slot));
    pln_mem_free(engine, map, sizeof *map);
    return pln_nomem(engine);
  }
  *map = (pln_idmap){engine, slots, FIRST_SLOTS - 1, 0};
  *out = map;
  return PLN_OK;
}

void pln_idmap_free(pln_idmap *map) {
  if (!map)
    return;
  pln_mem_free(map->engine, map->slots, ((size_t)map->mask + 1) * sizeof(slot));
  pln_mem_free(map->engine, map, sizeof *map);
}

static uint32_t home(const pln_idmap *map, uint64_t key) {
  return (uint32_t)pln_hash_mix(map->engine->seed, key) & map->mask;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t locate(const pln_idmap *map, uint64_t key) {
  uint32_t i = home(map, key);
  while (map->slots[i].value && map->slots[i].key != key)
    i = (i + 1) & map->mask;
  return i;
}

static pln_status grow(pln_idmap *map) {
  size_t n = (size_t)map->mask + 1;
  if (n > UINT32_MAX / 2)
    return pln_diag_error(map->engine, PLN_ERR_LIMIT, NULL,
                          "a table of names is full: %u entries", map->used);
  slot *old = map->slots;
  slot *slots = pln_mem_zeroed(map->engine, n * 2 * sizeof(slot));
  if (!slots)
    return pln_nomem(map->engine);
  map->slots = slots;
  map->mask = (uint32_t)(n * 2 - 1);
  for (size_t i = 0; i < n; i++)
    if (old[i].value)
      slots[locate(map, old[i].key)] = old[i];
  pln_mem_free(map->engine, old, n * sizeof(slot));
  return PLN_OK;
}

/* Frees slot i and moves later entries of its run up, so that each is still
 * found from its home. */
static void vacate(pln_idmap *map, uint32_t i) {
  uint32_t j = i;
  for (;;) {
    map->slots[i].value = 0;
    do {
      j = (j + 1) & map->mask;
      if (!map->slots[j].value)
        return;
    } while (((j - home(map, map->slots[j].key)) & map->mask) <
             ((j - i) & map->mask));
    map->slots[i] = map->slots[j];
    i = j;
  }
}

pln_status pln_idmap_set(pln_idmap *map, uint64_t key, uint32_t value) {
  uint32_t i = locate(map, key);
  if (map->slots[i].value) {
    map->slots[i].value = value ? value : map->slots[i].value;
    if (!value) {
      vacate(map, i);
      map->used--;
    }
    return PLN_OK;
  }
  if (!value)
    return PLN_OK;
  if (map->used >= map->mask - map->mask / 4) {
    PLN_TRY(grow(map));
    i = locate(map, key);
  }
  map->slots[i] = (slot){key, value};
  map->used++;
  return PLN_OK;
}

uint32_t pln_idmap_get(const pln_idmap *map, uint64_t key) {
  return map->slots[locate(map, key)].value;
}
