/* intern.c: interning: equal byte strings get equal ids, counted from 1.
 *
 * Serves symbols, dims, types and attributes. Invariants: by_id[id - below - 1]
 * is the record of id, and each record is in the hash table; a failed call has
 * added nothing. A child engine's table extends its parent's, which is only
 * read: ids up to `below` belong to the parent. */

#include "base/base.h"

/* uthash with our allocator and a seeded hash. uthash undoes a failed insertion
 * and reports it through `oom`. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) pln_mem_new(interner->engine, size)
#define uthash_free(block, size) pln_mem_free(interner->engine, block, size)
#define uthash_nonfatal_oom(record) oom = true
#include <uthash.h>

typedef struct record {
  UT_hash_handle hh; /* its key is `bytes`, its keylen their number */
  uint64_t id;       /* of 8 bytes, so that the bytes are aligned */
  char bytes[];
} record;
_Static_assert(offsetof(record, bytes) % 8 == 0, "records are 8-byte aligned");

struct pln_interner {
  pln_engine *engine;
  const pln_interner *base; /* the parent's table; NULL: none */
  uint32_t below;           /* number of records in base */
  record *table;
  record **by_id;
  uint32_t count, capacity; /* own records */
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

pln_status pln_interner_child(pln_engine *engine, const pln_interner *base,
                              pln_interner **out) {
  PLN_TRY(pln_interner_new(engine, out));
  (*out)->base = base;
  (*out)->below = pln_interner_count(base);
  return PLN_OK;
}

void pln_interner_free(pln_interner *interner) {
  if (!interner)
    return;
  HASH_CLEAR(hh, interner->table);
  pln_arena_free(&interner->arena);
  pln_mem_free(interner->engine, interner->by_id,
               interner->capacity * sizeof *interner->by_id);
  pln_mem_free(interner->engine, interner, sizeof *interner);
}

static unsigned hash_of(const pln_interner *interner, const void *bytes,
                        size_t size) {
  return (unsigned)pln_hash_bytes(bytes, size, interner->engine->seed);
}

static record *find_own(const pln_interner *interner, const void *bytes,
                        size_t size, unsigned hash) {
  record *found = NULL;
  HASH_FIND_BYHASHVALUE(hh, interner->table, bytes, (unsigned)size, hash,
                        found);
  return found;
}

/* A child has its parent's seed, so that one hash serves both tables. */
static record *find_interned(const pln_interner *interner, const void *bytes,
                             size_t size, unsigned hash) {
  record *found = NULL;
  if (interner->base)
    found = find_own(interner->base, bytes, size, hash);
  return found ? found : find_own(interner, bytes, size, hash);
}

/* Makes room in the table of ids and in the arena for a record that is not yet
 * in the table. */
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
  r->id = (uint64_t)interner->below + interner->count + 1;
  *out = r;
  return PLN_OK;
}

static pln_status add_interned(pln_interner *interner, const void *bytes,
                               size_t size, unsigned hash) {
  record *r = NULL;
  bool oom = false;
  PLN_TRY(new_record(interner, bytes, size, &r));
  HASH_ADD_KEYPTR_BYHASHVALUE(hh, interner->table, r->bytes, (unsigned)size,
                              hash, r);
  if (oom)
    return pln_nomem(interner->engine);
  interner->by_id[interner->count++] = r;
  return PLN_OK;
}

pln_status pln_intern(pln_interner *interner, const void *bytes, size_t size,
                      uint32_t *id, bool *added) {
  if (size >= UINT32_MAX)
    return pln_diag_error(interner->engine, PLN_ERR_LIMIT, NULL,
                          "a name of %zu bytes is longer than 4 GB", size);
  unsigned hash = hash_of(interner, bytes, size);
  record *r = find_interned(interner, bytes, size, hash);
  if (!r)
    PLN_TRY(add_interned(interner, bytes, size, hash));
  if (added)
    *added = !r;
  *id = r ? (uint32_t)r->id : interner->below + interner->count;
  return PLN_OK;
}

uint32_t pln_intern_find(const pln_interner *interner, const void *bytes,
                         size_t size) {
  if (size >= UINT32_MAX)
    return 0;
  record *r =
      find_interned(interner, bytes, size, hash_of(interner, bytes, size));
  return r ? (uint32_t)r->id : 0;
}

const void *pln_interned(const pln_interner *interner, uint32_t id,
                         size_t *size) {
  if (id <= interner->below)
    interner = interner->base;
  const record *r = interner->by_id[id - interner->below - 1];
  if (size)
    *size = r->hh.keylen;
  return r->bytes;
}

uint32_t pln_interner_count(const pln_interner *interner) {
  return interner->below + interner->count;
}

uint32_t pln_interner_inherited(const pln_interner *interner) {
  return interner->below;
}
