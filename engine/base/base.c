/* base.c: makes and frees the part of an engine that base owns: its memory,
 * its diagnostics, its symbols. Called by engine.c, which adds the tables of
 * the layers above. */

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "base/base.h"

/* Large tensors lie in large pages where the system has such: a run spends
 * its time elsewhere than in page faults. */
static void *large_alloc(size_t size) {
  enum { PAGE = 2 << 20 };
  void *block;
  if (posix_memalign(&block, PAGE, size))
    return NULL;
#ifdef MADV_HUGEPAGE
  madvise(block, size & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
#endif
  return block;
}

static void *libc_alloc(void *ud, void *block, size_t old_size,
                        size_t new_size) {
  enum { LARGE = 4 << 20 };
  (void)ud;
  (void)old_size;
  if (new_size >= LARGE && !block)
    return large_alloc(new_size);
  if (new_size)
    return realloc(block, new_size);
  free(block);
  return NULL;
}

/* Unforeseeable for who writes the files we read; nothing that is printed or
 * written depends on it. */
static uint64_t fresh_seed(const void *address) {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
    return seed;
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  seed = pln_hash_mix((uint64_t)now.tv_nsec, (uint64_t)now.tv_sec);
  return pln_hash_mix(seed, (uint64_t)(uintptr_t)address);
}

pln_engine *pln_base_new(pln_alloc_fn alloc, void *ud) {
  if (!alloc)
    alloc = libc_alloc;
  pln_engine *engine = alloc(ud, NULL, 0, sizeof *engine);
  if (!engine)
    return NULL;
  *engine = (pln_engine){.memory = {alloc, ud, sizeof *engine, sizeof *engine}};
  engine->seed = fresh_seed(engine);
  if (pln_diags_new(engine) != PLN_OK ||
      pln_interner_new(engine, &engine->symbols) != PLN_OK) {
    pln_base_free(engine);
    return NULL;
  }
  return engine;
}

void pln_base_free(pln_engine *engine) {
  if (!engine)
    return;
  pln_interner_free(engine->symbols);
  pln_diags_free(engine);
  pln_memory memory = engine->memory;
  memory.fn(memory.ud, engine, sizeof *engine, 0);
}
