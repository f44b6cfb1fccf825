/* reaper.c: a process between the host and a program that it runs.
 *
 * Called by child.c for commands. A program may start processes that leave its
 * process group (setsid) and outlive it: these become children of the reaper,
 * which kills them and theirs until none is left. The host cannot do that
 * itself: a library does not adopt the processes of its host. Nothing here
 * allocates, because the host may have threads. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/process/reaper.h"

/* What a program has before it has become one may be that much more than the
 * reaper's. */
enum { SLACK_BYTES = 1 << 20 };

/* Between two looks at the memory of the program: a share of the time that it
 * has taken, at least SAMPLE_SECONDS. */
static const double SAMPLE_SECONDS = 0.005, SAMPLE_SHARE = 0.02;

/* Between two looks at the children that are left. A program that starts
 * processes faster than they can be killed is given up after KILL_SECONDS. */
static const double KILL_PAUSE = 0.001, KILL_SECONDS = 5;

typedef struct reaper {
  pid_t program;
  sigset_t awaited; /* SIGCHLD and SIGTERM */
  uint64_t own;     /* bytes that were resident when the program began */
  uint64_t sampled; /* the peak of the program's as it was seen last */
  pln_reaper_report report;
} reaper;

/* ------------------------------------------------------------------- memory */

/* The text of a file of /proc; its length, 0 if it cannot be read. */
static size_t read_proc(const char *path, char *text, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);
  if (fd >= 0)
    (void)close(fd);
  n = n < 0 ? 0 : n;
  text[n] = 0;
  return (size_t)n;
}

/* The peak resident memory of a process in bytes; 0: unknown. */
static uint64_t peak_resident(pid_t pid) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
  if (read_proc(path, text, sizeof text) == 0)
    return 0;
  const char *line = strstr(text, "VmHWM:");
  return line ? strtoull(line + 6, NULL, 10) * 1024 : 0;
}

/* The system counts what the program had before it became one, which is the
 * host's memory; beyond that its figure is exact, below it the samples are. */
static uint64_t peak_of(const reaper *r, const struct rusage *usage) {
  uint64_t counted = (uint64_t)usage->ru_maxrss * 1024;
  bool is_sampled = r->sampled > 0 && r->sampled < r->own;
  return is_sampled && counted <= r->own + SLACK_BYTES ? r->sampled : counted;
}

/* ------------------------------------------------------------- the program */

static _Noreturn void become(const pln_child_limits *limits,
                             const char *const *argv, int output,
                             pid_t parent) {
  pln_child_enter(parent, SIGKILL);
  pln_child_discard(0);
  pln_child_discard(2);
  /* What is loaded into the host's programs is not for another one; a
   * sanitizer would need more than the limit. */
  (void)unsetenv("LD_PRELOAD");
  if (limits->pinned)
    pln_child_pin();
  if (limits->memory)
    pln_child_limit_memory(limits->memory);
  if (dup2(output, 1) >= 0)
    execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

/* Takes the status of each child that has ended; true once the program has. */
static bool reap_ended(reaper *r) {
  struct rusage usage = {0};
  int status;
  for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;)
    if (pid == r->program) {
      r->report.status = status;
      r->report.resident = peak_of(r, &usage);
      r->program = 0;
    }
  return r->program == 0;
}

static double monotonic(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The signal that came within that time; -1: none. */
static int await_signal(const reaper *r, double seconds) {
  struct timespec time = {(time_t)seconds, 0};
  time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
  return sigtimedwait(&r->awaited, NULL, &time);
}

/* Until the program ends, or the host wants its end. */
static void await_end(reaper *r) {
  double begin = monotonic();
  while (!reap_ended(r)) {
    double share = (monotonic() - begin) * SAMPLE_SHARE;
    int got = await_signal(r, share > SAMPLE_SECONDS ? share : SAMPLE_SECONDS);
    if (got == SIGTERM)
      return;
    uint64_t peak = got < 0 ? peak_resident(r->program) : 0;
    r->sampled = peak ? peak : r->sampled;
  }
}

/* --------------------------------------------------------------- the others */

/* Kills the children of this process, whichever group they are in. */
static void kill_children(void) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
  if (read_proc(path, text, sizeof text) == 0)
    return;
  char *at = text, *end;
  for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
    if (*end == ' ') /* a number at the end of the text may be cut */
      (void)kill((pid_t)pid, SIGKILL);
}

static bool has_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A killed process leaves its children to this one. */
static void kill_all(reaper *r, pid_t group) {
  double begin = monotonic();
  do {
    (void)kill(-group, SIGKILL);
    kill_children();
    (void)await_signal(r, KILL_PAUSE);
    (void)reap_ended(r);
  } while (has_children() && monotonic() - begin < KILL_SECONDS);
}

static void write_report(const reaper *r, int fd) {
  const char *bytes = (const char *)&r->report;
  for (size_t done = 0; done < sizeof r->report;) {
    ssize_t n = write(fd, bytes + done, sizeof r->report - done);
    if (n < 0 && errno != EINTR)
      return;
    done += n > 0 ? (size_t)n : 0;
  }
}

_Noreturn void pln_reaper_run(const pln_child_limits *limits,
                              const char *const *argv, int output, int report) {
  reaper r = {.own = peak_resident(getpid())};
  sigemptyset(&r.awaited);
  sigaddset(&r.awaited, SIGCHLD);
  sigaddset(&r.awaited, SIGTERM);
  (void)sigprocmask(SIG_BLOCK, &r.awaited, NULL);
  (void)signal(SIGCHLD, SIG_DFL);
#ifdef __linux__
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
  pid_t self = getpid();
  r.program = fork();
  if (r.program == 0)
    become(limits, argv, output, self);
  (void)close(output);
  if (r.program < 0)
    _exit(127);
  pid_t group = r.program;
  (void)setpgid(group, group);
  await_end(&r);
  kill_all(&r, group);
  if (r.program == 0)
    write_report(&r, report);
  _exit(0);
}
