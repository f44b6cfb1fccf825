/* test_infer.c: inference of whole modules: data types, patterns, generic
 * functions; what is typed once is not typed again; linear time. */

#include "captured_output.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "oom.h"
#include "op/op.h"

static pln_symbol name(pln_engine *e, const char *as) {
  pln_symbol symbol = 0;
  if (pln_symbol_intern(e, pln_text(as), &symbol) != PLN_OK)
    return 0;
  return symbol;
}

/* A module at work: its data type List[A], the function being built. */
typedef struct world {
  pln_engine *e;
  pln_module *m;
  pln_builder *b;
  pln_type a, list, i32;
} world;

/* type List[A] { Cons(A, List[A]), Nil } */
static pln_status define_list(world *w) {
  pln_engine *e = w->e;
  pln_module *empty;
  PLN_TRY(pln_type_var(e, name(e, "A"), PLN_TKIND_TYPE, &w->a));
  PLN_TRY(pln_type_make(e, PLN_TYPE_CALL, name(e, "List"), 1, &w->a, &w->list));
  PLN_TRY(pln_type_tensor(e, PLN_INT32, 0, NULL, &w->i32));
  pln_type fields[] = {w->a, w->list};
  pln_constructor makers[] = {{name(e, "Cons"), 2, fields},
                              {name(e, "Nil"), 0, NULL}};
  pln_type_def data = {.name = name(e, "List"),
                       .n_vars = 1,
                       .vars = &w->a,
                       .n_constructors = 2,
                       .constructors = makers};
  PLN_TRY(pln_module_new(e, &empty));
  pln_status status = pln_module_with_type(empty, &data, &w->m);
  pln_module_release(empty);
  return status;
}

static pln_status open_function(world *w, pln_scope *scope) {
  PLN_TRY(pln_builder_new(w->e, &w->b));
  pln_builder_module(w->b, w->m);
  return pln_build_open(w->b, scope);
}

/* Ends the function and puts it into the module; the builder goes. */
static pln_status close_function(world *w, const char *as, pln_scope scope,
                                 pln_ref result, uint32_t n_vars,
                                 const pln_type *vars) {
  pln_ref f;
  pln_graph *g = NULL;
  pln_module *with;
  PLN_TRY(pln_build_end(w->b, scope, result, 0));
  PLN_TRY(pln_build_function(w->b, scope, 0, 0, &f));
  PLN_TRY(pln_build_generic(w->b, f, n_vars, vars));
  PLN_TRY(pln_builder_seal(w->b, f, &g));
  pln_status status = pln_module_with(w->m, name(w->e, as), g, &with);
  pln_graph_release(g);
  PLN_TRY(status);
  pln_module_release(w->m);
  w->m = with;
  pln_builder_free(w->b);
  w->b = NULL;
  return PLN_OK;
}

static void end(world *w) {
  pln_builder_free(w->b);
  pln_module_release(w->m);
}

