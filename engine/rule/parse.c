/* parse.c: text of a rule to its syntax tree.
 *
 *     add_zero: add(?x, 0) => ?x where ?x.rank > 0
 *
 * An operator precedence parser (Dijkstra's shunting yard, 1961) with a stack
 * of its own: operands wait on one stack, operators and open brackets on the
 * other. Patterns, replacements and conditions have one grammar; lower.c and
 * value.c refuse what has no meaning in their part. */

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rule/ast.h"

/* What waits on the operator stack. */
typedef enum pending_kind {
  PENDING_BINARY,
  PENDING_UNARY,
  PENDING_NAMED,  /* name=, reaches to the end of the operand */
  PENDING_SPREAD, /* ** */
  PENDING_BIND,   /* ?x@ */
  PENDING_CALL,   /* op( */
  PENDING_GROUP,  /* ( */
  PENDING_LIST,   /* [ */
  PENDING_INDEX   /* a[ */
} pending_kind;

typedef struct pending {
  uint8_t kind, operator_, precedence;
  bool comma; /* GROUP: had a comma, so it is a tuple */
  uint32_t position;
  uint32_t height;      /* operands below the bracket */
  pln_ast_node partial; /* CALL, NAMED, BIND: the node to be made */
} pending;

typedef struct parser {
  pln_ast *ast;
  const char *at, *end;
  uint32_t *out; /* finished subtrees */
  uint32_t n_out, cap_out;
  pending *wait;
  uint32_t n_wait, cap_wait;
  bool failed; /* a syntax error was reported */
} parser;

enum { LOWEST = 0, NAMED_PRECEDENCE = 1, PREFIX_PRECEDENCE = 9 };

/* ---------------------------------------------------------------- messages */

pln_status pln_ast_error(const pln_ast *ast, pln_status code, uint32_t position,
                         const char *format, ...) {
  char message[512], line[256];
  const char *text = ast->source.data, *end = text + ast->source.size;
  const char *at = text + position, *begin = at, *stop = at;
  uint32_t row = ast->row;
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  while (begin > text && begin[-1] != '\n')
    begin--;
  while (stop < end && *stop != '\n')
    stop++;
  for (const char *p = text; p < begin; p++)
    row += *p == '\n';
  snprintf(line, sizeof line, "%.*s", (int)(stop - begin), begin);
  pln_span span = {.source = ast->file,
                   .line = line,
                   .row = row,
                   .column = (uint32_t)(at - begin) + 1};
  return pln_diag_error(ast->engine, code, &span, "%s", message);
}

static uint32_t position_of(const parser *p, const char *at) {
  return (uint32_t)(at - p->ast->source.data);
}

static pln_status syntax_error(const parser *p, const char *at,
                               const char *message) {
  return pln_ast_error(p->ast, PLN_ERR_FORMAT, position_of(p, at), "%s",
                       message);
}

/* ------------------------------------------------------------------ lexing */

/* Skips spaces and comments, which begin with -- or #. */
static void skip_space(parser *p) {
  while (p->at < p->end) {
    bool comment = *p->at == '#' ||
                   (*p->at == '-' && p->at + 1 < p->end && p->at[1] == '-');
    if (!comment && !isspace((unsigned char)*p->at))
      return;
    if (comment)
      while (p->at < p->end && *p->at != '\n')
        p->at++;
    else
      p->at++;
  }
}

static bool next_is(parser *p, const char *text) {
  size_t n = strlen(text);
  skip_space(p);
  return (size_t)(p->end - p->at) >= n && !memcmp(p->at, text, n);
}

static bool accept(parser *p, const char *text) {
  if (!next_is(p, text))
    return false;
  p->at += strlen(text);
  return true;
}

