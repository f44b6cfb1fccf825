/* parallel_for.c: the iterations of a kernel on the threads of the engine.
 *
 * Called by kernels inside of a run of a function (eval/evaluator.c). The pool
 * is made at the first loop that uses it and lives until the run ends.
 * Invariant: an engine whose threads cannot be made computes on the caller's
 * thread. */

#include "base/thread/thread_pool.h"

/* One loop: its parts are taken in order, by whichever worker is free. */
typedef struct parallel_loop {
  void (*fn)(void *ud, size_t part, uint32_t worker);
  void *ud;
  size_t parts;
  atomic_size_t next;
} parallel_loop;

void pln_parallel_begin(pln_engine *engine) {
  engine->kernel_depth++;
}

void pln_parallel_end(pln_engine *engine) {
  if (--engine->kernel_depth)
    return;
  pln_thread_pool_free(engine->kernel_pool);
  engine->kernel_pool = NULL;
}

uint32_t pln_parallel_workers(const pln_engine *engine) {
  bool can = engine->kernel_depth && engine->kernel_threads > 1;
  return can ? engine->kernel_threads : 1;
}

static void work_on_loop(void *ud, uint32_t worker) {
  parallel_loop *loop = ud;
  size_t part;
  while ((part = atomic_fetch_add(&loop->next, 1)) < loop->parts)
    loop->fn(loop->ud, part, worker);
}

/* The pool, or NULL: what memory or threads it takes is missing. */
static pln_thread_pool *kernel_pool(pln_engine *engine) {
  size_t mark = pln_diag_count(engine);
  if (!engine->kernel_pool &&
      pln_thread_pool_new(engine, engine->kernel_threads - 1,
                          &engine->kernel_pool) != PLN_OK)
    pln_diag_drop(engine, mark);
  return engine->kernel_pool;
}

void pln_parallel_for(pln_engine *engine, size_t parts,
                      void (*fn)(void *ud, size_t part, uint32_t worker),
                      void *ud) {
  parallel_loop loop = {.fn = fn, .ud = ud, .parts = parts};
  pln_thread_pool *pool = NULL;
  if (parts > 1 && pln_parallel_workers(engine) > 1)
    pool = kernel_pool(engine);
  size_t workers = pool ? pln_thread_pool_size(pool) + 1u : 1;
  if (workers > parts)
    workers = parts;
  if (workers > 1)
    pln_thread_pool_run(pool, (uint32_t)workers, work_on_loop, &loop);
  else
    work_on_loop(&loop, 0);
}

/* ------------------------------------------------------------------ ranges */

/* So many ranges a worker: who is ahead takes another one. */
enum { RANGES = 2 };

typedef struct range_loop {
  void (*fn)(void *ud, size_t begin, size_t end);
  void *ud;
  size_t n, step;
} range_loop;

static void work_on_range(void *ud, size_t part, uint32_t worker) {
  const range_loop *loop = ud;
  size_t begin = part * loop->step, rest = loop->n - begin;
  (void)worker;
  loop->fn(loop->ud, begin, begin + (rest < loop->step ? rest : loop->step));
}

void pln_parallel_ranges(pln_engine *engine, size_t n, size_t grain,
                         void (*fn)(void *ud, size_t begin, size_t end),
                         void *ud) {
  size_t workers = pln_parallel_workers(engine), grains = n / grain;
  if (workers == 1 || grains < 2) {
    fn(ud, 0, n);
    return;
  }
  size_t parts = workers * RANGES < grains ? workers * RANGES : grains;
  range_loop loop = {.fn = fn, .ud = ud, .n = n};
  loop.step = (grains + parts - 1) / parts * grain;
  pln_parallel_for(engine, (n + loop.step - 1) / loop.step, work_on_range,
                   &loop);
}