static pln_status int_constant(world *w, int32_t value, pln_ref *out) {
  pln_tensor *t;
  PLN_TRY(pln_tensor_from_bytes(w->e, PLN_INT32, 0, NULL, &value, sizeof value,
                                &t));
  pln_status status = pln_build_constant(w->b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status add(world *w, pln_ref x, pln_ref y, pln_ref *out) {
  return pln_build_call(w->b, PLN_OP_ADD, 0, 0, 2, (pln_ref[]){x, y}, out);
}

/* Opens an arm Cons(%h, %t). */
static pln_status open_cons(world *w, pln_scope *arm, pln_ref *h, pln_ref *t) {
  pln_ref head, tail, pattern, clause;
  PLN_TRY(pln_build_open(w->b, arm));
  PLN_TRY(pln_build_param(w->b, name(w->e, "h"), 0, 0, h));
  PLN_TRY(pln_build_param(w->b, name(w->e, "t"), 0, 0, t));
  PLN_TRY(pln_build_pattern_var(w->b, *h, &head));
  PLN_TRY(pln_build_pattern_var(w->b, *t, &tail));
  PLN_TRY(pln_build_pattern_constructor(w->b, name(w->e, "Cons"), 2,
                                        (pln_ref[]){head, tail}, &pattern));
  return pln_build_clause(w->b, pattern, &clause);
}

static pln_status open_nil(world *w, pln_scope *arm) {
  pln_ref pattern, clause;
  PLN_TRY(pln_build_open(w->b, arm));
  PLN_TRY(pln_build_pattern_constructor(w->b, name(w->e, "Nil"), 0, NULL,
                                        &pattern));
  return pln_build_clause(w->b, pattern, &clause);
}

static pln_status make(world *w, const char *as, uint32_t n,
                       const pln_ref *args, pln_ref *out) {
  pln_ref constructor;
  PLN_TRY(pln_build_constructor(w->b, name(w->e, as), 0, &constructor));
  return pln_build_apply(w->b, constructor, 0, 0, n, args, out);
}

static pln_status call(world *w, const char *as, uint32_t n,
                       const pln_ref *args, pln_ref *out) {
  pln_ref callee;
  PLN_TRY(pln_build_global_var(w->b, name(w->e, as), 0, &callee));
  return pln_build_apply(w->b, callee, 0, 0, n, args, out);
}

/* def @len[A](%l: List[A]) { match (%l) { Cons(%h, %t) => 1 + @len(%t),
 * Nil => 0 } } */
static pln_status define_len(world *w) {
  pln_scope f, arms[2];
  pln_ref l, h, t, one, more, result;
  PLN_TRY(open_function(w, &f));
  PLN_TRY(pln_build_param(w->b, name(w->e, "l"), w->list, 0, &l));
  PLN_TRY(open_cons(w, &arms[0], &h, &t));
  PLN_TRY(int_constant(w, 1, &one));
  PLN_TRY(call(w, "len", 1, &t, &more));
  PLN_TRY(add(w, one, more, &result));
  PLN_TRY(pln_build_end(w->b, arms[0], result, 0));
  PLN_TRY(open_nil(w, &arms[1]));
  PLN_TRY(int_constant(w, 0, &result));
  PLN_TRY(pln_build_end(w->b, arms[1], result, 0));
  PLN_TRY(pln_build_match(w->b, l, true, 2, arms, &result));
  return close_function(w, "len", f, result, 1, &w->a);
}

/* def @map[A, B](%f: fn (A) -> B, %l: List[A]) { match (%l) {
 * Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil } } */
static pln_status define_map(world *w) {
  pln_scope scope, arms[2];
  pln_ref f, l, h, t, parts[2], result;
  pln_type vars[2] = {w->a, 0}, type;
  PLN_TRY(pln_type_var(w->e, name(w->e, "B"), PLN_TKIND_TYPE, &vars[1]));
  PLN_TRY(pln_type_func(w->e, 1, vars, vars[1], 0, NULL, 0, NULL, &type));
  PLN_TRY(open_function(w, &scope));
  PLN_TRY(pln_build_param(w->b, name(w->e, "f"), type, 0, &f));
  PLN_TRY(pln_build_param(w->b, name(w->e, "l"), w->list, 0, &l));
  PLN_TRY(open_cons(w, &arms[0], &h, &t));
  PLN_TRY(pln_build_apply(w->b, f, 0, 0, 1, &h, &parts[0]));
  PLN_TRY(call(w, "map", 2, (pln_ref[]){f, t}, &parts[1]));
  PLN_TRY(make(w, "Cons", 2, parts, &result));
  PLN_TRY(pln_build_end(w->b, arms[0], result, 0));
  PLN_TRY(open_nil(w, &arms[1]));
  PLN_TRY(make(w, "Nil", 0, NULL, &result));
  PLN_TRY(pln_build_end(w->b, arms[1], result, 0));
  PLN_TRY(pln_build_match(w->b, l, true, 2, arms, &result));
  return close_function(w, "map", scope, result, 2, vars);
}

/* def @main() { @len(@map(fn (%x) { %x + 1 }, Cons(2, Nil))) } */
static pln_status define_main(world *w) {
  pln_scope scope, inner;
  pln_ref x, one, sum, args[2], cons[2], result;
  PLN_TRY(open_function(w, &scope));
  PLN_TRY(pln_build_open(w->b, &inner));
  PLN_TRY(pln_build_param(w->b, name(w->e, "x"), 0, 0, &x));
  PLN_TRY(int_constant(w, 1, &one));
  PLN_TRY(add(w, x, one, &sum));
  PLN_TRY(pln_build_end(w->b, inner, sum, 0));
  PLN_TRY(pln_build_function(w->b, inner, 0, 0, &args[0]));
  PLN_TRY(int_constant(w, 2, &cons[0]));
  PLN_TRY(make(w, "Nil", 0, NULL, &cons[1]));
  PLN_TRY(make(w, "Cons", 2, cons, &args[1]));
  PLN_TRY(call(w, "map", 2, args, &result));
  PLN_TRY(call(w, "len", 1, &result, &result));
  return close_function(w, "main", scope, result, 0, NULL);
}

static pln_status build_lists(world *w) {
  PLN_TRY(define_list(w));
  PLN_TRY(define_main(w));
  PLN_TRY(define_len(w));
  return define_map(w);
}

/* ------------------------------------------------------------------- tests */

static void check_type(const pln_graph *g, pln_ref node, const char *wanted) {
  captured t = {.size = 0};
  CHECK_OK(pln_print_type(g->engine, pln_node_type(g, node), append, &t));
  CHECK_STR(t.data, wanted);
}

static const pln_graph *function(const pln_module *m, const char *as) {
  uint32_t i = pln_module_find(m, name(pln_module_engine(m), as));
  return pln_module_function_at(m, i);
}

static void check_signature(const pln_module *m, const char *as,
                            const char *wanted) {
  const pln_graph *g = function(m, as);
  check_type(g, pln_graph_root(g), wanted);
}

/* The type of the one node of that kind. */
static void check_kind(const pln_graph *g, pln_kind kind, const char *wanted) {
  for (pln_ref n = 0; n < pln_graph_size(g); n++)
    if (pln_node_kind(g, n) == kind)
      check_type(g, n, wanted);
}

static void types_matches_and_generic_functions(void) {
  world w = {.e = pln_engine_new(NULL, NULL)};
  pln_module *typed = NULL;
  CHECK_OK(build_lists(&w));
  CHECK_OK(pln_module_infer(w.m, &typed));
  check_signature(typed, "len", "fn [A](List[A]) -> int32");
  check_signature(typed, "map", "fn [A, B](fn (A) -> B, List[A]) -> List[B]");
  check_signature(typed, "main", "fn () -> int32");
  const pln_graph *g = function(typed, "len");
  check_type(g, pln_scope_begin(g, 2), "A");
  check_type(g, pln_scope_begin(g, 2) + 1, "List[A]");
  check_kind(g, PLN_PATTERN_CONSTRUCTOR, "List[A]");
  check_kind(g, PLN_MATCH, "int32");
  g = function(typed, "main");
  for (pln_ref n = 0; n < pln_graph_size(g); n++)
    CHECK(pln_node_type(g, n) != 0);
  CHECK_OK(pln_module_verify(typed));
  pln_module_release(typed);
  end(&w);
  pln_engine_free(w.e);
}

static void gives_back_what_is_typed(void) {
  world w = {.e = pln_engine_new(NULL, NULL)};
  pln_module *typed = NULL, *again = NULL;
  CHECK_OK(build_lists(&w));
  CHECK_OK(pln_module_infer(w.m, &typed));
  uint64_t before = w.e->n_inferences;
  CHECK_OK(pln_module_infer(typed, &again));
  CHECK(again == typed);
  CHECK_EQ_INT((int64_t)(w.e->n_inferences - before), 0);
  pln_module_release(typed);
  pln_module_release(again);
  end(&w);
  pln_engine_free(w.e);
}

/* match (%l) with the pattern Cons(_): the constructor has two fields. */
static void refuses_patterns_that_do_not_fit(void) {
  world w = {.e = pln_engine_new(NULL, NULL)};
  pln_scope f = 0, arm = 0;
  pln_ref l = 0, pattern = 0, clause = 0, result = 0;
  pln_module *typed = NULL;
  CHECK_OK(define_list(&w));
  CHECK_OK(open_function(&w, &f));
  CHECK_OK(pln_build_param(w.b, 1, w.i32, 0, &l));
  CHECK_OK(pln_build_open(w.b, &arm));
  CHECK_OK(pln_build_pattern_wildcard(w.b, &pattern));
  CHECK_STATUS(pln_build_pattern_constructor(w.b, name(w.e, "Cons"), 1,
                                             &pattern, &result),
               PLN_ERR_TYPE);
  CHECK_STR(pln_diag_at(w.e, 0)->message,
            "the constructor 'Cons' has 2 fields, the pattern 1: in "
            "Cons(PatternWildcard)");
  CHECK_OK(pln_build_pattern_constructor(
      w.b, name(w.e, "Cons"), 2, (pln_ref[]){pattern, pattern}, &result));
  CHECK_OK(pln_build_clause(w.b, result, &clause));
  CHECK_OK(pln_build_end(w.b, arm, l, 0));
  CHECK_OK(pln_build_match(w.b, l, true, 1, &arm, &result));
  CHECK_OK(close_function(&w, "main", f, result, 0, NULL));
  pln_diag_clear(w.e);
  CHECK_STATUS(pln_module_infer(w.m, &typed), PLN_ERR_TYPE);
  CHECK_STR(pln_diag_at(w.e, 0)->message,
            "the pattern: expected int32, got List[_]: in "
            "Cons(PatternWildcard, PatternWildcard) of @main");
  end(&w);
  pln_engine_free(w.e);
}

/* ------------------------------------------------------------ typed is kept */

enum { LENGTH = 1000, MIDDLE = 500 };

static pln_graph *chain(pln_engine *e) {
  pln_builder *b = NULL;
  pln_graph *g = NULL;
  pln_scope scope = 0;
  pln_type type = 0;
  pln_ref y = 0, f = 0;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 1, (pln_dim[]){4}, &type));
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_build_open(b, &scope));
  CHECK_OK(pln_build_param(b, 1, type, 0, &y));
  for (int i = 0; i < LENGTH; i++)
    CHECK_OK(pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &y, &y));
  CHECK_OK(pln_build_end(b, scope, y, 0));
  CHECK_OK(pln_build_function(b, scope, 0, 0, &f));
  CHECK_OK(pln_builder_seal(b, f, &g));
  pln_builder_free(b);
  return g;
}