static bool is_word_start(char c) {
  return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* A name; the names of operators have dots and colons: nn.relu,
 * com.microsoft::Gelu. */
static pln_slice read_word(parser *p, bool dotted) {
  const char *begin = p->at;
  while (p->at < p->end) {
    char next = p->at + 1 < p->end ? p->at[1] : 0;
    char after = p->at + 2 < p->end ? p->at[2] : 0;
    if (is_word(*p->at))
      p->at++;
    else if (dotted && *p->at == '.' && is_word_start(next))
      p->at++;
    else if (dotted && *p->at == ':' && next == ':' && is_word_start(after))
      p->at += 2;
    else
      break;
  }
  return (pln_slice){begin, (size_t)(p->at - begin)};
}

/* True if the next word is `word`, which is then skipped. */
static bool accept_word(parser *p, const char *word) {
  size_t n = strlen(word);
  if (!next_is(p, word) || (p->at + n < p->end && is_word(p->at[n])))
    return false;
  p->at += n;
  return true;
}

typedef struct foreign_sign {
  const char *found, *text;
} foreign_sign;

/* What to say of a sign that other languages have there. */
static const char *find_sign(const parser *p, const char *at, uint32_t n,
                             const foreign_sign *rows, const char *otherwise) {
  for (uint32_t i = 0; i < n; i++) {
    size_t size = strlen(rows[i].found);
    if ((size_t)(p->end - at) >= size && !memcmp(at, rows[i].found, size))
      return rows[i].text;
  }
  return otherwise;
}

/* What is missing behind a pattern, a replacement or a condition. */
static const char *expected_behind(const parser *p) {
  static const foreign_sign rows[] = {
      {"&&", "'&&' is written 'and'"},
      {"=", "'=' compares nothing; '==' expected"},
      {"if", "a condition begins with 'where'"}};
  return find_sign(p, p->at, PLN_COUNT(rows), rows,
                   "'=>', '<=>', 'where' or the end of the rule expected");
}

static const char *expected_operand(const parser *p) {
  static const foreign_sign rows[] = {{"->", "the arrow is written '=>'"},
                                      {"||", "'||' is written 'or'"},
                                      {"!", "'!' is written 'not'"},
                                      {"$", "a variable is written ?x"},
                                      {"%", "a variable is written ?x"}};
  bool second = *p->at == '>' || *p->at == '|'; /* of two characters */
  return find_sign(p, second ? p->at - 1 : p->at, PLN_COUNT(rows), rows,
                   "an expression expected");
}

/* --------------------------------------------------------------- the stacks */

static pln_status push_out(parser *p, uint32_t node) {
  PLN_TRY(pln_mem_grow(p->ast->engine, (void **)&p->out, &p->cap_out,
                       (size_t)p->n_out + 1, sizeof *p->out));
  p->out[p->n_out++] = node;
  return PLN_OK;
}

static pln_status push_wait(parser *p, const pending *w) {
  PLN_TRY(pln_mem_grow(p->ast->engine, (void **)&p->wait, &p->cap_wait,
                       (size_t)p->n_wait + 1, sizeof *p->wait));
  p->wait[p->n_wait] = *w;
  p->wait[p->n_wait++].height = p->n_out;
  return PLN_OK;
}

/* Makes a node of the finished subtrees from `height` on, which it
 * replaces. */
static pln_status finish(parser *p, pln_ast_node node, uint32_t height) {
  pln_ast *a = p->ast;
  node.count = p->n_out - height;
  node.end = position_of(p, p->at);
  node.first = a->n_operands;
  node.begin = node.count ? a->nodes[p->out[height]].begin : a->n;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->operands, &a->cap_operands,
                       (size_t)a->n_operands + node.count,
                       sizeof *a->operands));
  if (node.count)
    memcpy(a->operands + a->n_operands, p->out + height,
           node.count * sizeof *a->operands);
  a->n_operands += node.count;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->nodes, &a->cap, (size_t)a->n + 1,
                       sizeof *a->nodes));
  a->nodes[a->n] = node;
  p->n_out = height;
  return push_out(p, a->n++);
}

/* Applies the operator on top of the stack to what follows it. */
static pln_status reduce_top(parser *p) {
  pending w = p->wait[--p->n_wait];
  pln_ast_node node = w.partial;
  uint32_t operands = w.kind == PENDING_BINARY ? 2 : 1;
  node.position = w.position;
  node.operator_ = w.operator_;
  if (w.kind == PENDING_BINARY)
    node.kind = w.partial.kind;
  return finish(p, node, p->n_out - operands);
}

static bool is_bracket(const pending *w) {
  return w->kind >= PENDING_CALL;
}

