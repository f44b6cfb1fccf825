/* onnx.c: import and export on hostile bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_onnx [FLIPS [SEED]] [FILE...]` replays files, or a model made
 * here: the whole, every prefix, and FLIPS copies with random changes. What
 * must hold: a diagnostic or a module that verifies and can be written; no
 * crash, no leak. */

#include "onnx_fixture.h"
#include "replay.h"

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
  pln_status status = pln_onnx_write(module, NULL, count_bytes, &size);
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

static size_t flip(uint8_t *copy, size_t size, uint64_t *state) {
  for (uint64_t n = 1 + next_random(state) % 4; n > 0; n--) {
    uint64_t r = next_random(state);
    uint8_t *at = &copy[r % size];
    *at = (uint8_t)(r >> 60 ? *at ^ 1u << (r >> 40 & 7) : r >> 32);
  }
  return size;
}

static void replay_seed(const replay_plan *plan) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_rope rope;
  if (!engine)
    fail("out of memory");
  pln_rope_init(&rope, engine);
  seed_model(&rope);
  pln_module *module = NULL;
  pln_slice bytes = {rope.bytes.data, rope.bytes.size};
  if (pln_onnx_parse(engine, bytes, NULL, &module) != PLN_OK) {
    fprintf(stderr, "%s\n", pln_diag_at(engine, 0)->message);
    fail("the seed model cannot be read");
  }
  pln_module_release(module);
  replay(plan, (const uint8_t *)rope.bytes.data, rope.bytes.size);
  pln_rope_free(&rope);
  pln_engine_free(engine);
}

int main(int argc, char **argv) {
  replay_plan plan = {.change = flip, .most_prefixes = 20000, .flips = 10000};
  if (!replay_arguments(&plan, argc, argv))
    replay_seed(&plan);
  return 0;
}

#endif
