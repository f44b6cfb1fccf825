/* subreaper.c: a process between the host and a child, which ends all that the
 * child has started.
 *
 * Called by child.c. A process group does not have what called setsid, and the
 * child's death hides its orphans; PR_SET_CHILD_SUBREAPER makes them children
 * of the subreaper. It is a fork of the host that never returns there. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/process/subreaper.h"

/* MOST_ROUNDS: descendants may start others while they are killed. */
enum { MOST_LISTED = 4096, MOST_ROUNDS = 1000 };

/* Numbers of processes. */
typedef struct process_list {
  int ids[MOST_LISTED];
  size_t n;
} process_list;

/* ------------------------------------------------------------- descendants */

/* Appends the children of a process that its first thread has started, and
 * those that a subreaper has taken over. */
static void add_children(process_list *list, int process) {
  char path[64];
  int child;
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", process,
                 process);
  FILE *file = fopen(path, "re");
  if (!file)
    return;
  while (list->n < MOST_LISTED && fscanf(file, "%d", &child) == 1)
    list->ids[list->n++] = child;
  (void)fclose(file);
}

/* Breadth first: an index of the list is the queue. */
static void list_descendants(process_list *list, int process) {
  list->n = 0;
  add_children(list, process);
  for (size_t i = 0; i < list->n; i++)
    add_children(list, list->ids[i]);
}

/* Collects children of this process that have ended, other than `spared`. */
static void reap_orphans(int spared) {
  siginfo_t info = {0};
  for (;;) {
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0 || info.si_pid == spared)
      return;
    (void)waitpid(info.si_pid, NULL, 0);
  }
}

void pln_kill_descendants(int process) {
  struct timespec pause = {0, 1000000};
  process_list *list = malloc(sizeof *list);
  for (int round = 0; list && round < MOST_ROUNDS; round++) {
    list_descendants(list, process);
    if (list->n == 0)
      break;
    for (size_t i = 0; i < list->n; i++) /* none starts others meanwhile */
      (void)kill(list->ids[i], SIGSTOP);
    for (size_t i = 0; i < list->n; i++)
      (void)kill(list->ids[i], SIGKILL);
    (void)nanosleep(&pause, NULL);
    if (process == getpid())
      reap_orphans(0);
  }
  free(list);
}

/* The peak of one process in bytes. */
static uint64_t peak_of(int process) {
  char path[64], line[256];
  unsigned long long kilobytes = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/status", process);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %llu kB", &kilobytes) == 1)
      break;
  if (file)
    (void)fclose(file);
  return (uint64_t)kilobytes * 1024;
}

uint64_t pln_descendants_resident(int process) {
  uint64_t most = 0;
  process_list *list = malloc(sizeof *list);
  if (!list)
    return 0;
  list_descendants(list, process);
  for (size_t i = 0; i < list->n; i++) {
    uint64_t peak = peak_of(list->ids[i]);
    most = peak > most ? peak : most;
  }
  free(list);
  return most;
}

/* -------------------------------------------------------------- the report */

pln_subreaper_report *pln_subreaper_report_new(void) {
  pln_subreaper_report *report =
      mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return report == MAP_FAILED ? NULL : report;
}

void pln_subreaper_report_free(pln_subreaper_report *report) {
  if (report)
    (void)munmap(report, sizeof *report);
}

/* ----------------------------------------------------------- the subreaper */

/* Ends pselect. */
static void wake(int signal_) {
  (void)signal_;
}

/* The signals that it waits for, which come in pselect only. */
static void signal_mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  (void)sigprocmask(how, &set, NULL);
}

static void handle_signals(void (*handler)(int)) {
  (void)signal(SIGCHLD, handler);
  (void)signal(SIGTERM, handler);
}

/* True when the child has ended; others that have ended are reaped. */
static bool note_end(pln_subreaper_report *report, double begin) {
  struct rusage usage = {0}, own = {0};
  int status;
  reap_orphans(report->child);
  if (wait4(report->child, &status, WNOHANG, &usage) != report->child)
    return false;
  (void)getrusage(RUSAGE_SELF, &own);
  report->seconds = pln_seconds_now() - begin;
  report->status = status;
  report->resident = (uint64_t)usage.ru_maxrss * 1024;
  report->inherited = (uint64_t)own.ru_maxrss * 1024;
  report->has_ended = true;
  return true;
}

/* Waits for the end of the child, which it ends when it is asked to end. */
static void wait_for_end(pln_subreaper_report *report, double begin,
                         int parent) {
  sigset_t none;
  struct timespec second = {1, 0};
  sigemptyset(&none);
  while (!note_end(report, begin)) {
    if (report->is_asked || getppid() != parent)
      (void)kill(report->child, SIGKILL);
    (void)pselect(0, NULL, NULL, NULL, &second, &none);
  }
}

/* In the child: it ends with the subreaper. */
static void enter_child(int subreaper) {
#ifdef __linux__
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != subreaper)
    _exit(1);
  handle_signals(SIG_DFL);
  signal_mask(SIG_UNBLOCK);
}

void pln_subreaper_run(int parent, const int *fds, size_t n,
                       pln_subreaper_report *report) {
  pid_t own = getpid();
  pln_child_enter(parent, SIGTERM);
  signal_mask(SIG_BLOCK);
  handle_signals(wake); /* an ignored SIGCHLD loses the status */
#ifdef __linux__
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
#endif
  double begin = pln_seconds_now();
  pid_t child = fork();
  if (child == 0) {
    enter_child(own);
    return;
  }
  for (size_t i = 0; i < n; i++)
    (void)close(fds[i]);
  if (child > 0) {
    report->child = child;
    wait_for_end(report, begin, parent);
    pln_kill_descendants(own);
  }
  _exit(0);
}
