/* relay/parse/atom.c: parses atoms: literals, names, and parenthesised or
 * bracketed forms.
 *
 * Called where an operand is expected. It sets the value, or opens the frame of
 * the expression that begins. */

#include <stdio.h>

#include "ir/relay/metadata/read_section.h"
#include "ir/relay/parse/parse.h"

/* ---------------------------------------------------------------- literals */

static pln_status make_constant(pln_parser *p, const pln_token *token,
                                pln_tensor *tensor) {
  pln_ref node = 0;
  size_t mark = pln_diag_count(p->engine);
  pln_status status = pln_build_constant(p->b, tensor, &node);
  pln_tensor_release(tensor);
  return pln_parse_finish_node(p, token, mark, status, node);
}

static pln_status parse_number_atom(pln_parser *p) {
  pln_token token = p->token;
  pln_parsed_number number;
  pln_tensor *tensor;
  PLN_TRY(pln_parse_number(p, &number));
  PLN_TRY(pln_parse_scalar(p, &token, &number, &tensor));
  return make_constant(p, &token, tensor);
}

static pln_status read_bool(pln_parser *p) {
  pln_token token = p->token;
  pln_tensor *tensor;
  uint8_t value = token.kind == PLN_T_TRUE;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(
      pln_tensor_from_bytes(p->engine, PLN_BOOL, 0, NULL, &value, 1, &tensor));
  return make_constant(p, &token, tensor);
}

/* meta[relay.Constant][0]: one node per metadata entry. */
static pln_status read_meta(pln_parser *p) {
  pln_token token = p->token;
  pln_tensor *tensor;
  uint32_t number;
  PLN_TRY(pln_metadata_read_constant(p, &tensor, &number));
  uint32_t known = pln_parse_numbered(p, PLN_NUMBERED_CONSTANT, number);
  if (!known) {
    PLN_TRY(make_constant(p, &token, tensor));
    return pln_parse_number_is(p, PLN_NUMBERED_CONSTANT, number, p->value);
  }
  pln_tensor_release(tensor);
  return pln_parse_finish_node(p, &token, 0, PLN_OK, known - 1);
}

/* ------------------------------------------------------------------- names */

enum { MAX_NAMES = 2000 };

/* The value is an existing node, so annotations after it do not apply to it. */
static pln_status old_value(pln_parser *p, pln_ref node) {
  p->mode = PLN_HAVE_ATOM;
  p->fresh = false;
  p->value = node;
  return pln_parse_next(p);
}

static pln_status read_local(pln_parser *p) {
  const char *names[MAX_NAMES];
  pln_symbol name;
  pln_ref node;
  PLN_TRY(pln_parse_symbol(p, &p->token, &name));
  if (!pln_parse_lookup(p, PLN_SPACE_LOCAL, name, &node)) {
    uint32_t n = pln_parse_visible(p, PLN_SPACE_LOCAL, MAX_NAMES, names);
    PLN_TRY(pln_parse_unknown(p, &p->token, "variable", n, names));
    PLN_TRY(pln_parse_error_value(p, &node));
  }
  return old_value(p, node);
}

pln_status pln_parse_temp(pln_parser *p, uint32_t *out) {
  uint64_t number = 0;
  for (size_t i = 0; i < p->token.text.size && number <= UINT32_MAX; i++)
    number = number * 10 + (uint64_t)(p->token.text.data[i] - '0');
  *out = (uint32_t)number;
  if (number <= UINT32_MAX)
    return PLN_OK;
  return pln_parse_fail(p, &p->token,
                        "there is no graph variable with this number");
}

static pln_status read_temp(pln_parser *p) {
  uint32_t number;
  pln_ref node;
  PLN_TRY(pln_parse_temp(p, &number));
  uint32_t known = pln_parse_numbered(p, PLN_NUMBERED_TEMP, number);
  if (known)
    return old_value(p, known - 1);
  PLN_TRY(pln_parse_report(
      p, &p->token, PLN_ERR_NAME,
      "the graph variable '%%%u' is not defined before this use", number));
  PLN_TRY(pln_parse_error_value(p, &node));
  return old_value(p, node);
}

static pln_status unknown_global(pln_parser *p) {
  const char *names[MAX_NAMES];
  uint32_t n = 0;
  for (; n < p->n_globals && n < MAX_NAMES; n++)
    names[n] = pln_symbol_text(p->engine, p->globals[n]).data;
  return pln_parse_unknown(p, &p->token, "function", n, names);
}

