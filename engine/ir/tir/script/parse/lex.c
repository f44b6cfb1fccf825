/* tir/script/parse/lex.c: the lexer of TVMScript.
 *
 * Called by the parser, token by token. Nothing is copied or allocated, and
 * each byte is read a bounded number of times. Invalid bytes give invalid
 * tokens, which the parser reports. */

#include "ir/tir/script/parse/lex.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The byte at offset `i`; 0 past the end. */
static char peek(const pln_script_lexer *x, size_t i) {
  return i < (size_t)(x->end - x->at) ? x->at[i] : '\0';
}

static bool starts(const pln_script_lexer *x, const char *text) {
  size_t n = strlen(text);
  return n <= (size_t)(x->end - x->at) && !memcmp(x->at, text, n);
}

/* A UTF-8 byte order mark is skipped. */
void pln_script_lex_begin(pln_script_lexer *lexer, pln_slice text) {
  *lexer = (pln_script_lexer){.begin = text.data ? text.data : ""};
  lexer->at = lexer->begin;
  lexer->end = lexer->begin + text.size;
  if (starts(lexer, "\xef\xbb\xbf"))
    lexer->at += 3;
}

/* ------------------------------------------------------------------- spaces
 */

static const char *end_of_line(const pln_script_lexer *x) {
  const char *at = memchr(x->at, '\n', (size_t)(x->end - x->at));
  return at ? at : x->end;
}

/* Skips spaces and comments up to a token or the end of a line. */
static void skip_spaces(pln_script_lexer *x) {
  while (x->at < x->end) {
    char c = *x->at;
    if (c == ' ' || c == '\t' || c == '\f' ||
        (c == '\r' && peek(x, 1) == '\n') || (c == '\n' && x->depth > 0))
      x->at++;
    else if (c == '\\' && peek(x, 1) == '\n')
      x->at += 2;
    else if (c == '#')
      x->at = end_of_line(x);
    else
      return;
  }
}

/* Skips empty lines; returns the column of the next token. */
static uint32_t skip_empty_lines(pln_script_lexer *x) {
  for (;;) {
    const char *line = x->at;
    uint32_t column = 0;
    for (; x->at < x->end && (*x->at == ' ' || *x->at == '\t'); x->at++)
      column = *x->at == '\t' ? (column / 8 + 1) * 8 : column + 1;
    skip_spaces(x);
    if (x->at == x->end || *x->at != '\n')
      return column;
    x->at++;
    if (x->at == line)
      return column;
  }
}

/* -------------------------------------------------------------------- tokens
 */

/* Ends the token at `end`. */
static void finish(pln_script_lexer *x, pln_script_token *t,
                   pln_script_token_kind kind, const char *end) {
  t->kind = (uint8_t)kind;
  t->whole.size = (size_t)(end - x->at);
  x->at = end;
}

static void bad(pln_script_lexer *x, pln_script_token *t, const char *problem,
                const char *end) {
  t->problem = problem;
  finish(x, t, PLN_S_BAD, end);
}

static const struct {
  const char *text;
  pln_script_token_kind kind;
} keywords[] = {{"and", PLN_S_AND},       {"as", PLN_S_AS},
                {"assert", PLN_S_ASSERT}, {"class", PLN_S_CLASS},
                {"def", PLN_S_DEF},       {"elif", PLN_S_ELIF},
                {"else", PLN_S_ELSE},     {"False", PLN_S_FALSE},
                {"for", PLN_S_FOR},       {"from", PLN_S_FROM},
                {"if", PLN_S_IF},         {"import", PLN_S_IMPORT},
                {"in", PLN_S_IN},         {"lambda", PLN_S_LAMBDA},
                {"None", PLN_S_NONE},     {"not", PLN_S_NOT},
                {"or", PLN_S_OR},         {"pass", PLN_S_PASS},
                {"return", PLN_S_RETURN}, {"True", PLN_S_TRUE},
                {"while", PLN_S_WHILE},   {"with", PLN_S_WITH}};

static pln_script_token_kind kind_of_word(pln_slice word) {
  if (word.size < 2 || word.size > 6 || !strchr("acdeFfilNnoprTw", *word.data))
    return PLN_S_NAME;
  for (size_t i = 0; i < PLN_COUNT(keywords); i++)
    if (keywords[i].text[0] == word.data[0] &&
        pln_slice_is(word, keywords[i].text))
      return keywords[i].kind;
  return PLN_S_NAME;
}

static void lex_word(pln_script_lexer *x, pln_script_token *t) {
  const char *end = x->at;
  while (end < x->end && (is_letter(*end) || is_digit(*end)))
    end++;
  t->text = (pln_slice){x->at, (size_t)(end - x->at)};
  finish(x, t, kind_of_word(t->text), end);
}

