/* child.c: child processes whose output is read.
 *
 * Called by the binding for runners of tuning. The child may crash, hang, write
 * without end or start processes of its own: all of them are killed when it
 * ends, when its time is over, when it wrote too much, and when the engine is
 * stopped. Between the host and the child is a subreaper (subreaper.h), the
 * leader of their process group. A child dies with its parent where the system
 * can do that. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/process/process.h"
#include "base/process/subreaper.h"

/* How long a subreaper may take to end what a child has started. */
static const double END_SECONDS = 2;
/* A copy of the host may have so many bytes more than the subreaper, a copy
 * too, says. */
enum { SLACK = 1 << 18 };
/* Between two looks at the memory of a program. */
static const double SAMPLE_SECONDS = 0.005;

/* A child that runs. */
typedef struct running {
  pln_engine *engine;
  const pln_child_limits *limits;
  pln_child_result *out;
  pln_subreaper_report *report;
  pid_t pid;   /* of the subreaper */
  int fd;      /* the child's output; -1: closed */
  int started; /* of a program: closed at both ends once it runs; else -1 */
  double begin;
  double killed;  /* when it was; 0: not */
  double sampled; /* when memory was looked at */
  uint64_t peak;  /* that was seen then */
} running;

/* ------------------------------------------------------------ in the child */

static void set_limit(int what, uint64_t most) {
  struct rlimit both = {(rlim_t)most, (rlim_t)most};
  (void)setrlimit(what, &both);
}

/* The bytes of address space that this process has; 0: unknown. */
static uint64_t address_space(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file)
    return 0;
  if (fscanf(file, "%llu", &pages) != 1)
    pages = 0;
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The last of the processors that this process may use: the first ones have
 * more of the system's own work. */
static void pin(void) {
#ifdef __linux__
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed))
    return;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      (void)sched_setaffinity(0, sizeof one, &one);
      return;
    }
#endif
}

/* A crash ends the child by its signal: what the host does about its own
 * crashes and stops is not for the child. */
static void reset_signals(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                SIGABRT, SIGINT, SIGTERM, SIGPIPE};
  sigset_t none;
  for (size_t i = 0; i < PLN_COUNT(signals); i++)
    (void)signal(signals[i], SIG_DFL);
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void pln_child_enter(int parent, int death_signal) {
  (void)setpgid(0, 0);
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, death_signal);
#else
  (void)death_signal;
#endif
  if (getppid() != parent)
    _exit(1);
  reset_signals();
  set_limit(RLIMIT_CORE, 0);
}

static void discard(int fd) {
  int null = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  if (null >= 0 && null != fd) {
    (void)dup2(null, fd);
    (void)close(null);
  }
}

/* --------------------------------------------------------------- the parent */

/* Ends the child; the subreaper ends what it has started. */
static void kill_child(running *r) {
  r->killed = pln_seconds_now();
  r->report->is_asked = true;
  (void)kill(r->pid, SIGTERM);
  (void)kill(r->pid, SIGCONT); /* a child can stop its subreaper */
}

/* Ends everything below the subreaper, which did not do that in its time. */
static void kill_all(const running *r) {
  pln_kill_descendants(r->pid);
  (void)kill(-r->pid, SIGKILL);
  (void)kill(r->pid, SIGKILL);
}

static void close_output(running *r) {
  if (r->fd >= 0)
    (void)close(r->fd);
  r->fd = -1;
}

/* Reads what is there. After too much the pipe stays open: the child waits for
 * its end there, and is not ended by SIGPIPE before. */
