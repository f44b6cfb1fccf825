/* build.c: nodes of statements from terms, in the free builder of the state. */

#include "te/te.h"

static pln_status export_terms(pln_te_state *s, const pln_te_stmt *stmt,
                               pln_ref *refs) {
  for (uint32_t i = 0; i < stmt->n; i++) {
    if (!stmt->terms[i])
      return s->a->status != PLN_OK
                 ? s->a->status
                 : pln_diag_error(s->engine, PLN_ERR_INVALID, NULL,
                                  "te: a %s has no operand %u",
                                  pln_kind_name(stmt->kind), i);
    PLN_TRY(pln_analyzer_export(s->a, s->b, stmt->terms[i], &refs[i]));
  }
  return PLN_OK;
}

pln_status pln_te_build(pln_te_state *s, const pln_te_stmt *stmt,
                        pln_ref *out) {
  pln_ref few[20], *refs = few, param = PLN_NONE;
  if (stmt->n > PLN_COUNT(few))
    refs = pln_arena_new(&s->arena, stmt->n * sizeof *refs);
  if (!refs)
    return pln_nomem(s->engine);
  PLN_TRY(export_terms(s, stmt, refs));
  pln_prim spec = {
      .kind = stmt->kind, .attrs = stmt->attrs, .n = stmt->n, .operands = refs};
  if (stmt->body == PLN_NONE)
    return pln_build_prim(s->b, &spec, out);
  if (stmt->param)
    PLN_TRY(pln_analyzer_export(s->a, s->b, stmt->param, &param));
  pln_body body = {
      .n_params = stmt->param ? 1 : 0, .params = &param, .stmt = stmt->body};
  return pln_build_floating_stmt(s->b, &spec, 1, &body, out);
}

pln_status pln_te_build_attr(pln_te_state *s, pln_term node, const char *key,
                             pln_term value, pln_ref body, pln_ref *out) {
  pln_attr entry = {.kind = PLN_ATTR_STRING};
  pln_term terms[2] = {node, value};
  pln_te_stmt stmt = {
      .kind = PLN_ATTR_STMT, .n = 2, .terms = terms, .body = body};
  PLN_TRY(
      pln_symbol_intern(s->engine, (pln_slice){"attr_key", 8}, &entry.name));
  entry.v.s = (pln_slice){key, strlen(key)};
  PLN_TRY(pln_attrs_make(s->engine, 1, &entry, &stmt.attrs));
  return pln_te_build(s, &stmt, out);
}

pln_status pln_te_build_seq(pln_te_state *s, pln_ref first, pln_ref second,
                            pln_ref *out) {
  pln_ref both[2] = {first, second};
  if (first == PLN_NONE || second == PLN_NONE) {
    *out = first == PLN_NONE ? second : first;
    return PLN_OK;
  }
  return pln_build_seq(s->b, 2, both, out);
}