/* Applies the operators above the innermost bracket that bind at least as
 * tightly as `precedence`. */
static pln_status reduce_above(parser *p, uint8_t precedence) {
  while (p->n_wait && !is_bracket(&p->wait[p->n_wait - 1]) &&
         p->wait[p->n_wait - 1].precedence >= precedence)
    PLN_TRY(reduce_top(p));
  return PLN_OK;
}

/* ---------------------------------------------------------------- operands */

/* Sets the integer; false: it has more than 64 bits. 2^63 stands behind a minus
 * only. It is no PLN_VALUE_INT, but a number of floats has it exactly. */
static bool read_integer(const parser *p, const char *text,
                         pln_ast_node *node) {
  const pending *before = p->n_wait ? &p->wait[p->n_wait - 1] : NULL;
  bool negated = before && before->kind == PENDING_UNARY &&
                 before->operator_ == PLN_AST_NEG;
  errno = 0;
  unsigned long long value = strtoull(text, NULL, 10);
  node->is_int = value <= INT64_MAX;
  node->integer = (int64_t)value;
  return errno == 0 && (node->is_int || (negated && value == 1ull << 63));
}

static pln_status read_number(parser *p) {
  char text[64];
  size_t n = 0;
  const char *begin = p->at;
  bool is_int = true;
  while (p->at < p->end && n + 1 < sizeof text) {
    char c = *p->at;
    bool exponent_sign = (c == '-' || c == '+') && n &&
                         (text[n - 1] == 'e' || text[n - 1] == 'E');
    if (c == '.' && p->at + 1 < p->end && !isdigit((unsigned char)p->at[1]))
      break;
    if (!isdigit((unsigned char)c) && c != '.' && c != 'e' && c != 'E' &&
        !exponent_sign)
      break;
    is_int = is_int && isdigit((unsigned char)c);
    text[n++] = *p->at++;
  }
  text[n] = 0;
  pln_ast_node node = {.kind = PLN_AST_NUMBER,
                       .is_int = is_int,
                       .position = position_of(p, begin)};
  char *rest;
  node.number = strtod(text, &rest);
  if (*rest || (p->at < p->end && is_word(*p->at)))
    return syntax_error(p, begin, "a number is malformed");
  if (is_int && !read_integer(p, text, &node))
    return syntax_error(p, begin,
                        "an integer is from -9223372036854775808 to "
                        "9223372036854775807");
  if (isinf(node.number))
    return syntax_error(p, begin,
                        "a number is at most 1.7976931348623157e308; infinity "
                        "is written inf");
  return finish(p, node, p->n_out);
}

static pln_status read_string(parser *p) {
  char quote = *p->at;
  const char *begin = p->at++, *text = p->at;
  while (p->at < p->end && *p->at != quote && *p->at != '\n')
    p->at++;
  if (p->at >= p->end || *p->at != quote)
    return syntax_error(p, begin, "a string is not closed");
  pln_ast_node node = {.kind = PLN_AST_STRING,
                       .text = {text, (size_t)(p->at - text)},
                       .position = position_of(p, begin)};
  p->at++;
  return finish(p, node, p->n_out);
}

static const char *const constraint_names[] = {
#define PLN_ROW(NAME, text, doc) text,
    PLN_RULE_CONSTRAINTS(PLN_ROW)
#undef PLN_ROW
};

static pln_status unknown_constraint(const parser *p, pln_slice word) {
  char name[64], hint[128];
  snprintf(name, sizeof name, "%.*s", (int)word.size, word.data);
  pln_suggest(name, PLN_N_CONSTRAINTS, constraint_names, hint, sizeof hint);
  return pln_ast_error(p->ast, PLN_ERR_NAME, position_of(p, word.data),
                       "there is no constraint '%s'%s", name, hint);
}

/* :const, :float:once; none is fine. */
static pln_status read_constraints(parser *p, uint32_t *out) {
  while (p->at < p->end && *p->at == ':' && p->at + 1 < p->end &&
         is_word_start(p->at[1])) {
    p->at++;
    pln_slice word = read_word(p, false);
    uint32_t i = 0;
    while (i < PLN_N_CONSTRAINTS &&
           (strlen(constraint_names[i]) != word.size ||
            memcmp(constraint_names[i], word.data, word.size)))
      i++;
    if (i == PLN_N_CONSTRAINTS)
      return unknown_constraint(p, word);
    *out |= 1u << i;
  }
  return PLN_OK;
}

