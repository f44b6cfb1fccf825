/* measure.c: runs a command and prints how long it took and how much memory
 * it had resident: the median of COUNT runs.
 *
 *     measure COUNT COMMAND [ARGUMENT]...   ->   "0.012345 8388608"
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

/* Seconds of one run; its peak in *rss when that is more. */
static double run(char **argv, long *rss) {
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
  return now() - start;
}

int main(int argc, char **argv) {
  int count = argc > 2 ? atoi(argv[1]) : 0;
  if (count < 1 || count > 1000) {
    fputs("usage: measure COUNT COMMAND [ARGUMENT]...\n", stderr);
    return 2;
  }
  double seconds[1000];
  long rss = 0;
  for (int i = 0; i < count; i++)
    seconds[i] = run(argv + 2, &rss);
  qsort(seconds, (size_t)count, sizeof *seconds, compare);
  printf("%.6f %ld\n", seconds[count / 2], rss * 1024);
  return 0;
}
