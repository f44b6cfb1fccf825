/* tir/script/parse/lex.h: the tokens of TVMScript, which has Python's lines and
 * indentation. */

#ifndef PLN_IR_TIR_SCRIPT_PARSE_LEX_H
#define PLN_IR_TIR_SCRIPT_PARSE_LEX_H

#include "base/base.h"

typedef enum pln_script_token_kind {
  PLN_S_END = 0,
  PLN_S_BAD,     /* `problem` is the reason; the lexer continues after it */
  PLN_S_NEWLINE, /* the end of a line outside brackets, or ';' */
  PLN_S_NAME,
  PLN_S_INTEGER,
  PLN_S_FLOAT,
  PLN_S_STRING,
  PLN_S_LPAREN,
  PLN_S_RPAREN,
  PLN_S_LBRACKET,
  PLN_S_RBRACKET,
  PLN_S_LBRACE,
  PLN_S_RBRACE,
  PLN_S_COMMA,
  PLN_S_COLON,
  PLN_S_DOT,
  PLN_S_ASSIGN,
  PLN_S_AT,
  PLN_S_ARROW,
  PLN_S_PLUS,
  PLN_S_MINUS,
  PLN_S_STAR,
  PLN_S_SLASH,
  PLN_S_FLOOR, /* // */
  PLN_S_PERCENT,
  PLN_S_EQUAL,
  PLN_S_NOT_EQUAL,
  PLN_S_LESS,
  PLN_S_LESS_EQUAL,
  PLN_S_GREATER,
  PLN_S_GREATER_EQUAL,
  PLN_S_BIT_AND,
  PLN_S_BIT_OR,
  PLN_S_BIT_XOR,
  PLN_S_BIT_NOT,
  PLN_S_SHIFT_LEFT,
  PLN_S_SHIFT_RIGHT,
  PLN_S_AUGMENT, /* += and others; `text` is the operator */
  /* keywords */
  PLN_S_AND,
  PLN_S_AS,
  PLN_S_ASSERT,
  PLN_S_CLASS,
  PLN_S_DEF,
  PLN_S_ELIF,
  PLN_S_ELSE,
  PLN_S_FALSE,
  PLN_S_FOR,
  PLN_S_FROM,
  PLN_S_IF,
  PLN_S_IMPORT,
  PLN_S_IN,
  PLN_S_LAMBDA,
  PLN_S_NONE,
  PLN_S_NOT,
  PLN_S_OR,
  PLN_S_PASS,
  PLN_S_RETURN,
  PLN_S_TRUE,
  PLN_S_WHILE,
  PLN_S_WITH,
  PLN_N_SCRIPT_TOKENS
} pln_script_token_kind;

/* All slices point into the parsed text. */
typedef struct pln_script_token {
  uint8_t kind;        /* pln_script_token_kind */
  bool escaped;        /* a string with backslashes */
  uint32_t indent;     /* of the first token of a line: its column, from 0 */
  pln_slice whole;     /* as written */
  pln_slice text;      /* of a string: without quotes */
  const char *problem; /* of a bad one */
} pln_script_token;

typedef struct pln_script_lexer {
  const char *begin, *at, *end;
  uint32_t depth; /* open brackets: inside them, lines do not end */
  bool in_line;   /* a token of the current line was returned */
  bool after_semicolon;
  uint32_t indent; /* of the current line */
} pln_script_lexer;

void pln_script_lex_begin(pln_script_lexer *lexer, pln_slice text);
/* The next token; PLN_S_END repeatedly at the end, after a PLN_S_NEWLINE. */
void pln_script_lex_next(pln_script_lexer *lexer, pln_script_token *token);
/* After an error: moves to the end of the current line, outside brackets. */
void pln_script_lex_skip_line(pln_script_lexer *lexer);
/* True if an '=' that is no '==' follows the last token. */
bool pln_script_lex_before_assign(const pln_script_lexer *lexer);
/* The name of a token kind in messages: "'('", "a name", ... Static. */
const char *pln_script_token_name(pln_script_token_kind kind);

#endif
