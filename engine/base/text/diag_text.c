/* diag_text.c: formats a diagnostic as compilers do.
 *
 *     pipeline:1:14: error: 'fixpoint' takes a count from 1 to 1000
 *         SimplifyExpr,fixpoint(x){FoldConstant}
 *                              ^
 *
 * No newline at the end. Called by the command line and the Lua binding. */

#include <stdio.h>

#include "base/base.h"

/* An output buffer that may be too small; `length` counts the full text. */
typedef struct sink {
  char *text;
  size_t size;
  size_t length;
} sink;

static void write_diag_bytes(sink *s, const char *bytes, size_t n) {
  for (size_t i = 0; i < n && s->length + i + 1 < s->size; i++)
    s->text[s->length + i] = bytes[i];
  s->length += n;
}

static void put_text(sink *s, const char *text) {
  write_diag_bytes(s, text, strlen(text));
}

static void write_diag_number(sink *s, uint32_t n) {
  char digits[16];
  int length = snprintf(digits, sizeof digits, ":%lu", (unsigned long)n);
  write_diag_bytes(s, digits, (size_t)length);
}

static void write_diag_span(sink *s, const pln_span *span) {
  if (!span->source)
    return;
  put_text(s, span->source);
  if (span->row)
    write_diag_number(s, span->row);
  if (span->row && span->column)
    write_diag_number(s, span->column);
  put_text(s, ": ");
}

/* The visible part of a source line: long lines are cut around the column. */
typedef struct window {
  size_t from, to;
} window;

static bool inside_char(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

static window visible_window(const char *line, size_t length, size_t column) {
  enum { WIDTH = 160, AHEAD = 60 };
  window w = {0, length};
  if (length <= WIDTH)
    return w;
  if (column > AHEAD)
    w.from = column - AHEAD;
  if (length - w.from > WIDTH)
    w.to = w.from + WIDTH;
  while (w.from > 0 && inside_char(line[w.from]))
    w.from--;
  while (w.to < length && inside_char(line[w.to]))
    w.to++;
  return w;
}

/* Blanks as wide as the bytes before the column, then carets. */
static void put_carets(sink *s, const char *line, window w, size_t column,
                       size_t end) {
  put_text(s, "\n    ");
  if (w.from > 0)
    put_text(s, "...");
  for (size_t i = w.from; i < column; i++)
    if (i >= w.to || !inside_char(line[i]))
      write_diag_bytes(s, i < w.to && line[i] == '\t' ? "\t" : " ", 1);
  write_diag_bytes(s, "^", 1);
  for (size_t i = column + 1; i < end && i < w.to; i++)
    if (!inside_char(line[i]))
      write_diag_bytes(s, "~", 1);
}

static void put_line(sink *s, const pln_span *span) {
  size_t length = strcspn(span->line, "\r\n");
  size_t column = span->column ? span->column - 1 : 0;
  if (column > length)
    column = length;
  window w = visible_window(span->line, length, column);
  put_text(s, w.from > 0 ? "\n    ..." : "\n    ");
  write_diag_bytes(s, span->line + w.from, w.to - w.from);
  if (w.to < length)
    put_text(s, "...");
  if (span->column)
    put_carets(s, span->line, w, column,
               span->end_column ? span->end_column - 1 : 0);
}

static const char *severity_text(pln_severity severity) {
  switch (severity) {
  case PLN_NOTE: return "note: ";
  case PLN_WARNING: return "warning: ";
  case PLN_ERROR: break;
  }
  return "error: ";
}

size_t pln_diag_format(const pln_diag *diag, char *text, size_t size) {
  sink s = {text, size, 0};
  write_diag_span(&s, &diag->span);
  put_text(&s, severity_text(diag->severity));
  put_text(&s, diag->message);
  if (diag->span.line)
    put_line(&s, &diag->span);
  if (size)
    text[s.length < size ? s.length : size - 1] = 0;
  return s.length;
}
