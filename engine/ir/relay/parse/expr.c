/* relay/parse/expr.c: the expression parser.
 *
 * relay/parse/parse.c runs it for each body. Open expressions are frames on a
 * stack, so nesting is limited by memory only; finished values are on another
 * stack. After a syntax error parsing continues after the next ';', or at the
 * next '}', of the innermost block. */

#include "ir/graph/describe.h"
#include "ir/infer/apply.h"
#include "ir/relay/parse/parse.h"

static pln_parse_frame *top_expr_frame(pln_parser *p) {
  return &p->frames[p->n_frames - 1];
}

/* ------------------------------------------------------------------ frames */

pln_status pln_parse_open(pln_parser *p, pln_frame_kind kind,
                          const pln_token *token) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->frames, &p->cap_frames,
                       (size_t)p->n_frames + 1, sizeof *p->frames));
  p->frames[p->n_frames++] = (pln_parse_frame){.kind = (uint8_t)kind,
                                               .first = p->n_values,
                                               .mark = p->n_bindings,
                                               .types = p->n_types,
                                               .token = *token};
  p->mode = PLN_WANT_OPERAND;
  return PLN_OK;
}

pln_status pln_parse_open_sequence(pln_parser *p) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_SEQUENCE, &p->token));
  p->mode = PLN_WANT_ITEM;
  return PLN_OK;
}

void pln_parse_close(pln_parser *p) {
  const pln_parse_frame *f = &p->frames[--p->n_frames];
  p->n_values = f->first;
  p->n_types = f->types;
  pln_parse_unbind(p, f->mark);
}

/* --------------------------------------------------------------- sequences */

/* After an erroneous declaration the variable is bound with unknown type, so
 * that its uses are not errors. */
static pln_status bind_to_anything(pln_parser *p, pln_symbol name) {
  pln_ref var;
  PLN_TRY(pln_parse_error_value(p, &var));
  return pln_parse_bind(p, PLN_SPACE_LOCAL, name, var);
}

/* %x: T = after `let` */
static pln_status read_let(pln_parser *p) {
  pln_token token = p->token;
  pln_symbol name = 0;
  pln_ref var;
  pln_status status = pln_parse_binder(p, &name, &var);
  if (pln_parse_bad_text(p, status) && name)
    PLN_TRY(bind_to_anything(p, name));
  PLN_TRY(status);
  PLN_TRY(pln_parse_open(p, PLN_FRAME_LET, &token));
  top_expr_frame(p)->data = var;
  top_expr_frame(p)->name = name;
  PLN_TRY(pln_parse_expect(p, PLN_T_ASSIGN));
  top_expr_frame(p)->flag = p->token.kind == PLN_T_FN; /* a let-bound function
                                                        * may be recursive */
  return top_expr_frame(p)->flag ? pln_parse_bind(p, PLN_SPACE_LOCAL, name, var)
                                 : PLN_OK;
}

/* free_var %x: T; */
static pln_status read_free_var(pln_parser *p) {
  pln_symbol name;
  pln_ref var;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_binder(p, &name, &var));
  PLN_TRY(pln_parse_bind(p, PLN_SPACE_LOCAL, name, var));
  return pln_parse_expect(p, PLN_T_SEMICOLON);
}

/* %0 = or %0: T = */
static pln_status read_binding(pln_parser *p) {
  pln_token token = p->token;
  uint32_t number;
  bool typed;
  pln_type type = 0;
  PLN_TRY(pln_parse_temp(p, &number));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_COLON, &typed));
  if (typed)
    PLN_TRY(pln_parse_type(p, &type));
  PLN_TRY(pln_parse_open(p, PLN_FRAME_BIND, &token));
  top_expr_frame(p)->data = number;
  top_expr_frame(p)->ret = type;
  return pln_parse_expect(p, PLN_T_ASSIGN);
}

static bool at_binding(const pln_parser *p) {
  pln_token_kind next = p->token.kind == PLN_T_TEMP ? pln_parse_peek(p) : 0;
  return next == PLN_T_ASSIGN || next == PLN_T_COLON;
}

