/* relay/parse/build.c: builds the parser's nodes with their spans, and resolves
 * graph variables (%N).
 *
 * Called by the expression parser. A node that cannot be built is reported at
 * its span and replaced by a variable, so that parsing continues; no module
 * results. */

#include "ir/graph/describe.h"
#include "ir/relay/parse/parse.h"

pln_status pln_parse_push(pln_parser *p, pln_ref value) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->values, &p->cap_values,
                       (size_t)p->n_values + 1, sizeof *p->values));
  p->values[p->n_values++] = value;
  return PLN_OK;
}

pln_status pln_parse_error_value(pln_parser *p, pln_ref *out) {
  return pln_build_var(p->b, 0, 0, 0, out);
}

pln_status pln_parse_finish_node(pln_parser *p, const pln_token *token,
                                 size_t mark, pln_status status, pln_ref ref) {
  p->mode = PLN_HAVE_ATOM;
  p->fresh = status == PLN_OK;
  p->value = ref;
  if (status == PLN_OK)
    return pln_parse_place(p, ref, token);
  PLN_TRY(pln_parse_located(p, token, mark, status));
  return pln_parse_error_value(p, &p->value);
}

/* ------------------------------------------------------------------ places */

pln_status pln_parse_place(pln_parser *p, pln_ref node,
                           const pln_token *token) {
  const pln_lexer *x = &p->lexer;
  pln_source_span place = {.source = p->source_symbol,
                           .row = token->row,
                           .column = token->column,
                           .end_row = x->row};
  size_t column = (size_t)(x->at - x->line) + 1;
  place.end_column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
  return pln_build_span(p->b, node, &place, p->given->print_spans);
}

pln_status pln_parse_record_place(pln_parser *p, pln_ref node,
                                  const pln_note *note) {
  pln_source_span place = {.row = note->row, .column = note->column};
  if (!note->source.data || p->given->print_spans)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(p->engine, note->source, &place.source));
  return pln_build_span(p->b, node, &place, true);
}

static bool is_foreign_call(const pln_parser *p, pln_ref node) {
  const pln_node *n = &p->b->graph->nodes[node];
  return n->kind == PLN_CALL && n->data != 0 &&
         (pln_op_row(p->engine, n->data)->traits & PLN_TRAIT_OPAQUE);
}

/* Gives a call of an opaque operator the type in its type comment; a comment
 * that is no type is ignored. */
pln_status pln_parse_annotated_type(pln_parser *p, pln_ref node,
                                    const pln_note *note) {
  if (note->type.size == 0 || !is_foreign_call(p, node))
    return PLN_OK;
  pln_lexer lexer = p->lexer;
  pln_token token = p->token;
  pln_note here = p->note;
  uint32_t errors = p->n_errors;
  size_t mark = pln_diag_count(p->engine);
  pln_type type = 0;
  pln_lex_begin(&p->lexer, note->type);
  pln_status status = pln_parse_next(p);
  if (status == PLN_OK)
    status = pln_parse_type(p, &type);
  if (p->n_errors > errors) {
    pln_diag_drop(p->engine, mark);
    p->n_errors = errors;
    type = 0;
    status = status == PLN_ERR_NOMEM ? status : PLN_OK;
  }
  p->lexer = lexer;
  p->token = token;
  p->note = here;
  if (status == PLN_OK && type)
    p->b->graph->nodes[node].type = type;
  return status;
}

static pln_status contradicts(pln_parser *p, const pln_token *token,
                              pln_type annotated, pln_type inferred) {
  pln_description a, b;
  return pln_parse_report(p, token, PLN_ERR_TYPE,
                          "declared as %s, but inferred as %s",
                          pln_describe_type(p->engine, annotated, &a),
                          pln_describe_type(p->engine, inferred, &b));
}

/* Meets the node's type with the declared one. A Call, If or TupleGetItem takes
 * the result; a node of another kind must already have a compatible type. */
pln_status pln_parse_declare(pln_parser *p, const pln_token *token,
                             pln_ref node, pln_type type) {
  const pln_node *n = &p->b->graph->nodes[node];
  bool made =
      n->kind == PLN_CALL || n->kind == PLN_IF || n->kind == PLN_TUPLE_GET_ITEM;
  size_t mark = pln_diag_count(p->engine);
  pln_type both;
  bool clash;
  PLN_TRY(pln_type_meet(p->engine, n->type, type, &both, &clash));
  if (clash && !(made && p->module && pln_module_was_onnx(p->module)))
    return contradicts(p, token, type, n->type);
  if (!made)
    return PLN_OK;
  PLN_TRY(pln_builder_declare(p->b, node, type));
  return clash ? pln_parse_locate(p, token, mark) : PLN_OK;
}

pln_status pln_parse_var(pln_parser *p, pln_symbol name, pln_type type,
                         const pln_token *token, const pln_note *note,
                         pln_ref *out) {
  PLN_TRY(pln_build_var(p->b, name, type, 0, out));
  PLN_TRY(pln_parse_place(p, *out, token));
  return pln_parse_record_place(p, *out, note);
}

pln_status pln_parse_binder(pln_parser *p, pln_symbol *name, pln_ref *var) {
  pln_token token = p->token;
  pln_type type = 0;
  bool typed;
  if (token.kind != PLN_T_LOCAL)
    PLN_TRY(pln_parse_unsigiled(p, "a local variable", '%'));
  PLN_TRY(pln_parse_symbol(p, &token, name));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_COLON, &typed));
  if (typed)
    PLN_TRY(pln_parse_type(p, &type));
  return pln_parse_var(p, *name, type, &token, &p->note, var);
}

/* ----------------------------------------------------------------- numbers */

static uint64_t numbered_key(const pln_parser *p, pln_numbered kind,
                             uint32_t number) {
  return (uint64_t)kind << 60 | (uint64_t)p->function << 32 | number;
}

uint32_t pln_parse_numbered(const pln_parser *p, pln_numbered kind,
                            uint32_t number) {
  return pln_idmap_get(p->numbered, numbered_key(p, kind, number));
}

pln_status pln_parse_number_is(pln_parser *p, pln_numbered kind,
                               uint32_t number, pln_ref node) {
  return pln_idmap_set(p->numbered, numbered_key(p, kind, number), node + 1);
}
