/* stop.c: how the command is stopped from outside: by Ctrl-C, by the time limit
 * (limit.seconds), by a reader that has closed its end of a pipe.
 *
 * A stop is heeded by polls of the engine and by Lua's hook. Neither runs
 * inside of Lua's own C functions (string.rep, table.move, patterns) and in
 * finalisers. So a timer looks whether the stop is still pending after a while,
 * and then ends the process. What always holds: handlers of signals do what
 * POSIX allows there and nothing else; a process that ends here has put no
 * output file into its place, or has told that its work is done. */

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

/* The variables of the command: handlers of signals are given nothing else. */
static struct {
  pln_engine *volatile engine;
  lua_State *volatile L; /* the main thread */
  timer_t timer, often;
  bool has_timer, has_often;
  double seconds;                   /* the time limit of the command; 0: none */
  volatile sig_atomic_t passed;     /* milliseconds that a stop was pending */
  volatile sig_atomic_t patience;   /* how long it may be, after Ctrl-C */
  volatile sig_atomic_t finalizing; /* that a finaliser runs */
  volatile sig_atomic_t guarded; /* the timer stands for the end of a script */
  volatile sig_atomic_t status;  /* which the process ends with */
} stop = {.status = 1, .patience = INTERRUPT_MS};

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

/* How long a script may go on after the time limit: as long again, and a bit.
 */
static double grace_ms(void) {
  double seconds = stop.engine ? stop.engine->seconds : 0;
  return GRACE_MS + (seconds > stop.seconds ? seconds : stop.seconds) * 1000;
}

/* While a stop is pending, every few milliseconds. */
static void tick(void) {
  int why = stop.engine ? pln_stop_reason(stop.engine) : PLN_GO_ON;
  if (why == PLN_GO_ON) {
    set_timer(0, 0, 0);
    return;
  }
  stop.passed += TICK_MS;
  if (why == PLN_STOP_ASKED && stop.passed >= stop.patience) {
    say("perilune: interrupted; nothing is written\n");
    end_by_signal();
  }
  if (why == PLN_STOP_TIME && stop.passed >= grace_ms()) {
    say("perilune: it took longer than limit.seconds allows, and what runs "
        "does not stop; nothing is written\n");
    _exit(1);
  }
}

/* No hook runs in a finaliser. While it runs, Lua's collector answers nothing:
 * that is read only. */
static void look_for_finalizer(void) {
  bool runs = stop.L && lua_gc(stop.L, LUA_GCISRUNNING) < 0;
  stop.finalizing = runs ? stop.finalizing + OFTEN_MS : 0;
  if (stop.finalizing < stop.seconds * 1000 + grace_ms())
    return;
  say("perilune: a finaliser runs longer than limit.seconds allows; the "
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
    say("perilune: a script runs longer than limit.seconds allows; the command "
        "ends\n");
    _exit(stop.status);
  } else {
    tick();
  }
  errno = before;
}

/* A stop was asked for; called by handlers of signals. */
static void asked(void *ud) {
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

/* ------------------------------------------------------------- closed pipes */

static void pipe_closed(int signal_) {
  (void)signal_;
  say("perilune: cannot write: the reader of a pipe has closed it\n");
  _exit(1);
}

/* Other programs that the command starts have the system's own handling. */
void pln_cli_catch_pipes(void) {
  struct sigaction before;
  if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
    signal(SIGPIPE, pipe_closed);
}

/* ---------------------------------------------------------------- time limit
 */

/* From here to the other a script runs that nothing else stops. */
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

/* time_limit(seconds): of what runs between guards, and of finalisers, too; 0:
 * any time */
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

/* guard_begin(), guard_end(): what runs between them has to end within the time
 * limit, or the process does. An error leaves it on, for its report. */
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

/* The second one ends the process at once. */
static void interrupt(int signal_) {
  signal(signal_, SIG_DFL);
  if (stop.engine)
    pln_engine_interrupt(stop.engine);
}

/* watch(): from here on, stops of the state's engine are watched */
static int host_watch(lua_State *L) {
  stop.engine = pln_lua_engine(L);
  if (!stop.has_timer)
    stop.has_timer = make_timer(&stop.timer);
  pln_lua_on_stop(L, asked, NULL);
  return 0;
}

/* catch_interrupt(): from here on, Ctrl-C stops the pass that is running */
static int host_catch_interrupt(lua_State *L) {
  (void)L;
  signal(SIGINT, interrupt);
  return 0;
}

/* patience(seconds): how long the command may take to end after Ctrl-C */
static int host_patience(lua_State *L) {
  stop.patience = (int)(luaL_checknumber(L, 1) * 1000);
  return 0;
}

/* end_by_interrupt(): as Ctrl-C ends a process that does not catch it */
static int host_end_by_interrupt(lua_State *L) {
  (void)L;
  end_by_signal();
  return 0;
}

/* work_done(): the output is in its place: nobody stops the command now */
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
    {"patience", host_patience},
    {"end_by_interrupt", host_end_by_interrupt},
    {"work_done", host_work_done},
    {NULL, NULL}};