/* `keep` before an expression; a constructor may have that name. */
static bool at_kept(const pln_parser *p) {
  static const uint8_t first[] = {
      PLN_T_NAME, PLN_T_STRING, PLN_T_TEMP,  PLN_T_NUMBER,   PLN_T_GLOBAL,
      PLN_T_TRUE, PLN_T_FALSE,  PLN_T_MINUS, PLN_T_LOCAL,    PLN_T_IF,
      PLN_T_FN,   PLN_T_MATCH,  PLN_T_REF,   PLN_T_REF_READ, PLN_T_REF_WRITE};
  return pln_parse_is(p, "keep") &&
         memchr(first, (int)pln_parse_peek(p), sizeof first) != NULL;
}

/* keep %0 = e; or keep e; */
static pln_status read_kept(pln_parser *p) {
  PLN_TRY(pln_parse_next(p));
  if (!at_binding(p))
    return pln_parse_open(p, PLN_FRAME_KEEP, &p->token);
  PLN_TRY(read_binding(p));
  top_expr_frame(p)->flag = true;
  return PLN_OK;
}

/* %x = e; without `let`: reported, and parsed as a let. */
static pln_status read_binding_without_let(pln_parser *p) {
  PLN_TRY(pln_parse_report(
      p, &p->token, PLN_ERR_FORMAT, "a variable is bound by 'let %.*s = ...'",
      p->token.whole.size > 70 ? 70 : (int)p->token.whole.size,
      p->token.whole.data));
  return read_let(p);
}

static pln_status read_item(pln_parser *p) {
  if (p->token.kind == PLN_T_LET) {
    PLN_TRY(pln_parse_next(p));
    return read_let(p);
  }
  if (p->token.kind == PLN_T_LOCAL && pln_parse_peek(p) == PLN_T_ASSIGN)
    return read_binding_without_let(p);
  if (p->token.kind == PLN_T_FREE_VAR)
    return read_free_var(p);
  if (at_binding(p))
    return read_binding(p);
  if (at_kept(p))
    return read_kept(p);
  p->mode = PLN_WANT_OPERAND;
  return PLN_OK;
}

/* Adds a statement to the sequence below and continues after the ';'. `var`
 * PLN_NONE: the value is kept. */
static pln_status add_statement(pln_parser *p, pln_ref var, pln_ref value) {
  PLN_TRY(pln_parse_push(p, var));
  PLN_TRY(pln_parse_push(p, value));
  top_expr_frame(p)->n++;
  p->mode = PLN_WANT_ITEM;
  return pln_parse_semicolon(p);
}

/* Reports a value that does not have its variable's type, and binds the
 * variable to one that does. */
static pln_status check_let(pln_parser *p, const pln_token *token, pln_ref var,
                            pln_ref *value) {
  pln_type declared = p->b->graph->nodes[var].type, both;
  pln_type given = p->b->graph->nodes[*value].type;
  pln_description first, second;
  bool fits;
  PLN_TRY(pln_type_unify(p->engine, declared, given, &both, &fits));
  if (fits)
    return PLN_OK;
  PLN_TRY(pln_parse_report(
      p, token, PLN_ERR_TYPE,
      "this variable is declared to be %s, but its value is %s",
      pln_describe_type(p->engine, declared, &first),
      pln_describe_type(p->engine, given, &second)));
  return pln_parse_error_value(p, value);
}

static pln_status add_let(pln_parser *p, const pln_token *token, pln_ref var,
                          pln_ref value) {
  pln_node *n = &p->b->graph->nodes[var];
  if (n->type == 0) /* so that uses are typed as they are parsed */
    n->type = p->b->graph->nodes[value].type;
  else
    PLN_TRY(check_let(p, token, var, &value));
  return add_statement(p, var, value);
}

static pln_status add_kept(pln_parser *p, const pln_token *token) {
  const pln_node *n = &p->b->graph->nodes[p->value];
  bool again = n->flags & PLN_NODE_KEEP;
  if (pln_can_be_kept((pln_kind)n->kind) && !again) {
    pln_build_extra_root(p->b, p->value);
    return add_statement(p, PLN_NONE, p->value);
  }
  PLN_TRY(pln_parse_report(p, token, PLN_ERR_TYPE, "a %s %s",
                           pln_kind_name((pln_kind)n->kind),
                           again ? "is kept twice" : "cannot be kept"));
  p->mode = PLN_WANT_ITEM;
  return pln_parse_expect(p, PLN_T_SEMICOLON);
}

