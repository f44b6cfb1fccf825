/* ast.h: the syntax tree of one rule, as parse.c makes it from text.
 *
 * Nodes are in postorder: operands come before their user, and the nodes of a
 * subtree are contiguous. Evaluating an expression is therefore one loop over
 * an interval, and nothing recurses. */

#ifndef PLN_RULE_AST_H
#define PLN_RULE_AST_H

#include "base/base.h"

typedef enum pln_ast_kind {
  PLN_AST_NUMBER,   /* 1, 0.5, -1; `integer` if is_int, else `number` */
  PLN_AST_STRING,   /* "text" */
  PLN_AST_NAME,     /* float32, true, product: resolved by its user */
  PLN_AST_VAR,      /* ?x, ?x:const; in a list of operands also ?x... */
  PLN_AST_WILDCARD, /* _ */
  PLN_AST_REST,     /* ... */
  PLN_AST_CALL,     /* op(...), {a|b}(...), ?f{a|b}(...), ?f(...) */
  PLN_AST_TUPLE,    /* (a, b) */
  PLN_AST_LIST,     /* [a, b] */
  PLN_AST_NAMED,    /* name=a, an attribute; the operand is a */
  PLN_AST_SPREAD,   /* **?c: all attributes of the call bound to ?c */
  PLN_AST_FIELD,    /* a.0: a field of a tuple; a.name: a property */
  PLN_AST_INDEX,    /* a[i] */
  PLN_AST_ALT,      /* a | b */
  PLN_AST_BIND,     /* ?x@a: a, bound to ?x */
  PLN_AST_ROOTS,    /* a, b: the roots of a rule that has several */
  PLN_AST_UNARY,    /* -a, not a */
  PLN_AST_BINARY    /* a + b, a == b, a and b, ... */
} pln_ast_kind;

typedef enum pln_ast_operator {
  PLN_AST_OR,
  PLN_AST_AND,
  PLN_AST_NOT,
  PLN_AST_EQ,
  PLN_AST_NE,
  PLN_AST_LT,
  PLN_AST_LE,
  PLN_AST_GT,
  PLN_AST_GE,
  PLN_AST_IN,
  PLN_AST_ADD,
  PLN_AST_SUB,
  PLN_AST_MUL,
  PLN_AST_DIV,
  PLN_AST_FLOORDIV,
  PLN_AST_MOD,
  PLN_AST_NEG
} pln_ast_operator;

/* Constraints of a variable: X(NAME, text, what it requires). */
#define PLN_RULE_CONSTRAINTS(X)                                       \
  X(CONST, "const", "is a Constant")                                  \
  X(SCALAR, "scalar", "is a Constant of one element")                 \
  X(SPLAT, "splat", "is a Constant whose elements are all equal")     \
  X(FLOAT, "float", "has elements of a floating point type")          \
  X(INT, "int", "has elements of an integer type")                    \
  X(BOOL, "bool", "has elements of type bool")                        \
  X(STATIC, "static", "has a shape whose dims are all constants")     \
  X(ONCE, "once", "has no other use than the one matched")            \
  X(OPTIONAL, "optional", "may be omitted, as the last operands may") \
  X(ABSENT, "absent", "is omitted")                                   \
  X(DYNAMIC, "dynamic", "is not a Constant")

enum { PLN_RULE_MAX_ROOTS = 4 };

enum {
#define PLN_ROW(NAME, text, doc) PLN_CONSTRAINT_BIT_##NAME,
  PLN_RULE_CONSTRAINTS(PLN_ROW)
#undef PLN_ROW
      PLN_N_CONSTRAINTS
};
enum {
#define PLN_ROW(NAME, text, doc) \
  PLN_CONSTRAINT_##NAME = 1 << PLN_CONSTRAINT_BIT_##NAME,
  PLN_RULE_CONSTRAINTS(PLN_ROW)
#undef PLN_ROW
};

typedef struct pln_ast_node {
  uint8_t kind;            /* pln_ast_kind */
  uint8_t operator_;       /* UNARY, BINARY: pln_ast_operator */
  bool is_int;             /* NUMBER */
  bool is_rest;            /* VAR: ?x..., any number of operands */
  bool is_value;           /* belongs to an attribute or a condition, not to the
                            * program */
  uint32_t position;       /* byte offset in the text, for messages */
  uint32_t end;            /* the offset behind the node's text */
  uint32_t begin;          /* the first node of the subtree */
  uint32_t first, count;   /* operands: operands[first .. first + count) */
  uint32_t heads, n_heads; /* CALL: operator names, heads[...] */
  uint32_t constraints;    /* VAR, BIND */
  pln_slice text;          /* name of a VAR, NAME, NAMED, FIELD, BIND; the
                            * variable of a CALL's operator, else empty */
  /* What the name means, once the rule is checked: the variable of a VAR and
   * of a call of a bound operator; of other calls the function in a value, the
   * operator in a replacement. */
  uint32_t refers;
  int64_t integer;
  double number;
} pln_ast_node;

typedef struct pln_ast {
  pln_engine *engine;
  pln_slice source; /* the text; borrowed */
  const char *file; /* for messages */
  uint32_t row;
  pln_ast_node *nodes;
  uint32_t n, cap;
  uint32_t *operands;
  uint32_t n_operands, cap_operands;
  pln_slice *heads;
  uint32_t n_heads, cap_heads;
  pln_slice name; /* of the rule; empty without one */
  /* Roots; PLN_NONE: there is none. */
  uint32_t pattern, replacement, condition;
  bool equation; /* `a <=> b`: holds in both directions */
  /* Where the pattern begins, the arrow, and where the condition begins or the
   * text ends. */
  uint32_t begin, arrow, where;
} pln_ast;

/* Parses `[name:] pattern [=> replacement] [where condition]`, also with <=>
 * as the arrow; a pattern and its replacement may be lists, separated by
 * commas. Texts are borrowed from `source`. PLN_ERR_FORMAT with a diagnostic
 * that shows the line. Freed by pln_ast_free, also after a failure. */
pln_status pln_ast_parse(pln_engine *engine, pln_slice source, const char *file,
                         uint32_t row, pln_ast *out) PLN_CHECKED;
void pln_ast_free(pln_ast *ast);
/* Reports an error at a position of the text. */
pln_status pln_ast_error(const pln_ast *ast, pln_status code, uint32_t position,
                         const char *format, ...) PLN_PRINTF(4, 5);
/* The number of roots of a pattern or replacement, and root `i`. */
uint32_t pln_ast_count_roots(const pln_ast *ast, uint32_t at);
uint32_t pln_ast_root(const pln_ast *ast, uint32_t at, uint32_t i);
static inline uint32_t pln_ast_operand(const pln_ast *ast, uint32_t node,
                                       uint32_t i) {
  return ast->operands[ast->nodes[node].first + i];
}

#endif
