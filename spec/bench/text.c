/* text.c FILE...: how fast a module is printed and read again, in megabytes of
 * text a second. A FILE is Relay text (NAME.relay), TVMScript
 * (NAME.tvmscript) or an ONNX model, whose text is read when all of it was
 * printed. Relay text is read once more a hundred times as long, the same
 * functions under other names: what is linear stays as fast. TVM 0.14 prints 7
 * MB/s of Relay text and reads 1 MB/s. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static pln_status count(void *ud, const char *data, size_t size) {
  (void)data;
  *(size_t *)ud += size;
  return PLN_OK;
}

typedef struct work {
  pln_engine *e;
  const pln_module *module; /* printed */
  char *text;               /* read */
  size_t size;
} work;

static void print_once(work *w) {
  w->size = 0;
  must(w->e, pln_print_module(w->module, NULL, count, &w->size));
}

static void read_once(work *w) {
  pln_module *module;
  must(w->e, pln_parse_module(w->e, (pln_slice){w->text, w->size}, NULL, NULL,
                              &module));
  pln_module_release(module);
}

/* Megabytes a second in the best of some rounds of about a tenth of a second.
 */
static double speed_of(void (*once)(work *), work *w) {
  double best = 1e9;
  for (int round = 0; round < 5; round++) {
    uint32_t times = 0;
    double start = now(), took;
    do {
      once(w);
      times++;
      took = now() - start;
    } while (took < 0.1);
    if (took / times < best)
      best = took / times;
  }
  return (double)w->size / best * 1e-6;
}

static void *block(size_t size) {
  void *bytes = malloc(size + 1);
  if (bytes)
    return bytes;
  fprintf(stderr, "bench: out of memory\n");
  exit(1);
}

static pln_status keep(void *ud, const char *data, size_t size) {
  char **at = ud;
  memcpy(*at, data, size);
  *at += size;
  return PLN_OK;
}

static void print_text(work *w) {
  print_once(w);
  char *at = w->text = block(w->size);
  must(w->e, pln_print_module(w->module, NULL, keep, &at));
}

/* @main becomes @main0, @main1, ...; the metadata, if any, are left out. */
static void repeat(const work *once, uint32_t times, work *out) {
  const char *begin = once->text, *def = NULL, *end = begin + once->size;
  for (const char *at = begin; at + 10 < end && !def; at++)
    if (!memcmp(at, "\ndef @main", 10))
      def = at;
  out->text = block((once->size + 16) * times);
  out->size = 0;
  if (!def)
    return;
  size_t head = (size_t)(def + 10 - begin), tail = (size_t)(end - def) - 10;
  for (uint32_t i = 0; i < times; i++) {
    size_t from = i > 0 ? (size_t)(def - begin) : 0;
    char *at = out->text + out->size;
    memcpy(at, begin + from, head - from);
    at += head - from;
    at += sprintf(at, "%u", i);
    memcpy(at, def + 10, tail);
    out->size = (size_t)(at - out->text) + tail;
  }
}

static void show(const char *what, const work *w, double speed, int wanted) {
  printf("  %-28s %9zu bytes %8.1f MB/s  (wanted: %d)\n", what, w->size, speed,
         wanted);
}

static void read_long(const work *once) {
  work many = {.e = once->e};
  repeat(once, 100, &many);
  if (many.size > 0)
    show("read, a hundred times as long", &many, speed_of(read_once, &many),
         50);
  free(many.text);
}

static bool ends_in(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n > m && !strcmp(path + n - m, ending);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    pln_module *module;
    work w = {.e = pln_engine_new(NULL, NULL)};
    if (!w.e)
      return 1;
    bool relay = ends_in(argv[i], ".relay");
    bool script = ends_in(argv[i], ".tvmscript");
    must(w.e, relay || script ? pln_parse_file(w.e, argv[i], &module)
                              : pln_onnx_load(w.e, argv[i], &module));
    w.module = module;
    printf("%s\n", argv[i]);
    print_text(&w);
    show("printed", &w, speed_of(print_once, &w), script ? 20 : 100);
    show("read", &w, speed_of(read_once, &w), script ? 20 : 50);
    if (relay)
      read_long(&w);
    free(w.text);
    pln_module_release(module);
    pln_engine_free(w.e);
  }
  return 0;
}
