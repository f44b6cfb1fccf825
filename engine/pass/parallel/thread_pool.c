/* thread_pool.c: the threads that help to run function passes.
 *
 * Called by parallel.c; execute.c sends them home when the outermost
 * application ends. What always holds: between two jobs all of them wait; a job
 * ends when each has ended its part; the caller does part 0. No signal but that
 * of time limits is delivered to them, so handlers run where hosts expect. */

#include "pass/parallel/parallel.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

typedef struct helper {
  struct pln_crew *crew;
  pthread_t thread;
  uint32_t part; /* from 1 */
} helper;

struct pln_crew {
  pln_engine *engine;
  pthread_mutex_t lock;
  pthread_cond_t begin, end;
  uint64_t round;    /* counts jobs */
  uint32_t n_busy;   /* helpers that have not ended their part */
  uint32_t n_wanted; /* helpers that the job is for */
  bool quit;
  void (*job)(void *ud, uint32_t part);
  void *ud;
  uint32_t n, capacity; /* started; asked for */
  helper helpers[];
};

uint32_t pln_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    n = CPU_COUNT(&set);
#endif
  return n < 1 ? 1 : n > PLN_MOST_THREADS ? PLN_MOST_THREADS : (uint32_t)n;
}

/* ------------------------------------------------------------------ helpers */

static void work(helper *h) {
  struct pln_crew *crew = h->crew;
  uint64_t seen = 0;
  pthread_mutex_lock(&crew->lock);
  for (;;) {
    while (!crew->quit && crew->round == seen)
      pthread_cond_wait(&crew->begin, &crew->lock);
    if (crew->quit)
      break;
    seen = crew->round;
    if (h->part > crew->n_wanted)
      continue;
    pthread_mutex_unlock(&crew->lock);
    crew->job(crew->ud, h->part);
    pthread_mutex_lock(&crew->lock);
    if (--crew->n_busy == 0)
      pthread_cond_signal(&crew->end);
  }
  pthread_mutex_unlock(&crew->lock);
}

static void *helper_main(void *ud) {
  work(ud);
  return NULL;
}

/* A new thread has the mask of its maker. */
static bool start(helper *h) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, PLN_TIMER_SIGNAL);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&h->thread, NULL, helper_main, h);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

/* --------------------------------------------------------------------- crews
 */

static size_t size_of(uint32_t capacity) {
  return sizeof(struct pln_crew) + capacity * sizeof(helper);
}

static pln_status new_crew(pln_engine *engine, uint32_t n,
                           struct pln_crew **out) {
  struct pln_crew *crew = pln_mem_zeroed(engine, size_of(n));
  if (!crew)
    return pln_nomem(engine);
  crew->engine = engine;
  crew->capacity = n;
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->begin, NULL);
  pthread_cond_init(&crew->end, NULL);
  for (; crew->n < n; crew->n++) {
    crew->helpers[crew->n].crew = crew;
    crew->helpers[crew->n].part = crew->n + 1;
    if (!start(&crew->helpers[crew->n]))
      break;
  }
  *out = crew;
  return PLN_OK;
}

void pln_crew_free(struct pln_crew *crew) {
  if (!crew)
    return;
  pthread_mutex_lock(&crew->lock);
  crew->quit = true;
  pthread_cond_broadcast(&crew->begin);
  pthread_mutex_unlock(&crew->lock);
  for (uint32_t i = 0; i < crew->n; i++)
    pthread_join(crew->helpers[i].thread, NULL);
  pthread_cond_destroy(&crew->begin);
  pthread_cond_destroy(&crew->end);
  pthread_mutex_destroy(&crew->lock);
  pln_mem_free(crew->engine, crew, size_of(crew->capacity));
}

pln_status pln_crew_get(pln_engine *engine, uint32_t n, struct pln_crew **out) {
  struct pln_crew **crew = &engine->passes->crew;
  if (*crew && (*crew)->capacity < n) {
    pln_crew_free(*crew);
    *crew = NULL;
  }
  if (!*crew)
    PLN_TRY(new_crew(engine, n, crew));
  *out = *crew;
  return PLN_OK;
}

uint32_t pln_crew_size(const struct pln_crew *crew) {
  return crew->n;
}

void pln_crew_run(struct pln_crew *crew, uint32_t parts,
                  void (*job)(void *ud, uint32_t part), void *ud) {
  uint32_t helpers = parts - 1;
  pthread_mutex_lock(&crew->lock);
  crew->job = job;
  crew->ud = ud;
  crew->n_wanted = crew->n_busy = helpers;
  crew->round++;
  pthread_cond_broadcast(&crew->begin);
  pthread_mutex_unlock(&crew->lock);
  job(ud, 0);
  pthread_mutex_lock(&crew->lock);
  while (crew->n_busy)
    pthread_cond_wait(&crew->end, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}
