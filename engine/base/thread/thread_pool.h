/* thread_pool.h: threads that wait for jobs. Function passes use one
 * (pass/parallel), and so do the kernels of a run (pln_parallel_for). */

#ifndef PLN_BASE_THREAD_POOL_H
#define PLN_BASE_THREAD_POOL_H

#include "base/base.h"

typedef struct pln_thread_pool pln_thread_pool;

/* The number of processors that this process may use. */
uint32_t pln_processor_count(void);

/* Makes a pool of at most `n` threads, or fewer if the system refuses more. */
pln_status pln_thread_pool_new(pln_engine *engine, uint32_t n,
                               pln_thread_pool **out) PLN_CHECKED;
/* The number of threads, and how many were asked for. */
uint32_t pln_thread_pool_size(const pln_thread_pool *pool);
uint32_t pln_thread_pool_capacity(const pln_thread_pool *pool);
/* Calls job(ud, part) for each part below `parts`, which is at most 1 + the
 * pool's size. Part 0 runs on the caller's thread, each other part on its own.
 */
void pln_thread_pool_run(pln_thread_pool *pool, uint32_t parts,
                         void (*job)(void *ud, uint32_t part), void *ud);
/* NULL is accepted. */
void pln_thread_pool_free(pln_thread_pool *pool);

/* ------------------------------------------------------------------- kernels
 * (parallel_for.c) */

/* Between begin and end (which nest) pln_parallel_for uses up to
 * engine->kernel_threads threads. They end with the outermost end. */
void pln_parallel_begin(pln_engine *engine);
void pln_parallel_end(pln_engine *engine);
/* The number of workers that pln_parallel_for may use, at least 1. A kernel
 * allocates scratch for so many. */
uint32_t pln_parallel_workers(const pln_engine *engine);
/* Calls fn(ud, part, worker) once for each part below `parts`, in any order and
 * on any worker below pln_parallel_workers; returns when all have ended. `fn`
 * must not use the engine except to look whether to stop. What it writes must
 * not depend on the worker: results have the same bits with any number of
 * threads. */
void pln_parallel_for(pln_engine *engine, size_t parts,
                      void (*fn)(void *ud, size_t part, uint32_t worker),
                      void *ud);
/* Calls fn(ud, begin, end) for ranges that make up [0, n), of a multiple of
 * `grain` each except for the last: one range if there is one worker. The same
 * holds for `fn`. */
void pln_parallel_ranges(pln_engine *engine, size_t n, size_t grain,
                         void (*fn)(void *ud, size_t begin, size_t end),
                         void *ud);

#endif