static pln_status change_middle(void *ud, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  (void)ud;
  if (old != MIDDLE)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref x = pln_node_operands(pln_rewrite_graph(rw), *node)[0];
  return pln_build_call(b, PLN_OP_NEG, 0, 0, 1, &x, node);
}

static void copies_keep_their_types(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_graph *g = chain(e), *changed = NULL, *copy = NULL;
  CHECK_EQ_INT((int64_t)e->n_inferences, LENGTH);
  pln_mutator mutator = {.visit = change_middle};
  CHECK_OK(pln_graph_rewrite(g, &mutator, &changed));
  CHECK_EQ_INT((int64_t)e->n_inferences, LENGTH + 1);
  pln_builder *b = NULL;
  pln_ref root = 0;
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_build_import(b, g, pln_graph_root(g), &root));
  CHECK_OK(pln_builder_seal(b, root, &copy));
  CHECK_EQ_INT((int64_t)e->n_inferences, LENGTH + 1);
  check_type(copy, pln_graph_root(copy),
             "fn (Tensor[(4), float32]) -> Tensor[(4), float32]");
  pln_graph *typed = NULL;
  CHECK_OK(pln_graph_infer(changed, NULL, &typed));
  CHECK(typed == changed);
  CHECK_EQ_INT((int64_t)e->n_inferences, LENGTH + 1);
  pln_graph_release(typed);
  pln_graph_release(copy);
  pln_builder_free(b);
  pln_graph_release(changed);
  pln_graph_release(g);
  pln_engine_free(e);
}

