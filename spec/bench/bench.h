/* bench.h: the clock of benchmarks, and calls that must succeed. */

#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perilune.h"

/* Seconds. */
static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void must(pln_engine *e, pln_status status) {
  if (status == PLN_OK)
    return;
  char text[1000] = "";
  for (size_t i = 0; i < pln_diag_count(e); i++)
    pln_diag_format(pln_diag_at(e, i), text, sizeof text);
  fprintf(stderr, "bench: %s: %s\n", pln_status_text(status), text);
  exit(1);
}

#endif
