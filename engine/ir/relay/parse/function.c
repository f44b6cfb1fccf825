/* relay/parse/function.c: parses the part of a function between its name and
 * its body: `[A](%x: A, %y: A, Inline=1) -> A`.
 *
 * Called twice for a definition, once for its signature before all bodies and
 * once before its body; and for each `fn`. */

#include "ir/relay/parse/parse.h"
#include "ir/relay/print/plan.h"

/* Parses an optional {virtual_device=meta[VirtualDevice][0]}. */
static pln_status read_device(pln_parser *p, pln_attrs *out) {
  bool open;
  *out = 0;
  PLN_TRY(pln_parse_accept(p, PLN_T_LBRACE, &open));
  if (!open)
    return PLN_OK;
  PLN_TRY(pln_parse_attrs(p, out));
  return pln_parse_expect(p, PLN_T_RBRACE);
}

/* Returns true at a parameter, also if its "%" is missing: a name followed by a
 * type, a comma or the end of the list. */
static bool at_param(const pln_parser *p) {
  pln_token_kind next =
      p->token.kind == PLN_T_NAME ? pln_parse_peek(p) : PLN_T_END;
  return p->token.kind == PLN_T_LOCAL || next == PLN_T_COLON ||
         next == PLN_T_COMMA || next == PLN_T_RPAREN;
}

static pln_status read_param(pln_parser *p) {
  pln_parsed_param param = {.token = p->token};
  bool typed;
  if (p->token.kind != PLN_T_LOCAL)
    PLN_TRY(pln_parse_unsigiled(p, "a parameter", '%'));
  PLN_TRY(pln_parse_symbol(p, &p->token, &param.name));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(read_device(p, &param.device));
  PLN_TRY(pln_parse_accept(p, PLN_T_COLON, &typed));
  if (typed)
    PLN_TRY(pln_parse_type(p, &param.type));
  param.note = p->note;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->params, &p->cap_params,
                       (size_t)p->n_params + 1, sizeof *p->params));
  p->params[p->n_params++] = param;
  return PLN_OK;
}

pln_status pln_parse_head(pln_parser *p, pln_parsed_head *out) {
  bool more = true, typed;
  *out = (pln_parsed_head){.token = p->token};
  p->n_params = 0;
  PLN_TRY(pln_parse_generics(p, &out->n_vars));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  while (more && at_param(p)) {
    PLN_TRY(read_param(p));
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  out->n = p->n_params;
  if (more)
    PLN_TRY(pln_parse_ordered_attrs(p, &out->attrs, &out->order));
  PLN_TRY(pln_parse_scope_attrs(p, PLN_SCOPE_PREFIX, p->n_params, p->params,
                                &out->attrs, &out->scope));
  if (p->token.kind != PLN_T_RPAREN)
    return pln_parse_report_expected(
        p, more && !out->attrs ? "a parameter or ')'" : "',' or ')'");
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_ARROW, &typed));
  return typed ? pln_parse_type(p, &out->ret) : PLN_OK;
}

pln_status pln_parse_signature(pln_parser *p, const pln_parsed_head *head,
                               pln_type *out) {
  uint32_t first = p->n_types;
  for (uint32_t i = 0; i < head->n; i++)
    PLN_TRY(pln_parse_push_type(p, p->params[i].type));
  const pln_type *params = p->types + first;
  p->n_types = first;
  return pln_type_func(p->engine, head->n, params, head->ret, head->n_vars,
                       params - head->n_vars, 0, NULL, out);
}
