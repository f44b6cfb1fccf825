/* source_text.c: lines of a source text in messages, escapes, digits. Called by
 * the parsers of Relay text and of TVMScript. */

#include "base/text/source_text.h"

#include <stdio.h>

/* ------------------------------------------------------------------- lines */

static const char *begin_of_line(pln_slice text, const char *at) {
  while (at > text.data && at[-1] != '\n')
    at--;
  return at;
}

/* Returns NULL if the piece begins too far to the right. */
static const char *copy_line(pln_slice text, const pln_text_place *place,
                             char *line) {
  if (place->column > PLN_LONGEST_LINE / 2)
    return NULL;
  const char *from = begin_of_line(text, place->piece.data), *to = from;
  const char *end = text.data + text.size;
  while (to < end && *to != '\n' && *to != '\r' &&
         to - from < PLN_LONGEST_LINE - 1)
    to++;
  size_t n = (size_t)(to - from);
  for (size_t i = 0; i < n; i++)
    line[i] = from[i] ? from[i] : ' ';
  line[n] = '\0';
  return line;
}

pln_span pln_text_span(pln_slice text, const char *source,
                       const pln_text_place *place, char *line) {
  pln_span span = {.source = source,
                   .line = copy_line(text, place, line),
                   .row = place->row,
                   .column = place->column};
  size_t size = place->piece.size;
  if (size > 0 && size < PLN_LONGEST_LINE)
    span.end_column = place->column + (uint32_t)size;
  return span;
}

const char *pln_text_quote(pln_slice piece, char *text, size_t size) {
  int n = piece.size > 40 ? 40 : (int)piece.size;
  snprintf(text, size, "'%.*s%s'", n, piece.data, piece.size > 40 ? "..." : "");
  return text;
}

/* ----------------------------------------------------------------- escapes */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes the character at `at`, with `left` bytes remaining; returns the
 * number of bytes read. */
static size_t resolve(const char *at, size_t left, char *out) {
  static const char letters[] = "\"\\ntr", bytes[] = "\"\\\n\t\r";
  *out = *at;
  if (*at != '\\' || left < 2)
    return 1;
  const char *found = at[1] ? strchr(letters, at[1]) : NULL;
  if (found) {
    *out = bytes[found - letters];
    return 2;
  }
  if (at[1] != 'x' || left < 4 || hex_digit(at[2]) < 0 || hex_digit(at[3]) < 0)
    return 1;
  *out = (char)(hex_digit(at[2]) * 16 + hex_digit(at[3]));
  return 4;
}

pln_status pln_text_unescape(pln_slice text, pln_buffer *out) {
  for (size_t i = 0; i < text.size;) {
    char c;
    i += resolve(text.data + i, text.size - i, &c);
    PLN_TRY(pln_buffer_add(out, &c, 1));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ digits */

bool pln_text_digits(pln_slice digits, bool negative, int64_t *out) {
  uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
  for (size_t i = 0; i < digits.size; i++) {
    uint64_t digit = (uint64_t)(digits.data[i] - '0');
    if (value > (most - digit) / 10)
      return false;
    value = value * 10 + digit;
  }
  *out = (int64_t)(negative ? 0 - value : value);
  return true;
}
