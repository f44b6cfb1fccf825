/* fold_log.c: writes the log of FoldConstant.
 *
 * Called by fold_constant.c. A line names the function, the node, what became
 * of it, the rule and the bytes of the constants made. Lines of one function
 * are written together, at its end; a file is appended to.
 *
 *     @main: add(10, 10) => 20  # constant operands, 4 bytes
 *     @main: divide(1, 0) stays  # undefined, 4 bytes */

#include <errno.h>
#include <stdio.h>

#include "ir/graph/describe.h"
#include "op/kernel/element.h"
#include "transform/fold/fold_log.h"

void pln_fold_log_begin(pln_fold_log *log, pln_pass_run *run) {
  *log = (pln_fold_log){.run = run, .target = pln_run_string(run, "log")};
  pln_buffer_init(&log->folded, pln_run_engine(run));
  pln_buffer_init(&log->refused, pln_run_engine(run));
}

void pln_fold_log_sweep(pln_fold_log *log) {
  log->refused.size = 0;
}

/* A scalar constant as its value, anything else in short. */
static pln_status add_operand(const pln_graph *g, pln_ref node,
                              pln_buffer *to) {
  pln_description text;
  const pln_node *n = &g->nodes[node];
  const pln_tensor *t = n->kind == PLN_CONSTANT ? g->tensors[n->data] : NULL;
  int64_t x;
  if (n->kind == PLN_CALL && n->data) {
    PLN_TRY(pln_buffer_text(to, pln_op_row(g->engine, n->data)->name));
    return pln_buffer_text(to, "(..)");
  }
  if (!t || t->count != 1 || t->external)
    return pln_buffer_text(to, pln_describe_node(g, node, &text));
  if (pln_tensor_int(t, 0, &x))
    snprintf(text.text, sizeof text.text, "%lld", (long long)x);
  else
    snprintf(text.text, sizeof text.text, "%.9g", pln_element_at(t, 0));
  return pln_buffer_text(to, text.text);
}

static pln_status add_node(const pln_graph *g, pln_ref node, pln_buffer *to) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data)
    return add_operand(g, node, to);
  PLN_TRY(pln_buffer_text(to, pln_op_row(g->engine, n->data)->name));
  for (uint32_t i = 0; i < n->count; i++) {
    PLN_TRY(pln_buffer_text(to, i ? ", " : "("));
    PLN_TRY(add_operand(g, pln_operand(g, node, i), to));
  }
  return pln_buffer_text(to, n->count ? ")" : "()");
}

static pln_status add_place(const pln_fold_log *log, const pln_graph *graph,
                            pln_ref node, pln_buffer *to) {
  pln_slice name = pln_symbol_text(graph->engine, pln_run_name(log->run));
  PLN_TRY(pln_buffer_text(to, "@"));
  PLN_TRY(pln_buffer_add(to, name.data, name.size));
  PLN_TRY(pln_buffer_text(to, ": "));
  return add_node(graph, node, to);
}

static pln_status add_cost(const pln_graph *graph, pln_ref node,
                           const char *rule, pln_buffer *to) {
  char text[96];
  size_t bytes = pln_budget_bytes(graph, node);
  if (bytes == SIZE_MAX)
    snprintf(text, sizeof text, "  # %s\n", rule);
  else
    snprintf(text, sizeof text, "  # %s, %zu bytes\n", rule, bytes);
  return pln_buffer_text(to, text);
}

pln_status pln_fold_log_fold(pln_fold_log *log, const pln_graph *graph,
                             pln_ref node, pln_ref result, const char *rule) {
  if (!log->target.size)
    return PLN_OK;
  PLN_TRY(add_place(log, graph, node, &log->folded));
  PLN_TRY(pln_buffer_text(&log->folded, " => "));
  PLN_TRY(add_node(graph, result, &log->folded));
  return add_cost(graph, result, rule, &log->folded);
}

pln_status pln_fold_log_refusal(pln_fold_log *log, const pln_graph *graph,
                                pln_ref node, pln_refusal why) {
  if (!log->target.size)
    return PLN_OK;
  PLN_TRY(add_place(log, graph, node, &log->refused));
  PLN_TRY(pln_buffer_text(&log->refused, " stays"));
  return add_cost(graph, node, pln_refusal_name(why), &log->refused);
}

/* ------------------------------------------------------------------ writing */

static pln_status print_lines(const pln_fold_log *log, const pln_buffer *text) {
  pln_engine *e = pln_run_engine(log->run);
  if (!e->passes->print)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "option 'log': there is nowhere to print: see "
                          "pln_engine_set_output");
  return e->passes->print(e->passes->print_ud, text->data, text->size);
}

static pln_status append_lines(const pln_fold_log *log,
                               const pln_buffer *text) {
  pln_engine *e = pln_run_engine(log->run);
  char path[4096];
  snprintf(path, sizeof path, "%.*s", (int)log->target.size, log->target.data);
  FILE *file = fopen(path, "ab");
  bool written = file && fwrite(text->data, 1, text->size, file) == text->size;
  if (file && fclose(file) != 0)
    written = false;
  return written ? PLN_OK
                 : pln_diag_error(e, PLN_ERR_IO, NULL,
                                  "option 'log': cannot write to '%s': %s",
                                  path, strerror(errno));
}

static pln_status write_lines(const pln_fold_log *log, const pln_buffer *text) {
  if (!text->size)
    return PLN_OK;
  return pln_slice_is(log->target, "-") ? print_lines(log, text)
                                        : append_lines(log, text);
}

pln_status pln_fold_log_end(pln_fold_log *log, pln_status status) {
  if (status == PLN_OK)
    status = write_lines(log, &log->folded);
  if (status == PLN_OK)
    status = write_lines(log, &log->refused);
  pln_buffer_free(&log->folded);
  pln_buffer_free(&log->refused);
  return status;
}