static pln_status read_global(pln_parser *p) {
  pln_symbol name;
  pln_ref node;
  PLN_TRY(pln_parse_symbol(p, &p->token, &name));
  uint32_t known = pln_parse_numbered(p, PLN_NUMBERED_GLOBAL, name);
  if (known)
    return old_value(p, known - 1);
  uint32_t type = pln_idmap_get(p->signatures, name);
  if (!type && p->in_module)
    PLN_TRY(unknown_global(p));
  PLN_TRY(pln_build_global_var(p->b, name, type ? type - 1 : 0, &node));
  PLN_TRY(pln_parse_place(p, node, &p->token));
  PLN_TRY(pln_parse_number_is(p, PLN_NUMBERED_GLOBAL, name, node));
  return old_value(p, node);
}

/* --------------------------------------------------- operators, constructors
 */

static uint32_t constructor_names(const pln_parser *p, uint32_t most,
                                  const char **names) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < pln_module_n_types(p->module); i++) {
    const pln_type_def *row = pln_module_type_def_at(p->module, i);
    for (uint32_t j = 0; j < row->n_constructors && n < most; j++)
      names[n++] = pln_symbol_text(p->engine, row->constructors[j].name).data;
  }
  return n;
}

pln_status pln_parse_unknown_constructor(pln_parser *p, const pln_token *token,
                                         bool may_be_var) {
  const char *names[MAX_NAMES];
  char var[80];
  int size = token->text.size > 70 ? 70 : (int)token->text.size;
  uint32_t n = constructor_names(p, MAX_NAMES - 1, names);
  snprintf(var, sizeof var, "%%%.*s", size, token->text.data);
  bool lower = size > 0 && var[1] >= 'a' && var[1] <= 'z';
  if (may_be_var && lower && size < 3)
    return pln_parse_report(p, token, PLN_ERR_NAME,
                            "no constructor is called '%s'; did you mean "
                            "'%s'?",
                            var + 1, var);
  if (may_be_var && lower)
    names[n++] = var;
  return pln_parse_unknown(p, token, "constructor", n, names);
}

/* Suggests the most similar operator, constructor or literal. */
static pln_status report_operator(pln_parser *p, const pln_token *token) {
  const char *names[MAX_NAMES + 2] = {"True", "False"};
  uint32_t n = 2 + constructor_names(p, MAX_NAMES / 2, names + 2);
  for (pln_op op = 1; op <= pln_op_count(p->engine) && n < MAX_NAMES; op++)
    names[n++] = pln_op_name(p->engine, op).data;
  return pln_parse_unknown(p, token, "operator", n, names);
}

/* After an unknown operator without a call, errors in what follows are not
 * reported. */
static pln_status unknown_operator(pln_parser *p, const pln_token *token) {
  int size = token->text.size > 70 ? 70 : (int)token->text.size;
  if (pln_parse_is_variable(p, token))
    PLN_TRY(pln_parse_report(p, token, PLN_ERR_NAME,
                             "no operator is called '%.*s'; did you mean "
                             "'%%%.*s'?",
                             size, token->text.data, size, token->text.data));
  else
    PLN_TRY(report_operator(p, token));
  if (p->token.kind != PLN_T_LPAREN)
    p->recovery_token = p->token.whole.data;
  PLN_TRY(pln_parse_error_value(p, &p->value));
  p->mode = PLN_HAVE_ATOM;
  p->fresh = false;
  return PLN_OK;
}

/* A constructor without fields is a value: a call without arguments. */
static pln_status make_constructor(pln_parser *p, const pln_token *token,
                                   pln_symbol name, bool is_value) {
  size_t mark = pln_diag_count(p->engine);
  pln_ref node = 0;
  pln_status status = pln_build_constructor(p->b, name, 0, &node);
  if (status == PLN_OK && is_value && p->token.kind != PLN_T_LPAREN)
    status = pln_build_apply(p->b, node, 0, 0, 0, NULL, &node);
  return pln_parse_finish_node(p, token, mark, status, node);
}