/* '_' may separate digits. */
static const char *end_of_digits(const pln_script_lexer *x, const char *at) {
  while (at < x->end &&
         (is_digit(*at) || (*at == '_' && at + 1 < x->end && is_digit(at[1]))))
    at++;
  return at;
}

/* 0x1F, 0b101, 0o17 */
static bool lex_prefixed(pln_script_lexer *x, pln_script_token *t) {
  char base = peek(x, 1);
  if (*x->at != '0' || base == 0 || !strchr("xXbBoO", base))
    return false;
  const char *end = x->at + 2;
  while (end < x->end && (is_letter(*end) || is_digit(*end)))
    end++;
  t->text = (pln_slice){x->at, (size_t)(end - x->at)};
  finish(x, t, PLN_S_INTEGER, end);
  return true;
}

static void lex_number(pln_script_lexer *x, pln_script_token *t) {
  const char *end = end_of_digits(x, x->at);
  pln_script_token_kind kind = PLN_S_INTEGER;
  if (lex_prefixed(x, t))
    return;
  if (end < x->end && *end == '.') {
    kind = PLN_S_FLOAT;
    end = end_of_digits(x, end + 1);
  }
  if (end < x->end && (*end == 'e' || *end == 'E')) {
    const char *digits = end + 1;
    if (digits < x->end && (*digits == '+' || *digits == '-'))
      digits++;
    if (digits < x->end && is_digit(*digits)) {
      kind = PLN_S_FLOAT;
      end = end_of_digits(x, digits);
    }
  }
  t->text = (pln_slice){x->at, (size_t)(end - x->at)};
  if (end < x->end && is_letter(*end))
    bad(x, t, "a number ends with a letter", end + 1);
  else
    finish(x, t, kind, end);
}

static void lex_long_string(pln_script_lexer *x, pln_script_token *t) {
  const char quote[] = {*x->at, *x->at, *x->at, 0};
  const char *from = x->at + 3, *at = from;
  while ((at = memchr(at, quote[0], (size_t)(x->end - at))) &&
         (x->end - at < 3 || memcmp(at, quote, 3) != 0))
    at++;
  if (!at) {
    bad(x, t, "this string is not closed", x->end);
    return;
  }
  t->text = (pln_slice){from, (size_t)(at - from)};
  t->escaped = memchr(from, '\\', t->text.size) != NULL;
  finish(x, t, PLN_S_STRING, at + 3);
}

static void lex_string(pln_script_lexer *x, pln_script_token *t) {
  char quote = *x->at;
  if (peek(x, 1) == quote && peek(x, 2) == quote) {
    lex_long_string(x, t);
    return;
  }
  const char *from = x->at + 1, *at = from;
  for (; at < x->end && *at != quote && *at != '\n'; at++)
    if (*at == '\\') {
      t->escaped = true;
      if (at + 1 < x->end && at[1] != '\n')
        at++;
    }
  t->text = (pln_slice){from, (size_t)(at - from)};
  if (at < x->end && *at == quote)
    finish(x, t, PLN_S_STRING, at + 1);
  else
    bad(x, t, "this string is not closed on its line", at);
}

/* --------------------------------------------------------------------- signs
 */

static pln_script_token_kind sign(char c) {
  switch (c) {
  case '(': return PLN_S_LPAREN;
  case ')': return PLN_S_RPAREN;
  case '{': return PLN_S_LBRACE;
  case '}': return PLN_S_RBRACE;
  case '[': return PLN_S_LBRACKET;
  case ']': return PLN_S_RBRACKET;
  case ',': return PLN_S_COMMA;
  case ':': return PLN_S_COLON;
  case '.': return PLN_S_DOT;
  case '=': return PLN_S_ASSIGN;
  case '@': return PLN_S_AT;
  case '+': return PLN_S_PLUS;
  case '-': return PLN_S_MINUS;
  case '*': return PLN_S_STAR;
  case '/': return PLN_S_SLASH;
  case '%': return PLN_S_PERCENT;
  case '&': return PLN_S_BIT_AND;
  case '|': return PLN_S_BIT_OR;
  case '^': return PLN_S_BIT_XOR;
  case '~': return PLN_S_BIT_NOT;
  case '<': return PLN_S_LESS;
  case '>': return PLN_S_GREATER;
  default: return PLN_S_BAD;
  }
}

static pln_script_token_kind double_sign(char c, char next) {
  if (next == '=')
    return c == '<'   ? PLN_S_LESS_EQUAL
           : c == '>' ? PLN_S_GREATER_EQUAL
           : c == '=' ? PLN_S_EQUAL
           : c == '!' ? PLN_S_NOT_EQUAL
                      : PLN_S_BAD;
  if (c == '/' && next == '/')
    return PLN_S_FLOOR;
  if (c == next && (c == '<' || c == '>'))
    return c == '<' ? PLN_S_SHIFT_LEFT : PLN_S_SHIFT_RIGHT;
  return c == '-' && next == '>' ? PLN_S_ARROW : PLN_S_BAD;
}

