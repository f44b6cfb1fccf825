/* memory.c: allocation and memory accounting of an engine.
 *
 * All allocations of the engine go through here. Invariants: memory.used is the
 * sum of the sizes of blocks taken from the allocator, kept ones included; a
 * failed call changes nothing that the caller can see. Freed blocks are kept
 * while something computes if that does not raise the peak by more than a
 * quarter of the engine's pool, and afterwards as far as the pool has room. */

#include "base/base.h"

/* Blocks of at least this size are kept for reuse. */
enum { LARGE = 64 << 10 };

/* Reuse is off under AddressSanitizer, which must see every use of freed
 * memory. */
#ifdef __SANITIZE_ADDRESS__
enum { MAX_KEPT = 0 };
#else
enum { MAX_KEPT = PLN_MOST_KEPT };
#endif

/* The size requested from the allocator: large sizes are rounded up to eight
 * steps per power of two. */
static size_t allocation_size(size_t size) {
  if (size < LARGE)
    return size;
  size_t unit = LARGE / 8;
  while (unit <= size / 16)
    unit *= 2;
  return (size + unit - 1) / unit * unit;
}

static size_t live(const pln_memory *m) {
  return m->used - m->kept_bytes;
}

static void note_peak(pln_memory *m) {
  if (live(m) > m->peak)
    m->peak = live(m);
}

/* ------------------------------------------------------------- kept blocks */

static void forget(pln_memory *m, uint32_t index) {
  m->kept_bytes -= m->kept[index].size;
  m->n_kept--;
  memmove(&m->kept[index], &m->kept[index + 1],
          (m->n_kept - index) * sizeof *m->kept);
}

/* The joint total of parent and children is needed only under a limit. */
static bool is_shared(const pln_memory *m) {
  return m->family && m->limit;
}

static void give_back(pln_memory *m, void *block, size_t size) {
  m->used -= size;
  if (is_shared(m))
    atomic_fetch_sub(&m->family->used, size);
  m->fn(m->ud, block, size, 0);
}

static void give_back_oldest(pln_memory *m) {
  void *block = m->kept[0].block;
  size_t size = m->kept[0].size;
  forget(m, 0);
  give_back(m, block, size);
}

/* The most recently freed block of that size, which is likely in the CPU
 * caches. */
static void *find_reusable(pln_memory *m, size_t size) {
  for (uint32_t i = m->n_kept; i-- > 0;)
    if (m->kept[i].size == size) {
      void *block = m->kept[i].block;
      forget(m, i);
      note_peak(m);
      return block;
    }
  return NULL;
}

/* While nothing computes, only the pool keeps blocks. */
static bool keep_freed_block(pln_memory *m, void *block, size_t size) {
  if (size < LARGE || MAX_KEPT == 0 ||
      (!m->reuse_depth && m->kept_bytes + size > m->pool))
    return false;
  if (m->n_kept == MAX_KEPT)
    give_back_oldest(m);
  m->kept[m->n_kept].block = block;
  m->kept[m->n_kept++].size = size;
  m->kept_bytes += size;
  return true;
}

/* What the pool has no room for. */
static void trim_to_pool(pln_memory *m) {
  while (m->n_kept && m->kept_bytes > m->pool)
    give_back_oldest(m);
}

void pln_mem_reverse(void *items, size_t n, size_t size) {
  char item[64], *low = items, *high = low + n * size;
  for (size_t i = 0; i < n / 2; i++, low += size) {
    high -= size;
    memcpy(item, low, size);
    memcpy(low, high, size);
    memcpy(high, item, size);
  }
}

void pln_mem_reuse_begin(pln_engine *engine) {
  engine->memory.reuse_depth++;
}

void pln_mem_reuse_end(pln_engine *engine) {
  pln_memory *m = &engine->memory;
  m->reuse_depth--;
  if (!m->reuse_depth)
    trim_to_pool(m);
}

void pln_engine_set_pool(pln_engine *engine, size_t bytes) {
  engine->memory.pool = bytes;
  if (!engine->memory.reuse_depth)
    trim_to_pool(&engine->memory);
}

