/* thread_pool.c: threads that wait for jobs.
 *
 * Called by pass/parallel for function passes and by parallel_for.c for the
 * kernels of a run. Invariants: between two jobs all threads wait; a job ends
 * when each thread has ended its part; the caller runs part 0. Who waits looks
 * for some microseconds before it sleeps, because the jobs of kernels are short
 * and follow each other. The threads block all signals except that of time
 * limits, so that a host's handlers run on the host's threads. */

#include "base/thread/thread_pool.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

/* How often a thread looks before it sleeps: some 20 microseconds. */
enum { LOOKS = 4000 };

typedef struct pool_thread {
  pln_thread_pool *pool;
  pthread_t thread;
  uint32_t part; /* counted from 1 */
} pool_thread;

struct pln_thread_pool {
  pln_engine *engine;
  pthread_mutex_t lock;
  pthread_cond_t begin, end;
  atomic_uint generation; /* counts jobs; changed under the lock */
  atomic_uint n_busy;     /* threads that have not ended their part */
  uint32_t n_wanted;      /* threads that the job uses */
  bool quit;
  void (*job)(void *ud, uint32_t part);
  void *ud;
  uint32_t n, capacity; /* started; allocated */
  pool_thread threads[];
};

uint32_t pln_processor_count(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    n = CPU_COUNT(&set);
#endif
  return n < 1 ? 1 : n > PLN_MOST_THREADS ? PLN_MOST_THREADS : (uint32_t)n;
}

static void pause_thread(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* ------------------------------------------------------------------- threads
 */

/* Waits for another job than number `seen`; false: the pool ends. */
static bool wait_for_job(pln_thread_pool *pool, uint32_t seen) {
  for (int i = 0; i < LOOKS; i++) {
    if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen)
      break;
    pause_thread();
  }
  pthread_mutex_lock(&pool->lock);
  while (!pool->quit && atomic_load(&pool->generation) == seen)
    pthread_cond_wait(&pool->begin, &pool->lock);
  bool more = !pool->quit;
  pthread_mutex_unlock(&pool->lock);
  return more;
}

static void end_part(pln_thread_pool *pool) {
  if (atomic_fetch_sub(&pool->n_busy, 1) != 1)
    return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->end);
  pthread_mutex_unlock(&pool->lock);
}

static void *pool_thread_main(void *ud) {
  pool_thread *t = ud;
  pln_thread_pool *pool = t->pool;
  uint32_t seen = 0;
  while (wait_for_job(pool, seen)) {
    seen = atomic_load(&pool->generation);
    if (t->part > pool->n_wanted)
      continue;
    pool->job(pool->ud, t->part);
    end_part(pool);
  }
  return NULL;
}

/* A new thread inherits the signal mask of the thread that starts it. */
static bool start_pool_thread(pool_thread *t) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, PLN_TIMER_SIGNAL);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&t->thread, NULL, pool_thread_main, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

/* --------------------------------------------------------------------- pools
 */

static size_t size_of(uint32_t capacity) {
  return sizeof(pln_thread_pool) + capacity * sizeof(pool_thread);
}

pln_status pln_thread_pool_new(pln_engine *engine, uint32_t n,
                               pln_thread_pool **out) {
  pln_thread_pool *pool = pln_mem_zeroed(engine, size_of(n));
  if (!pool)
    return pln_nomem(engine);
  pool->engine = engine;
  pool->capacity = n;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->begin, NULL);
  pthread_cond_init(&pool->end, NULL);
  for (; pool->n < n; pool->n++) {
    pool->threads[pool->n].pool = pool;
    pool->threads[pool->n].part = pool->n + 1;
    if (!start_pool_thread(&pool->threads[pool->n]))
      break;
  }
  *out = pool;
  return PLN_OK;
}

void pln_thread_pool_free(pln_thread_pool *pool) {
  if (!pool)
    return;
  pthread_mutex_lock(&pool->lock);
  pool->quit = true;
  pthread_cond_broadcast(&pool->begin);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < pool->n; i++)
    pthread_join(pool->threads[i].thread, NULL);
  pthread_cond_destroy(&pool->begin);
  pthread_cond_destroy(&pool->end);
  pthread_mutex_destroy(&pool->lock);
  pln_mem_free(pool->engine, pool, size_of(pool->capacity));
}

uint32_t pln_thread_pool_size(const pln_thread_pool *pool) {
  return pool->n;
}

uint32_t pln_thread_pool_capacity(const pln_thread_pool *pool) {
  return pool->capacity;
}

static void wait_for_parts(pln_thread_pool *pool) {
  for (int i = 0; i < LOOKS; i++) {
    if (atomic_load_explicit(&pool->n_busy, memory_order_acquire) == 0)
      return;
    pause_thread();
  }
  pthread_mutex_lock(&pool->lock);
  while (atomic_load(&pool->n_busy))
    pthread_cond_wait(&pool->end, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void pln_thread_pool_run(pln_thread_pool *pool, uint32_t parts,
                         void (*job)(void *ud, uint32_t part), void *ud) {
  pthread_mutex_lock(&pool->lock);
  pool->job = job;
  pool->ud = ud;
  pool->n_wanted = parts - 1;
  atomic_store(&pool->n_busy, parts - 1);
  atomic_fetch_add(&pool->generation, 1);
  pthread_cond_broadcast(&pool->begin);
  pthread_mutex_unlock(&pool->lock);
  job(ud, 0);
  wait_for_parts(pool);
}