/* fn (%x: Tensor[(4)], %z: Tensor[(3)]) { add(tanh(%x), %x) } */
static pln_graph *sum_of_two(pln_engine *e) {
  pln_builder *b = NULL;
  pln_graph *g = NULL;
  pln_scope scope = 0;
  pln_type four = 0, three = 0;
  pln_ref x = 0, z = 0, args[2] = {0}, sum = 0, f = 0;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 1, (pln_dim[]){4}, &four));
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 1, (pln_dim[]){3}, &three));
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_build_open(b, &scope));
  CHECK_OK(pln_build_param(b, 1, four, 0, &x));
  CHECK_OK(pln_build_param(b, 2, three, 0, &z));
  CHECK_OK(pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &x, &args[0]));
  args[1] = x;
  CHECK_OK(pln_build_call(b, PLN_OP_ADD, 0, 0, 2, args, &sum));
  CHECK_OK(pln_build_end(b, scope, sum, 0));
  CHECK_OK(pln_build_function(b, scope, 0, 0, &f));
  CHECK_OK(pln_builder_seal(b, f, &g));
  pln_builder_free(b);
  return g;
}

/* Replaces tanh(%x) by %z, which the sum does not accept; then the sum by %x
 * if *ud. */
static pln_status narrow_operand(void *ud, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  const bool *replaces_sum = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  if (g->nodes[old].kind != PLN_CALL)
    return PLN_OK;
  if (g->nodes[old].data == PLN_OP_TANH)
    *node = pln_rewrite_image(rw, pln_operands(g, &g->nodes[old])[0] + 1);
  else if (*replaces_sum)
    *node = pln_rewrite_image(rw, pln_operands(g, &g->nodes[old])[1]);
  return PLN_OK;
}

