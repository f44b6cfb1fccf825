/* print_ir.c: PrintIR: prints the module in the middle of a pipeline.
 *
 * Run by the executor, on a module, which it returns unchanged. The text goes
 * to the host's output function (pln_engine_set_output); without one nothing is
 * printed.
 *
 *     PrintIR(header):
 *     #[version = "0.0.5"]
 *     def @main(...) { ... }
 *
 * Semantics: TVM PrintIR. */

#include "transform/transform.h"

void pln_engine_set_output(pln_engine *engine, pln_write_fn write, void *ud) {
  engine->passes->print = write;
  engine->passes->print_ud = ud;
}

static pln_status write_printed_ir(const struct pln_registry *r,
                                   const char *data, size_t size) {
  return size > 0 ? r->print(r->print_ud, data, size) : PLN_OK;
}

static pln_status put_text(const struct pln_registry *r, const char *text) {
  return write_printed_ir(r, text, strlen(text));
}

pln_status pln_pass_print_ir(pln_pass_run *run) {
  pln_engine *e = pln_run_engine(run);
  const struct pln_registry *r = e->passes;
  const pln_module *module = pln_run_module(run);
  pln_slice header = pln_run_string(run, "header");
  pln_print_options options = {.no_metadata =
                                   !pln_run_int(run, "show_meta_data")};
  if (!r->print)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "there is nowhere to print: see pln_print_to");
  PLN_TRY(put_text(r, "PrintIR("));
  PLN_TRY(write_printed_ir(r, header.data, header.size));
  PLN_TRY(put_text(r, "):\n"));
  PLN_TRY(pln_print_module(module, &options, r->print, r->print_ud));
  return put_text(r, "\n");
}