static pln_status add_head(parser *p, pln_slice name) {
  pln_ast *a = p->ast;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->heads, &a->cap_heads,
                       (size_t)a->n_heads + 1, sizeof *a->heads));
  a->heads[a->n_heads++] = name;
  return PLN_OK;
}

/* {add|subtract}, after the opening brace. */
static pln_status read_heads(parser *p, pln_ast_node *call) {
  call->heads = p->ast->n_heads;
  do {
    skip_space(p);
    pln_slice name = read_word(p, true);
    if (!name.size)
      return syntax_error(p, p->at, "the name of an operator expected");
    PLN_TRY(add_head(p, name));
  } while (accept(p, "|"));
  call->n_heads = p->ast->n_heads - call->heads;
  if (!accept(p, "}"))
    return syntax_error(p, p->at, "'}' expected after names of operators");
  return PLN_OK;
}

static pln_status open_call(parser *p, const pln_ast_node *call) {
  if (!accept(p, "("))
    return syntax_error(p, p->at, "'(' expected after an operator");
  pending w = {
      .kind = PENDING_CALL, .position = call->position, .partial = *call};
  return push_wait(p, &w);
}

/* A variable, a variable operator, or the name that `@` gives to a
 * subpattern. *operand: an operand was read, and no bracket opened. */
static pln_status read_variable(parser *p, bool *operand) {
  const char *begin = p->at++;
  pln_ast_node node = {.kind = PLN_AST_VAR, .position = position_of(p, begin)};
  if (p->at >= p->end || !is_word_start(*p->at))
    return syntax_error(p, begin, "a name expected after '?'");
  node.text = read_word(p, false);
  bool call = p->at < p->end && (*p->at == '{' || *p->at == '(');
  if (call) {
    node.kind = PLN_AST_CALL;
    *operand = false;
    if (accept(p, "{"))
      PLN_TRY(read_heads(p, &node));
    return open_call(p, &node);
  }
  PLN_TRY(read_constraints(p, &node.constraints));
  if (accept(p, "@")) {
    node.kind = PLN_AST_BIND;
    pending w = {.kind = PENDING_BIND,
                 .precedence = PREFIX_PRECEDENCE + 1,
                 .position = node.position,
                 .partial = node};
    *operand = false;
    return push_wait(p, &w);
  }
  node.is_rest = accept(p, "...");
  return finish(p, node, p->n_out);
}

/* A name, a call, or `name=`. */
static pln_status read_name(parser *p, bool *operand) {
  const char *begin = p->at;
  pln_ast_node node = {.position = position_of(p, begin)};
  node.text = read_word(p, true);
  if (next_is(p, "(")) {
    node.kind = PLN_AST_CALL;
    node.heads = p->ast->n_heads;
    node.n_heads = 1;
    PLN_TRY(add_head(p, node.text));
    node.text = (pln_slice){0};
    *operand = false;
    return open_call(p, &node);
  }
  bool named = next_is(p, "=") && !next_is(p, "==") && !next_is(p, "=>");
  if (named) {
    p->at++;
    node.kind = PLN_AST_NAMED;
    pending w = {.kind = PENDING_NAMED,
                 .precedence = NAMED_PRECEDENCE,
                 .position = node.position,
                 .partial = node};
    *operand = false;
    return push_wait(p, &w);
  }
  node.kind =
      node.text.size == 1 && *begin == '_' ? PLN_AST_WILDCARD : PLN_AST_NAME;
  return finish(p, node, p->n_out);
}

static pln_status open_prefix(parser *p, pending_kind kind, pln_ast_kind node,
                              pln_ast_operator operator_, uint8_t precedence,
                              const char *at) {
  pending w = {.kind = (uint8_t)kind,
               .operator_ = (uint8_t)operator_,
               .precedence = precedence,
               .position = position_of(p, at),
               .partial = {.kind = (uint8_t)node}};
  return push_wait(p, &w);
}

/* Brackets and prefix operators, after which another operand follows. *done:
 * there was one. */