static void a_lenient_mutator_leaves_no_refused_call(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_graph *g = sum_of_two(e), *out = NULL;
  bool replaces_sum = false;
  pln_mutator mutator = {
      .ud = &replaces_sum, .visit = narrow_operand, .lenient = true};
  CHECK_STATUS(pln_graph_rewrite(g, &mutator, &out), PLN_ERR_TYPE);
  CHECK(!out);
  CHECK_EQ_INT((int64_t)pln_diag_count(e), 1);
  CHECK_STR(pln_diag_at(e, 0)->message,
            "the rewrite leaves a call that refuses its operands: in "
            "add(%subtract: Tensor[(3), float32], %add: Tensor[(4), float32])");
  pln_diag_clear(e);
  replaces_sum = true;
  CHECK_OK(pln_graph_rewrite(g, &mutator, &out));
  CHECK_EQ_INT((int64_t)pln_diag_count(e), 0);
  pln_graph_release(out);
  mutator.lenient = false;
  out = NULL;
  CHECK_STATUS(pln_graph_rewrite(g, &mutator, &out), PLN_ERR_TYPE);
  CHECK(!out);
  pln_graph_release(g);
  pln_engine_free(e);
}

static void a_mutator_that_keeps_types_changes_none(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_graph *g = sum_of_two(e), *out = NULL;
  bool replaces_sum = true;
  pln_mutator mutator = {.ud = &replaces_sum,
                         .visit = narrow_operand,
                         .lenient = true,
                         .keeps_types = true};
  CHECK_STATUS(pln_graph_rewrite(g, &mutator, &out), PLN_ERR_TYPE);
  CHECK(!out);
  CHECK_EQ_INT((int64_t)pln_diag_count(e), 2); /* an error and a note */
  CHECK(!strncmp(pln_diag_at(e, 0)->message,
                 "the rewrite replaces a node by one of another type: in tanh(",
                 60));
  pln_graph_release(g);
  pln_engine_free(e);
}

