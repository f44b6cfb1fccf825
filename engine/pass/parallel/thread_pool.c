/* thread_pool.c: the thread pool of function passes.
 *
 * Called by parallel.c; execute.c frees the pool when the outermost application
 * ends. Invariants: between two jobs all threads wait; a job ends when each
 * thread has ended its part; the caller runs part 0. The threads block all
 * signals except that of time limits, so that a host's handlers run on the
 * host's threads. */

#include "pass/parallel/parallel.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

typedef struct pool_thread {
  struct pln_thread_pool *thread_pool;
  pthread_t thread;
  uint32_t part; /* counted from 1 */
} pool_thread;

struct pln_thread_pool {
  pln_engine *engine;
  pthread_mutex_t lock;
  pthread_cond_t begin, end;
  uint64_t generation; /* counts jobs */
  uint32_t n_busy;     /* threads that have not ended their part */
  uint32_t n_wanted;   /* threads that the job uses */
  bool quit;
  void (*job)(void *ud, uint32_t part);
  void *ud;
  uint32_t n, capacity; /* started; allocated */
  pool_thread pool_threads[];
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

/* ------------------------------------------------------------------- threads
 */

static void work(pool_thread *h) {
  struct pln_thread_pool *thread_pool = h->thread_pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&thread_pool->lock);
  for (;;) {
    while (!thread_pool->quit && thread_pool->generation == seen)
      pthread_cond_wait(&thread_pool->begin, &thread_pool->lock);
    if (thread_pool->quit)
      break;
    seen = thread_pool->generation;
    if (h->part > thread_pool->n_wanted)
      continue;
    pthread_mutex_unlock(&thread_pool->lock);
    thread_pool->job(thread_pool->ud, h->part);
    pthread_mutex_lock(&thread_pool->lock);
    if (--thread_pool->n_busy == 0)
      pthread_cond_signal(&thread_pool->end);
  }
  pthread_mutex_unlock(&thread_pool->lock);
}

static void *pool_thread_main(void *ud) {
  work(ud);
  return NULL;
}

/* A new thread inherits the signal mask of the thread that starts it. */
static bool start_pool_thread(pool_thread *h) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, PLN_TIMER_SIGNAL);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&h->thread, NULL, pool_thread_main, h);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

/* --------------------------------------------------------------------- pools
 */

static size_t size_of(uint32_t capacity) {
  return sizeof(struct pln_thread_pool) + capacity * sizeof(pool_thread);
}

static pln_status new_thread_pool(pln_engine *engine, uint32_t n,
                                  struct pln_thread_pool **out) {
  struct pln_thread_pool *thread_pool = pln_mem_zeroed(engine, size_of(n));
  if (!thread_pool)
    return pln_nomem(engine);
  thread_pool->engine = engine;
  thread_pool->capacity = n;
  pthread_mutex_init(&thread_pool->lock, NULL);
  pthread_cond_init(&thread_pool->begin, NULL);
  pthread_cond_init(&thread_pool->end, NULL);
  for (; thread_pool->n < n; thread_pool->n++) {
    thread_pool->pool_threads[thread_pool->n].thread_pool = thread_pool;
    thread_pool->pool_threads[thread_pool->n].part = thread_pool->n + 1;
    if (!start_pool_thread(&thread_pool->pool_threads[thread_pool->n]))
      break;
  }
  *out = thread_pool;
  return PLN_OK;
}

void pln_thread_pool_free(struct pln_thread_pool *thread_pool) {
  if (!thread_pool)
    return;
  pthread_mutex_lock(&thread_pool->lock);
  thread_pool->quit = true;
  pthread_cond_broadcast(&thread_pool->begin);
  pthread_mutex_unlock(&thread_pool->lock);
  for (uint32_t i = 0; i < thread_pool->n; i++)
    pthread_join(thread_pool->pool_threads[i].thread, NULL);
  pthread_cond_destroy(&thread_pool->begin);
  pthread_cond_destroy(&thread_pool->end);
  pthread_mutex_destroy(&thread_pool->lock);
  pln_mem_free(thread_pool->engine, thread_pool,
               size_of(thread_pool->capacity));
}

pln_status pln_thread_pool_get(pln_engine *engine, uint32_t n,
                               struct pln_thread_pool **out) {
  struct pln_thread_pool **thread_pool = &engine->passes->thread_pool;
  if (*thread_pool && (*thread_pool)->capacity < n) {
    pln_thread_pool_free(*thread_pool);
    *thread_pool = NULL;
  }
  if (!*thread_pool)
    PLN_TRY(new_thread_pool(engine, n, thread_pool));
  *out = *thread_pool;
  return PLN_OK;
}

uint32_t pln_thread_pool_size(const struct pln_thread_pool *thread_pool) {
  return thread_pool->n;
}

void pln_thread_pool_run(struct pln_thread_pool *thread_pool, uint32_t parts,
                         void (*job)(void *ud, uint32_t part), void *ud) {
  uint32_t pool_threads = parts - 1;
  pthread_mutex_lock(&thread_pool->lock);
  thread_pool->job = job;
  thread_pool->ud = ud;
  thread_pool->n_wanted = thread_pool->n_busy = pool_threads;
  thread_pool->generation++;
  pthread_cond_broadcast(&thread_pool->begin);
  pthread_mutex_unlock(&thread_pool->lock);
  job(ud, 0);
  pthread_mutex_lock(&thread_pool->lock);
  while (thread_pool->n_busy)
    pthread_cond_wait(&thread_pool->end, &thread_pool->lock);
  pthread_mutex_unlock(&thread_pool->lock);
}
