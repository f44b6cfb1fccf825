/* relay/parse/error.c: the parser's token cursor (peek, accept, expect) and its
 * syntax errors.
 *
 * Called by all files of the parser. Each message has the span and the line of
 * its token; after MOST errors parsing ends. */

#include <stdio.h>

#include "base/text/source_text.h"
#include "ir/relay/parse/parse.h"

enum { MOST = 20 };

/* ------------------------------------------------------------- diagnostics */

static pln_span span_of(const pln_parser *p, const pln_token *token,
                        char *line) {
  return pln_text_span(
      p->text, p->source,
      &(pln_text_place){token->whole, token->row, token->column}, line);
}

static pln_status count_error(pln_parser *p) {
  if (++p->n_errors < MOST)
    return PLN_OK;
  return pln_diag_error(p->engine, PLN_ERR_LIMIT, NULL,
                        "parsing stops after %d errors", MOST);
}

static pln_status report_parse_error(pln_parser *p, const pln_token *token,
                                     pln_status code, const char *format,
                                     va_list args) {
  char line[PLN_LONGEST_LINE], message[512];
  pln_span span = span_of(p, token, line);
  vsnprintf(message, sizeof message, format, args);
  (void)pln_diag_error(p->engine, code, &span, "%s", message);
  return count_error(p);
}

pln_status pln_parse_report(pln_parser *p, const pln_token *token,
                            pln_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  pln_status status = report_parse_error(p, token, code, format, args);
  va_end(args);
  return status;
}

pln_status pln_parse_fail(pln_parser *p, const pln_token *token,
                          const char *format, ...) {
  va_list args;
  va_start(args, format);
  pln_status status =
      report_parse_error(p, token, PLN_ERR_FORMAT, format, args);
  va_end(args);
  return status == PLN_OK ? PLN_ERR_FORMAT : status;
}

/* Quotes a token for a message: `'add'`, or `the end of the text`. */
static const char *quote(const pln_token *token, char *text, size_t size) {
  if (token->kind == PLN_T_END)
    return "the end of the text";
  return pln_text_quote(token->whole, text, size);
}

pln_status pln_parse_report_expected(pln_parser *p, const char *what) {
  char text[64];
  if (p->recovery_token == p->token.whole.data && p->n_errors > 0)
    return PLN_ERR_FORMAT;
  return pln_parse_fail(p, &p->token, "expected %s, got %s", what,
                        quote(&p->token, text, sizeof text));
}

pln_status pln_parse_unsigiled(pln_parser *p, const char *what, char sigil) {
  char text[64];
  int size = p->token.text.size > 40 ? 40 : (int)p->token.text.size;
  if (p->token.kind != PLN_T_NAME && p->token.kind != PLN_T_GLOBAL &&
      p->token.kind != PLN_T_LOCAL)
    return pln_parse_report_expected(p, what);
  return pln_parse_report(p, &p->token, PLN_ERR_FORMAT,
                          "expected %s, got %s; did you mean '%c%.*s'?", what,
                          quote(&p->token, text, sizeof text), sigil, size,
                          p->token.text.data);
}

pln_status pln_parse_locate(pln_parser *p, const pln_token *token,
                            size_t mark) {
  char line[PLN_LONGEST_LINE];
  pln_span span = span_of(p, token, line);
  return pln_diag_locate(p->engine, mark, &span);
}

pln_status pln_parse_located(pln_parser *p, const pln_token *token, size_t mark,
                             pln_status status) {
  if (status == PLN_OK || status == PLN_ERR_NOMEM || status == PLN_ERR_LIMIT)
    return status;
  PLN_TRY(pln_parse_locate(p, token, mark));
  return count_error(p);
}

/* Returns the text at a row and column, both counted from 1, or NULL if the
 * text is shorter. */
static const char *find_place(const pln_parser *p, uint32_t row,
                              uint32_t column) {
  const char *at = p->text.data, *end = at + p->text.size;
  for (; row > 1; row--) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (!line)
      return NULL;
    at = line + 1;
  }
  return column > 0 && column - 1 < (size_t)(end - at) ? at + (column - 1)
                                                       : NULL;
}

pln_status pln_parse_quote(pln_parser *p, size_t mark) {
  for (size_t i = mark; i < pln_diag_count(p->engine); i++) {
    const pln_span *where = &pln_diag_at(p->engine, i)->span;
    if (!where->source || where->line || strcmp(where->source, p->source) != 0)
      continue;
    pln_token token = {.row = where->row, .column = where->column};
    token.whole.data = find_place(p, where->row, where->column);
    if (!token.whole.data)
      continue;
    if (where->end_column > where->column)
      token.whole.size = where->end_column - where->column;
    char line[PLN_LONGEST_LINE];
    pln_span span = span_of(p, &token, line);
    PLN_TRY(pln_diag_move(p->engine, i, &span));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ tokens */

pln_status pln_parse_next(pln_parser *p) {
  pln_lex_next(&p->lexer, &p->token);
  p->note = p->lexer.note;
  while (p->token.kind == PLN_T_BAD) {
    PLN_TRY(
        pln_parse_report(p, &p->token, PLN_ERR_FORMAT, "%s", p->token.problem));
    pln_lex_next(&p->lexer, &p->token);
    p->recovery_token = p->token.whole.data;
  }
  return PLN_OK;
}

pln_token_kind pln_parse_peek(const pln_parser *p) {
  pln_lexer ahead = p->lexer;
  pln_token token;
  pln_lex_next(&ahead, &token);
  return (pln_token_kind)token.kind;
}

bool pln_parse_is(const pln_parser *p, const char *name) {
  return p->token.kind == PLN_T_NAME && pln_slice_is(p->token.text, name);
}

pln_status pln_parse_accept(pln_parser *p, pln_token_kind kind,
                            bool *accepted) {
  *accepted = p->token.kind == kind;
  return *accepted ? pln_parse_next(p) : PLN_OK;
}

pln_status pln_parse_expect(pln_parser *p, pln_token_kind kind) {
  if (p->token.kind == kind)
    return pln_parse_next(p);
  return pln_parse_report_expected(p, pln_token_name(kind));
}

static bool begins_statement(const pln_parser *p) {
  pln_token_kind next =
      p->token.kind == PLN_T_TEMP ? pln_parse_peek(p) : PLN_T_END;
  return p->token.kind == PLN_T_LET || p->token.kind == PLN_T_FREE_VAR ||
         next == PLN_T_ASSIGN || next == PLN_T_COLON;
}

pln_status pln_parse_semicolon(pln_parser *p) {
  char text[64];
  if (p->token.kind == PLN_T_SEMICOLON || !begins_statement(p))
    return pln_parse_expect(p, PLN_T_SEMICOLON);
  return pln_parse_report(p, &p->token, PLN_ERR_FORMAT, "expected ';', got %s",
                          quote(&p->token, text, sizeof text));
}