static pln_status keep_part(pln_parser *p) {
  pln_token token = top_expr_frame(p)->token;
  pln_parse_close(p);
  return add_kept(p, &token);
}

static pln_status let_part(pln_parser *p) {
  pln_parse_frame f = *top_expr_frame(p);
  pln_parse_close(p);
  PLN_TRY(pln_parse_bind(p, PLN_SPACE_LOCAL, f.name, f.data));
  return add_let(p, &f.token, f.data, p->value);
}

static pln_status bind_part(pln_parser *p) {
  pln_parse_frame f = *top_expr_frame(p);
  pln_parse_close(p);
  p->mode = PLN_WANT_ITEM;
  if (f.ret)
    PLN_TRY(pln_parse_declare(p, &f.token, p->value, f.ret));
  PLN_TRY(pln_parse_number_is(p, PLN_NUMBERED_TEMP, f.data, p->value));
  if (f.flag)
    return add_kept(p, &f.token);
  return pln_parse_semicolon(p);
}

/* `e; ...` is `let %_ = e; ...`; else the value is the result. */
static pln_status sequence_part(pln_parser *p) {
  pln_ref var, value = p->value;
  if (p->token.kind == PLN_T_SEMICOLON) {
    PLN_TRY(pln_parse_error_value(p, &var));
    return add_let(p, &p->token, var, value);
  }
  const pln_parse_frame *f = top_expr_frame(p);
  for (uint32_t i = f->n; i-- > 0;) {
    const pln_ref *let = p->values + f->first + 2 * i;
    size_t mark = pln_diag_count(p->engine);
    pln_status status =
        let[0] == PLN_NONE
            ? pln_build_floating_extra_root(p->b, let[1], value, &value)
            : pln_build_floating_let(p->b, let[0], let[1], value, &value);
    PLN_TRY(pln_parse_located(p, &f->token, mark, status));
  }
  pln_parse_close(p);
  p->value = value;
  p->mode = PLN_HAVE_VALUE;
  return PLN_OK;
}

/* ------------------------------------------------------------------- calls */

/* At the '(' of the newest frame, a call. */
pln_status pln_parse_arguments(pln_parser *p) {
  PLN_TRY(pln_parse_next(p));
  return p->token.kind == PLN_T_RPAREN || pln_parse_at_attr(p)
             ? pln_parse_finish_call(p)
             : PLN_OK;
}

static pln_status call_part(pln_parser *p) {
  bool comma;
  PLN_TRY(pln_parse_push(p, p->value));
  PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  if (!comma && p->token.kind != PLN_T_RPAREN)
    return pln_parse_report_expected(p, "',' or ')'");
  p->mode = PLN_WANT_OPERAND;
  return !comma || p->token.kind == PLN_T_RPAREN || pln_parse_at_attr(p) ||
                 pln_parse_at_meta_attrs(p)
             ? pln_parse_finish_call(p)
             : PLN_OK;
}

static pln_status apply(pln_parser *p) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_APPLY, &p->token));
  PLN_TRY(pln_parse_push(p, p->value));
  return pln_parse_arguments(p);
}

/* .0 */
static pln_status project(pln_parser *p) {
  pln_token token = p->token;
  uint32_t index;
  pln_ref node = 0;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_count(p, UINT32_MAX, &index));
  size_t mark = pln_diag_count(p->engine);
  pln_status status = pln_build_tuple_get_item(p->b, p->value, index, &node);
  return pln_parse_finish_node(p, &token, mark, status, node);
}

/* --------------------------------------------------------- infix operators */

static const struct {
  uint8_t token, binds;
  const char *op;
} signs[] = {
    {PLN_T_STAR, 12, "multiply"},  {PLN_T_SLASH, 12, "divide"},
    {PLN_T_PLUS, 10, "add"},       {PLN_T_MINUS, 10, "subtract"},
    {PLN_T_LESS, 8, "less"},       {PLN_T_LESS_EQUAL, 8, "less_equal"},
    {PLN_T_GREATER, 8, "greater"}, {PLN_T_GREATER_EQUAL, 8, "greater_equal"},
    {PLN_T_EQUAL, 7, "equal"},     {PLN_T_NOT_EQUAL, 7, "not_equal"}};

