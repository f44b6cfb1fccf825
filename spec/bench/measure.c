/* measure.c: runs a command and prints how long it took and how much memory
 * it had resident: the median of COUNT runs; last the least time that the
 * processor worked for it.
 *
 *     measure COUNT COMMAND [ARGUMENT]...   ->   "0.012345 8388608 0.011907"
 *
 * The parent of a process lends it its own peak at the fork, so the parent
 * must be small: that is why this is a program of its own. What the command
 * writes goes to standard error. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double seconds(const struct timeval *t) {
  return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* Seconds of one run; its peak in *rss when that is more, what the processor
 * worked in *worked when that is less. */
static double run(char **argv, long *rss, double *worked) {
  double start = now();
  pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(argv[0], argv);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0) {
    fprintf(stderr, "measure: %s failed\n", argv[0]);
    exit(1);
  }
  if (usage.ru_maxrss > *rss)
    *rss = usage.ru_maxrss;
  double work = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
  if (*worked < 0 || work < *worked)
    *worked = work;
  return now() - start;
}

int main(int argc, char **argv) {
  int count = argc > 2 ? atoi(argv[1]) : 0;
  if (count < 1 || count > 1000) {
    fputs("usage: measure COUNT COMMAND [ARGUMENT]...\n", stderr);
    return 2;
  }
  double times[1000], worked = -1;
  long rss = 0;
  for (int i = 0; i < count; i++)
    times[i] = run(argv + 2, &rss, &worked);
  qsort(times, (size_t)count, sizeof *times, compare);
  printf("%.6f %ld %.6f\n", times[count / 2], rss * 1024, worked);
  return 0;
}
