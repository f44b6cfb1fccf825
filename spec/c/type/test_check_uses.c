/* test_check_uses.c: what was built before a type was known is held against it
 * by the verifier, memory or not. */

#include "ir/graph/module.h"
#include "oom.h"

static pln_status parse(pln_engine *e, const char *text, pln_module **out) {
  return pln_parse_module(e, pln_text(text), NULL, NULL, out);
}

static const char *const recursive =
    "#[version = \"0.0.5\"]\n"
    "def @main() { let %f = fn (%x: int32) -> int32 { if (equal(%x, 0)) { %x } "
    "else { %f(%x) } }; %f }\n";
static const char *const lists = "#[version = \"0.0.5\"]\n"
                                 "type List[A] { Cons(A, List[A]), Nil }\n";

static pln_status check_recursive(pln_engine *e, void *ud) {
  pln_module *m;
  (void)ud;
  PLN_TRY(parse(e, recursive, &m));
  pln_status status = pln_module_verify(m);
  pln_module_release(m);
  return status;
}

/* fn (x: int32) { Cons(x) } or Nil(x)'s like, of `n` arguments x. */
static pln_status build(pln_engine *e, const char *constructor, uint32_t n,
                        pln_builder *b, pln_graph **out) {
  pln_symbol name;
  pln_type i32;
  pln_ref x, made, call, f;
  PLN_TRY(pln_symbol_intern(e, pln_text(constructor), &name));
  PLN_TRY(pln_type_tensor(e, PLN_INT32, 0, NULL, &i32));
  PLN_TRY(pln_build_var(b, name, i32, 0, &x));
  PLN_TRY(pln_build_constructor(b, name, 0, &made));
  PLN_TRY(pln_build_apply(b, made, 0, 0, n, &x, &call));
  PLN_TRY(pln_build_bind(b, 1, &x, call, 0, 0, &f));
  return pln_builder_seal(b, f, out);
}

/* The module of lists with that function. */
static pln_status give(pln_engine *e, const char *constructor, uint32_t n) {
  pln_module *m, *with = NULL;
  pln_builder *b = NULL;
  pln_graph *g = NULL;
  pln_symbol main_name;
  PLN_TRY(parse(e, lists, &m));
  pln_status status = pln_symbol_intern(e, pln_text("main"), &main_name);
  if (status == PLN_OK)
    status = pln_builder_new(e, &b);
  if (status == PLN_OK)
    status = build(e, constructor, n, b, &g);
  if (status == PLN_OK)
    status = pln_module_with(m, main_name, g, &with);
  if (status == PLN_OK)
    status = pln_module_verify(with);
  pln_builder_free(b);
  pln_graph_release(g);
  pln_module_release(with);
  pln_module_release(m);
  return status;
}

static pln_status give_nil(pln_engine *e, void *ud) {
  (void)ud;
  return give(e, "Nil", 0);
}

static const char *message(const pln_engine *e) {
  return pln_diag_at(e, pln_diag_count(e) - 1)->message;
}

/* The variable is given the type of its value after that was built. */
static void an_early_use_is_checked(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  REQUIRE_OK(parse(e, recursive, &m));
  pln_graph *g = pln_module_function_at(m, 0);
  REQUIRE_OK(pln_graph_verify(g));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_LET) {
      pln_ref var = pln_operands(g, &g->nodes[ref])[0];
      for (pln_scope s = 1; s < g->n_scopes; s++)
        if (g->nodes[g->scopes[s].result].kind == PLN_CALL)
          g->scopes[s].result = var;
    }
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_TYPE);
  CHECK(strstr(message(e), "the branches of an If: expected int32, got "
                           "fn (int32) -> int32: in If("));
  pln_module_release(m);
  pln_engine_free(e);
}

static void constructors_are_checked(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_OK(give(e, "Nil", 0));
  CHECK_STATUS(give(e, "Nil", 1), PLN_ERR_TYPE);
  CHECK_STR(message(e), "the function takes 0 arguments, got 1: in "
                        "Nil(%Nil: int32) of @main");
  CHECK_STATUS(give(e, "Cons", 1), PLN_ERR_TYPE);
  CHECK_STATUS(give(e, "Other", 0), PLN_ERR_TYPE);
  CHECK_STR(message(e), "the module defines no constructor 'Other': in Other "
                        "of @main");
  pln_engine_free(e);
}

static void survives_lack_of_memory(void) {
  oom_sweep(check_recursive, NULL);
  oom_sweep(give_nil, NULL);
}

static const check_test tests[] = {
    {"an early use is checked", an_early_use_is_checked},
    {"constructors are checked", constructors_are_checked},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