static pln_status read_output(running *r) {
  char bytes[16384];
  while (r->fd >= 0 && !r->out->too_long) {
    ssize_t n = read(r->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return PLN_OK; /* nothing now */
    if (n == 0) {
      close_output(r);
    } else if (r->out->output.size + (size_t)n > r->limits->output) {
      r->out->too_long = true;
      kill_child(r);
    } else {
      PLN_TRY(pln_buffer_add(&r->out->output, bytes, (size_t)n));
    }
  }
  return PLN_OK;
}

/* Waits some milliseconds for output or for the begin of a program, or for the
 * child when no more is read. */
static void pause_for_output(const running *r) {
  struct pollfd fds[] = {{.fd = r->fd, .events = POLLIN},
                         {.fd = r->started, .events = POLLIN}};
  struct timespec pause = {0, 1000000};
  if (r->fd >= 0 && !r->out->too_long)
    (void)poll(fds, 2, 5);
  else
    (void)nanosleep(&pause, NULL);
}

/* True when the subreaper has ended; `flags` as for waitpid. */
static bool has_ended(const running *r, int flags, int *status) {
  pid_t done;
  do
    done = waitpid(r->pid, status, flags);
  while (done < 0 && errno == EINTR);
  if (done < 0)
    *status = 0; /* the host does not keep the status of children */
  return done != 0;
}

/* Looks at the memory of a program, once that is what runs. */
static void sample_memory(running *r) {
  char byte;
  double now = pln_seconds_now();
  if (r->started >= 0 && read(r->started, &byte, 1) == 0) {
    (void)close(r->started);
    r->started = -1;
  }
  if (r->started >= 0 || now - r->sampled < SAMPLE_SECONDS)
    return;
  uint64_t peak = pln_descendants_resident(r->pid);
  r->peak = peak > r->peak ? peak : r->peak;
  r->sampled = now;
}

static void check_time(running *r) {
  double now = pln_seconds_now();
  if (r->killed == 0 && r->limits->seconds > 0 &&
      now - r->begin > r->limits->seconds) {
    r->out->end.timed_out = true;
    kill_child(r);
  } else if (r->killed > 0 && now - r->killed > END_SECONDS) {
    kill_all(r);
  }
}

static pln_status follow(running *r, bool is_program, int *status) {
  while (!has_ended(r, WNOHANG, status)) {
    PLN_TRY(read_output(r));
    if (pln_is_stopped(r->engine))
      return pln_stopped(r->engine);
    check_time(r);
    if (is_program && r->killed == 0)
      sample_memory(r);
    pause_for_output(r);
  }
  return read_output(r);
}

/* Ends the child and its subreaper. */
static void stop(running *r) {
  struct timespec pause = {0, 1000000};
  int status;
  kill_child(r);
  while (!has_ended(r, WNOHANG, &status)) {
    if (pln_seconds_now() - r->killed > END_SECONDS) {
      kill_all(r);
      (void)has_ended(r, 0, &status);
      return;
    }
    (void)nanosleep(&pause, NULL);
  }
}

/* What became of the child. A subreaper that was killed says nothing: its own
 * end counts. */
static void note_end(const running *r, bool is_program, int status) {
  const pln_subreaper_report *report = r->report;
  if (report->has_ended)
    status = report->status;
  r->out->seconds =
      report->has_ended ? report->seconds : pln_seconds_now() - r->begin;
  r->out->resident = report->resident;
  if (is_program && report->resident <= report->inherited + SLACK)
    r->out->resident = r->peak;
  r->out->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  r->out->end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static pln_status watch(running *r, bool is_program) {
  int status = 0;
  pln_stoppable_begin(r->engine);
  pln_status result = follow(r, is_program, &status);
  if (result == PLN_OK)
    result = pln_is_stopped(r->engine) ? pln_stopped(r->engine) : PLN_OK;
  pln_stoppable_end(r->engine);
  if (result != PLN_OK)
    stop(r);
  (void)kill(-r->pid, SIGKILL); /* what a killed subreaper left */
  close_output(r);
  if (r->started >= 0)
    (void)close(r->started);
  note_end(r, is_program, status);
  return result;
}

static pln_status no_child(pln_engine *engine) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL,
                        "no process can be started: %s", strerror(errno));
}

