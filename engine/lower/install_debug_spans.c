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

#include "ir/graph/graph.h"
#include "ir/provenance/origin.h"
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

static pln_status set_spans(pln_graph *copy, const pln_source_span *spans) {
  pln_symbol source;
  PLN_TRY(source_of(copy, &source));
  if (!copy->origins)
    PLN_TRY(pln_origins_new(copy->engine, &copy->origins));
  for (pln_ref ref = 0; ref < copy->n_nodes; ref++) {
    PLN_TRY(pln_poll_round(copy->engine, ref));
    pln_origin row = {.parent = copy->origin[ref], .place = spans[ref]};
    row.place.source = source;
    if (spans[ref].row)
      PLN_TRY(pln_origins_add(copy->origins, &row, &copy->origin[ref]));
  }
  return PLN_OK;
}

static pln_status annotate(const pln_graph *g, const pln_source_span *spans,
                           pln_graph **out) {
  PLN_TRY(pln_graph_copy(g, out));
  pln_status status = set_spans(*out, spans);
  if (status != PLN_OK)
    pln_graph_release(*out);
  return status;
}

pln_status pln_pass_tir_install_debug_spans(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_graph *annotated = NULL;
  size_t size = g->n_nodes * sizeof(pln_source_span);
  pln_source_span *spans = pln_mem_zeroed(g->engine, size);
  pln_status status =
      spans ? pln_script_places(g, spans) : pln_nomem(g->engine);
  if (status == PLN_OK)
    status = annotate(g, spans, &annotated);
  pln_mem_free(g->engine, spans, size);
  if (status == PLN_OK)
    pln_run_set_function(run, annotated);
  return status;
}
