/* process.c: child processes with limits.
 *
 * Called by codegen/ for compilers and for calls of generated code.
 * A child is the leader of a process group of its own, which is killed as a
 * whole when its time is over or the engine is asked to stop, and ends when
 * this process does. The leader of a program's group waits for the program, so
 * that what the program has started ends with this process too. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/process.h"

static void limit(int what, uint64_t most) {
  struct rlimit both = {(rlim_t)most, (rlim_t)most};
  (void)setrlimit(what, &both);
}

/* In the process of the program. Its exit status is 127 when there is none. */
static void become(const char *const *argv, int log, double cpu_seconds,
                   uint64_t memory) {
  int null = open("/dev/null", O_RDONLY);
  limit(RLIMIT_CPU, (uint64_t)cpu_seconds + 1);
  /* What is loaded into the host's programs is not for a compiler; a sanitizer
   * would need more than the limit. */
  (void)unsetenv("LD_PRELOAD");
  if (memory)
    limit(RLIMIT_AS, memory);
  (void)signal(SIGTERM, SIG_DFL);
  if (null >= 0)
    (void)dup2(null, 0);
  if (dup2(log, 1) >= 0 && dup2(log, 2) >= 0)
    execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

static void kill_own_group(int signal_) {
  (void)signal_;
  (void)kill(0, SIGKILL);
}

/* Ends this process as the program ended. */
static void end_like(int status) {
  if (!WIFSIGNALED(status))
    _exit(WEXITSTATUS(status));
  (void)signal(WTERMSIG(status), SIG_DFL);
  (void)raise(WTERMSIG(status));
  _exit(127);
}

/* In the leader of the group, which gets SIGTERM when its parent ends. */
static void lead(const char *const *argv, pid_t parent, int log,
                 double cpu_seconds, uint64_t memory) {
  int status = 0;
  pln_child_enter(parent, SIGTERM);
  (void)signal(SIGTERM, kill_own_group);
  if (getppid() != parent) /* it ended before the handler was set */
    _exit(1);
  pid_t program = fork();
  if (program == 0)
    become(argv, log, cpu_seconds, memory);
  while (program > 0 && waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  if (program < 0)
    _exit(127);
  end_like(status);
}

pln_status pln_process_wait(pln_engine *engine, int child, double seconds,
                            pln_child_end *out) {
  double begin = pln_seconds_now();
  struct timespec pause = {0, 50000};
  int status = 0;
  *out = (pln_child_end){0};
  for (;;) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR))
      break;
    bool stopped = pln_is_stopped(engine);
    out->timed_out = pln_seconds_now() - begin > seconds;
    if (stopped || out->timed_out) {
      (void)kill(-child, SIGKILL);
      (void)kill(child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      if (stopped)
        return pln_stopped(engine);
      break;
    }
    (void)nanosleep(&pause, NULL);
    if (pause.tv_nsec < 5000000)
      pause.tv_nsec += pause.tv_nsec / 4;
  }
  out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  out->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (out->signal == SIGXCPU)
    out->timed_out = true;
  return PLN_OK;
}

pln_status pln_process_run(pln_engine *engine, const char *const *argv, int log,
                           double seconds, double cpu_seconds, uint64_t memory,
                           pln_child_end *out) {
  pid_t parent = getpid(), child = fork();
  if (child < 0)
    return pln_diag_error(engine, PLN_ERR_IO, NULL,
                          "no process can be started: %s", strerror(errno));
  if (child == 0)
    lead(argv, parent, log, cpu_seconds, memory);
  (void)setpgid(child, child);
  return pln_process_wait(engine, child, seconds, out);
}