/* In the subreaper, then in the child. */
static void enter(pid_t parent, const int output[2], const int started[2],
                  const pln_child_limits *limits,
                  pln_subreaper_report *report) {
  (void)close(output[0]);
  (void)close(started[0]);
  (void)fcntl(started[1], F_SETFD, FD_CLOEXEC);
  pln_subreaper_run(parent, (int[]){output[1], started[1]}, 2, report);
  if (limits->pinned)
    pin();
}

static void leave(running *r, const int output[2], const int started[2]) {
  (void)close(output[1]);
  (void)close(started[1]);
  (void)setpgid(r->pid, r->pid);
  r->fd = output[0];
  r->started = started[0];
  for (int i = 0; i < 2; i++) {
    int fd = i ? r->started : r->fd;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

static void close_both(const int ends[2]) {
  (void)close(ends[0]);
  (void)close(ends[1]);
}

/* Forks. In the child r->pid is 0, and *fd is where the output goes. */
static pln_status start(running *r, int *fd) {
  int output[2], started[2];
  pid_t parent = getpid();
  if (pipe(output))
    return no_child(r->engine);
  if (pipe(started)) {
    pln_status status = no_child(r->engine);
    close_both(output);
    return status;
  }
  (void)fflush(NULL);
  r->pid = fork();
  if (r->pid < 0) {
    pln_status status = no_child(r->engine);
    close_both(output);
    close_both(started);
    return status;
  }
  if (r->pid == 0)
    enter(parent, output, started, r->limits, r->report);
  else
    leave(r, output, started);
  *fd = output[1];
  return PLN_OK;
}

/* What a child does: a function, or a program when there is none. */
typedef struct child_work {
  void (*body)(void *ud, int fd);
  void *ud;
  const char *const *argv;
} child_work;

static void call_body(const child_work *work, const pln_child_limits *limits,
                      int fd) {
  uint64_t present = address_space();
  discard(0);
  discard(1);
  discard(2);
  if (limits->memory && present)
    set_limit(RLIMIT_AS, present + limits->memory);
  work->body(work->ud, fd);
  _exit(0);
}

static void become_program(const child_work *work,
                           const pln_child_limits *limits, int fd) {
  discard(0);
  discard(2);
  /* What is loaded into the host's programs is not for another one; a
   * sanitizer would need more than the limit. */
  (void)unsetenv("LD_PRELOAD");
  if (limits->memory)
    set_limit(RLIMIT_AS, limits->memory);
  if (dup2(fd, 1) >= 0)
    execvp(work->argv[0], (char *const *)(uintptr_t)work->argv);
  _exit(127);
}

static pln_status supervise(running *r, const child_work *work) {
  int fd = -1;
  PLN_TRY(start(r, &fd));
  if (r->pid == 0)
    (work->body ? call_body : become_program)(work, r->limits, fd);
  pln_buffer_init(&r->out->output, r->engine);
  pln_status status = watch(r, !work->body);
  if (status != PLN_OK)
    pln_buffer_free(&r->out->output);
  return status;
}

static pln_status run(pln_engine *engine, const pln_child_limits *limits,
                      const child_work *work, pln_child_result *out) {
  running r = {.engine = engine,
               .limits = limits,
               .out = out,
               .report = pln_subreaper_report_new(),
               .begin = pln_seconds_now()};
  *out = (pln_child_result){0};
  if (!r.report)
    return no_child(engine);
  pln_status status = supervise(&r, work);
  pln_subreaper_report_free(r.report);
  return status;
}

pln_status pln_child_call(pln_engine *engine, const pln_child_limits *limits,
                          void (*body)(void *ud, int fd), void *ud,
                          pln_child_result *out) {
  return run(engine, limits, &(child_work){.body = body, .ud = ud}, out);
}

pln_status pln_child_run(pln_engine *engine, const pln_child_limits *limits,
                         const char *const *argv, pln_child_result *out) {
  return run(engine, limits, &(child_work){.argv = argv}, out);
}
