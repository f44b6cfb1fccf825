/* stop.c: stops the command from outside: on Ctrl-C, at the time limit
 * (limit.seconds), and when the reader closes the output pipe.
 *
 * A stop request is noticed by the engine's polls and by Lua's hook. Neither
 * runs inside Lua's C functions (string.rep, table.move, patterns) or in
 * finalizers. So a timer checks whether a request stays pending, and then ends
 * the process. Invariants: signal handlers do only what POSIX allows; a process
 * that ends here has replaced no output file, or has finished its work. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "cli/host.h"
#include "lua/binding.h"

enum { TICK_MS = 10, OFTEN_MS = 100, INTERRUPT_MS = 40, GRACE_MS = 500 };

#define WATCH_SIGNAL (PLN_TIMER_SIGNAL + 1)

/* Global variables: signal handlers take no other arguments. */
static struct {
  pln_engine *volatile engine;
  lua_State *volatile L; /* the main thread */
  timer_t timer, often;
  bool has_timer, has_often;
  double seconds;                     /* time limit of the command; 0: none */
  volatile sig_atomic_t passed;       /* milliseconds since the stop request */
  volatile sig_atomic_t grace_period; /* milliseconds allowed after Ctrl-C */
  /* Milliseconds that a finalizer has been running. */
  volatile sig_atomic_t finalizing;
  /* The timer also enforces the end of a script. */
  volatile sig_atomic_t guarded;
  volatile sig_atomic_t status; /* exit status of the process */
} stop = {.status = 1, .grace_period = INTERRUPT_MS};

static void say(const char *text) {
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
}

/* ---------------------------------------------------------------- the timer */

static void set_timer(time_t seconds, long nanoseconds, long interval) {
  struct itimerspec at = {.it_value = {seconds, nanoseconds},
                          .it_interval = {0, interval}};
  if (stop.has_timer)
    timer_settime(stop.timer, 0, &at, NULL);
}

static void end_by_signal(void) {
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
}

/* The extra time for a script after its time limit: the limit again, plus a
 * constant. */
static double grace_ms(void) {
  double seconds = stop.engine ? stop.engine->seconds : 0;
  return GRACE_MS + (seconds > stop.seconds ? seconds : stop.seconds) * 1000;
}

/* Runs every few milliseconds while a stop is pending. */
static void tick(void) {
  int why = stop.engine ? pln_stop_reason(stop.engine) : PLN_GO_ON;
  if (why == PLN_GO_ON) {
    set_timer(0, 0, 0);
    return;
  }
  stop.passed += TICK_MS;
  if (why == PLN_STOP_REQUESTED && stop.passed >= stop.grace_period) {
    say("perilune: interrupted; nothing is written\n");
    end_by_signal();
  }
  if (why == PLN_STOP_TIME && stop.passed >= grace_ms()) {
    say("perilune: it took longer than limit.seconds and does not stop; "
        "nothing is written\n");
    _exit(1);
  }
}

/* Detects a running finalizer, in which no hook runs: Lua's collector refuses
 * queries meanwhile. Only reads. */
static void look_for_finalizer(void) {
  bool runs = stop.L && lua_gc(stop.L, LUA_GCISRUNNING) < 0;
  stop.finalizing = runs ? stop.finalizing + OFTEN_MS : 0;
  if (stop.finalizing < stop.seconds * 1000 + grace_ms())
    return;
  say("perilune: a finaliser runs longer than limit.seconds; the "
      "command "
      "ends\n");
  _exit(stop.status);
}

static void timer_expired(int signal_, siginfo_t *info, void *context) {
  int before = errno;
  (void)signal_;
  (void)context;
  if (info->si_value.sival_ptr == &stop.often) {
    look_for_finalizer();
  } else if (stop.guarded) {
    say("perilune: a script runs longer than limit.seconds; the command "
        "ends\n");
    _exit(stop.status);
  } else {
    tick();
  }
  errno = before;
}

/* Called by signal handlers when a stop is requested. */
static void on_interrupt(void *ud) {
  (void)ud;
  if (stop.guarded)
    return;
  stop.passed = 0;
  set_timer(0, TICK_MS * 1000000L, TICK_MS * 1000000L);
}

static bool make_timer(timer_t *timer) {
  struct sigaction action = {.sa_sigaction = timer_expired,
                             .sa_flags = SA_RESTART | SA_SIGINFO};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = WATCH_SIGNAL,
                           .sigev_value.sival_ptr = timer};
  sigemptyset(&action.sa_mask);
  return sigaction(WATCH_SIGNAL, &action, NULL) == 0 &&
         timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
}

/* ------------------------------------------------------------ failed writes */

