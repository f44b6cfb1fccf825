/* pipeline.c: reading pipelines, and values of options, from hostile bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_pipeline [FLIPS [SEED]] [FILE...]` replays files, or the texts
 * below: the whole, prefixes, and FLIPS copies with random changes: of bytes,
 * and of pieces that are doubled, moved or cut out. What must hold: one
 * diagnostic that points into the text, or a pipeline whose text is read again
 * and prints the same; no crash, no leak. */

#include "replay.h"

#include "pass/pass.h"

/* A bit of everything that text can say. */
static const char seed_text[] =
    "SimplifyExpr, \"odd name\"{n=-7, x=1.5e-3,loud=true,s=\"a \\\"b\\\\ \\n\","
    "\n  names=[a,\"b c\",\"]\"],axes=[1,-2, 0x10],mode=fast,loops={step=3,"
    "on=false}},\n"
    "sequential(deploy,opt_level=2,required=SimplifyExpr,required=\"if\"){\n"
    "  fixpoint(4){FoldConstant{fold=\"all\"},fixpoint{()}},\n"
    "  try{(EliminateCommonSubexpr,())}else{DeadCodeElimination},\n"
    "  if changed{\"odd name\"},functions{SimplifyExpr,FoldConstant}},\n"
    "sequential(){try{}else{}}";

static void fail(const char *what, const pln_engine *engine) {
  fprintf(stderr, "fuzz_pipeline: %s\n", what);
  for (size_t i = 0; engine && i < pln_diag_count(engine); i++)
    fprintf(stderr, "  %s\n", pln_diag_at(engine, i)->message);
  abort();
}

static pln_status nothing(pln_pass_run *run) {
  (void)run;
  return PLN_OK;
}

static const pln_option fields[] = {
    {.name = "step", .kind = PLN_ATTR_INT, .fallback = "1", .least = "0"},
    {.name = "on", .kind = PLN_ATTR_INT, .is_bool = true, .fallback = "true"}};

static const pln_option rows[] = {
    {.name = "n", .kind = PLN_ATTR_INT, .fallback = "3"},
    {.name = "x", .kind = PLN_ATTR_FLOAT, .fallback = "0.5"},
    {.name = "loud",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false"},
    {.name = "s", .kind = PLN_ATTR_STRING, .fallback = ""},
    {.name = "names", .kind = PLN_ATTR_STRINGS},
    {.name = "axes", .kind = PLN_ATTR_INTS, .most = "100"},
    {.name = "mode",
     .kind = PLN_ATTR_STRING,
     .fallback = "fast",
     .choices = "fast|small"},
    {.name = "loops",
     .kind = PLN_ATTR_DICT,
     .n_fields = sizeof fields / sizeof *fields,
     .fields = fields}};

static void add_pass(pln_engine *engine) {
  const pln_pass_spec spec = {.name = "odd name",
                              .kind = PLN_PASS_FUNCTION,
                              .n_options = sizeof rows / sizeof *rows,
                              .options = rows,
                              .run = nothing};
  if (pln_pass_register(engine, &spec) != PLN_OK ||
      pln_config_register(engine, &rows[sizeof rows / sizeof *rows - 1]) !=
          PLN_OK)
    fail("the pass is refused", engine);
}

static void print(const pln_pass *pass, pln_buffer *text) {
  pln_buffer_init(text, pass->engine);
  if (pln_pipeline_print(pass, pln_buffer_write, text) != PLN_OK)
    fail("the pipeline cannot be printed", pass->engine);
}

/* What was read can be printed; what was printed can be read. */
static void try_pipeline(pln_engine *engine, const pln_pass *pass) {
  pln_buffer text, second;
  pln_pass *again = NULL;
  print(pass, &text);
  pln_slice slice = {text.data, text.size};
  if (pln_pipeline_parse(engine, slice, &again) != PLN_OK) {
    fprintf(stderr, "%.*s\n", (int)text.size, text.data);
    fail("the printed text is not read again", engine);
  }
  print(again, &second);
  pln_slice other = {second.data, second.size};
  if (!pln_slice_equal(slice, other)) {
    fprintf(stderr, "%.*s\n%.*s\n", (int)text.size, text.data, (int)second.size,
            second.data);
    fail("the printed text prints as another", engine);
  }
  pln_pass_release(again);
  pln_buffer_free(&second);
  pln_buffer_free(&text);
}

static void check_diag(const pln_engine *engine) {
  if (pln_diag_count(engine) != 1)
    fail("reading failed without one diagnostic", engine);
  if (!pln_diag_at(engine, 0)->span.line)
    fail("the diagnostic points nowhere", engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_pass *pass = NULL;
  pln_attrs value;
  if (!engine)
    return 0;
  add_pass(engine);
  pln_slice text = {(const char *)data, size};
  if (pln_pipeline_parse(engine, text, &pass) == PLN_OK)
    try_pipeline(engine, pass);
  else
    check_diag(engine);
  pln_pass_release(pass);
  pln_diag_clear(engine);
  if (pln_config_parse(engine, "loops", text, &value) != PLN_OK &&
      pln_diag_count(engine) == 0)
    fail("reading a value failed without a diagnostic", engine);
  pln_engine_free(engine);
  return 0;
}

#ifndef LIBFUZZER

int main(int argc, char **argv) {
  replay_plan plan = {
      .change = change_text, .most_prefixes = 5000, .flips = 4000};
  if (replay_arguments(&plan, argc, argv))
    return 0;
  replay(&plan, (const uint8_t *)seed_text, strlen(seed_text));
  const char value[] = "{step=3, on = true}";
  replay(&plan, (const uint8_t *)value, strlen(value));
  return 0;
}

#endif
