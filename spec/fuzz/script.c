/* script.c: reading TVMScript from hostile bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_script [FLIPS [SEED]] [FILE...]` replays files, or the text of
 * script_text.h, as replay.h says. What must hold: a diagnostic, or a module
 * that verifies and can be printed; no crash, no leak. */

#include "perilune.h"
#include "replay.h"
#include "script_text.h"

static void fail(const char *what, const pln_engine *engine) {
  fprintf(stderr, "fuzz_script: %s\n", what);
  for (size_t i = 0; i < pln_diag_count(engine); i++)
    fprintf(stderr, "  %s\n", pln_diag_at(engine, i)->message);
  abort();
}

static pln_status drop(void *ud, const char *data, size_t size) {
  (void)ud;
  (void)data;
  (void)size;
  return PLN_OK;
}

static void try_module(pln_engine *engine, pln_slice text) {
  pln_module *module = NULL;
  pln_status status = pln_parse_script(engine, text, "fuzz", &module);
  if (status != PLN_OK && pln_diag_count(engine) == 0)
    fail("reading failed without a diagnostic", engine);
  if (status == PLN_OK && pln_module_verify(module) != PLN_OK)
    fail("the module is invalid", engine);
  if (status == PLN_OK && pln_print_module(module, NULL, drop, NULL) != PLN_OK)
    fail("the module cannot be printed", engine);
  pln_module_release(module);
  pln_diag_clear(engine);
}

static void try_expr(pln_engine *engine, pln_slice text) {
  pln_graph *graph = NULL;
  pln_status status = pln_parse_script_expr(engine, text, "fuzz", &graph);
  if (status != PLN_OK && pln_diag_count(engine) == 0)
    fail("reading failed without a diagnostic", engine);
  if (status == PLN_OK && pln_graph_verify(graph) != PLN_OK)
    fail("the graph is invalid", engine);
  pln_graph_release(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_slice text = {(const char *)data, size};
  if (!engine)
    return 0;
  try_module(engine, text);
  try_expr(engine, text);
  pln_engine_free(engine);
  return 0;
}

#ifndef LIBFUZZER

int main(int argc, char **argv) {
  replay_plan plan = {
      .change = change_text, .most_prefixes = 4000, .flips = 2000};
  if (!replay_arguments(&plan, argc, argv))
    replay(&plan, (const uint8_t *)script_text, sizeof script_text - 1);
  return 0;
}

#endif