/* A callee waits for its arguments; elsewhere an operator is a value. */
static pln_status make_operator(pln_parser *p, const pln_token *token,
                                pln_op op) {
  pln_ref node = 0;
  if (p->token.kind == PLN_T_LPAREN) {
    PLN_TRY(pln_parse_open(p, PLN_FRAME_CALL, token));
    p->frames[p->n_frames - 1].data = op;
    return pln_parse_arguments(p);
  }
  PLN_TRY(pln_build_op(p->b, op, &node));
  return pln_parse_finish_node(p, token, 0, PLN_OK, node);
}

/* "domain::Type": unknown operators of ONNX files. */
static bool is_foreign(pln_slice name) {
  for (size_t i = 0; i + 1 < name.size; i++)
    if (name.data[i] == ':' && name.data[i + 1] == ':')
      return true;
  return false;
}

static pln_status parse_name_atom(pln_parser *p) {
  pln_token token = p->token;
  pln_slice text;
  pln_symbol name;
  uint32_t index = 0;
  PLN_TRY(pln_parse_text(p, &token, &text));
  PLN_TRY(pln_symbol_intern(p->engine, text, &name));
  pln_op op = pln_op_find(p->engine, text);
  bool foreign = is_foreign(text);
  PLN_TRY(pln_parse_next(p));
  uint32_t type = pln_module_find_constructor(p->module, name, &index);
  if (type != PLN_NONE) {
    const pln_type_def *row = pln_module_type_def_at(p->module, type);
    return make_constructor(p, &token, name,
                            row->constructors[index].n_inputs == 0);
  }
  if (!op && foreign)
    PLN_TRY(pln_op_opaque(p->engine, pln_symbol_text(p->engine, name), &op));
  if (op)
    return make_operator(p, &token, op);
  if (!pln_slice_is(token.text, "absent"))
    return unknown_operator(p, &token);
  pln_ref node = 0;
  PLN_TRY(pln_build_absent(p->b, &node));
  return pln_parse_finish_node(p, &token, 0, PLN_OK, node);
}

/* ---------------------------------------------------------------- brackets */

static pln_status read_parens(pln_parser *p) {
  pln_token token = p->token;
  pln_ref node = 0;
  PLN_TRY(pln_parse_next(p));
  if (p->token.kind != PLN_T_RPAREN) {
    PLN_TRY(pln_parse_open(p, PLN_FRAME_PAREN, &token));
    return pln_parse_open_sequence(p);
  }
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_build_tuple(p->b, 0, NULL, &node));
  return pln_parse_finish_node(p, &token, 0, PLN_OK, node);
}

static pln_status read_block(pln_parser *p) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_BLOCK, &p->token));
  PLN_TRY(pln_parse_next(p));
  return pln_parse_open_sequence(p);
}

/* ref(e), ref_read(e), ref_write(e, e) */
static pln_status read_cell(pln_parser *p) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_CELL, &p->token));
  p->frames[p->n_frames - 1].sign = p->token.kind;
  PLN_TRY(pln_parse_next(p));
  if (p->token.kind != PLN_T_LPAREN)
    return pln_parse_report_expected(p, "'('");
  return pln_parse_arguments(p);
}

pln_status pln_parse_atom(pln_parser *p) {
  if (pln_parse_at_number(p))
    return parse_number_atom(p);
  switch (p->token.kind) {
  case PLN_T_LOCAL: return read_local(p);
  case PLN_T_TEMP: return read_temp(p);
  case PLN_T_GLOBAL: return read_global(p);
  case PLN_T_TRUE:
  case PLN_T_FALSE: return read_bool(p);
  case PLN_T_LPAREN: return read_parens(p);
  case PLN_T_LBRACE: return read_block(p);
  case PLN_T_FN: return pln_parse_function(p);
  case PLN_T_IF: return pln_parse_if(p);
  case PLN_T_MATCH: return pln_parse_match(p);
  case PLN_T_REF:
  case PLN_T_REF_READ:
  case PLN_T_REF_WRITE: return read_cell(p);
  case PLN_T_LET:
  case PLN_T_FREE_VAR: return pln_parse_open_sequence(p);
  case PLN_T_NAME:
    if (pln_parse_is(p, "meta") && pln_parse_peek(p) == PLN_T_LBRACKET)
      return read_meta(p);
    return parse_name_atom(p);
  case PLN_T_STRING: return parse_name_atom(p);
  default: return pln_parse_report_expected(p, "an expression");
  }
}
