/* install_debug_spans.c: tir.InstallDebugSpans: each statement and expression
 * gets its place in the text of the function as its span.
 *
 * Run by the executor. The source of the spans is NAME.tir, after the
 * function's symbol; rows and columns are those of tostring(function). Spans
 * end with the line.
 *
 *     B[i] = A[i] + 1, in row 6   =>   the store main.tir:6:9, A[i]
 * main.tir:6:16
 *
 * Semantics: TVM's tir.InstallDebugSpans, which also writes that text to a file
 * in the working directory. */

#include "ir/rewrite/spans.h"
#include "lower/lower.h"

static pln_status source_of(const pln_graph *g, pln_symbol *out) {
  pln_buffer text;
  pln_slice name = pln_attrs_string(g->engine, g->nodes[g->root].attrs,
                                    "global_symbol", "main");
  pln_buffer_init(&text, g->engine);
  pln_status status = pln_buffer_add(&text, name.data, name.size);
  if (status == PLN_OK)
    status = pln_buffer_add(&text, ".tir", 4);
  if (status == PLN_OK)
    status =
        pln_symbol_intern(g->engine, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

static bool span_of(void *ud, pln_ref node, pln_source_span *span) {
  *span = ((const pln_source_span *)ud)[node];
  return span->row != 0;
}

static pln_status annotate(const pln_graph *g, pln_source_span *spans,
                           pln_graph **out) {
  pln_symbol source;
  PLN_TRY(pln_script_places(g, spans));
  PLN_TRY(source_of(g, &source));
  return pln_graph_annotate_spans(g, source, false, span_of, spans, out);
}

pln_status pln_pass_tir_install_debug_spans(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_graph *annotated = NULL;
  size_t size = g->n_nodes * sizeof(pln_source_span);
  pln_source_span *spans = pln_mem_zeroed(g->engine, size);
  pln_status status =
      spans ? annotate(g, spans, &annotated) : pln_nomem(g->engine);
  pln_mem_free(g->engine, spans, size);
  if (status == PLN_OK)
    pln_run_set_function(run, annotated);
  return status;
}
