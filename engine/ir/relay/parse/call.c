/* relay/parse/call.c: finishes a call: attributes, and the node.
 *
 * Called by relay/parse/expr.c when all arguments of the newest frame are
 * parsed. Relay attributes are converted to the core's. */

#include "ir/relay/metadata/read_section.h"
#include "ir/relay/parse/parse.h"

/* Returns true if the arguments end in attributes from the metadata section:
 * meta[relay.attrs.DenseAttrs][0]. */
bool pln_parse_at_meta_attrs(const pln_parser *p) {
  static const char prefix[] = "relay.attrs.";
  pln_lexer ahead = p->lexer;
  pln_token token;
  if (!pln_parse_is(p, "meta"))
    return false;
  pln_lex_next(&ahead, &token);
  if (token.kind != PLN_T_LBRACKET)
    return false;
  pln_lex_next(&ahead, &token);
  return token.text.size >= strlen(prefix) &&
         !memcmp(token.text.data, prefix, strlen(prefix));
}

/* Removes `n_results` from the attributes of a call and returns its value in
 * *results. It gives the number of results of operators that Relay lacks. */
pln_status pln_parse_results(pln_parser *p, pln_attrs *attrs,
                             uint32_t *results) {
  int64_t annotated = pln_attrs_int(p->engine, *attrs, "n_results", 0);
  *results = annotated > 0 && annotated <= UINT16_MAX ? (uint32_t)annotated : 0;
  return *results ? pln_attrs_without(p->engine, *attrs, "n_results", attrs)
                  : PLN_OK;
}

/* The same for a call of an operator that Relay lacks: without it, a call has
 * the results that its operator has. */
static pln_status results_of(pln_parser *p, pln_op op, pln_attrs *attrs,
                             uint32_t *results) {
  bool given = pln_attrs_find(p->engine, *attrs, "n_results") != NULL;
  PLN_TRY(pln_parse_results(p, attrs, results));
  if (!given)
    *results = pln_op_n_results(p->engine, op, *attrs);
  else if (!*results)
    return pln_attrs_without(p->engine, *attrs, "n_results", attrs);
  return PLN_OK;
}

static pln_status make_call(pln_parser *p, const pln_parse_frame *f,
                            pln_attrs given, pln_ref *out) {
  const pln_relay_row *row = pln_relay_of(p->engine, f->data);
  uint32_t results = 0;
  pln_attrs attrs;
  bool good;
  if (!row)
    PLN_TRY(results_of(p, f->data, &given, &results));
  PLN_TRY(pln_parse_op_attrs(p, &f->token, f->data, given, &attrs, &good));
  if (!good)
    return pln_parse_error_value(p, out);
  if (row)
    results = pln_relay_n_results(p->engine, row, given, attrs);
  return pln_build_call(p->b, f->data, attrs, results, p->n_values - f->first,
                        p->values + f->first, out);
}

/* Builds ref(e), ref_read(e) or ref_write(e, e) from the values of the
 * frame. */
static pln_status make_cell(pln_parser *p, const pln_parse_frame *f,
                            pln_ref *out) {
  const pln_ref *v = p->values + f->first;
  uint32_t n = p->n_values - f->first;
  uint32_t wanted = f->sign == PLN_T_REF_WRITE ? 2 : 1;
  if (n != wanted)
    return pln_diag_error(p->engine, PLN_ERR_TYPE, NULL,
                          "this takes %u argument%s, got %u", wanted,
                          wanted == 1 ? "" : "s", n);
  switch (f->sign) {
  case PLN_T_REF: return pln_build_ref_create(p->b, v[0], out);
  case PLN_T_REF_READ: return pln_build_ref_read(p->b, v[0], out);
  default: return pln_build_ref_write(p->b, v[0], v[1], out);
  }
}

static pln_status build_parsed_call(pln_parser *p, const pln_parse_frame *f,
                                    pln_attrs attrs, pln_ref *out) {
  const pln_ref *v = p->values + f->first;
  if (f->kind == PLN_FRAME_CALL)
    return make_call(p, f, attrs, out);
  if (f->kind == PLN_FRAME_CELL)
    return make_cell(p, f, out);
  return pln_build_apply(p->b, v[0], attrs, 0, p->n_values - f->first - 1,
                         v + 1, out);
}

pln_status pln_parse_finish_call(pln_parser *p) {
  pln_parse_frame f = p->frames[p->n_frames - 1];
  pln_attrs attrs = 0, order = 0;
  pln_ref node = 0;
  if (pln_parse_at_meta_attrs(p))
    PLN_TRY(pln_metadata_read_attrs(p, f.kind == PLN_FRAME_CALL ? f.data : 0,
                                    &attrs));
  else
    PLN_TRY(pln_parse_ordered_attrs(p, &attrs, &order));
  if (p->token.kind != PLN_T_RPAREN)
    return pln_parse_report_expected(
        p, attrs && !pln_parse_at_attr(p) ? "name=value or ')'" : "',' or ')'");
  PLN_TRY(pln_parse_next(p));
  size_t mark = pln_diag_count(p->engine);
  pln_status status = build_parsed_call(p, &f, attrs, &node);
  if (status == PLN_OK && order && f.kind == PLN_FRAME_APPLY)
    status = pln_builder_attr_order(p->b, node, order);
  pln_parse_close(p);
  return pln_parse_finish_node(p, &f.token, mark, status, node);
}
