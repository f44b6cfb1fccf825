/* intern.c: equal byte strings get equal ids, counted from 1.
 *
 * Serves symbols, dims, types, attributes: whatever is compared as a number.
 * What always holds: by_id[id - below - 1] is the record of id, and each record
 * has a slot. When memory is out nothing has been added. A child engine's table
 * stands on its parent's, which is read and never written: the ids up to
 * `below` are the parent's.
 *
 * The slots are open addressing with linear probing, at most three quarters
 * full. A slot keeps its hash, so that a search reads the records of equal
 * hashes alone, and growing reads none: among millions of names every record
 * that is looked at is one more wait for memory. */

#include "base/base.h"

enum { FIRST_SLOTS = 16 };

typedef struct record {
  uint64_t size; /* of 8 bytes, so that the bytes are aligned */
  char bytes[];
} record;
_Static_assert(offsetof(record, bytes) % 8 == 0, "records are 8-byte aligned");

typedef struct slot {
  uint32_t hash;
  uint32_t row; /* in by_id, + 1; 0: a free slot */
} slot;

struct pln_interner {
  pln_engine *engine;
  const pln_interner *base; /* the parent's; NULL: stands by itself */
  uint32_t below;           /* records of base */
  slot *slots;
  uint32_t n_slots; /* a power of two, or 0 */
  record **by_id;
  uint32_t count, capacity; /* own ones */
  pln_arena arena;
};

pln_status pln_interner_new(pln_engine *engine, pln_interner **out) {
  pln_interner *interner = pln_mem_zeroed(engine, sizeof *interner);
  if (!interner)
    return pln_nomem(engine);
  interner->engine = engine;
  pln_arena_init(&interner->arena, engine);
  *out = interner;
  return PLN_OK;
}

pln_status pln_interner_over(pln_engine *engine, const pln_interner *base,
                             pln_interner **out) {
  PLN_TRY(pln_interner_new(engine, out));
  (*out)->base = base;
  (*out)->below = pln_interner_count(base);
  return PLN_OK;
}

void pln_interner_free(pln_interner *interner) {
  if (!interner)
    return;
  pln_mem_free(interner->engine, interner->slots,
               interner->n_slots * sizeof *interner->slots);
  pln_arena_free(&interner->arena);
  pln_mem_free(interner->engine, interner->by_id,
               interner->capacity * sizeof *interner->by_id);
  pln_mem_free(interner->engine, interner, sizeof *interner);
}

static uint32_t hash_of(const pln_interner *interner, const void *bytes,
                        size_t size) {
  return (uint32_t)pln_hash_bytes(bytes, size, interner->engine->seed);
}

static bool holds(const pln_interner *interner, uint32_t row, const void *bytes,
                  size_t size) {
  const record *r = interner->by_id[row];
  return r->size == size && (size == 0 || !memcmp(r->bytes, bytes, size));
}

/* The id, 0: there is none. */
static uint32_t find_own(const pln_interner *interner, const void *bytes,
                         size_t size, uint32_t hash) {
  if (!interner->n_slots)
    return 0;
  uint32_t mask = interner->n_slots - 1;
  for (uint32_t i = hash & mask; interner->slots[i].row; i = (i + 1) & mask) {
    slot s = interner->slots[i];
    if (s.hash == hash && holds(interner, s.row - 1, bytes, size))
      return interner->below + s.row;
  }
  return 0;
}

/* The seed of a child is its parent's, so that one hash serves both tables. */
static uint32_t find(const pln_interner *interner, const void *bytes,
                     size_t size, uint32_t hash) {
  uint32_t found = 0;
  if (interner->base)
    found = find_own(interner->base, bytes, size, hash);
  return found ? found : find_own(interner, bytes, size, hash);
}

static void put(slot *slots, uint32_t n_slots, slot s) {
  uint32_t mask = n_slots - 1, i = s.hash & mask;
  while (slots[i].row)
    i = (i + 1) & mask;
  slots[i] = s;
}

/* Room for one more slot. */
static pln_status make_room(pln_interner *interner) {
  uint32_t had = interner->n_slots, n = had ? had * 2 : FIRST_SLOTS;
  if (interner->count < had - had / 4)
    return PLN_OK;
  if (n < had)
    return pln_diag_error(interner->engine, PLN_ERR_LIMIT, NULL,
                          "a table of names is full: %u entries",
                          interner->count);
  slot *slots = pln_mem_zeroed(interner->engine, n * sizeof *slots);
  if (!slots)
    return pln_nomem(interner->engine);
  for (uint32_t i = 0; i < had; i++)
    if (interner->slots[i].row)
      put(slots, n, interner->slots[i]);
  pln_mem_free(interner->engine, interner->slots, had * sizeof *slots);
  interner->slots = slots;
  interner->n_slots = n;
  return PLN_OK;
}

/* Room in both the table of ids and the arena; the record is not yet known. */
static pln_status new_record(pln_interner *interner, const void *bytes,
                             size_t size, record **out) {
  void *rows = interner->by_id;
  pln_status status = pln_mem_grow(interner->engine, &rows, &interner->capacity,
                                   (size_t)interner->count + 1, sizeof *out);
  interner->by_id = rows;
  PLN_TRY(status);
  record *r = pln_arena_new(&interner->arena, sizeof *r + size + 1);
  if (!r)
    return pln_nomem(interner->engine);
  if (size)
    memcpy(r->bytes, bytes, size);
  r->bytes[size] = 0;
  r->size = size;
  *out = r;
  return PLN_OK;
}

static pln_status add(pln_interner *interner, const void *bytes, size_t size,
                      uint32_t hash) {
  record *r = NULL;
  PLN_TRY(make_room(interner));
  PLN_TRY(new_record(interner, bytes, size, &r));
  interner->by_id[interner->count++] = r;
  put(interner->slots, interner->n_slots, (slot){hash, interner->count});
  return PLN_OK;
}

pln_status pln_intern(pln_interner *interner, const void *bytes, size_t size,
                      uint32_t *id, bool *added) {
  if (size >= UINT32_MAX)
    return pln_diag_error(interner->engine, PLN_ERR_LIMIT, NULL,
                          "a name of %zu bytes is longer than 4 GB", size);
  uint32_t hash = hash_of(interner, bytes, size);
  uint32_t found = find(interner, bytes, size, hash);
  if (!found)
    PLN_TRY(add(interner, bytes, size, hash));
  if (added)
    *added = !found;
  *id = found ? found : interner->below + interner->count;
  return PLN_OK;
}

uint32_t pln_intern_find(const pln_interner *interner, const void *bytes,
                         size_t size) {
  if (size >= UINT32_MAX)
    return 0;
  return find(interner, bytes, size, hash_of(interner, bytes, size));
}

const void *pln_interned(const pln_interner *interner, uint32_t id,
                         size_t *size) {
  if (id <= interner->below)
    interner = interner->base;
  const record *r = interner->by_id[id - interner->below - 1];
  if (size)
    *size = (size_t)r->size;
  return r->bytes;
}

uint32_t pln_interner_count(const pln_interner *interner) {
  return interner->below + interner->count;
}

uint32_t pln_interner_below(const pln_interner *interner) {
  return interner->below;
}
