/* test_adt.c: definitions of data types, their constructors, and what
 * matches them. */

#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "oom.h"
#include "op/op.h"

static pln_status symbol(pln_engine *e, const char *text, pln_symbol *out) {
  return pln_symbol_intern(e, pln_text(text), out);
}

/* type List[A] { Cons(A, List[A]), Nil } */
static pln_status define_list(pln_engine *e, pln_module **out) {
  pln_symbol list, a, cons, nil;
  pln_type var, rest;
  pln_module *empty;
  PLN_TRY(symbol(e, "List", &list));
  PLN_TRY(symbol(e, "A", &a));
  PLN_TRY(symbol(e, "Cons", &cons));
  PLN_TRY(symbol(e, "Nil", &nil));
  PLN_TRY(pln_type_var(e, a, PLN_TKIND_TYPE, &var));
  PLN_TRY(pln_type_make(e, PLN_TYPE_CALL, list, 1, &var, &rest));
  pln_type fields[] = {var, rest};
  pln_constructor makers[] = {{cons, 2, fields}, {nil, 0, NULL}};
  pln_type_def data = {.name = list,
                       .n_vars = 1,
                       .vars = &var,
                       .n_constructors = 2,
                       .constructors = makers};
  PLN_TRY(pln_module_new(e, &empty));
  pln_status status = pln_module_with_type(empty, &data, out);
  pln_module_release(empty);
  return status;
}

static void knows_its_constructors(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  pln_symbol cons = 0;
  pln_type type = 0;
  uint32_t index = PLN_NONE;
  CHECK_OK(define_list(e, &m));
  CHECK_OK(symbol(e, "Cons", &cons));
  uint32_t found = pln_module_find_constructor(m, cons, &index);
  CHECK_EQ_INT(found, 0);
  CHECK_EQ_INT(index, 0);
  CHECK_OK(pln_module_constructor_type(m, found, index, &type));
  CHECK_EQ_INT(pln_type_n_parts(e, type), 3);
  CHECK_EQ_INT(pln_type_n_vars(e, type), 1);
  CHECK_EQ_INT(pln_type_part_at(e, type, 0), pln_type_var_at(e, type, 0));
  pln_module_release(m);
  pln_engine_free(e);
}

static void refuses_a_constructor_of_two_types(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL, *n = NULL;
  pln_symbol other = 0, cons = 0;
  CHECK_OK(define_list(e, &m));
  CHECK_OK(symbol(e, "Other", &other));
  CHECK_OK(symbol(e, "Cons", &cons));
  pln_constructor maker = {.name = cons};
  pln_type_def data = {
      .name = other, .n_constructors = 1, .constructors = &maker};
  CHECK_STATUS(pln_module_with_type(m, &data, &n), PLN_ERR_TYPE);
  CHECK_STR(pln_diag_at(e, 0)->message,
            "the constructor 'Cons' is defined by 'List' already");
  pln_module_release(m);
  pln_engine_free(e);
}

/* match (l) { Cons(h, _) => h, _ => other } */
static pln_status match_list(pln_builder *b, pln_type list, pln_ref *out) {
  pln_symbol name, cons;
  pln_ref l, other, h, rest, pattern, head, clause;
  pln_scope arms[2];
  PLN_TRY(symbol(b->engine, "v", &name));
  PLN_TRY(symbol(b->engine, "Cons", &cons));
  PLN_TRY(pln_build_var(b, name, list, 0, &l));
  PLN_TRY(pln_build_var(b, name, 0, 0, &other));
  PLN_TRY(pln_build_open(b, &arms[0]));
  PLN_TRY(pln_build_param(b, name, 0, 0, &h));
  PLN_TRY(pln_build_pattern_var(b, h, &head));
  PLN_TRY(pln_build_pattern_wildcard(b, &rest));
  PLN_TRY(pln_build_pattern_constructor(b, cons, 2, (pln_ref[]){head, rest},
                                        &pattern));
  PLN_TRY(pln_build_clause(b, pattern, &clause));
  PLN_TRY(pln_build_end(b, arms[0], h, 0));
  PLN_TRY(pln_build_open(b, &arms[1]));
  PLN_TRY(pln_build_pattern_wildcard(b, &rest));
  PLN_TRY(pln_build_clause(b, rest, &clause));
  PLN_TRY(pln_build_end(b, arms[1], other, 0));
  return pln_build_match(b, l, true, 2, arms, out);
}

static void keeps_patterns_in_arms(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_builder *b = NULL;
  pln_graph *g = NULL;
  pln_ref match = PLN_NONE;
  CHECK_OK(pln_builder_new(e, &b));
  pln_builder_lenient(b);
  CHECK_OK(match_list(b, 0, &match));
  CHECK_OK(pln_builder_seal(b, match, &g));
  CHECK_OK(pln_graph_verify(g));
  pln_ref root = pln_graph_root(g);
  CHECK_EQ_INT(pln_node_kind(g, root), PLN_MATCH);
  CHECK_EQ_INT(pln_node_n_scopes(g, root), 2);
  CHECK_EQ_INT(pln_attrs_int(e, pln_node_attrs(g, root), "complete", 0), 1);
  pln_scope arm = pln_node_scope(g, root, 0);
  CHECK_EQ_INT(pln_scope_n_params(g, arm), 1);
  CHECK_EQ_INT(pln_scope_end(g, arm) - pln_scope_begin(g, arm), 5);
  CHECK_EQ_INT(pln_node_kind(g, pln_scope_end(g, arm) - 1), PLN_CLAUSE);
  pln_graph_release(g);
  pln_builder_free(b);
  pln_engine_free(e);
}

static void refuses_an_arm_without_pattern(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_builder *b = NULL;
  pln_ref data = PLN_NONE, match;
  pln_scope arm = PLN_NONE;
  CHECK_OK(pln_builder_new(e, &b));
  pln_builder_lenient(b);
  CHECK_OK(pln_build_tuple(b, 0, NULL, &data));
  CHECK_OK(pln_build_open(b, &arm));
  CHECK_OK(pln_build_end(b, arm, data, 0));
  CHECK_STATUS(pln_build_match(b, data, true, 1, &arm, &match),
               PLN_ERR_ARGUMENT);
  pln_builder_free(b);
  pln_engine_free(e);
}

static pln_status define_and_match(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *m = NULL;
  pln_builder *b = NULL;
  pln_ref match;
  pln_status status = define_list(e, &m);
  if (status == PLN_OK)
    status = pln_builder_new(e, &b);
  if (status == PLN_OK) {
    pln_builder_lenient(b);
    status = match_list(b, 0, &match);
  }
  pln_builder_free(b);
  pln_module_release(m);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(define_and_match, NULL);
}

static const check_test tests[] = {
    {"knows its constructors", knows_its_constructors},
    {"refuses a constructor of two types", refuses_a_constructor_of_two_types},
    {"keeps patterns in arms", keeps_patterns_in_arms},
    {"refuses an arm without pattern", refuses_an_arm_without_pattern},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