static pln_status read_prefix(parser *p, bool *done) {
  const char *at = p->at;
  *done = true;
  if (accept(p, "**"))
    return open_prefix(p, PENDING_SPREAD, PLN_AST_SPREAD, 0, NAMED_PRECEDENCE,
                       at);
  if (accept_word(p, "not"))
    return open_prefix(p, PENDING_UNARY, PLN_AST_UNARY, PLN_AST_NOT, 4, at);
  if (accept(p, "-"))
    return open_prefix(p, PENDING_UNARY, PLN_AST_UNARY, PLN_AST_NEG,
                       PREFIX_PRECEDENCE, at);
  if (accept(p, "("))
    return open_prefix(p, PENDING_GROUP, PLN_AST_TUPLE, 0, 0, at);
  if (accept(p, "["))
    return open_prefix(p, PENDING_LIST, PLN_AST_LIST, 0, 0, at);
  if (accept(p, "{")) {
    pln_ast_node call = {.kind = PLN_AST_CALL, .position = position_of(p, at)};
    PLN_TRY(read_heads(p, &call));
    return open_call(p, &call);
  }
  *done = false;
  return PLN_OK;
}

/* *operand: a complete operand was read. */
static pln_status read_operand(parser *p, bool *operand) {
  bool prefix;
  *operand = true;
  skip_space(p);
  if (p->at >= p->end)
    return syntax_error(p, p->end, "an expression expected, found the end");
  const char *at = p->at;
  if (accept(p, "...")) {
    pln_ast_node rest = {.kind = PLN_AST_REST, .position = position_of(p, at)};
    return finish(p, rest, p->n_out);
  }
  PLN_TRY(read_prefix(p, &prefix));
  *operand = !prefix;
  if (prefix)
    return PLN_OK;
  if (*p->at == '?')
    return read_variable(p, operand);
  if (isdigit((unsigned char)*p->at))
    return read_number(p);
  if (*p->at == '"' || *p->at == '\'')
    return read_string(p);
  if (is_word_start(*p->at))
    return read_name(p, operand);
  return syntax_error(p, p->at, expected_operand(p));
}

/* --------------------------------------------------------------- operators */

typedef struct binary_row {
  const char *text;
  uint8_t kind, operator_, precedence;
  bool word;
} binary_row;

/* Longer texts come before their prefixes. */
static const binary_row binaries[] = {
    {"|", PLN_AST_ALT, 0, 2, false},
    {"or", PLN_AST_BINARY, PLN_AST_OR, 2, true},
    {"and", PLN_AST_BINARY, PLN_AST_AND, 3, true},
    {"==", PLN_AST_BINARY, PLN_AST_EQ, 5, false},
    {"~=", PLN_AST_BINARY, PLN_AST_NE, 5, false},
    {"!=", PLN_AST_BINARY, PLN_AST_NE, 5, false},
    {"<=", PLN_AST_BINARY, PLN_AST_LE, 5, false},
    {">=", PLN_AST_BINARY, PLN_AST_GE, 5, false},
    {"<", PLN_AST_BINARY, PLN_AST_LT, 5, false},
    {">", PLN_AST_BINARY, PLN_AST_GT, 5, false},
    {"in", PLN_AST_BINARY, PLN_AST_IN, 5, true},
    {"+", PLN_AST_BINARY, PLN_AST_ADD, 6, false},
    {"-", PLN_AST_BINARY, PLN_AST_SUB, 6, false},
    {"*", PLN_AST_BINARY, PLN_AST_MUL, 7, false},
    {"//", PLN_AST_BINARY, PLN_AST_FLOORDIV, 7, false},
    {"/", PLN_AST_BINARY, PLN_AST_DIV, 7, false},
    {"%", PLN_AST_BINARY, PLN_AST_MOD, 7, false},
};

/* *done: a binary operator was read. */
static pln_status read_binary(parser *p, bool *done) {
  *done = false;
  skip_space(p);
  if (next_is(p, "<=>"))
    return PLN_OK;
  for (uint32_t i = 0; i < PLN_COUNT(binaries); i++) {
    const binary_row *row = &binaries[i];
    const char *at = p->at;
    if (row->word ? !accept_word(p, row->text) : !accept(p, row->text))
      continue;
    *done = true;
    PLN_TRY(reduce_above(p, row->precedence));
    return open_prefix(p, PENDING_BINARY, (pln_ast_kind)row->kind,
                       (pln_ast_operator)row->operator_, row->precedence, at);
  }
  return PLN_OK;
}

