/* test_print_ir.c: where PrintIR prints to, and what happens when that fails or
 * memory is short. What it prints is checked by spec/print_ir_spec.lua. */

#include "base/base.h"
#include "oom.h"

static const char source[] = "#[version = \"0.0.5\"]\n"
                             "def @main(%x: Tensor[(3), float32]) {\n"
                             "  tanh(%x)\n"
                             "}\n";

/* Prints it into `write`, if any. */
static pln_status print(pln_engine *e, pln_write_fn write, void *ud) {
  pln_module *module, *out;
  pln_pass *pass;
  PLN_TRY(pln_parse_module(e, pln_text(source), "test", NULL, &module));
  pln_status status =
      pln_pipeline_parse(e, pln_text("PrintIR{header=\"here\"}"), &pass);
  if (status == PLN_OK) {
    pln_engine_set_output(e, write, ud);
    status = pln_pass_apply(pass, module, &out);
    pln_pass_release(pass);
    if (status == PLN_OK) {
      CHECK(out == module);
      pln_module_release(out);
    }
  }
  pln_module_release(module);
  return status;
}

static bool says(const pln_engine *e, const char *text) {
  for (size_t i = 0; i < pln_diag_count(e); i++)
    if (strstr(pln_diag_at(e, i)->message, text))
      return true;
  return false;
}

static void goes_where_the_host_says(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_buffer text;
  pln_buffer_init(&text, e);
  CHECK_OK(print(e, pln_buffer_write, &text));
  CHECK_OK(pln_buffer_add(&text, "", 1));
  CHECK(text.data && !strncmp(text.data, "PrintIR(here):\n#[version", 24));
  CHECK(text.data && strstr(text.data, "tanh(%x)"));
  pln_buffer_free(&text);
  pln_engine_free(e);
}

static pln_status is_full(void *ud, const char *data, size_t size) {
  (void)data;
  (void)size;
  return pln_diag_error(ud, PLN_ERR_IO, NULL, "the disk is full");
}

static void fails_when_it_cannot_print(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_STATUS(print(e, NULL, NULL), PLN_ERR_ARGUMENT);
  CHECK(says(e, "there is nowhere to print: see pln_print_to"));
  CHECK_STATUS(print(e, is_full, e), PLN_ERR_IO);
  CHECK(says(e, "the disk is full"));
  pln_engine_free(e);
}

static pln_status into_buffer(pln_engine *e, void *ud) {
  pln_buffer text;
  (void)ud;
  pln_buffer_init(&text, e);
  pln_status status = print(e, pln_buffer_write, &text);
  pln_buffer_free(&text);
  return status;
}

static void survives_oom(void) {
  oom_sweep(into_buffer, NULL);
}

static const check_test tests[] = {
    {"the text goes where the host says", goes_where_the_host_says},
    {"a text that cannot be printed fails the pass",
     fails_when_it_cannot_print},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int check_main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
