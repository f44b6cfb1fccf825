/* relay/parse/dim.c: parses dims: `4`, `?`, `N`, `2*N-1`, `floordiv(N, 2)`,
 * `meta[tir.Var][0]`.
 *
 * Called for the shapes of tensor types. Dijkstra's shunting-yard algorithm
 * with two stacks of fixed size; a dim that needs more is refused. */

#include "ir/relay/metadata/read_section.h"
#include "ir/relay/parse/parse.h"

enum { MOST = 128 };

/* Entries of the operator stack: brackets (a call is CALL before its comma and
 * CALL_SECOND after it), then operators in ascending order of precedence. */
typedef enum dim_operator_kind {
  OPEN,
  CALL,
  CALL_SECOND,
  ADD,
  SUB,
  MUL,
  DIV,
  FLOOR,
  MODULO,
  NEGATE
} dim_operator_kind;

typedef struct dim_operator {
  uint8_t kind; /* dim_operator_kind */
  uint8_t op;   /* pln_dim_op of a call */
} dim_operator;

typedef struct dim_parser {
  pln_parser *p;
  pln_dim dims[MOST];
  uint32_t n_dims;
  dim_operator signs[MOST];
  uint32_t n_signs;
} dim_parser;

static const struct {
  const char *name;
  pln_dim_op op;
} functions[] = {{"add", PLN_DIM_ADD},           {"sub", PLN_DIM_SUB},
                 {"mul", PLN_DIM_MUL},           {"floordiv", PLN_DIM_FLOORDIV},
                 {"truncdiv", PLN_DIM_TRUNCDIV}, {"floormod", PLN_DIM_FLOORMOD},
                 {"min", PLN_DIM_MIN},           {"max", PLN_DIM_MAX}};

static pln_status push_sign(dim_parser *y, dim_operator_kind kind,
                            pln_dim_op op) {
  if (y->n_signs == MOST)
    return pln_parse_fail(y->p, &y->p->token, "this dim is nested too deep");
  y->signs[y->n_signs++] = (dim_operator){(uint8_t)kind, (uint8_t)op};
  return PLN_OK;
}

static pln_status push_dim(dim_parser *y, pln_dim dim) {
  if (y->n_dims == MOST)
    return pln_parse_fail(y->p, &y->p->token, "this dim is too long");
  y->dims[y->n_dims++] = dim;
  return PLN_OK;
}

static pln_status apply(dim_parser *y, pln_dim_op op) {
  pln_dim b = y->dims[--y->n_dims];
  pln_dim *a = &y->dims[y->n_dims - 1];
  return pln_dim_binary(y->p->engine, op, *a, b, a);
}

/* Pops the top operator, which must not be a bracket, and applies it. */
static pln_status apply_dim_operator(dim_parser *y) {
  pln_dim *top = &y->dims[y->n_dims - 1];
  switch ((dim_operator_kind)y->signs[--y->n_signs].kind) {
  case ADD: return apply(y, PLN_DIM_ADD);
  case SUB: return apply(y, PLN_DIM_SUB);
  case MUL: return apply(y, PLN_DIM_MUL);
  case DIV: return apply(y, PLN_DIM_TRUNCDIV);
  case FLOOR: return apply(y, PLN_DIM_FLOORDIV);
  case MODULO: return apply(y, PLN_DIM_FLOORMOD);
  case NEGATE: return pln_dim_binary(y->p->engine, PLN_DIM_SUB, 0, *top, top);
  case OPEN:
  case CALL:
  case CALL_SECOND: break;
  }
  return PLN_OK;
}

/* Applies the operators down to the newest bracket whose precedence is at least
 * that of `kind`. */
static pln_status reduce_to(dim_parser *y, dim_operator_kind kind) {
  while (y->n_signs > 0 && y->signs[y->n_signs - 1].kind >= ADD &&
         y->signs[y->n_signs - 1].kind >= kind)
    PLN_TRY(apply_dim_operator(y));
  return PLN_OK;
}

/* ---------------------------------------------------------------- operands */

/* Parses a name: a symbol, a function if a "(" follows (*open is set), or
 * meta[tir.Var][i]. */
static pln_status parse_dim_name(dim_parser *y, bool *open) {
  pln_parser *p = y->p;
  pln_slice name;
  pln_dim dim;
  if (pln_parse_is(p, "meta") && pln_parse_peek(p) == PLN_T_LBRACKET) {
    PLN_TRY(pln_metadata_read_dim(p, &dim));
    return push_dim(y, dim);
  }
  *open = p->token.kind == PLN_T_NAME && pln_parse_peek(p) == PLN_T_LPAREN;
  PLN_TRY(pln_parse_text(p, &p->token, &name));
  for (size_t i = 0; *open && i < PLN_COUNT(functions); i++)
    if (pln_slice_is(name, functions[i].name)) {
      PLN_TRY(push_sign(y, CALL, functions[i].op));
      PLN_TRY(pln_parse_next(p));
      return pln_parse_next(p);
    }
  if (*open)
    return pln_parse_fail(p, &p->token, "this is not a function of dims");
  PLN_TRY(pln_dim_named(p->engine, name, &dim));
  PLN_TRY(push_dim(y, dim));
  return pln_parse_next(p);
}

