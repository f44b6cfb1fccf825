/* child.c: child processes whose output is read.
 *
 * Called by the binding for runners of tuning. The child may crash, hang, write
 * without end or start processes of its own: its process group is killed when
 * it ends, when its time is over, when it wrote too much, and when the engine
 * is stopped. A child dies with its parent where the system can do that. */

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

/* A child that runs. */
typedef struct running {
  pln_engine *engine;
  const pln_child_limits *limits;
  pln_child_result *out;
  pid_t pid;
  int fd; /* its output; -1: closed */
  double begin;
  bool killed;
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

static void kill_group(running *r) {
  (void)kill(-r->pid, SIGKILL);
  (void)kill(r->pid, SIGKILL);
  r->killed = true;
}

static void close_output(running *r) {
  if (r->fd >= 0)
    (void)close(r->fd);
  r->fd = -1;
}

/* Reads what is there. */
static pln_status read_output(running *r) {
  char bytes[16384];
  while (r->fd >= 0) {
    ssize_t n = read(r->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return PLN_OK; /* nothing now */
    if (n == 0) {
      close_output(r);
    } else if (r->out->output.size + (size_t)n > r->limits->output) {
      r->out->too_long = true;
      kill_group(r);
      close_output(r);
    } else {
      PLN_TRY(pln_buffer_add(&r->out->output, bytes, (size_t)n));
    }
  }
  return PLN_OK;
}

/* Waits some milliseconds for output, or for the child when it has none. */
static void pause_for_output(const running *r) {
  struct pollfd one = {.fd = r->fd, .events = POLLIN};
  struct timespec pause = {0, 1000000};
  if (r->fd >= 0)
    (void)poll(&one, 1, 5);
  else
    (void)nanosleep(&pause, NULL);
}

/* True when the child has ended; its status is in *status. */
static bool has_ended(running *r, int *status) {
  struct rusage usage = {0};
  pid_t done = wait4(r->pid, status, WNOHANG, &usage);
  if (done == r->pid)
    r->out->resident = (uint64_t)usage.ru_maxrss * 1024;
  else if (done < 0 && errno != EINTR)
    *status = 0; /* the host does not keep the status of children */
  return done == r->pid || (done < 0 && errno != EINTR);
}

static pln_status follow(running *r, int *status) {
  while (!has_ended(r, status)) {
    PLN_TRY(read_output(r));
    if (pln_is_stopped(r->engine))
      return pln_stopped(r->engine);
    if (!r->killed && r->limits->seconds > 0 &&
        pln_seconds_now() - r->begin > r->limits->seconds) {
      r->out->end.timed_out = true;
      kill_group(r);
    }
    pause_for_output(r);
  }
  return read_output(r);
}

static void reap(const running *r) {
  while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) {
  }
}

static pln_status watch(running *r) {
  int status = 0;
  pln_stoppable_begin(r->engine);
  pln_status result = follow(r, &status);
  if (result == PLN_OK)
    result = pln_is_stopped(r->engine) ? pln_stopped(r->engine) : PLN_OK;
  pln_stoppable_end(r->engine);
  (void)kill(-r->pid, SIGKILL); /* what the child started */
  if (result != PLN_OK) {
    kill_group(r);
    reap(r);
  }
  close_output(r);
  r->out->seconds = pln_seconds_now() - r->begin;
  r->out->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  r->out->end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return result;
}

static pln_status no_child(pln_engine *engine) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL,
                        "no process can be started: %s", strerror(errno));
}

/* Forks. In the child *pid is 0, and *fd is where the output goes. */
static pln_status start(pln_engine *engine, const pln_child_limits *limits,
                        pid_t *pid, int *fd) {
  int ends[2];
  pid_t parent = getpid();
  if (pipe(ends))
    return no_child(engine);
  (void)fflush(NULL);
  *pid = fork();
  if (*pid < 0) {
    pln_status status = no_child(engine);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return status;
  }
  (void)close(ends[*pid == 0 ? 0 : 1]);
  *fd = ends[*pid == 0 ? 1 : 0];
  if (*pid == 0) {
    pln_child_enter(parent, SIGKILL);
    if (limits->pinned)
      pin();
  } else {
    (void)setpgid(*pid, *pid);
    (void)fcntl(*fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(*fd, F_SETFD, FD_CLOEXEC);
  }
  return PLN_OK;
}

static pln_status supervise(pln_engine *engine, const pln_child_limits *limits,
                            pid_t pid, int fd, pln_child_result *out) {
  running r = {.engine = engine,
               .limits = limits,
               .out = out,
               .pid = pid,
               .fd = fd,
               .begin = pln_seconds_now()};
  *out = (pln_child_result){0};
  pln_buffer_init(&out->output, engine);
  pln_status status = watch(&r);
  if (status != PLN_OK)
    pln_buffer_free(&out->output);
  return status;
}

pln_status pln_child_call(pln_engine *engine, const pln_child_limits *limits,
                          void (*body)(void *ud, int fd), void *ud,
                          pln_child_result *out) {
  pid_t pid;
  int fd;
  PLN_TRY(start(engine, limits, &pid, &fd));
  if (pid == 0) {
    uint64_t present = address_space();
    discard(0);
    discard(1);
    discard(2);
    if (limits->memory && present)
      set_limit(RLIMIT_AS, present + limits->memory);
    body(ud, fd);
    _exit(0);
  }
  return supervise(engine, limits, pid, fd, out);
}

pln_status pln_child_run(pln_engine *engine, const pln_child_limits *limits,
                         const char *const *argv, pln_child_result *out) {
  pid_t pid;
  int fd;
  PLN_TRY(start(engine, limits, &pid, &fd));
  if (pid == 0) {
    discard(0);
    discard(2);
    /* What is loaded into the host's programs is not for another one; a
     * sanitizer would need more than the limit. */
    (void)unsetenv("LD_PRELOAD");
    if (limits->memory)
      set_limit(RLIMIT_AS, limits->memory);
    if (dup2(fd, 1) >= 0)
      execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
  }
  return supervise(engine, limits, pid, fd, out);
}
