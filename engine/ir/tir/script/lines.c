/* tir/script/lines.c: the text buffer of the script printer, and the linked
 * list of lines that gives their order.
 *
 * Called by the other files of the printer. The first failure is kept and
 * suppresses all later output. */

#include "ir/tir/script/script.h"

/* The limit of the text: an expression with shared parts may be exponentially
 * larger as text than as nodes. */
enum { MAX_TEXT = 1 << 30 };

void pln_script_fail(pln_script_printer *s, pln_status status) {
  if (s->status == PLN_OK)
    s->status = status;
}

void pln_script_write_slice(pln_script_printer *s, pln_slice text) {
  if (s->status != PLN_OK)
    return;
  if (s->text.size + text.size > MAX_TEXT)
    s->status = pln_diag_error(s->engine, PLN_ERR_LIMIT, NULL,
                               "the script form is longer than a gigabyte");
  else
    s->status = pln_buffer_add(&s->text, text.data, text.size);
}

void pln_script_write(pln_script_printer *s, const char *text) {
  pln_script_write_slice(s, pln_text(text));
}

void pln_script_write_int(pln_script_printer *s, int64_t value) {
  if (s->status == PLN_OK)
    s->status = pln_buffer_printf(&s->text, "%lld", (long long)value);
}

static void put_escaped(pln_script_printer *s, unsigned char c) {
  static const char *const digits = "0123456789abcdef";
  char hex[] = {'\\', 'x', digits[c >> 4], digits[c & 15], 0};
  switch (c) {
  case '\n': pln_script_write(s, "\\n"); break;
  case '\t': pln_script_write(s, "\\t"); break;
  case '\r': pln_script_write(s, "\\r"); break;
  case '"': pln_script_write(s, "\\\""); break;
  case '\\': pln_script_write(s, "\\\\"); break;
  default: pln_script_write(s, hex); break;
  }
}

void pln_script_write_quoted(pln_script_printer *s, pln_slice text) {
  size_t from = 0;
  pln_script_write(s, "\"");
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c >= 32 && c != '"' && c != '\\' && c != 127)
      continue;
    pln_script_write_slice(s, (pln_slice){text.data + from, i - from});
    put_escaped(s, c);
    from = i + 1;
  }
  pln_script_write_slice(s, (pln_slice){text.data + from, text.size - from});
  pln_script_write(s, "\"");
}

uint32_t pln_script_line_insert(pln_script_printer *s, size_t offset,
                                uint32_t indent, uint32_t after) {
  if (s->status == PLN_OK)
    s->status = pln_mem_grow(s->engine, (void **)&s->lines, &s->cap_lines,
                             (size_t)s->n_lines + 1, sizeof *s->lines);
  if (s->status != PLN_OK)
    return after;
  uint32_t line = s->n_lines++;
  s->lines[line] = (pln_script_line){.offset = offset,
                                     .size = s->text.size - offset,
                                     .next = PLN_NONE,
                                     .indent = indent};
  if (after != PLN_NONE) {
    s->lines[line].next = s->lines[after].next;
    s->lines[after].next = line;
  }
  if (s->last == after)
    s->last = line;
  return line;
}

uint32_t pln_script_line_end(pln_script_printer *s, size_t offset,
                             uint32_t indent) {
  return pln_script_line_insert(s, offset, indent, s->last);
}