/* The innermost open bracket, or NULL. */
static pending *bracket(parser *p) {
  for (uint32_t i = p->n_wait; i-- > 0;)
    if (is_bracket(&p->wait[i]))
      return &p->wait[i];
  return NULL;
}

static pln_status close_bracket(parser *p, char close, const char *at) {
  PLN_TRY(reduce_above(p, LOWEST));
  bool square = close == ']';
  const pending *open = p->n_wait ? &p->wait[p->n_wait - 1] : NULL;
  bool fits = open && square == (open->kind == PENDING_LIST ||
                                 open->kind == PENDING_INDEX);
  if (!fits)
    return pln_ast_error(p->ast, PLN_ERR_FORMAT, position_of(p, at),
                         "'%c' closes nothing", close);
  pending w = p->wait[--p->n_wait];
  uint32_t height = w.height, inside = p->n_out - height;
  if (w.kind == PENDING_GROUP && !w.comma && inside == 1)
    return PLN_OK;
  if (w.kind == PENDING_INDEX && inside != 1)
    return syntax_error(p, at, "one index expected");
  w.partial.position = w.position;
  return finish(p, w.partial, w.kind == PENDING_INDEX ? height - 1 : height);
}

/* .0, .name, [index], which apply to the operand just read. *again: another
 * operand follows. */
static pln_status read_postfix(parser *p, bool *done, bool *again) {
  const char *at = p->at;
  *done = true;
  *again = false;
  if (p->at < p->end && *p->at == '.' && p->at + 1 < p->end &&
      is_word(p->at[1])) {
    p->at++;
    pln_ast_node field = {.kind = PLN_AST_FIELD,
                          .position = position_of(p, at)};
    field.text = read_word(p, false);
    return finish(p, field, p->n_out - 1);
  }
  if (p->at < p->end && *p->at == '[') {
    p->at++;
    *again = true;
    return open_prefix(p, PENDING_INDEX, PLN_AST_INDEX, 0, 0, at);
  }
  *done = false;
  return PLN_OK;
}

/* What may follow an operand. *again: another operand follows; *ended: the
 * expression is complete. */
static pln_status read_continuation(parser *p, bool *again, bool *ended) {
  bool done;
  *ended = false;
  PLN_TRY(read_postfix(p, &done, again));
  if (done)
    return PLN_OK;
  skip_space(p);
  const char *at = p->at;
  PLN_TRY(read_binary(p, &done));
  if (done) {
    *again = true;
    return PLN_OK;
  }
  pending *open = bracket(p);
  if (open && accept(p, ",")) {
    PLN_TRY(reduce_above(p, LOWEST));
    p->wait[p->n_wait - 1].comma = true;
    *again = true;
    return PLN_OK;
  }
  if (accept(p, ")"))
    return close_bracket(p, ')', at);
  if (accept(p, "]"))
    return close_bracket(p, ']', at);
  if (open)
    return syntax_error(p, at,
                        open->kind == PENDING_LIST ||
                                open->kind == PENDING_INDEX
                            ? "',' or ']' expected"
                            : "',' or ')' expected");
  *ended = true;
  return reduce_above(p, LOWEST);
}

/* op() and (): nothing between the brackets. */
static pln_status read_empty_bracket(parser *p, bool *done) {
  const pending *top = p->n_wait ? &p->wait[p->n_wait - 1] : NULL;
  const char *at = p->at;
  *done = false;
  if (!top || !is_bracket(top) || top->kind == PENDING_INDEX)
    return PLN_OK;
  if (top->height != p->n_out && !next_is(p, ")"))
    return PLN_OK;
  *done = top->kind == PENDING_LIST ? accept(p, "]") : accept(p, ")");
  return *done
             ? close_bracket(p, at < p->end && p->at[-1] == ']' ? ']' : ')', at)
             : PLN_OK;
}

