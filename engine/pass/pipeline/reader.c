/* reader.c: the tokenizer of pipeline text: words, strings and signs, and
 * errors that point into the text.
 *
 * Called by parse.c and option_text.c. Invariant: a reader never reads beyond
 * the end of its text. */

#include <stdio.h>

#include "pass/pipeline/reader.h"

/* ------------------------------------------------------------------- errors */

pln_status pln_reader_error(pln_reader *r, size_t begin, size_t end,
                            pln_status code, const char *message) {
  size_t start = begin, stop = begin;
  uint32_t row = 1;
  while (start > 0 && r->text[start - 1] != '\n')
    start--;
  while (stop < r->size && r->text[stop] != '\n')
    stop++;
  for (size_t i = 0; i < start; i++)
    row += r->text[i] == '\n';
  char *line = pln_mem_new(r->engine, stop - start + 1);
  if (!line)
    return pln_nomem(r->engine);
  memcpy(line, r->text + start, stop - start);
  line[stop - start] = 0;
  pln_span span = {r->source, line, row, (uint32_t)(begin - start + 1),
                   (uint32_t)((end > stop ? stop : end) - start + 1)};
  pln_diag_error(r->engine, code, &span, "%s", message);
  pln_mem_free(r->engine, line, stop - start + 1);
  return code;
}

pln_status pln_reader_expected(pln_reader *r, const char *what) {
  char message[160];
  if (r->at >= r->size)
    snprintf(message, sizeof message, "expected %s, got the end", what);
  else
    snprintf(message, sizeof message, "expected %s, got '%c'", what,
             r->text[r->at]);
  return pln_reader_error(r, r->at, r->at + 1, PLN_ERR_FORMAT, message);
}

pln_status pln_reader_relocate_error(pln_reader *r, size_t mark, size_t begin,
                                     size_t end) {
  char message[512];
  const pln_diag *diag = pln_diag_at(r->engine, mark);
  if (!diag || diag->code == PLN_ERR_NOMEM)
    return PLN_ERR_NOMEM;
  pln_status code = diag->code;
  snprintf(message, sizeof message, "%s", diag->message);
  pln_diag_drop(r->engine, mark);
  /* the message already names its place */
  pln_place place = pln_diag_place(r->engine, (pln_place){NULL, NULL});
  code = pln_reader_error(r, begin, end, code, message);
  pln_diag_place(r->engine, place);
  return code;
}

/* ------------------------------------------------------------------- tokens */

bool pln_reader_is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool pln_reader_is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' ||
         c == '+' || c == '/' || c == ':' || (c & 0x80);
}

void pln_reader_skip_space(pln_reader *r) {
  while (r->at < r->size && pln_reader_is_space(r->text[r->at]))
    r->at++;
}

bool pln_reader_at(pln_reader *r, char c) {
  pln_reader_skip_space(r);
  return r->at < r->size && r->text[r->at] == c;
}

bool pln_reader_accept(pln_reader *r, char c) {
  if (!pln_reader_at(r, c))
    return false;
  r->at++;
  return true;
}

pln_status pln_reader_expect(pln_reader *r, char c, const char *what) {
  return pln_reader_accept(r, c) ? PLN_OK : pln_reader_expected(r, what);
}

static char unescape(char c) {
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* Reads a string after its opening quote. */
static pln_status read_string(pln_reader *r, size_t begin) {
  while (r->at < r->size && r->text[r->at] != '"') {
    char c = r->text[r->at++];
    if (c == '\\' && r->at < r->size)
      c = unescape(r->text[r->at++]);
    PLN_TRY(pln_buffer_add(&r->word, &c, 1));
  }
  if (r->at >= r->size)
    return pln_reader_error(r, begin, begin + 1, PLN_ERR_FORMAT,
                            "the string is not closed");
  r->at++;
  return PLN_OK;
}

pln_status pln_reader_word(pln_reader *r, const char *what, size_t *begin) {
  r->word.size = 0;
  pln_reader_skip_space(r);
  *begin = r->at;
  if (pln_reader_accept(r, '"')) {
    PLN_TRY(read_string(r, *begin));
  } else {
    while (r->at < r->size && pln_reader_is_word(r->text[r->at]))
      r->at++;
    if (r->at == *begin)
      return pln_reader_expected(r, what);
    PLN_TRY(pln_buffer_add(&r->word, r->text + *begin, r->at - *begin));
  }
  PLN_TRY(pln_buffer_add(&r->word, "", 1));
  r->word.size--;
  return PLN_OK;
}

pln_status pln_reader_name(pln_reader *r, const char *what, size_t *begin,
                           pln_symbol *out) {
  PLN_TRY(pln_reader_word(r, what, begin));
  if (r->word.size == 0)
    return pln_reader_error(r, *begin, r->at, PLN_ERR_FORMAT,
                            "the name is empty");
  pln_slice text = {r->word.data, r->word.size};
  return pln_symbol_intern(r->engine, text, out);
}

void pln_reader_init(pln_reader *r, pln_engine *engine, const char *source,
                     pln_slice text) {
  *r = (pln_reader){
      .engine = engine, .source = source, .text = text.data, .size = text.size};
  pln_buffer_init(&r->word, engine);
}

void pln_reader_free(pln_reader *r) {
  pln_buffer_free(&r->word);
}
