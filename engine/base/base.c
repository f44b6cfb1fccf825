/* base.c: makes and frees the part of an engine that base owns: memory,
 * diagnostics, symbols. Called by engine.c, which adds the tables of the layers
 * above, and by pass/parallel/child_engine.c for child engines. */

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/base.h"
#include "base/huge_pages.h"

/* A large block in place of a smaller one. */
static void *enlarge(void *block, size_t old_size, size_t new_size) {
  void *larger = pln_huge_alloc(new_size);
  if (!larger)
    return NULL;
  if (old_size)
    memcpy(larger, block, old_size);
  free(block);
  return larger;
}

static void *libc_alloc(void *ud, void *block, size_t old_size,
                        size_t new_size) {
  (void)ud;
  if (new_size >= PLN_HUGE_BLOCK && (!block || old_size < PLN_HUGE_BLOCK))
    return enlarge(block, old_size, new_size);
  if (new_size)
    return realloc(block, new_size);
  free(block);
  return NULL;
}

/* A hash seed that the author of an input file cannot predict. Output must not
 * depend on it. */
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
  *engine = (pln_engine){.memory = {.fn = alloc,
                                    .ud = ud,
                                    .used = sizeof *engine,
                                    .peak = sizeof *engine}};
  engine->seed = fresh_seed(engine);
  if (pln_diags_new(engine) != PLN_OK ||
      pln_interner_new(engine, &engine->symbols) != PLN_OK) {
    pln_base_free(engine);
    return NULL;
  }
  return engine;
}

/* ---------------------------------------------------------------- children */

/* The allocator of a host program need not be thread-safe. */
static void *locked_alloc(void *ud, void *block, size_t old_size,
                          size_t new_size) {
  pln_worker_group *family = ud;
  const pln_memory *memory = &family->parent->memory;
  pthread_mutex_lock(&family->lock);
  void *moved = memory->fn(memory->ud, block, old_size, new_size);
  pthread_mutex_unlock(&family->lock);
  return moved;
}

void pln_worker_group_begin(pln_worker_group *family, pln_engine *parent) {
  family->parent = parent;
  family->locks = parent->memory.fn != libc_alloc;
  if (family->locks)
    pthread_mutex_init(&family->lock, NULL);
  atomic_init(&family->used, parent->memory.used);
}

void pln_worker_group_end(pln_worker_group *family) {
  if (family->locks)
    pthread_mutex_destroy(&family->lock);
}

static pln_memory memory_of_child(pln_worker_group *family) {
  const pln_memory *m = &family->parent->memory;
  return (pln_memory){.fn = family->locks ? locked_alloc : m->fn,
                      .ud = family->locks ? (void *)family : m->ud,
                      .limit = m->limit,
                      .family = family};
}

/* Copies the settings that a child starts with from its parent. */
static void inherit(pln_engine *child, pln_engine *parent) {
  child->parent = parent;
  child->seed = parent->seed;
  child->seconds = parent->seconds;
  child->most_rewrites = parent->most_rewrites;
  child->built = parent->built;
  child->most_built = parent->most_built;
  child->most_nodes = parent->most_nodes;
  child->n_vars = parent->n_vars;
  child->n_type_vars = parent->n_type_vars;
  child->random_seed = parent->random_seed;
}

pln_engine *pln_base_child(pln_worker_group *family) {
  pln_memory memory = memory_of_child(family);
  pln_engine *child = memory.fn(memory.ud, NULL, 0, sizeof *child);
  if (!child)
    return NULL;
  *child = (pln_engine){.memory = memory};
  child->memory.used = child->memory.peak = sizeof *child;
  if (memory.limit)
    atomic_fetch_add(&family->used, sizeof *child);
  inherit(child, family->parent);
  if (pln_diags_new(child) == PLN_OK &&
      pln_interner_child(child, family->parent->symbols, &child->symbols) ==
          PLN_OK)
    return child;
  pln_base_free(child);
  return NULL;
}

void pln_base_free(pln_engine *engine) {
  if (!engine)
    return;
  pln_engine_set_pool(engine, 0);
  pln_interner_free(engine->symbols);
  pln_diags_free(engine);
  pln_memory memory = engine->memory;
  memory.fn(memory.ud, engine, sizeof *engine, 0);
}