/* Parses an operand. If the token is an opening bracket or a minus sign, pushes
 * it and sets *open: the operand follows. */
static pln_status read_operand(dim_parser *y, bool *open) {
  pln_parser *p = y->p;
  pln_parsed_number number;
  *open = true;
  switch (p->token.kind) {
  case PLN_T_LPAREN:
    PLN_TRY(push_sign(y, OPEN, PLN_DIM_ADD));
    return pln_parse_next(p);
  case PLN_T_MINUS:
    PLN_TRY(push_sign(y, NEGATE, PLN_DIM_SUB));
    return pln_parse_next(p);
  default: *open = false;
  }
  if (p->token.kind == PLN_T_QUERY) {
    PLN_TRY(push_dim(y, PLN_DIM_UNKNOWN));
    return pln_parse_next(p);
  }
  if (p->token.kind == PLN_T_NAME || p->token.kind == PLN_T_STRING)
    return parse_dim_name(y, open);
  if (p->token.kind != PLN_T_NUMBER)
    return pln_parse_report_expected(p, "a dim");
  pln_token token = p->token;
  PLN_TRY(pln_parse_number(p, &number));
  if (number.is_float)
    PLN_TRY(pln_parse_report(p, &token, PLN_ERR_FORMAT,
                             "a dim must be an integer"));
  return push_dim(y, number.is_float || !PLN_DIM_IS_CONST(number.i)
                         ? PLN_DIM_UNKNOWN
                         : number.i);
}

/* --------------------------------------------------------------- operators */

static dim_operator_kind infix(pln_token_kind kind) {
  return kind == PLN_T_PLUS      ? ADD
         : kind == PLN_T_MINUS   ? SUB
         : kind == PLN_T_STAR    ? MUL
         : kind == PLN_T_SLASH   ? DIV
         : kind == PLN_T_FLOOR   ? FLOOR
         : kind == PLN_T_PERCENT ? MODULO
                                 : OPEN;
}

/* Returns the innermost open bracket, or NULL. */
static dim_operator *bracket(dim_parser *y) {
  for (uint32_t i = y->n_signs; i-- > 0;)
    if (y->signs[i].kind < ADD)
      return &y->signs[i];
  return NULL;
}

/* Closes the innermost bracket; the current token is its ")". */
static pln_status close(dim_parser *y) {
  PLN_TRY(reduce_to(y, ADD));
  dim_operator last = y->signs[--y->n_signs];
  if (last.kind == CALL_SECOND)
    PLN_TRY(apply(y, (pln_dim_op)last.op));
  return pln_parse_next(y->p);
}

/* Parses closing brackets and an operator after an operand. *more is set if
 * another operand follows. */
static pln_status read_operators(dim_parser *y, bool *more) {
  pln_parser *p = y->p;
  dim_operator *open;
  while ((open = bracket(y)) && open->kind != CALL &&
         p->token.kind == PLN_T_RPAREN)
    PLN_TRY(close(y));
  dim_operator_kind kind = infix((pln_token_kind)p->token.kind);
  *more = true;
  if (kind != OPEN) {
    PLN_TRY(reduce_to(y, kind < MUL ? ADD : MUL));
    PLN_TRY(push_sign(y, kind, PLN_DIM_ADD));
    return pln_parse_next(p);
  }
  if (open && open->kind == CALL && p->token.kind == PLN_T_COMMA) {
    PLN_TRY(reduce_to(y, ADD));
    open->kind = CALL_SECOND;
    return pln_parse_next(p);
  }
  *more = false;
  if (open)
    return pln_parse_report_expected(p, open->kind == CALL ? "','" : "')'");
  return reduce_to(y, ADD);
}

pln_status pln_parse_dim(pln_parser *p, pln_dim *out) {
  dim_parser y; /* left uninitialised: stack entries are written before they are
                   read */
  bool more = true;
  y.p = p;
  y.n_dims = y.n_signs = 0;
  while (more) {
    bool open = true;
    while (open)
      PLN_TRY(read_operand(&y, &open));
    PLN_TRY(read_operators(&y, &more));
  }
  *out = y.dims[0];
  return PLN_OK;
}