/* The operator table's row for the current token, or the number of rows. */
static uint32_t sign_at(const pln_parser *p) {
  uint32_t i = 0;
  if (p->token.kind < PLN_T_PLUS || p->token.kind > PLN_T_NOT_EQUAL)
    return PLN_COUNT(signs);
  while (i < PLN_COUNT(signs) && signs[i].token != p->token.kind)
    i++;
  return i;
}

static pln_status binary_part(pln_parser *p) {
  pln_parse_frame f = *top_expr_frame(p);
  pln_ref args[2] = {p->values[f.first], p->value}, node = 0;
  pln_op op = pln_op_find(p->engine, pln_text(signs[f.sign].op));
  size_t mark = pln_diag_count(p->engine);
  pln_status status = pln_build_call(p->b, op, 0, 0, 2, args, &node);
  pln_parse_close(p);
  PLN_TRY(pln_parse_finish_node(p, &f.token, mark, status, node));
  p->fresh = false;
  return PLN_OK;
}

/* The atom is complete. The operator that follows decides what it is an operand
 * of. */
static pln_status end_atom(pln_parser *p) {
  uint32_t sign = sign_at(p);
  uint8_t binds = sign < PLN_COUNT(signs) ? signs[sign].binds : 0;
  if (p->fresh) {
    PLN_TRY(pln_parse_record_place(p, p->value, &p->note));
    PLN_TRY(pln_parse_annotated_type(p, p->value, &p->note));
  }
  while (p->n_frames > 0 && top_expr_frame(p)->kind == PLN_FRAME_BINARY &&
         signs[top_expr_frame(p)->sign].binds >= binds)
    PLN_TRY(binary_part(p));
  p->mode = PLN_HAVE_VALUE;
  if (binds == 0)
    return PLN_OK;
  PLN_TRY(pln_parse_open(p, PLN_FRAME_BINARY, &p->token));
  top_expr_frame(p)->sign = (uint8_t)sign;
  PLN_TRY(pln_parse_push(p, p->value));
  return pln_parse_next(p);
}

static pln_status after_atom(pln_parser *p) {
  if (p->token.kind == PLN_T_LPAREN)
    return apply(p);
  if (p->token.kind == PLN_T_DOT)
    return project(p);
  return end_atom(p);
}

/* ---------------------------------------------------------------- brackets */

/* (e), (e,), (e, e) */
static pln_status paren_part(pln_parser *p) {
  pln_parse_frame *f = top_expr_frame(p);
  pln_token token = f->token;
  bool comma;
  pln_ref node = 0;
  PLN_TRY(pln_parse_push(p, p->value));
  PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  f->flag = f->flag || comma;
  if (comma && p->token.kind != PLN_T_RPAREN)
    return pln_parse_open_sequence(p);
  if (p->token.kind != PLN_T_RPAREN)
    return pln_parse_report_expected(p, "',' or ')'");
  PLN_TRY(pln_parse_next(p));
  if (f->flag) {
    PLN_TRY(pln_build_tuple(p->b, p->n_values - f->first, p->values + f->first,
                            &node));
    pln_parse_close(p);
    return pln_parse_finish_node(p, &token, 0, PLN_OK, node);
  }
  pln_parse_close(p);
  p->fresh = false;
  p->mode = PLN_HAVE_ATOM;
  return PLN_OK;
}

static pln_status block_part(pln_parser *p) {
  PLN_TRY(pln_parse_expect(p, PLN_T_RBRACE));
  pln_parse_close(p);
  p->fresh = false;
  p->mode = PLN_HAVE_ATOM;
  return PLN_OK;
}

/* ----------------------------------------------------------------- machine */

static pln_status part(pln_parser *p) {
  switch ((pln_frame_kind)top_expr_frame(p)->kind) {
  case PLN_FRAME_SEQUENCE: return sequence_part(p);
  case PLN_FRAME_LET: return let_part(p);
  case PLN_FRAME_BIND: return bind_part(p);
  case PLN_FRAME_KEEP: return keep_part(p);
  case PLN_FRAME_BINARY: return binary_part(p);
  case PLN_FRAME_CALL:
  case PLN_FRAME_APPLY:
  case PLN_FRAME_CELL: return call_part(p);
  case PLN_FRAME_PAREN: return paren_part(p);
  case PLN_FRAME_BLOCK: return block_part(p);
  case PLN_FRAME_IF: return pln_parse_if_part(p);
  case PLN_FRAME_MATCH: return pln_parse_match_part(p);
  case PLN_FRAME_FUNCTION: return pln_parse_function_part(p);
  }
  return PLN_OK;
}

