/* tir/script/parse/reducer.c: T.comm_reducer(lambda x, y: x + y, [identity]).
 *
 * Called by script/parse/call.c. The dtypes of the lambda's parameters are
 * those of the identities after it; therefore its body is skipped at first and
 * parsed here. A lambda has no lambda inside it, so this does not nest. */

#include "ir/tir/script/parse/parse.h"

pln_status pln_script_enter_lambda(pln_script_parser *p,
                                   const pln_script_value *lambda,
                                   pln_script_lambda *back) {
  if (lambda->kind != PLN_V_LAMBDA || lambda->v.of.number == PLN_NONE)
    return pln_script_refuse(p, lambda, "a lambda is expected");
  if (p->in_lambda)
    return pln_script_refuse(p, lambda, "a lambda inside a lambda");
  *back = (pln_script_lambda){p->lexer, p->token};
  p->lexer = p->lambdas[lambda->v.of.number].lexer;
  p->token = p->lambdas[lambda->v.of.number].token;
  p->in_lambda = true;
  return PLN_OK;
}

void pln_script_leave_lambda(pln_script_parser *p,
                             const pln_script_lambda *back) {
  p->in_lambda = false;
  p->lexer = back->lexer;
  p->token = back->token;
}

/* "x0, x1, y0, y1:" with the types of the identities, twice. */
static pln_status read_parameters(pln_script_parser *p, uint32_t first,
                                  uint32_t k) {
  for (uint32_t i = 0; i < 2 * k; i++) {
    pln_ref var;
    pln_slice name = p->token.text;
    if (p->token.kind != PLN_S_NAME)
      return pln_script_expected(p, "a parameter");
    PLN_TRY(pln_script_make_var(
        p, name, pln_script_type_of(p, p->refs[first + i % k]), false, &var));
    PLN_TRY(pln_script_bind_ref(p, name, PLN_V_EXPR, var));
    PLN_TRY(pln_script_push_ref(p, var));
    PLN_TRY(pln_script_next(p));
    if (i + 1 < 2 * k)
      PLN_TRY(pln_script_expect(p, PLN_S_COMMA));
  }
  return pln_script_expect(p, PLN_S_COLON);
}

/* p->refs holds k identities, then gets 2k parameters and k results. */
static pln_status read_body(pln_script_parser *p, uint32_t first, uint32_t k) {
  pln_script_value body;
  uint32_t n;
  PLN_TRY(read_parameters(p, first, k));
  PLN_TRY(pln_script_expr_parse(p, &body));
  if (k > 1 && (body.kind != PLN_V_TUPLE || body.n != k))
    return pln_script_refuse(p, &body, "a tuple of %u results is expected",
                             (unsigned)k);
  return pln_script_push_list(p, &body, 0, &n);
}

static pln_status build(pln_script_parser *p, uint32_t first, uint32_t k,
                        pln_ref *out) {
  for (uint32_t i = 0; i < k; i++)
    PLN_TRY(pln_script_push_ref(p, p->refs[first + i]));
  pln_status status =
      pln_script_node(p, (pln_prim){.kind = PLN_COMM_REDUCER}, first + k, out);
  p->n_refs = first;
  return status;
}

static pln_status read_lambda_reducer(pln_script_parser *p,
                                      const pln_script_value *lambda,
                                      uint32_t first, uint32_t k) {
  pln_script_lambda back;
  uint32_t mark = p->n_bindings;
  PLN_TRY(pln_script_enter_lambda(p, lambda, &back));
  pln_status status = read_body(p, first, k);
  pln_script_leave_lambda(p, &back);
  pln_script_unbind(p, mark);
  return status;
}

pln_status pln_script_reducer(pln_script_parser *p,
                              const pln_script_value *lambda,
                              const pln_script_value *identity, pln_ref *out) {
  uint32_t first = p->n_refs, k;
  PLN_TRY(pln_script_push_list(p, identity, 0, &k));
  if (k == 0)
    return pln_script_refuse(p, identity, "an identity is expected");
  PLN_TRY(read_lambda_reducer(p, lambda, first, k));
  return build(p, first, k, out);
}
