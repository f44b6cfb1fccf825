/* onnx.c: import and export on hostile bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_onnx [FLIPS [SEED]] [FILE...]` replays files, or a model made
 * here: the whole, every prefix, and FLIPS copies with random changes. What
 * must hold: a diagnostic or a module that verifies and can be written; no
 * crash, no leak. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "onnx_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pln_status count_bytes(void *ud, const char *data, size_t size) {
  (void)data;
  *(size_t *)ud += size;
  return PLN_OK;
}

static void fail(const char *what) {
  fprintf(stderr, "fuzz_onnx: %s\n", what);
  abort();
}

/* A model that can be read can be written, but for what ONNX cannot say. */
static void try_module(pln_engine *engine, pln_module *module) {
  size_t size = 0;
  if (pln_module_verify(module) != PLN_OK)
    fail("the imported module is invalid");
  pln_diag_clear(engine);
  pln_status status = pln_onnx_write(module, count_bytes, &size);
  if (status != PLN_OK && pln_diag_count(engine) == 0)
    fail("export failed without a diagnostic");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_module *module = NULL;
  if (!engine)
    return 0;
  pln_slice bytes = {(const char *)data, size};
  pln_status status = pln_onnx_parse(engine, bytes, NULL, &module);
  if (status == PLN_OK)
    try_module(engine, module);
  else if (pln_diag_count(engine) == 0)
    fail("import failed without a diagnostic");
  pln_module_release(module);
  pln_engine_free(engine);
  return 0;
}

#ifndef LIBFUZZER

/* ------------------------------------------------------------------ replay */

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Each run gets a copy of its own size, so that reading past it is seen. */
static void run(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy)
    fail("out of memory");
  memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void flip(const uint8_t *data, size_t size, uint64_t *state) {
  uint8_t *copy = malloc(size);
  if (!copy)
    fail("out of memory");
  memcpy(copy, data, size);
  for (uint64_t n = 1 + next_random(state) % 4; n > 0; n--) {
    uint64_t r = next_random(state);
    uint8_t *at = &copy[r % size];
    *at = (uint8_t)(r >> 60 ? *at ^ 1u << (r >> 40 & 7) : r >> 32);
  }
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void replay(const uint8_t *data, size_t size, long flips,
                   uint64_t seed) {
  enum { MOST_PREFIXES = 20000 };
  run(data, size);
  for (size_t n = 0; n < size && n < MOST_PREFIXES; n++)
    run(data, n);
  for (long i = 0; i < flips && size; i++)
    flip(data, size, &seed);
}

static void replay_file(const char *path, long flips, uint64_t seed) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_file *file;
  if (!engine || pln_file_map(engine, path, &file) != PLN_OK)
    fail("a file cannot be read");
  replay(pln_file_data(file), (size_t)pln_file_size(file), flips, seed);
  pln_file_release(file);
  pln_engine_free(engine);
}

static void replay_seed(long flips, uint64_t seed) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_rope rope;
  if (!engine)
    fail("out of memory");
  pln_rope_init(&rope, engine);
  seed_model(&rope);
  pln_module *module = NULL;
  pln_slice bytes = {rope.bytes.data, rope.bytes.size};
  if (pln_onnx_parse(engine, bytes, NULL, &module) != PLN_OK) {
    fprintf(stderr, "%s\n", pln_diag_get(engine, 0)->message);
    fail("the seed model cannot be read");
  }
  pln_module_release(module);
  replay((const uint8_t *)rope.bytes.data, rope.bytes.size, flips, seed);
  pln_rope_free(&rope);
  pln_engine_free(engine);
}

int main(int argc, char **argv) {
  long flips = argc > 1 ? atol(argv[1]) : 10000;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  seed = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 3; i < argc; i++)
    replay_file(argv[i], flips, seed);
  if (argc <= 3)
    replay_seed(flips, seed);
  return 0;
}

#endif
