/* oom.h: an allocator that counts, checks and fails on demand.
 *
 *     static pln_status work(pln_engine *engine, void *ud) {
 *       ... makes something, releases all of it on each way out ...
 *     }
 *     oom_sweep(work, NULL);
 *
 * runs `work` in a new engine again and again while its 1st, 2nd, 3rd, ...
 * allocation fails, until none is left to fail; once with only that one failing
 * and once with all from there on. Each time it must return PLN_ERR_NOMEM with
 * a diagnostic, and no block may be left when the engine is freed. The engine
 * is made before anything fails. A test of base alone says, before the include,
 *
 *     #define OOM_ENGINE_NEW pln_base_new
 *     #define OOM_ENGINE_FREE pln_base_free
 *
 * By hand: `oom memory = {0}; engine = pln_engine_new(oom_alloc, &memory);
 * memory.fail_at = memory.calls + 3; ...; CHECK_EQ_INT(memory.blocks, 0)`.
 *
 * New blocks are filled with 0xA5, freed ones with 0x5A; a block that is freed
 * or resized with another size than its own is a failed check. */

#ifndef OOM_H
#define OOM_H

#include <stdlib.h>

#include "check.h"

#ifndef OOM_ENGINE_NEW
#define OOM_ENGINE_NEW pln_engine_new
#define OOM_ENGINE_FREE pln_engine_free
#endif

typedef struct oom {
  size_t blocks;    /* living */
  size_t bytes;     /* in them */
  uint64_t calls;   /* that asked for memory so far */
  uint64_t fail_at; /* the call that fails; 0: none */
  bool persistent;  /* and all after it */
  bool failed;      /* one has failed */
} oom;

/* In front of each block; 16 bytes keep malloc's alignment. */
typedef struct oom_header {
  size_t size;
  size_t magic;
} oom_header;

enum { OOM_MAGIC = 0x6d6f6f6e };

static inline bool oom_fails(oom *m) {
  m->calls++;
  bool fails = m->fail_at && (m->persistent ? m->calls >= m->fail_at
                                            : m->calls == m->fail_at);
  m->failed |= fails;
  return fails;
}

static inline void *oom_new(oom *m, size_t size) {
  oom_header *h = malloc(sizeof *h + size);
  if (!h)
    return NULL;
  *h = (oom_header){size, OOM_MAGIC};
  memset(h + 1, 0xa5, size);
  m->blocks++;
  m->bytes += size;
  return h + 1;
}

static inline void oom_free(oom *m, void *block, size_t size) {
  oom_header *h = (oom_header *)block - 1;
  if (!CHECK(h->magic == OOM_MAGIC) || !CHECK_EQ_INT(size, h->size))
    return;
  m->blocks--;
  m->bytes -= size;
  memset(h, 0x5a, sizeof *h + size);
  free(h);
}

/* A pln_alloc_fn; `ud` is an oom. Growing always moves the block. */
static inline void *oom_alloc(void *ud, void *block, size_t old_size,
                              size_t new_size) {
  oom *m = ud;
  bool grows = !block || new_size > old_size;
  if (new_size && grows && oom_fails(m))
    return NULL;
  void *moved = new_size ? oom_new(m, new_size) : NULL;
  if (block && moved)
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
  if (block && (moved || !new_size))
    oom_free(m, block, old_size);
  return moved;
}

typedef pln_status (*oom_work)(pln_engine *engine, void *ud);

static inline bool oom_has_error(const pln_engine *engine) {
  for (size_t i = 0; i < pln_diag_count(engine); i++)
    if (pln_diag_at(engine, i)->severity == PLN_ERROR)
      return true;
  return false;
}

/* Fails allocation `n` of the work; true while there was one to fail. */
static inline bool oom_step(oom_work work, void *ud, uint64_t n,
                            bool persistent) {
  oom memory = {0};
  pln_engine *engine = OOM_ENGINE_NEW(oom_alloc, &memory);
  if (!CHECK(engine))
    return false;
  memory.fail_at = memory.calls + n;
  memory.persistent = persistent;
  pln_status status = work(engine, ud);
  bool reached = memory.failed;
  if (!CHECK_STATUS(status, reached ? PLN_ERR_NOMEM : PLN_OK) ||
      (reached && !CHECK(oom_has_error(engine)))) {
    printf("# while allocation %" PRIu64 " failed%s\n", n,
           persistent ? ", and all after it" : "");
    print_diags(engine);
    reached = false; /* one report is enough */
  }
  OOM_ENGINE_FREE(engine);
  if (!CHECK_EQ_INT(memory.blocks, 0)) {
    printf("# %zu bytes leaked when allocation %" PRIu64 " failed\n",
           memory.bytes, n);
    return false;
  }
  return reached;
}

static inline void oom_sweep(oom_work work, void *ud) {
  for (int persistent = 0; persistent < 2; persistent++)
    for (uint64_t n = 1; oom_step(work, ud, n, persistent); n++)
      continue;
}

#endif
