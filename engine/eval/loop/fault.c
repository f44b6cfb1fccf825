/* fault.c: reports why the run of a loop program stopped: what was wrong, in
 * the words of the source, and in which statement.
 *
 * Called by run.c, and by compile.c for the statement. */

#include <stdio.h>

#include "eval/loop/program.h"
#include "ir/tir/tir.h"

enum { STATEMENT = 160 };

/* The first line of a statement as script; `size` bytes at most. */
static void statement_text(const pln_loop_program *p, pln_ref stmt, char *text,
                           size_t size) {
  pln_buffer buffer;
  size_t mark = pln_diag_count(p->engine);
  pln_buffer_init(&buffer, p->engine);
  text[0] = 0;
  pln_status status = pln_print_script(p->graph, stmt, false, 4 * size,
                                       pln_buffer_write, &buffer);
  const char *line = buffer.data;
  size_t left = buffer.size;
  while (left > 0) { /* declarations and comments stand before the statement */
    const char *end = memchr(line, '\n', left);
    size_t n = end ? (size_t)(end - line) : left;
    if (n > 0)
      snprintf(text, size, "%.*s", (int)(n < size ? n : size - 1), line);
    bool before = n == 0 || line[0] == '#' || memmem(line, n, "T.Buffer(", 9) ||
                  memmem(line, n, "= T.int", 7) ||
                  memmem(line, n, "= T.handle", 10);
    if (!before || !end)
      break;
    left -= n + 1;
    line = end + 1;
  }
  pln_buffer_free(&buffer);
  if (status != PLN_OK)
    pln_diag_drop(p->engine, mark);
}

void pln_loop_note_statement(const pln_loop_program *p, pln_ref stmt) {
  char text[STATEMENT];
  if (stmt == PLN_NONE)
    return;
  statement_text(p, stmt, text, sizeof text);
  if (text[0])
    pln_diag_note(p->engine, NULL, "in the statement: %s", text);
}

static const char *buffer_name(const pln_loop_run *run, pln_ref node) {
  const pln_graph *g = run->program->graph;
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_BUFFER && n->count > 0)
    n = &g->nodes[g->operands[n->first]];
  return n->kind == PLN_BUFFER ? pln_symbol_text(run->engine, n->data).data
                               : "?";
}

static const char *assert_message(const pln_loop_run *run, pln_ref node) {
  const pln_graph *g = run->program->graph;
  const pln_node *text = &g->nodes[pln_operand(g, node, 1)];
  return text->kind == PLN_STRING_IMM
             ? pln_symbol_text(run->engine, text->data).data
             : "no message";
}

static pln_status report_index(const pln_loop_run *run, pln_ref node) {
  const pln_loop_instr *in = &run->program->code[run->at];
  return pln_diag_error(
      run->engine, PLN_ERR_ARGUMENT, NULL,
      "out of bounds: index %lld of dimension %u of buffer '%s', whose extent "
      "is %lld",
      (long long)run->value, (unsigned)in->aux, buffer_name(run, node),
      (long long)run->bound);
}

static pln_status report_memory(const pln_loop_run *run, pln_ref node) {
  const pln_loop_instr *in = &run->program->code[run->at];
  return pln_diag_error(
      run->engine, PLN_ERR_ARGUMENT, NULL,
      "out of bounds: element %lld (%s) of buffer '%s' lies outside of its "
      "memory of %lld bytes",
      (long long)run->value, pln_dtype_name((pln_dtype)in->aux),
      buffer_name(run, node), (long long)run->bound);
}

static pln_status report_equal(const pln_loop_run *run, pln_ref node,
                               const char *what) {
  const pln_loop_instr *in = &run->program->code[run->at];
  return pln_diag_error(run->engine, PLN_ERR_TYPE, NULL,
                        "%s %u of '%s' is %lld, but %lld is expected", what,
                        (unsigned)in->aux, buffer_name(run, node),
                        (long long)run->value, (long long)run->bound);
}

static pln_status report_fault(const pln_loop_run *run, pln_ref node) {
  pln_engine *e = run->engine;
  switch (run->fault) {
  case PLN_LOOP_FAULT_INDEX: return report_index(run, node);
  case PLN_LOOP_FAULT_MEMORY: return report_memory(run, node);
  case PLN_LOOP_FAULT_EQUAL: return report_equal(run, node, "dimension");
  case PLN_LOOP_FAULT_STRIDE: return report_equal(run, node, "stride");
  case PLN_LOOP_FAULT_UNSET:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "an element of buffer '%s' is read that was not "
                          "written",
                          buffer_name(run, node));
  case PLN_LOOP_FAULT_DIVISION:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL, "division by zero");
  case PLN_LOOP_FAULT_LANE:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL, "lane %lld of %lld lanes",
                          (long long)run->value, (long long)run->bound);
  case PLN_LOOP_FAULT_SIZE:
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL, "an allocation is too large");
  case PLN_LOOP_FAULT_ASSERT:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL, "assertion failed: %s",
                          assert_message(run, node));
  case PLN_LOOP_FAULT_ASSUME:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "an assumption does not hold");
  case PLN_LOOP_FAULT_THROW:
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "the program reports an error");
  case PLN_LOOP_FAULT_STEPS:
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "it runs more iterations than limit.steps = %llu",
                          (unsigned long long)e->most_steps);
  case PLN_LOOP_NO_FAULT:
  case PLN_LOOP_FAULT_STATUS: break;
  }
  return run->status;
}

pln_status pln_loop_report(const pln_loop_run *run) {
  if (run->fault == PLN_LOOP_NO_FAULT)
    return PLN_OK;
  pln_status status = report_fault(run, run->program->code_node[run->at]);
  if (status != PLN_ERR_NOMEM && status != PLN_ERR_INTERRUPTED)
    pln_loop_note_statement(run->program, run->program->code_stmt[run->at]);
  return status;
}
