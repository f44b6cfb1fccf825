/* writer.c: a buffered text writer, and the lexical elements of all printed
 * text: numbers, names, strings.
 *
 * Called by the printers. After a failure, or past the limit, nothing more is
 * written. */

#include "base/text/writer.h"

#include "base/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void pln_writer_init(pln_writer *w, pln_engine *engine, size_t limit,
                     pln_write_fn write, void *ud) {
  w->engine = engine;
  w->write = write;
  w->ud = ud;
  w->limit = limit ? limit : SIZE_MAX;
  w->truncated = false;
  w->status = PLN_OK;
  w->constants = PLN_CONSTANTS_COMPLETE;
  w->meta = NULL;
  w->met = w->schema_kinds = false;
  w->naming = NULL;
  w->size = 0;
}

static void flush_to_writer(pln_writer *w, const char *data, size_t size) {
  if (w->truncated || w->status != PLN_OK)
    return;
  size_t seen = size < w->limit ? size : w->limit;
  w->truncated = size > w->limit;
  if (w->limit != SIZE_MAX)
    w->limit -= seen;
  if (seen > 0)
    w->status = w->write(w->ud, data, seen);
  if (w->truncated && w->status == PLN_OK)
    w->status = w->write(w->ud, "...", 3);
}

static void flush(pln_writer *w) {
  flush_to_writer(w, w->data, w->size);
  w->size = 0;
}

pln_status pln_writer_end(pln_writer *w) {
  flush(w);
  return w->status;
}

/* Polls for a stop in the printing of graphs only, not of messages. */
void pln_put(pln_writer *w, const char *data, size_t size) {
  if (size > sizeof w->data - w->size) {
    if (w->status == PLN_OK)
      w->status = pln_poll_stoppable(w->engine);
    flush(w);
  }
  if (size > sizeof w->data) {
    flush_to_writer(w, data, size);
  } else if (size > 0) {
    memcpy(w->data + w->size, data, size);
    w->size += size;
  }
}

void pln_put_text(pln_writer *w, const char *text) {
  pln_put(w, text, strlen(text));
}

void pln_put_int(pln_writer *w, int64_t value) {
  char digits[24];
  char *at = digits + sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    *--at = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (value < 0)
    *--at = '-';
  pln_put(w, at, (size_t)(digits + sizeof digits - at));
}

static void put_escaped(pln_writer *w, bool json, unsigned char c) {
  char text[8];
  int size;
  if (c == '"' || c == '\\')
    size = snprintf(text, sizeof text, "\\%c", c);
  else if (c == '\n')
    size = snprintf(text, sizeof text, "\\n");
  else
    size = snprintf(text, sizeof text, json ? "\\u%04x" : "\\x%02x", c);
  pln_put(w, text, (size_t)size);
}

/* The second byte of a comment delimiter. */
static bool is_mark(pln_slice text, size_t i) {
  return i > 0 && ((text.data[i] == '/' && text.data[i - 1] == '*') ||
                   (text.data[i] == '*' && text.data[i - 1] == '/'));
}

static void put_quoted(pln_writer *w, pln_slice text, bool marks) {
  size_t from = 0;
  pln_put(w, "\"", 1);
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c >= ' ' && c != '"' && c != '\\' && c != 0x7f &&
        (marks || !is_mark(text, i)))
      continue;
    pln_put(w, text.data + from, i - from);
    put_escaped(w, false, c);
    from = i + 1;
  }
  pln_put(w, text.data + from, text.size - from);
  pln_put(w, "\"", 1);
}

void pln_put_quoted(pln_writer *w, pln_slice text) {
  put_quoted(w, text, true);
}

void pln_put_quoted_name(pln_writer *w, pln_slice name) {
  put_quoted(w, name, false);
}

/* Length in bytes of the UTF-8 character at the start of `text`; 0: invalid. */
static size_t utf8_length(pln_slice text) {
  const unsigned char *s = (const unsigned char *)text.data;
  size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (n > text.size || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
    return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  bool wide = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
  bool none = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return wide || none ? 0 : n;
}

void pln_put_json(pln_writer *w, pln_slice text) {
  size_t from = 0, i = 0;
  pln_put(w, "\"", 1);
  while (i < text.size) {
    unsigned char c = (unsigned char)text.data[i];
    bool plain = c >= ' ' && c != '"' && c != '\\' && c != 0x7f;
    size_t n =
        plain ? utf8_length((pln_slice){text.data + i, text.size - i}) : 0;
    if (n == 0) {
      pln_put(w, text.data + from, i - from);
      put_escaped(w, true, c);
      from = i + 1;
      n = 1;
    }
    i += n;
  }
  if (from < text.size)
    pln_put(w, text.data + from, text.size - from);
  pln_put(w, "\"", 1);
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* An identifier of TVM's lexer, except that a leading '/' is refused: ONNX
 * names have it, and Relay prints no such variable. */
bool pln_is_identifier(pln_slice name) {
  if (name.size == 0 || !(is_letter(name.data[0]) || name.data[0] == '_'))
    return false;
  for (size_t i = 1; i < name.size; i++) {
    char c = name.data[i];
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '/')
      return false;
  }
  return true;
}

void pln_put_name(pln_writer *w, const char *sigil, pln_slice name) {
  pln_put_text(w, sigil);
  if (pln_is_identifier(name))
    pln_put(w, name.data, name.size);
  else
    pln_put_quoted_name(w, name);
}

/* ------------------------------------------------------------------ floats */

static const char *float_suffix(pln_dtype dtype) {
  switch (dtype) {
  case PLN_FLOAT16: return "f16";
  case PLN_FLOAT64: return "f64";
  default: return "f";
  }
}

/* True if `text` parses back to the same number. */
static bool tells(const char *text, double value, pln_dtype dtype) {
  double back = strtod(text, NULL);
  if (dtype == PLN_FLOAT64)
    return back == value;
  if (dtype == PLN_FLOAT16)
    return pln_float_to_half((float)back) == pln_float_to_half((float)value);
  return (float)back == (float)value;
}

/* Prints six digits, as TVM does, if they identify the number, else as many as
 * needed. */
void pln_put_float(pln_writer *w, double value, pln_dtype dtype) {
  char text[40];
  if (isnan(value))
    snprintf(text, sizeof text, "nan");
  else if (isinf(value))
    snprintf(text, sizeof text, value < 0 ? "-inf" : "inf");
  else
    for (int digits = 6; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, value);
      if (tells(text, value, dtype))
        break;
    }
  pln_put_text(w, text);
  pln_put_text(w, float_suffix(dtype));
}