size_t pln_engine_pool(const pln_engine *engine) {
  return engine->memory.pool;
}

/* ------------------------------------------------------------------ blocks */

static void count(pln_memory *m, size_t old_size, size_t new_size) {
  m->calls += new_size > old_size;
  m->bytes_requested += new_size > old_size ? new_size - old_size : 0;
  m->used += new_size - old_size;
  if (is_shared(m)) /* a negative difference wraps around, which is intended */
    atomic_fetch_add(&m->family->used, new_size - old_size);
  note_peak(m);
}

/* Memory that the host freed but had allocated before the limit counts as
 * zero. */
static size_t used_together(const pln_memory *m) {
  size_t used = is_shared(m) ? atomic_load(&m->family->used) : m->used;
  return m->outside <= PTRDIFF_MAX ? used + m->outside : used;
}

/* True if the limit allows `more` bytes; reports an error when it does not. */
static bool allowed(pln_memory *m, size_t more) {
  if (!m->limit || used_together(m) + more <= m->limit)
    return true;
  while (m->n_kept)
    give_back_oldest(m);
  bool fits = used_together(m) + more <= m->limit;
  m->limited |= !fits;
  return fits;
}

bool pln_mem_allows(pln_engine *engine, size_t more) {
  return allowed(&engine->memory, more);
}

void pln_mem_count_host(pln_engine *engine, size_t more) {
  engine->memory.outside += more;
}

/* A block from the allocator; on failure kept blocks are freed first. */
static void *fresh(pln_memory *m, size_t size) {
  while (m->kept_bytes > m->pool / 4 && m->used + size > m->peak)
    give_back_oldest(m);
  if (!allowed(m, size))
    return NULL;
  void *block = m->fn(m->ud, NULL, 0, size);
  if (!block && m->n_kept) {
    while (m->n_kept)
      give_back_oldest(m);
    block = m->fn(m->ud, NULL, 0, size);
  }
  if (block)
    count(m, 0, size);
  return block;
}

void *pln_mem_new(pln_engine *engine, size_t size) {
  pln_memory *m = &engine->memory;
  if (size == 0 || size > PTRDIFF_MAX / 2)
    return NULL;
  size = allocation_size(size);
  void *block = size < LARGE ? NULL : find_reusable(m, size);
  return block ? block : fresh(m, size);
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
  if (!block)
    return pln_mem_new(engine, new_size);
  if (new_size > PTRDIFF_MAX / 2)
    return NULL;
  old_size = allocation_size(old_size);
  new_size = allocation_size(new_size);
  if (new_size > old_size && !allowed(m, new_size - old_size))
    return NULL;
  void *moved = m->fn(m->ud, block, old_size, new_size);
  if (moved)
    count(m, old_size, new_size);
  return moved;
}

void pln_mem_free(pln_engine *engine, void *block, size_t size) {
  pln_memory *m = &engine->memory;
  size = allocation_size(size);
  if (block && !keep_freed_block(m, block, size))
    give_back(m, block, size);
}

pln_status pln_mem_grow_array(pln_engine *engine, void **items,
                              uint32_t *capacity, size_t need, size_t item) {
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

void pln_mem_move_account(pln_engine *parent, pln_engine *child, size_t size) {
  size = allocation_size(size);
  child->memory.used -= size;
  parent->memory.used += size;
  note_peak(&parent->memory);
}

void pln_mem_merge_account(pln_engine *parent, uint64_t calls, size_t bytes) {
  pln_memory *m = &parent->memory;
  m->calls += calls;
  if (live(m) + bytes > m->peak)
    m->peak = live(m) + bytes;
}

size_t pln_engine_memory(const pln_engine *engine, size_t *peak) {
  if (peak)
    *peak = engine->memory.peak;
  return live(&engine->memory);
}

uint64_t pln_engine_allocations(const pln_engine *engine) {
  return engine->memory.calls;
}

uint64_t pln_engine_allocated(const pln_engine *engine) {
  return engine->memory.bytes_requested;
}