/* UTF-8 characters are not split. */
static const char *end_of_character(const pln_script_lexer *x) {
  const char *at = x->at + 1;
  while (at < x->end && ((unsigned char)*at & 0xc0) == 0x80)
    at++;
  return at;
}

/* "+=", "//=": the operator is one of `signs`, before '='. */
static bool lex_augmented(pln_script_lexer *x, pln_script_token *t) {
  char c = *x->at;
  if (peek(x, 1) != '=' && peek(x, 2) != '=')
    return false;
  size_t n = c != '*' && peek(x, 1) == c && strchr("/<>", c) ? 2 : 1;
  if (!strchr(n == 2 ? "/<>" : "+-*/%&|^", c) || peek(x, n) != '=')
    return false;
  t->text = (pln_slice){x->at, n};
  finish(x, t, PLN_S_AUGMENT, x->at + n + 1);
  return true;
}

static void lex_sign(pln_script_lexer *x, pln_script_token *t) {
  pln_script_token_kind two = double_sign(*x->at, peek(x, 1));
  pln_script_token_kind one = sign(*x->at);
  if (lex_augmented(x, t))
    return;
  if (two != PLN_S_BAD) {
    finish(x, t, two, x->at + 2);
    return;
  }
  if (one == PLN_S_BAD) {
    bad(x, t, "unexpected character", end_of_character(x));
    return;
  }
  if (one == PLN_S_LPAREN || one == PLN_S_LBRACKET || one == PLN_S_LBRACE)
    x->depth++;
  else if (one == PLN_S_RPAREN || one == PLN_S_RBRACKET || one == PLN_S_RBRACE)
    x->depth -= x->depth > 0;
  finish(x, t, one, x->at + 1);
}

void pln_script_lex_next(pln_script_lexer *x, pln_script_token *t) {
  uint32_t indent = 0;
  if (x->in_line || x->after_semicolon)
    skip_spaces(x);
  if (x->after_semicolon && x->at < x->end && *x->at != '\n')
    indent = x->indent;
  else if (!x->in_line)
    indent = x->indent = skip_empty_lines(x);
  x->after_semicolon = false;
  *t = (pln_script_token){.whole = {x->at, 0}, .indent = indent};
  bool semicolon = x->at < x->end && *x->at == ';' && x->in_line && !x->depth;
  bool ends = x->at == x->end || *x->at == '\n' || semicolon;
  if (ends && x->in_line) {
    x->after_semicolon = semicolon;
    finish(x, t, PLN_S_NEWLINE, x->at + (x->at < x->end));
    x->in_line = false;
    x->depth = 0;
    return;
  }
  x->in_line = !ends;
  if (ends)
    t->kind = PLN_S_END;
  else if (is_letter(*x->at))
    lex_word(x, t);
  else if (is_digit(*x->at) || (*x->at == '.' && is_digit(peek(x, 1))))
    lex_number(x, t);
  else if (*x->at == '"' || *x->at == '\'')
    lex_string(x, t);
  else
    lex_sign(x, t);
}

void pln_script_lex_skip_line(pln_script_lexer *x) {
  if (x->in_line)
    x->at = end_of_line(x);
  x->depth = 0;
}

bool pln_script_lex_before_assign(const pln_script_lexer *x) {
  const char *at = x->at;
  while (at < x->end && *at == ' ')
    at++;
  return at < x->end && *at == '=' && (at + 1 == x->end || at[1] != '=');
}

const char *pln_script_token_name(pln_script_token_kind kind) {
  static const char *const names[PLN_N_SCRIPT_TOKENS] = {
      "the end",  "a token",  "the end of the line",
      "a name",   "a number", "a number",
      "a string", "'('",      "')'",
      "'['",      "']'",      "'{'",
      "'}'",      "','",      "':'",
      "'.'",      "'='",      "'@'",
      "'->'",     "'+'",      "'-'",
      "'*'",      "'/'",      "'//'",
      "'%'",      "'=='",     "'!='",
      "'<'",      "'<='",     "'>'",
      "'>='",     "'&'",      "'|'",
      "'^'",      "'~'",      "'<<'",
      "'>>'",     "'+='",     "'and'",
      "'as'",     "'assert'", "'class'",
      "'def'",    "'elif'",   "'else'",
      "'False'",  "'for'",    "'from'",
      "'if'",     "'import'", "'in'",
      "'lambda'", "'None'",   "'not'",
      "'or'",     "'pass'",   "'return'",
      "'True'",   "'while'",  "'with'"};
  return names[kind];
}
