/* text.c FILE...: how fast a module is printed, in megabytes of text a second.
 * A FILE is an ONNX model; weights over 1 MiB in sum are left out of its text.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perilune.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(pln_engine *e, pln_status status) {
  if (status == PLN_OK)
    return;
  char text[1000] = "";
  for (size_t i = 0; i < pln_diag_count(e); i++)
    pln_diag_format(pln_diag_get(e, i), text, sizeof text);
  fprintf(stderr, "bench: %s: %s\n", pln_status_text(status), text);
  exit(1);
}

static pln_status count(void *ud, const char *data, size_t size) {
  (void)data;
  *(size_t *)ud += size;
  return PLN_OK;
}

/* The best of some rounds of about a tenth of a second. */
static double seconds_of(pln_engine *e, const pln_module *module,
                         size_t *bytes) {
  double best = 1e9;
  for (int round = 0; round < 6; round++) {
    uint32_t times = 0;
    double start = now(), took;
    do {
      *bytes = 0;
      must(e, pln_print_module(module, 0, count, bytes));
      times++;
      took = now() - start;
    } while (took < 0.1);
    if (took / times < best)
      best = took / times;
  }
  return best;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    pln_engine *e = pln_engine_new(NULL, NULL);
    pln_module *module;
    size_t bytes;
    if (!e)
      return 1;
    must(e, pln_onnx_load(e, argv[i], &module));
    double seconds = seconds_of(e, module, &bytes);
    printf("%-40s %9zu bytes, printed at %6.1f MB/s  (wanted: 100)\n", argv[i],
           bytes, (double)bytes / seconds * 1e-6);
    pln_module_release(module);
    pln_engine_free(e);
  }
  return 0;
}
