/* relay.c: reading Relay text from hostile bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_relay [FLIPS [SEED]] [FILE...]` replays files, or the text
 * below: the whole, prefixes, and FLIPS copies with random changes: of bytes,
 * and of pieces that are doubled, moved or cut out. What must hold: a
 * diagnostic, or a module that verifies and whose text is read again; no crash,
 * no leak. */

#include "relay_fixture.h"
#include "replay.h"

static void fail(const char *what, const pln_engine *engine) {
  fprintf(stderr, "fuzz_relay: %s\n", what);
  for (size_t i = 0; engine && i < pln_diag_count(engine); i++)
    fprintf(stderr, "  %s\n", pln_diag_at(engine, i)->message);
  abort();
}

static void say(const pln_buffer *text) {
  fprintf(stderr, "%.*s\n", (int)text->size, text->data);
}

static void check_same(const pln_module *module, const pln_module *again,
                       const pln_buffer *text) {
  pln_engine *engine = pln_module_engine(module);
  pln_mismatch where;
  uint64_t hash = 0, other = 0;
  if (pln_module_mismatch(module, again, false, true, &where) != PLN_OK ||
      pln_module_hash(module, &hash) != PLN_OK ||
      pln_module_hash(again, &other) != PLN_OK)
    fail("modules cannot be compared", engine);
  if (!where.equal) {
    say(text);
    fprintf(stderr, "%s\n", where.text);
    fail("the module read again is another", engine);
  }
  if (hash != other) {
    say(text);
    fail("equal modules have two hashes", engine);
  }
}

static void print(const pln_module *module, pln_buffer *text) {
  pln_buffer_init(text, pln_module_engine(module));
  if (pln_print_module(module, NULL, pln_buffer_write, text) != PLN_OK)
    fail("the module cannot be printed", pln_module_engine(module));
  pln_diag_clear(pln_module_engine(module));
}

/* What was printed is read again, is equal, and prints the same. */
static void try_text(const pln_module *module) {
  pln_engine *engine = pln_module_engine(module);
  pln_buffer text, second;
  pln_module *again = NULL;
  print(module, &text);
  pln_slice slice = {text.data, text.size};
  if (pln_parse_module(engine, slice, "again", NULL, &again) != PLN_OK) {
    say(&text);
    fail("the printed text is not read again", engine);
  }
  check_same(module, again, &text);
  print(again, &second);
  if (!pln_slice_equal(slice, (pln_slice){second.data, second.size})) {
    say(&text);
    say(&second);
    fail("the printed text prints as another", engine);
  }
  pln_module_release(again);
  pln_buffer_free(&second);
  pln_buffer_free(&text);
}

/* A program may have no types that fit. One that has keeps them: inferring
 * again finds nothing to learn. */
static void try_types(const pln_module *module) {
  pln_engine *engine = pln_module_engine(module);
  pln_module *typed = NULL, *again = NULL;
  if (pln_module_infer(module, &typed) != PLN_OK) {
    if (pln_diag_count(engine) == 0)
      fail("inference failed without a diagnostic", engine);
    pln_diag_clear(engine);
    return;
  }
  if (pln_module_verify(typed) != PLN_OK)
    fail("the typed module is invalid", engine);
  if (pln_module_infer(typed, &again) != PLN_OK || again != typed) {
    pln_buffer text;
    print(typed, &text);
    say(&text);
    fail("types are learnt twice", engine);
  }
  pln_module_release(again);
  try_text(typed);
  pln_module_release(typed);
}

static pln_status drop(void *ud, const char *data, size_t size) {
  (void)ud;
  (void)data;
  (void)size;
  return PLN_OK;
}

static void try_module(const pln_module *module) {
  pln_engine *engine = pln_module_engine(module);
  if (pln_module_verify(module) != PLN_OK)
    fail("the module is invalid", engine);
  if (pln_dot_module(module, drop, NULL) != PLN_OK ||
      pln_json_module(module, drop, NULL) != PLN_OK)
    fail("the module cannot be drawn", engine);
  try_text(module);
  try_types(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_module *module = NULL;
  if (!engine)
    return 0;
  pln_slice text = {(const char *)data, size};
  pln_status status = pln_parse_module(engine, text, "fuzz", NULL, &module);
  if (status == PLN_OK)
    try_module(module);
  else if (pln_diag_count(engine) == 0)
    fail("reading failed without a diagnostic", engine);
  pln_module_release(module);
  pln_engine_free(engine);
  return 0;
}

#ifndef LIBFUZZER

int main(int argc, char **argv) {
  replay_plan plan = {
      .change = change_text, .most_prefixes = 5000, .flips = 3000};
  if (!replay_arguments(&plan, argc, argv))
    replay(&plan, (const uint8_t *)rich_text, strlen(rich_text));
  return 0;
}

#endif
