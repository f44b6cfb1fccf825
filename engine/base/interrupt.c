/* interrupt.c: stops a pass or an evaluation from outside: by the user, through
 * a signal handler or another thread, or by a time limit.
 *
 * Loops over user data call pln_poll; passes arm the timer. Invariants: a
 * request is one atomic number, so polling is cheap. The timer signals the
 * thread that armed it, so that the interrupt callback may touch that thread's
 * data as a signal handler may. */

#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int this_thread(void) {
  return (int)syscall(SYS_gettid);
}

/* Signals each thread that works on a child, because its callback may touch
 * only its own thread's data. Threads that have ended are skipped. */
static void signal_worker_threads(pln_engine *engine) {
  siginfo_t info = {.si_signo = PLN_TIMER_SIGNAL, .si_code = SI_QUEUE};
  info.si_pid = getpid();
  info.si_value.sival_ptr = engine;
  for (uint32_t i = 0; i < PLN_MOST_THREADS; i++) {
    int thread = atomic_load(&engine->worker_threads[i].thread);
    if (thread)
      syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, PLN_TIMER_SIGNAL,
              &info);
  }
}

static void request_stop(pln_engine *engine, int why) {
  int none = PLN_GO_ON;
  atomic_compare_exchange_strong(&engine->stop, &none, why);
  if (engine->on_stop)
    engine->on_stop(engine->stop_ud);
  signal_worker_threads(engine);
}

/* Runs on a thread that works on a child of the engine. */
static void on_worker_signal(pln_engine *engine) {
  int thread = this_thread();
  for (uint32_t i = 0; i < PLN_MOST_THREADS; i++) {
    pln_engine *child = atomic_load(&engine->worker_threads[i].child);
    if (child && atomic_load(&engine->worker_threads[i].thread) == thread &&
        child->on_stop)
      child->on_stop(child->stop_ud);
  }
}

void pln_engine_interrupt(pln_engine *engine) {
  request_stop(engine, PLN_STOP_REQUESTED);
}

bool pln_engine_interrupted(const pln_engine *engine) {
  return atomic_load(&engine->stop) == PLN_STOP_REQUESTED;
}

void pln_engine_on_interrupt(pln_engine *engine, void (*f)(void *ud),
                             void *ud) {
  engine->on_stop = NULL;
  engine->stop_ud = ud;
  engine->on_stop = f;
}

pln_status pln_stopped(pln_engine *engine) {
  if (pln_stop_reason(engine) == PLN_STOP_TIME)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "it took longer than limit.seconds = %g",
                          engine->seconds);
  return pln_diag_error(engine, PLN_ERR_INTERRUPTED, NULL, "interrupted");
}

void pln_stoppable_begin(pln_engine *engine) {
  engine->stoppable_depth++;
}

void pln_stoppable_end(pln_engine *engine) {
  int requested = PLN_STOP_REQUESTED;
  if (--engine->stoppable_depth == 0)
    atomic_compare_exchange_strong(&engine->stop, &requested, PLN_GO_ON);
}

pln_status pln_work_done(pln_engine *engine, pln_status status) {
  if (status == PLN_ERR_INTERRUPTED)
    pln_stoppable_end(engine);
  else
    engine->stoppable_depth--;
  return status;
}

/* ------------------------------------------------------------------- timer */

static void expired(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)context;
  int before = errno;
  if (info->si_code == SI_TIMER)
    request_stop(info->si_value.sival_ptr, PLN_STOP_TIME);
  else if (info->si_code == SI_QUEUE && info->si_pid == getpid())
    on_worker_signal(info->si_value.sival_ptr);
  errno = before;
}

static pln_status refused(pln_engine *engine) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL,
                        "limit.seconds: the system gives no timer");
}

static bool catch_signal(void) {
  struct sigaction action = {.sa_sigaction = expired,
                             .sa_flags = SA_SIGINFO | SA_RESTART};
  sigemptyset(&action.sa_mask);
  return sigaction(PLN_TIMER_SIGNAL, &action, NULL) == 0;
}

/* Without a signal handler the child is stopped by polling alone. */
void pln_worker_stop_begin(pln_engine *child, uint32_t part) {
  pln_engine *parent = child->parent;
  if (!catch_signal())
    return;
  atomic_store(&parent->worker_threads[part].child, child);
  atomic_store(&parent->worker_threads[part].thread, this_thread());
}

void pln_worker_stop_end(pln_engine *child, uint32_t part) {
  atomic_store(&child->parent->worker_threads[part].thread, 0);
  atomic_store(&child->parent->worker_threads[part].child, NULL);
}

static pln_status make_timer(pln_engine *engine) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                           .sigev_signo = PLN_TIMER_SIGNAL,
                           .sigev_value.sival_ptr = engine};
  event._sigev_un._tid = this_thread();
  if (!catch_signal() ||
      timer_create(CLOCK_MONOTONIC, &event, &engine->timer) != 0)
    return refused(engine);
  engine->has_timer = true;
  return PLN_OK;
}

/* Clears a request that the timer made just before it was disarmed. */
static void drop_timer(pln_engine *engine) {
  if (engine->has_timer)
    timer_delete(engine->timer);
  engine->has_timer = false;
  int time = PLN_STOP_TIME;
  atomic_compare_exchange_strong(&engine->stop, &time, PLN_GO_ON);
}

pln_status pln_stop_after(pln_engine *engine, double seconds) {
  drop_timer(engine);
  engine->seconds = seconds;
  if (seconds <= 0)
    return PLN_OK;
  PLN_TRY(make_timer(engine));
  double whole = seconds < 1e9 ? seconds : 1e9;
  struct itimerspec at = {.it_value.tv_sec = (time_t)whole};
  at.it_value.tv_nsec = (long)((whole - (double)at.it_value.tv_sec) * 1e9);
  if (at.it_value.tv_sec == 0 && at.it_value.tv_nsec == 0)
    at.it_value.tv_nsec = 1;
  return timer_settime(engine->timer, 0, &at, NULL) == 0 ? PLN_OK
                                                         : refused(engine);
}

double pln_seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

pln_status pln_copy_bytes(pln_engine *engine, void *to, const void *from,
                          size_t size) {
  enum { PART = 4 << 20 };
  for (size_t at = 0; at < size; at += PART) {
    if (at)
      PLN_TRY(pln_poll_stoppable(engine));
    memcpy((char *)to + at, (const char *)from + at,
           size - at < PART ? size - at : PART);
  }
  return PLN_OK;
}