static void pipe_closed(int signal_) {
  (void)signal_;
  say("perilune: cannot write: the reader of a pipe has closed it\n");
  _exit(1);
}

/* A file at the limit of its size (RLIMIT_FSIZE): the write fails, which is
 * reported where it was made. */
static void file_full(int signal_) {
  (void)signal_;
}

static void catch_default(int signal_, void (*handler)(int)) {
  struct sigaction before;
  if (sigaction(signal_, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
    signal(signal_, handler);
}

/* Programs started by the command get the default handling back. */
void pln_cli_catch_failed_writes(void) {
  catch_default(SIGPIPE, pipe_closed);
  catch_default(SIGXFSZ, file_full);
}

/* ---------------------------------------------------------------- time limit
 */

/* Between begin and end a script runs that nothing else stops. */
void pln_cli_guard_begin(int status) {
  if (stop.seconds <= 0 || stop.guarded)
    return;
  double most = stop.seconds + grace_ms() / 1000;
  time_t whole = most < 1e9 ? (time_t)most : (time_t)1e9;
  stop.status = status;
  stop.guarded = 1;
  set_timer(whole, most < 1e9 ? (long)((most - (double)whole) * 1e9) : 0, 0);
}

void pln_cli_guard_end(void) {
  if (!stop.guarded)
    return;
  set_timer(0, 0, 0);
  stop.guarded = 0;
}

void pln_cli_forget_state(void) {
  stop.L = NULL;
  stop.engine = NULL;
}

/* time_limit(seconds): limits what runs between guards, and finalizers; 0:
 * none */
static int host_time_limit(lua_State *L) {
  struct itimerspec at = {{0, OFTEN_MS * 1000000L}, {0, OFTEN_MS * 1000000L}};
  stop.seconds = luaL_checknumber(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  stop.L = lua_tothread(L, -1);
  if (stop.seconds <= 0)
    return 0;
  if (!stop.has_often)
    stop.has_often = make_timer(&stop.often);
  if (stop.has_often)
    timer_settime(stop.often, 0, &at, NULL);
  return 0;
}

/* guard_begin(), guard_end(): the code between them must end within the time
 * limit, or the process exits. After an error the guard stays on while the
 * error is reported. */
static int host_guard_begin(lua_State *L) {
  (void)L;
  pln_cli_guard_begin(1);
  return 0;
}

static int host_guard_end(lua_State *L) {
  (void)L;
  pln_cli_guard_end();
  return 0;
}

/* ------------------------------------------------------------- interruption
 */

/* A second Ctrl-C ends the process at once. */
static void interrupt(int signal_) {
  signal(signal_, SIG_DFL);
  if (stop.engine)
    pln_engine_interrupt(stop.engine);
}

/* watch(): from here on, stop requests to the state's engine are watched */
static int host_watch(lua_State *L) {
  stop.engine = pln_lua_engine(L);
  if (!stop.has_timer)
    stop.has_timer = make_timer(&stop.timer);
  pln_lua_on_stop(L, on_interrupt, NULL);
  return 0;
}

/* catch_interrupt(): from here on, Ctrl-C stops the pass that is running */
static int host_catch_interrupt(lua_State *L) {
  (void)L;
  signal(SIGINT, interrupt);
  return 0;
}

/* catch_termination(): the same for SIGTERM, which ends the process: what it
 * has started ends before */
static int host_catch_termination(lua_State *L) {
  (void)L;
  signal(SIGTERM, interrupt);
  return 0;
}

/* grace_period(seconds): how long the command may take to end after Ctrl-C */
static int host_grace_period(lua_State *L) {
  stop.grace_period = (int)(luaL_checknumber(L, 1) * 1000);
  return 0;
}

/* end_by_interrupt(): ends the process as an uncaught Ctrl-C would */
static int host_end_by_interrupt(lua_State *L) {
  (void)L;
  end_by_signal();
  return 0;
}

/* work_done(): the output is in place: the command is not stopped any more */
static int host_work_done(lua_State *L) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  (void)L;
  for (size_t i = 0; i < PLN_COUNT(signals); i++)
    signal(signals[i], SIG_IGN);
  set_timer(0, 0, 0);
  stop.status = 0;
  return 0;
}

const luaL_Reg pln_cli_stop_functions[] = {
    {"watch", host_watch},
    {"time_limit", host_time_limit},
    {"guard_begin", host_guard_begin},
    {"guard_end", host_guard_end},
    {"catch_interrupt", host_catch_interrupt},
    {"catch_termination", host_catch_termination},
    {"grace_period", host_grace_period},
    {"end_by_interrupt", host_end_by_interrupt},
    {"work_done", host_work_done},
    {NULL, NULL}};
