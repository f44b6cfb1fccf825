/* relay/parse/lex.h: the tokens of Relay text, for the files of the parser. */

#ifndef PLN_IR_RELAY_PARSE_LEX_H
#define PLN_IR_RELAY_PARSE_LEX_H

#include "base/base.h"

typedef enum pln_token_kind {
  PLN_T_END = 0,
  PLN_T_BAD,      /* `problem` is the reason; the lexer continues after it */
  PLN_T_NAME,     /* nn.relu, Cons, float32, "_", "domain::Type" */
  PLN_T_STRING,   /* "text" */
  PLN_T_LOCAL,    /* %name, %"any name" */
  PLN_T_TEMP,     /* %12 */
  PLN_T_GLOBAL,   /* @name, @"any name" */
  PLN_T_NUMBER,   /* digits and a suffix; no sign */
  PLN_T_VERSION,  /* #[version = "0.0.5"]: `text` is the quoted part */
  PLN_T_METADATA, /* #[metadata]: JSON follows */
  PLN_T_LPAREN,
  PLN_T_RPAREN,
  PLN_T_LBRACE,
  PLN_T_RBRACE,
  PLN_T_LBRACKET,
  PLN_T_RBRACKET,
  PLN_T_COMMA,
  PLN_T_SEMICOLON,
  PLN_T_COLON,
  PLN_T_DOT,
  PLN_T_ASSIGN,
  PLN_T_QUERY,
  PLN_T_ARROW,  /* -> */
  PLN_T_DARROW, /* => */
  PLN_T_PLUS,
  PLN_T_MINUS,
  PLN_T_STAR,
  PLN_T_SLASH,
  PLN_T_FLOOR, /* // and %, only in stand-alone types */
  PLN_T_PERCENT,
  PLN_T_LESS,
  PLN_T_LESS_EQUAL,
  PLN_T_GREATER,
  PLN_T_GREATER_EQUAL,
  PLN_T_EQUAL,
  PLN_T_NOT_EQUAL,
  /* keywords */
  PLN_T_DEF,
  PLN_T_FN,
  PLN_T_LET,
  PLN_T_IF,
  PLN_T_ELSE,
  PLN_T_TYPE,
  PLN_T_MATCH,
  PLN_T_EXTERN,
  PLN_T_FREE_VAR,
  PLN_T_REF,
  PLN_T_REF_READ,
  PLN_T_REF_WRITE,
  PLN_T_TRUE,
  PLN_T_FALSE,
  PLN_N_TOKENS
} pln_token_kind;

/* All slices point into the parsed text. */
typedef struct pln_token {
  uint8_t kind;        /* pln_token_kind */
  bool escaped;        /* `text` is quoted and contains backslashes */
  uint32_t row;        /* from 1 */
  uint32_t column;     /* from 1, in bytes */
  pln_slice whole;     /* as written */
  pln_slice text;      /* without sigil, quotes, suffix */
  pln_slice suffix;    /* of a number: "", "f16", "i64" */
  const char *problem; /* of a bad one */
} pln_token;

/* Annotations in a comment between tokens: `ty=T` at its start, and a span,
 * `span=S:row:column`, at its end. For a node of another framework the span is
 * the node's name, with row 0. */
typedef struct pln_note {
  pln_slice type;   /* the type's text, possibly followed by the span; empty:
                     * none */
  pln_slice source; /* data NULL: no span */
  uint32_t row, column;
} pln_note;

typedef struct pln_lexer {
  const char *at, *end;
  const char *line; /* start of the current row */
  uint32_t row;
  bool after_dot; /* the next digits are a field number: %0.1 */
  /* Parsing a stand-alone type: '/', '//' and '%' are operators on dims and do
   * not begin names or comments. Set before the first token. */
  bool type_alone;
  pln_note note; /* annotations before the last token */
} pln_lexer;

void pln_lex_begin(pln_lexer *lexer, pln_slice text);
/* The next token; PLN_T_END repeatedly at the end. */
void pln_lex_next(pln_lexer *lexer, pln_token *token);
/* The name of a token kind in messages: "'('", "a name", ... Static. */
const char *pln_token_name(pln_token_kind kind);

#endif