/* Parses one expression; *root is its node. */
static pln_status parse_expression(parser *p, uint32_t *root) {
  bool again = true, ended = false, operand, empty;
  while (!ended) {
    if (again) {
      PLN_TRY(read_empty_bracket(p, &empty));
      if (empty) {
        again = false;
        continue;
      }
      PLN_TRY(read_operand(p, &operand));
      again = !operand;
      continue;
    }
    PLN_TRY(read_continuation(p, &again, &ended));
  }
  *root = p->out[--p->n_out];
  return PLN_OK;
}

/* name:, where the name may have spaces between it and the colon. */
static void read_rule_name(parser *p) {
  const char *begin = p->at;
  skip_space(p);
  pln_slice word = read_word(p, false);
  skip_space(p);
  bool colon = p->at < p->end && *p->at == ':' &&
               !(p->at + 1 < p->end && p->at[1] == ':');
  if (word.size && colon) {
    p->ast->name = word;
    p->at++;
  } else {
    p->at = begin;
  }
}

/* One expression, or several, separated by commas. */
static pln_status parse_roots(parser *p, uint32_t *root) {
  pln_ast_node roots = {.kind = PLN_AST_ROOTS};
  uint32_t height = p->n_out;
  skip_space(p);
  roots.position = position_of(p, p->at);
  PLN_TRY(parse_expression(p, root));
  if (!next_is(p, ","))
    return PLN_OK;
  PLN_TRY(push_out(p, *root));
  while (accept(p, ",")) {
    PLN_TRY(parse_expression(p, root));
    PLN_TRY(push_out(p, *root));
  }
  if (p->n_out - height > PLN_RULE_MAX_ROOTS)
    return pln_ast_error(p->ast, PLN_ERR_LIMIT, roots.position,
                         "a rule has at most %d roots", PLN_RULE_MAX_ROOTS);
  PLN_TRY(finish(p, roots, height));
  *root = p->out[--p->n_out];
  return PLN_OK;
}

uint32_t pln_ast_count_roots(const pln_ast *a, uint32_t at) {
  return a->nodes[at].kind == PLN_AST_ROOTS ? a->nodes[at].count : 1;
}

uint32_t pln_ast_root(const pln_ast *a, uint32_t at, uint32_t i) {
  return a->nodes[at].kind == PLN_AST_ROOTS ? pln_ast_operand(a, at, i) : at;
}

static pln_status parse_rule(parser *p) {
  pln_ast *a = p->ast;
  read_rule_name(p);
  a->begin = position_of(p, p->at);
  PLN_TRY(parse_roots(p, &a->pattern));
  skip_space(p);
  a->arrow = position_of(p, p->at);
  a->equation = accept(p, "<=>");
  if (a->equation || accept(p, "=>"))
    PLN_TRY(parse_roots(p, &a->replacement));
  skip_space(p);
  a->where = position_of(p, p->at);
  if (accept_word(p, "where"))
    PLN_TRY(parse_expression(p, &a->condition));
  skip_space(p);
  if (p->at < p->end)
    return syntax_error(p, p->at, expected_behind(p));
  return PLN_OK;
}

pln_status pln_ast_parse(pln_engine *engine, pln_slice source, const char *file,
                         uint32_t row, pln_ast *out) {
  *out = (pln_ast){.engine = engine,
                   .source = source,
                   .file = file,
                   .row = row,
                   .pattern = PLN_NONE,
                   .replacement = PLN_NONE,
                   .condition = PLN_NONE};
  if (source.size > UINT32_MAX / 4)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL, "a rule is too long");
  parser p = {.ast = out, .at = source.data, .end = source.data + source.size};
  pln_status status = parse_rule(&p);
  pln_mem_free(engine, p.out, p.cap_out * sizeof *p.out);
  pln_mem_free(engine, p.wait, p.cap_wait * sizeof *p.wait);
  return status;
}

void pln_ast_free(pln_ast *ast) {
  pln_engine *e = ast->engine;
  if (!e)
    return;
  pln_mem_free(e, ast->nodes, ast->cap * sizeof *ast->nodes);
  pln_mem_free(e, ast->operands, ast->cap_operands * sizeof *ast->operands);
  pln_mem_free(e, ast->heads, ast->cap_heads * sizeof *ast->heads);
}