/* fn (%x) { let %v = tanh(%x); let %v = tanh(%v); ... } (1f) */
static void long_chains_of_lets_take_linear_time(void) {
  enum { LETS = 100000 };
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_builder *b = NULL;
  pln_graph *g = NULL, *typed = NULL;
  pln_scope scope = 0;
  pln_ref x = 0, var = 0, value = 0, let = 0, f = 0, arg = 0, call = 0;
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 0, NULL, &type));
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_build_open(b, &scope));
  CHECK_OK(pln_build_param(b, 1, 0, 0, &x));
  for (int i = 0; i < LETS; i++) {
    CHECK_OK(pln_build_var(b, 1, 0, 0, &var));
    CHECK_OK(pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &x, &value));
    CHECK_OK(pln_build_let(b, var, value, &let));
    x = var;
  }
  CHECK_OK(pln_build_end(b, scope, x, 0));
  CHECK_OK(pln_build_function(b, scope, 0, 0, &f));
  CHECK_OK(pln_build_var(b, 1, type, 0, &arg));
  CHECK_OK(pln_build_apply(b, f, 0, 0, 1, &arg, &call));
  CHECK_OK(pln_builder_seal(b, call, &g));
  uint64_t before = e->n_inferences;
  CHECK_OK(pln_graph_infer(g, NULL, &typed));
  CHECK(e->n_inferences - before <= LETS + 1);
  check_type(typed, pln_graph_root(typed), "float32");
  for (pln_ref n = 0; n < pln_graph_size(typed); n++)
    CHECK(pln_node_type(typed, n) != 0 || pln_node_kind(typed, n) == PLN_LET);
  pln_graph_release(typed);
  pln_graph_release(g);
  pln_builder_free(b);
  pln_engine_free(e);
}

/* Names that are there already are found without memory. */
static pln_status intern_names(pln_engine *e) {
  static const char *const names[] = {"A",   "B",   "List", "Cons", "Nil",
                                      "h",   "t",   "l",    "f",    "x",
                                      "len", "map", "main", "v"};
  for (size_t i = 0; i < PLN_COUNT(names); i++) {
    pln_symbol symbol;
    PLN_TRY(pln_symbol_intern(e, pln_text(names[i]), &symbol));
  }
  return PLN_OK;
}

static pln_status infer_lists(pln_engine *e, void *ud) {
  (void)ud;
  world w = {.e = e};
  pln_module *typed = NULL;
  pln_type_var_kind kind;
  pln_status status = intern_names(e);
  if (status == PLN_OK)
    status = build_lists(&w);
  if (status == PLN_OK)
    status = pln_module_infer(w.m, &typed);
  if (status == PLN_OK)
    status = pln_type_check_kind(e, typed, w.list, &kind);
  pln_module_release(typed);
  end(&w);
  return status;
}

static void survives_oom(void) {
  oom_sweep(infer_lists, NULL);
}

static const check_test tests[] = {
    {"types matches and generic functions",
     types_matches_and_generic_functions},
    {"gives back what is typed", gives_back_what_is_typed},
    {"refuses patterns that do not fit", refuses_patterns_that_do_not_fit},
    {"copies keep their types", copies_keep_their_types},
    {"a lenient mutator leaves no refused call",
     a_lenient_mutator_leaves_no_refused_call},
    {"a mutator that keeps types changes none",
     a_mutator_that_keeps_types_changes_none},
    {"long chains of lets take linear time",
     long_chains_of_lets_take_linear_time},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
