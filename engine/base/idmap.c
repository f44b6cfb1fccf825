/* idmap.c: a hash map from 64-bit keys to 32-bit numbers, for registries and
 * name scopes.
 *
 * Keys are mostly consecutive ids, so the values of eight neighbouring keys
 * form one page, which saves cache misses. Pages are found by open addressing
 * with linear probing, at most three quarters full. Invariants: a slot whose
 * page is 0 is free; a page is kept until the table is freed, even when all its
 * values are 0. */

#include "base/base.h"

enum { FIRST_SLOTS = 16, PAGE_BITS = 3, PAGE_SIZE = 1 << PAGE_BITS };

typedef struct page {
  uint32_t values[PAGE_SIZE];
} page;

typedef struct slot {
  uint64_t key;  /* the common part of the page's keys */
  uint32_t page; /* page index + 1 */
} slot;

struct pln_idmap {
  pln_engine *engine;
  slot *slots;
  uint32_t mask; /* number of slots - 1; the number is a power of two */
  uint32_t n_pages, cap_pages;
  page *pages;
};

pln_status pln_idmap_new(pln_engine *engine, pln_idmap **out) {
  pln_idmap *map = pln_mem_new(engine, sizeof *map);
  slot *slots = pln_mem_zeroed(engine, FIRST_SLOTS * sizeof(slot));
  if (!map || !slots) {
    pln_mem_free(engine, slots, FIRST_SLOTS * sizeof(slot));
    pln_mem_free(engine, map, sizeof *map);
    return pln_nomem(engine);
  }
  *map = (pln_idmap){engine, slots, FIRST_SLOTS - 1, 0, 0, NULL};
  *out = map;
  return PLN_OK;
}

void pln_idmap_free(pln_idmap *map) {
  if (!map)
    return;
  pln_mem_free(map->engine, map->pages, map->cap_pages * sizeof(page));
  pln_mem_free(map->engine, map->slots, ((size_t)map->mask + 1) * sizeof(slot));
  pln_mem_free(map->engine, map, sizeof *map);
}

/* The slot of the page's key, or the free slot where it belongs. */
static uint32_t locate(const pln_idmap *map, uint64_t key) {
  uint32_t i = (uint32_t)pln_hash_mix(map->engine->seed, key) & map->mask;
  while (map->slots[i].page && map->slots[i].key != key)
    i = (i + 1) & map->mask;
  return i;
}

static pln_status grow(pln_idmap *map) {
  size_t n = (size_t)map->mask + 1;
  if (n > UINT32_MAX / 2)
    return pln_diag_error(map->engine, PLN_ERR_LIMIT, NULL,
                          "a table of names is full: %u pages", map->n_pages);
  slot *old = map->slots;
  slot *slots = pln_mem_zeroed(map->engine, n * 2 * sizeof(slot));
  if (!slots)
    return pln_nomem(map->engine);
  map->slots = slots;
  map->mask = (uint32_t)(n * 2 - 1);
  for (size_t i = 0; i < n; i++)
    if (old[i].page)
      slots[locate(map, old[i].key)] = old[i];
  pln_mem_free(map->engine, old, n * sizeof(slot));
  return PLN_OK;
}

/* Adds an empty page for a key that has none. */
static pln_status add_page(pln_idmap *map, uint64_t key, uint32_t *number) {
  if (map->n_pages >= map->mask - map->mask / 4)
    PLN_TRY(grow(map));
  PLN_TRY(pln_mem_grow(map->engine, (void **)&map->pages, &map->cap_pages,
                       (size_t)map->n_pages + 1, sizeof(page)));
  map->pages[map->n_pages++] = (page){{0}};
  *number = map->n_pages;
  map->slots[locate(map, key)] = (slot){key, *number};
  return PLN_OK;
}

pln_status pln_idmap_set(pln_idmap *map, uint64_t key, uint32_t value) {
  uint32_t number = map->slots[locate(map, key >> PAGE_BITS)].page;
  if (!number) {
    if (!value)
      return PLN_OK;
    PLN_TRY(add_page(map, key >> PAGE_BITS, &number));
  }
  map->pages[number - 1].values[key % PAGE_SIZE] = value;
  return PLN_OK;
}

uint32_t pln_idmap_get(const pln_idmap *map, uint64_t key) {
  uint32_t number = map->slots[locate(map, key >> PAGE_BITS)].page;
  return number ? map->pages[number - 1].values[key % PAGE_SIZE] : 0;
}

uint64_t pln_idmap_bytes(const pln_idmap *map) {
  return map ? sizeof *map + map->cap_pages * sizeof(page) +
                   ((uint64_t)map->mask + 1) * sizeof(slot)
             : 0;
}