static pln_status parse_expr_step(pln_parser *p) {
  switch (p->mode) {
  case PLN_WANT_ITEM: return read_item(p);
  case PLN_WANT_OPERAND: return pln_parse_atom(p);
  case PLN_HAVE_ATOM: return after_atom(p);
  case PLN_HAVE_VALUE: break;
  }
  return part(p);
}

/* ------------------------------------------------------------- going on */

/* Skips to the next ';' or '}' outside inner blocks, of which `depth` are open.
 * False when a definition, the metadata or the end comes first. */
static bool find_end(pln_parser *p, uint32_t depth) {
  for (;;) {
    switch (p->token.kind) {
    case PLN_T_END:
    case PLN_T_METADATA:
    case PLN_T_DEF: return false;
    case PLN_T_LBRACE: depth++; break;
    case PLN_T_RBRACE:
      if (depth-- == 0)
        return true;
      break;
    case PLN_T_SEMICOLON:
      if (depth == 0)
        return true;
      break;
    default: break;
    }
    do
      pln_lex_next(&p->lexer, &p->token);
    while (p->token.kind == PLN_T_BAD);
  }
}

/* The innermost sequence in braces; PLN_NONE: none. */
static uint32_t find_block(const pln_parser *p) {
  for (uint32_t i = p->n_frames; i-- > 1;) {
    const pln_parse_frame *outer = &p->frames[i - 1];
    bool braces =
        outer->kind == PLN_FRAME_BLOCK || outer->kind == PLN_FRAME_FUNCTION ||
        (outer->kind == PLN_FRAME_IF && p->frames[i].first > outer->first) ||
        (outer->kind == PLN_FRAME_MATCH && outer->braces);
    if (p->frames[i].kind == PLN_FRAME_SEQUENCE && braces)
      return i;
  }
  return PLN_NONE;
}

/* Number of open braces inside `block`: one per match whose arms have begun. */
static uint32_t open_braces(const pln_parser *p, uint32_t block) {
  uint32_t n = 0;
  for (uint32_t i = block + 1; block != PLN_NONE && i < p->n_frames; i++) {
    uint32_t next = i + 1 < p->n_frames ? p->frames[i + 1].first : p->n_values;
    n += p->frames[i].kind == PLN_FRAME_MATCH && next > p->frames[i].first;
  }
  return n;
}

/* Binds the variable of the abandoned item with unknown type. */
static pln_status bind_anything(pln_parser *p, const pln_parse_frame *f) {
  pln_ref node;
  if (f->kind == PLN_FRAME_LET)
    return pln_parse_bind(p, PLN_SPACE_LOCAL, f->name, f->data);
  if (f->kind != PLN_FRAME_BIND)
    return PLN_OK;
  PLN_TRY(pln_parse_error_value(p, &node));
  return pln_parse_number_is(p, PLN_NUMBERED_TEMP, f->data, node);
}

static pln_status recover(pln_parser *p) {
  uint32_t block = find_block(p);
  bool found = find_end(p, open_braces(p, block));
  if (block == PLN_NONE || !found) {
    while (p->n_frames > 0)
      pln_parse_close(p);
    return PLN_ERR_FORMAT;
  }
  pln_parse_frame item = {.kind = PLN_FRAME_SEQUENCE};
  while (p->n_frames > block + 1) {
    item = *top_expr_frame(p);
    pln_parse_close(p);
  }
  p->n_values = top_expr_frame(p)->first + 2 * top_expr_frame(p)->n;
  PLN_TRY(bind_anything(p, &item));
  if (p->token.kind == PLN_T_SEMICOLON) {
    p->mode = PLN_WANT_ITEM;
    return pln_parse_next(p);
  }
  p->mode = PLN_HAVE_VALUE;
  return pln_parse_error_value(p, &p->value);
}

pln_status pln_parse_run(pln_parser *p, pln_ref *out) {
  while (p->n_frames > 0) {
    PLN_TRY(pln_poll_stoppable(p->engine));
    pln_status status = parse_expr_step(p);
    if (pln_parse_bad_text(p, status))
      status = recover(p);
    PLN_TRY(status);
  }
  *out = p->value;
  return PLN_OK;
}
