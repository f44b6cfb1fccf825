/* tir/script/parse/error.c: the token cursor of the TVMScript parser, and its
 * errors. Called by all files of the parser. A row is counted only when an
 * error is reported; after MOST errors parsing ends. */

#include <stdio.h>

#include "base/text/source_text.h"
#include "ir/tir/script/parse/parse.h"

/* ------------------------------------------------------------- diagnostics */

static pln_text_place place_of(const pln_script_parser *p, const char *at,
                               uint32_t size) {
  pln_text_place place = {.piece = {at, size}, .row = 1};
  const char *line = p->lexer.begin;
  for (const char *end; (end = memchr(line, '\n', (size_t)(at - line)));) {
    line = end + 1;
    place.row++;
  }
  place.column = (uint32_t)(at - line) + 1;
  return place;
}

pln_status pln_script_locate(pln_script_parser *p, size_t mark) {
  char line[PLN_LONGEST_LINE];
  pln_text_place place = place_of(p, p->place, p->place_size);
  pln_span span = pln_text_span(p->text, p->source, &place, line);
  return pln_diag_locate(p->engine, mark, &span);
}

static pln_status report(pln_script_parser *p, const char *at, uint32_t size,
                         const char *format, va_list args) {
  char line[PLN_LONGEST_LINE], message[512];
  pln_text_place place = place_of(p, at, size);
  pln_span span = pln_text_span(p->text, p->source, &place, line);
  vsnprintf(message, sizeof message, format, args);
  return pln_diag_error(p->engine, PLN_ERR_FORMAT, &span, "%s", message);
}

pln_status pln_script_fail_at(pln_script_parser *p, const char *at,
                              uint32_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  pln_status status = report(p, at, size, format, args);
  va_end(args);
  return status;
}

pln_status pln_script_refuse(pln_script_parser *p,
                             const pln_script_value *value, const char *format,
                             ...) {
  va_list args;
  if (value->kind == PLN_V_ERROR)
    return PLN_ERR_FORMAT;
  va_start(args, format);
  pln_status status = report(p, value->at, value->size, format, args);
  va_end(args);
  return status;
}

static uint32_t size_of(pln_slice piece) {
  return piece.size > UINT32_MAX ? UINT32_MAX : (uint32_t)piece.size;
}

pln_status pln_script_expected(pln_script_parser *p, const char *what) {
  char text[64];
  const pln_script_token *t = &p->token;
  if (t->kind == PLN_S_END || t->kind == PLN_S_NEWLINE)
    return pln_script_fail_at(
        p, t->whole.data, 1, "expected %s, got the end of the %s", what,
        t->kind == PLN_S_END || t->whole.size == 0 ? "text" : "line");
  return pln_script_fail_at(p, t->whole.data, size_of(t->whole),
                            "expected %s, got %s", what,
                            pln_text_quote(t->whole, text, sizeof text));
}

pln_status pln_script_unknown(pln_script_parser *p, pln_slice name,
                              const char *what, uint32_t n,
                              const char *const *names) {
  char wanted[80], hint[160];
  int size = name.size > 70 ? 70 : (int)name.size;
  snprintf(wanted, sizeof wanted, "%.*s", size, name.data);
  pln_suggest(wanted, n, names, hint, sizeof hint);
  return pln_script_fail_at(p, name.data, size_of(name),
                            "no %s is called '%s'%s", what, wanted, hint);
}

/* ------------------------------------------------------------------ tokens */

pln_status pln_script_next(pln_script_parser *p) {
  pln_script_lex_next(&p->lexer, &p->token);
  if (p->token.kind != PLN_S_BAD)
    return PLN_OK;
  const char *problem = p->token.problem;
  pln_slice whole = p->token.whole;
  return pln_script_fail_at(p, whole.data, size_of(whole), "%s", problem);
}

pln_status pln_script_accept(pln_script_parser *p, pln_script_token_kind kind,
                             bool *accepted) {
  *accepted = p->token.kind == kind;
  return *accepted ? pln_script_next(p) : PLN_OK;
}

pln_status pln_script_expect(pln_script_parser *p, pln_script_token_kind kind) {
  if (p->token.kind == kind)
    return pln_script_next(p);
  return pln_script_expected(p, pln_script_token_name(kind));
}
