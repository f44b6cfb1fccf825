/* annotate_spans.c: AnnotateSpans: gives each node the span that it has in the
 * module's text.
 *
 * Run by the executor, on a module. The module is printed, with its metadata,
 * and parsed as a text called GeneratedSource; the result is what was parsed,
 * with variables of its own and with spans that are printed. A module whose
 * text cannot be parsed (PrimFuncs) is an error.
 *
 *     def @main(%x: float32) {
 *       exp(%x)                     =>   row 2, column 3 of GeneratedSource
 *     }
 *
 * Semantics: TVM AnnotateSpans. */

#include "transform/transform.h"

static pln_status parse_generated(pln_engine *e, const pln_buffer *text,
                                  pln_module **out) {
  static const pln_parse_options options = {.print_spans = true};
  return pln_parse_module(e, (pln_slice){text->data, text->size},
                          "GeneratedSource", &options, out);
}

pln_status pln_pass_annotate_spans(pln_pass_run *run) {
  pln_engine *e = pln_run_engine(run);
  pln_module *annotated;
  pln_buffer text;
  pln_buffer_init(&text, e);
  pln_status status =
      pln_print_module(pln_run_module(run), NULL, pln_buffer_write, &text);
  if (status == PLN_OK)
    status = parse_generated(e, &text, &annotated);
  pln_buffer_free(&text);
  if (status == PLN_OK)
    pln_run_set_module(run, annotated);
  return status;
}
