/* relay/parse/lex.c: the lexer of Relay text.
 *
 * Called by the parser, token by token. Nothing is copied or allocated, and
 * each byte is read a bounded number of times. Invalid bytes give invalid
 * tokens, which the parser reports. Tokens are those of TVM's lexer, extended
 * by quoted names, escapes in strings and operator names as single tokens. */

#include "ir/relay/parse/lex.h"

enum { SPACE = 1, LETTER = 2, DIGIT = 4, SLASH = 8, LINE = 16 };

/* clang-format off */
static const uint8_t class_of[256] = {
  [' '] = SPACE, ['\t'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE,
  ['0'] = DIGIT, ['1'] = DIGIT, ['2'] = DIGIT, ['3'] = DIGIT, ['4'] = DIGIT,
  ['5'] = DIGIT, ['6'] = DIGIT, ['7'] = DIGIT, ['8'] = DIGIT, ['9'] = DIGIT,
  ['a'] = LETTER, ['b'] = LETTER, ['c'] = LETTER, ['d'] = LETTER,
  ['e'] = LETTER, ['f'] = LETTER, ['g'] = LETTER, ['h'] = LETTER,
  ['i'] = LETTER, ['j'] = LETTER, ['k'] = LETTER, ['l'] = LETTER,
  ['m'] = LETTER, ['n'] = LETTER, ['o'] = LETTER, ['p'] = LETTER,
  ['q'] = LETTER, ['r'] = LETTER, ['s'] = LETTER, ['t'] = LETTER,
  ['u'] = LETTER, ['v'] = LETTER, ['w'] = LETTER, ['x'] = LETTER,
  ['y'] = LETTER, ['z'] = LETTER, ['A'] = LETTER, ['B'] = LETTER,
  ['C'] = LETTER, ['D'] = LETTER, ['E'] = LETTER, ['F'] = LETTER,
  ['G'] = LETTER, ['H'] = LETTER, ['I'] = LETTER, ['J'] = LETTER,
  ['K'] = LETTER, ['L'] = LETTER, ['M'] = LETTER, ['N'] = LETTER,
  ['O'] = LETTER, ['P'] = LETTER, ['Q'] = LETTER, ['R'] = LETTER,
  ['S'] = LETTER, ['T'] = LETTER, ['U'] = LETTER, ['V'] = LETTER,
  ['W'] = LETTER, ['X'] = LETTER, ['Y'] = LETTER, ['Z'] = LETTER,
  ['_'] = LETTER, ['/'] = SLASH, ['\n'] = LINE, ['\r'] = LINE,
};
/* clang-format on */

static bool is(char c, int classes) {
  return class_of[(unsigned char)c] & classes;
}

/* The byte at offset `i`; 0 past the end. */
static char peek(const pln_lexer *x, size_t i) {
  return i < (size_t)(x->end - x->at) ? x->at[i] : '\0';
}

static bool starts(const pln_lexer *x, const char *text) {
  size_t n = strlen(text);
  return n <= (size_t)(x->end - x->at) && !memcmp(x->at, text, n);
}

/* A UTF-8 byte order mark is skipped. */
void pln_lex_begin(pln_lexer *lexer, pln_slice text) {
  *lexer = (pln_lexer){.at = text.data ? text.data : "", .row = 1};
  lexer->end = lexer->at + text.size;
  if (starts(lexer, "\xef\xbb\xbf"))
    lexer->at += 3;
  lexer->line = lexer->at;
}

/* ---------------------------------------------------------------- comments */

static void count_rows(pln_lexer *x, const char *to) {
  const char *at = x->at;
  while ((at = memchr(at, '\n', (size_t)(to - at)))) {
    x->line = ++at;
    x->row++;
  }
  x->at = to;
}

/* Parses the number that ends before *at and follows a ':'; moves *at before
 * both. -1 is UINT32_MAX. False when there is none. */
static bool number_before(const char *begin, const char **at, uint32_t *out) {
  uint64_t value = 0, unit = 1;
  const char *from = *at;
  while (*at > begin && is((*at)[-1], DIGIT) && from - *at < 10) {
    value += unit * (uint64_t)(*--*at - '0');
    unit *= 10;
  }
  bool digits = *at < from;
  if (value == 1 && *at > begin && (*at)[-1] == '-') {
    value = UINT32_MAX;
    --*at;
  }
  *out = (uint32_t)value;
  return digits && value <= UINT32_MAX && *at > begin && *--*at == ':';
}

/* " ty=T span=SOURCE:row:column " between `begin` and `end`. In a comment with
 * nested comments nothing is taken for a span. */
static void read_note(pln_lexer *x, const char *begin, const char *end,
                      bool plain) {
  if (end - begin > 4 && !memcmp(begin, " ty=", 4))
    x->note.type = (pln_slice){begin + 4, (size_t)(end - begin) - 4};
  uint32_t row, column;
  while (end > begin && is(end[-1], SPACE))
    end--;
  if (!plain || !number_before(begin, &end, &column) ||
      !number_before(begin, &end, &row))
    return;
  for (const char *at = end; at - begin >= 6; at--)
    if (!memcmp(at - 6, " span=", 6)) {
      x->note.source = (pln_slice){at, (size_t)(end - at)};
      x->note.row = row;
      x->note.column = column;
      return;
    }
}

/* Skips a block comment, possibly nested; false when it is not terminated. */
static bool skip_block(pln_lexer *x) {
  const char *begin = x->at + 2, *at = begin;
  size_t depth = 1;
  bool plain = true;
  while (depth > 0 && (at = memchr(at, '/', (size_t)(x->end - at)))) {
    if (at > begin && at[-1] == '*') {
      depth--;
      at++;
      begin = at; /* this star cannot begin another delimiter */
    } else if (at + 1 < x->end && at[1] == '*') {
      depth++;
      plain = false;
      at += 2;
      begin = at;
    } else {
      at++;
    }
  }
  if (depth > 0)
    return false;
  read_note(x, x->at + 2, at - 2, plain);
  count_rows(x, at);
  return true;
}

static void skip_line(pln_lexer *x) {
  const char *at = memchr(x->at, '\n', (size_t)(x->end - x->at));
  x->at = at ? at : x->end;
}

/* Skips whitespace and comments. False at an invalid byte or comment, which
 * becomes a bad token. */
static bool skip_space_and_comments(pln_lexer *x) {
  for (;;) {
    const char *at = x->at, *end = x->end;
    while (at < end && is(*at, SPACE))
      at++;
    x->at = at;
    if (at == end || !is(*at, SLASH | LINE))
      return true;
    if (*at == '\n') {
      x->line = ++x->at;
      x->row++;
    } else if (*at == '\r' && peek(x, 1) == '\n') {
      x->at++;
    } else if (*at == '/' && peek(x, 1) == '/' && !x->type_alone) {
      skip_line(x);
    } else if (*at == '/' && peek(x, 1) == '*') {
      if (!skip_block(x))
        return false;
    } else {
      return true;
    }
  }
}

/* ------------------------------------------------------------------ tokens */

/* Ends the token at `end`. */
static void finish_token(pln_lexer *x, pln_token *t, pln_token_kind kind,
                         const char *end) {
  t->kind = (uint8_t)kind;
  t->whole.size = (size_t)(end - x->at);
  x->at = end;
}

static void bad(pln_lexer *x, pln_token *t, const char *problem,
                const char *end) {
  t->problem = problem;
  finish_token(x, t, PLN_T_BAD, end);
}

/* The end of a run of letters, digits and slashes. */
static const char *end_of_word(const pln_lexer *x, const char *at) {
  const char *end = x->end;
  for (;;) {
    while (at < end && is(*at, LETTER | DIGIT))
      at++;
    if (at == end || *at != '/' || x->type_alone)
      return at;
    if (at + 1 < end && at[1] == '*')
      return at;
    at++;
  }
}

/* Scans a quoted string from the quote at `at`; returns its end, or NULL when
 * it is not closed on its line. */
static const char *quoted(const pln_lexer *x, pln_token *t, const char *at) {
  const char *from = ++at;
  for (; at < x->end && *at != '"' && *at != '\n'; at++)
    if (*at == '\\') {
      t->escaped = true;
      if (at + 1 < x->end && at[1] != '\n')
        at++;
    }
  t->text = (pln_slice){from, (size_t)(at - from)};
  return at < x->end && *at == '"' ? at + 1 : NULL;
}

static const char *end_of_line(const pln_lexer *x) {
  const char *at = memchr(x->at, '\n', (size_t)(x->end - x->at));
  return at ? at : x->end;
}

static void lex_string(pln_lexer *x, pln_token *t) {
  const char *end = quoted(x, t, x->at);
  if (end)
    finish_token(x, t, PLN_T_STRING, end);
  else
    bad(x, t, "this string is not closed on its line", end_of_line(x));
}

/* %name, %"any name", %12; @name, @"any name" */
static void lex_sigil(pln_lexer *x, pln_token *t) {
  const char *from = x->at + 1, *end = from;
  pln_token_kind kind = *x->at == '@' ? PLN_T_GLOBAL : PLN_T_LOCAL;
  if (peek(x, 1) == '"') {
    end = quoted(x, t, from);
    if (end)
      finish_token(x, t, kind, end);
    else
      bad(x, t, "this quoted name is not closed on its line", end_of_line(x));
    return;
  }
  while (end < x->end && is(*end, DIGIT))
    end++;
  bool digits = end > from && kind == PLN_T_LOCAL;
  const char *word = end_of_word(x, end);
  if (digits && word == end)
    kind = PLN_T_TEMP;
  t->text = (pln_slice){from, (size_t)(word - from)};
  if (word == from)
    bad(x, t, "a name must follow here", word);
  else
    finish_token(x, t, kind, word);
}

static const char *end_of_digits(const pln_lexer *x, const char *at) {
  while (at < x->end && is(*at, DIGIT))
    at++;
  return at;
}

static const char *end_of_exponent(const pln_lexer *x, const char *at) {
  if (at == x->end || (*at != 'e' && *at != 'E'))
    return at;
  const char *digits = at + 1;
  if (digits < x->end && (*digits == '+' || *digits == '-'))
    digits++;
  return digits < x->end && is(*digits, DIGIT) ? end_of_digits(x, digits) : at;
}

static void lex_number(pln_lexer *x, pln_token *t) {
  const char *end = end_of_digits(x, x->at);
  if (!x->after_dot) {
    if (end < x->end && *end == '.')
      end = end_of_digits(x, end + 1);
    end = end_of_exponent(x, end);
  }
  t->text = (pln_slice){x->at, (size_t)(end - x->at)};
  const char *word = end;
  while (word < x->end && is(*word, LETTER | DIGIT))
    word++;
  t->suffix = (pln_slice){end, (size_t)(word - end)};
  finish_token(x, t, PLN_T_NUMBER, word);
}

typedef struct keyword {
  const char *text;
  pln_token_kind kind;
} keyword;

/* Sorted by first letter. */
static const keyword keywords[] = {
    {"False", PLN_T_FALSE},
    {"True", PLN_T_TRUE},
    {"def", PLN_T_DEF},
    {"else", PLN_T_ELSE},
    {"extern", PLN_T_EXTERN},
    {"fn", PLN_T_FN},
    {"free_var", PLN_T_FREE_VAR},
    {"if", PLN_T_IF},
    {"let", PLN_T_LET},
    {"match", PLN_T_MATCH},
    {"ref", PLN_T_REF},
    {"ref_read", PLN_T_REF_READ},
    {"ref_write", PLN_T_REF_WRITE},
    {"type", PLN_T_TYPE},
};

/* Index + 1 of the first keyword with that letter. */
static const uint8_t keywords_of[256] = {
    ['F'] = 1, ['T'] = 2, ['d'] = 3,  ['e'] = 4,  ['f'] = 6,
    ['i'] = 8, ['l'] = 9, ['m'] = 10, ['r'] = 11, ['t'] = 14,
};

static pln_token_kind keyword_token_kind(pln_slice word) {
  char first = word.data[0];
  size_t i = keywords_of[(unsigned char)first];
  if (i == 0 || word.size < 2 || word.size > 9)
    return PLN_T_NAME;
  for (i--; i < PLN_COUNT(keywords) && keywords[i].text[0] == first; i++)
    if (keywords[i].text[1] == word.data[1] &&
        pln_slice_is(word, keywords[i].text))
      return keywords[i].kind;
  return PLN_T_NAME;
}

/* Words joined by '.' and '::'. */
static void lex_name(pln_lexer *x, pln_token *t) {
  const char *end = end_of_word(x, x->at);
  for (;;) {
    size_t left = (size_t)(x->end - end);
    size_t joint =
        left > 1 && *end == '.' && is(end[1], LETTER) ? 1
        : left > 2 && *end == ':' && end[1] == ':' && is(end[2], LETTER | DIGIT)
            ? 2
            : 0;
    if (joint == 0)
      break;
    end = end_of_word(x, end + joint);
  }
  t->text = (pln_slice){x->at, (size_t)(end - x->at)};
  finish_token(x, t, keyword_token_kind(t->text), end);
}

/* The TVMScript of PrimFuncs, which is printed after Relay functions. */
static void lex_script(pln_lexer *x, pln_token *t) {
  bad(x, t, "TVMScript after Relay text can be printed but not parsed", x->end);
}

static void lex_pragma(pln_lexer *x, pln_token *t) {
  pln_lexer in = *x;
  if (starts(x, "# from tvm.script")) {
    lex_script(x, t);
    return;
  }
  if (starts(x, "#[metadata]")) {
    finish_token(x, t, PLN_T_METADATA, x->at + strlen("#[metadata]"));
    return;
  }
  in.at += starts(x, "#[version") ? strlen("#[version") : 0;
  while (in.at > x->at && (is(peek(&in, 0), SPACE) || peek(&in, 0) == '='))
    in.at++;
  const char *end =
      in.at > x->at && peek(&in, 0) == '"' ? quoted(&in, t, in.at) : NULL;
  if (end && end < x->end && *end == ']')
    finish_token(x, t, PLN_T_VERSION, end + 1);
  else
    bad(x, t, "expected #[version = \"0.0.5\"] or #[metadata]", end_of_line(x));
}

/* --------------------------------------------------------------------- signs
 */

static pln_token_kind sign(char c) {
  switch (c) {
  case '(': return PLN_T_LPAREN;
  case ')': return PLN_T_RPAREN;
  case '{': return PLN_T_LBRACE;
  case '}': return PLN_T_RBRACE;
  case '[': return PLN_T_LBRACKET;
  case ']': return PLN_T_RBRACKET;
  case ',': return PLN_T_COMMA;
  case ';': return PLN_T_SEMICOLON;
  case ':': return PLN_T_COLON;
  case '.': return PLN_T_DOT;
  case '=': return PLN_T_ASSIGN;
  case '?': return PLN_T_QUERY;
  case '+': return PLN_T_PLUS;
  case '-': return PLN_T_MINUS;
  case '*': return PLN_T_STAR;
  case '/': return PLN_T_SLASH;
  case '%': return PLN_T_PERCENT;
  case '<': return PLN_T_LESS;
  case '>': return PLN_T_GREATER;
  default: return PLN_T_BAD;
  }
}

static pln_token_kind double_sign(char c, char next) {
  if (next == '=')
    return c == '<'   ? PLN_T_LESS_EQUAL
           : c == '>' ? PLN_T_GREATER_EQUAL
           : c == '=' ? PLN_T_EQUAL
           : c == '!' ? PLN_T_NOT_EQUAL
                      : PLN_T_BAD;
  if (next == '>')
    return c == '-' ? PLN_T_ARROW : c == '=' ? PLN_T_DARROW : PLN_T_BAD;
  return PLN_T_BAD;
}

/* The end of a run of invalid bytes, reported once; UTF-8 characters are not
 * split. */
static const char *end_of_unknown_character(const pln_lexer *x) {
  const char *at = x->at + 1;
  while (at < x->end && (((unsigned char)*at & 0xc0) == 0x80 ||
                         (!is(*at, -1) && !strchr("%@\"#\r\n'", *at) &&
                          sign(*at) == PLN_T_BAD)))
    at++;
  return at;
}

/* 'abc': the text up to the closing quote on the same line. */
static void lex_apostrophe(pln_lexer *x, pln_token *t) {
  const char *line = end_of_line(x);
  const char *end = memchr(x->at + 1, '\'', (size_t)(line - x->at) - 1);
  bad(x, t, "strings are written in double quotes", end ? end + 1 : x->at + 1);
}

static void lex_sign(pln_lexer *x, pln_token *t) {
  bool floor = *x->at == '/' && peek(x, 1) == '/';
  pln_token_kind two = floor ? PLN_T_FLOOR : double_sign(*x->at, peek(x, 1));
  pln_token_kind one = sign(*x->at);
  if (two != PLN_T_BAD)
    finish_token(x, t, two, x->at + 2);
  else if (one != PLN_T_BAD)
    finish_token(x, t, one, x->at + 1);
  else if (*x->at == '\r')
    bad(x, t, "a carriage return must be followed by a line feed", x->at + 1);
  else if (*x->at == '\'')
    lex_apostrophe(x, t);
  else
    bad(x, t, "unexpected character", end_of_unknown_character(x));
}

void pln_lex_next(pln_lexer *x, pln_token *t) {
  x->note.source.data = NULL;
  x->note.type.size = 0;
  bool good = skip_space_and_comments(x);
  *t = (pln_token){.row = x->row, .whole = {x->at, 0}};
  size_t column = (size_t)(x->at - x->line) + 1;
  t->column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
  if (!good)
    bad(x, t, "this comment is not closed", x->end);
  else if (x->at == x->end)
    t->kind = PLN_T_END;
  else if (is(*x->at, LETTER))
    lex_name(x, t);
  else if ((*x->at == '%' && !x->type_alone) || *x->at == '@')
    lex_sigil(x, t);
  else if (is(*x->at, DIGIT))
    lex_number(x, t);
  else if (*x->at == '"')
    lex_string(x, t);
  else if (*x->at == '#')
    lex_pragma(x, t);
  else
    lex_sign(x, t);
  x->after_dot = t->kind == PLN_T_DOT;
}

const char *pln_token_name(pln_token_kind kind) {
  static const char *const names[PLN_N_TOKENS] = {"the end",
                                                  "a token",
                                                  "a name",
                                                  "a string",
                                                  "a local variable",
                                                  "a graph variable",
                                                  "a global name",
                                                  "a number",
                                                  "#[version = ...]",
                                                  "#[metadata]",
                                                  "'('",
                                                  "')'",
                                                  "'{'",
                                                  "'}'",
                                                  "'['",
                                                  "']'",
                                                  "','",
                                                  "';'",
                                                  "':'",
                                                  "'.'",
                                                  "'='",
                                                  "'?'",
                                                  "'->'",
                                                  "'=>'",
                                                  "'+'",
                                                  "'-'",
                                                  "'*'",
                                                  "'/'",
                                                  "'//'",
                                                  "'%'",
                                                  "'<'",
                                                  "'<='",
                                                  "'>'",
                                                  "'>='",
                                                  "'=='",
                                                  "'!='",
                                                  "'def'",
                                                  "'fn'",
                                                  "'let'",
                                                  "'if'",
                                                  "'else'",
                                                  "'type'",
                                                  "'match'",
                                                  "'extern'",
                                                  "'free_var'",
                                                  "'ref'",
                                                  "'ref_read'",
                                                  "'ref_write'",
                                                  "'True'",
                                                  "'False'"};
  return names[kind];
}
