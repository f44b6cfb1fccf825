/* relay/parse/pattern.c: parses patterns of a match: `_`, `%x: T`, `Cons(%h,
 * _)`, `(%a, %b)`.
 *
 * Called for each arm. Open patterns are on a stack of frames, their parts
 * among the values. */

#include "ir/relay/parse/parse.h"

static pln_status read_var(pln_parser *p, pln_ref *out) {
  pln_symbol name;
  pln_ref var;
  PLN_TRY(pln_parse_binder(p, &name, &var));
  PLN_TRY(pln_parse_bind(p, PLN_SPACE_LOCAL, name, var));
  return pln_build_pattern_var(p->b, var, out);
}

/* Builds a pattern from its parts, the values from `first`, with the span of
 * `token`. If it is ill-typed, the error is reported and the result is `_`. */
static pln_status build_parsed_pattern(pln_parser *p, pln_symbol constructor,
                                       uint32_t first, const pln_token *token,
                                       pln_ref *out) {
  uint32_t n = p->n_values - first;
  const pln_ref *parts = p->values + first;
  size_t mark = pln_diag_count(p->engine);
  p->n_values = first;
  pln_status status =
      constructor
          ? pln_build_pattern_constructor(p->b, constructor, n, parts, out)
          : pln_build_pattern_tuple(p->b, n, parts, out);
  if (status == PLN_OK)
    return pln_parse_place(p, *out, token);
  PLN_TRY(pln_parse_located(p, token, mark, status));
  return pln_build_pattern_wildcard(p->b, out);
}

static pln_status push_pattern_frame(pln_parser *p, pln_symbol constructor,
                                     const pln_token *token) {
  PLN_TRY(pln_parse_open(p, PLN_FRAME_PAREN, token));
  p->frames[p->n_frames - 1].name = constructor;
  return pln_parse_next(p);
}

/* Parses the name of a constructor; *open is set if its fields follow. */
static pln_status read_constructor(pln_parser *p, pln_ref *out, bool *open) {
  pln_token token = p->token;
  pln_symbol name;
  uint32_t index;
  PLN_TRY(pln_parse_symbol(p, &token, &name));
  PLN_TRY(pln_parse_next(p));
  *open = p->token.kind == PLN_T_LPAREN;
  if (pln_module_find_constructor(p->module, name, &index) == PLN_NONE)
    PLN_TRY(pln_parse_unknown_constructor(p, &token, !*open));
  return *open ? push_pattern_frame(p, name, &token)
               : build_parsed_pattern(p, name, p->n_values, &token, out);
}

static pln_status begin_pattern(pln_parser *p, pln_ref *out, bool *open) {
  *open = false;
  if (p->token.kind == PLN_T_LOCAL)
    return read_var(p, out);
  if (pln_parse_is(p, "_")) {
    PLN_TRY(pln_build_pattern_wildcard(p->b, out));
    return pln_parse_next(p);
  }
  *open = true;
  if (p->token.kind == PLN_T_LPAREN)
    return push_pattern_frame(p, 0, &p->token);
  if (p->token.kind == PLN_T_NAME || p->token.kind == PLN_T_STRING)
    return read_constructor(p, out, open);
  return pln_parse_report_expected(p, "a pattern");
}

/* Parses what separates the parts of the top frame. *open is set if a part
 * follows; otherwise the pattern is finished and *out set. */
static pln_status parse_pattern_separator(pln_parser *p, bool first,
                                          pln_ref *out, bool *open) {
  const pln_parse_frame *f = &p->frames[p->n_frames - 1];
  bool comma = first;
  if (!first)
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  *open = p->token.kind != PLN_T_RPAREN;
  if (*open)
    return comma ? PLN_OK : pln_parse_report_expected(p, "',' or ')'");
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(build_parsed_pattern(p, f->name, f->first, &f->token, out));
  p->n_frames--;
  return PLN_OK;
}

pln_status pln_parse_pattern(pln_parser *p, pln_ref *out) {
  uint32_t floor = p->n_frames;
  for (;;) {
    bool open;
    PLN_TRY(begin_pattern(p, out, &open));
    if (open)
      PLN_TRY(parse_pattern_separator(p, true, out, &open));
    while (!open) {
      if (p->n_frames == floor)
        return PLN_OK;
      PLN_TRY(pln_parse_push(p, *out));
      PLN_TRY(parse_pattern_separator(p, false, out, &open));
    }
  }
}
