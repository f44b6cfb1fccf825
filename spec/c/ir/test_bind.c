/* test_bind.c: variables of expressions, expressions in place of variables,
 * types rebuilt. */

#include "graph_fixture.h"
#include "ir/graph/graph.h"

static pln_type vector(int64_t n) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(engine, PLN_FLOAT32, 1, &n, &type));
  return type;
}

static pln_symbol symbol(const char *name) {
  pln_symbol s = 0;
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &s));
  return s;
}

static pln_ref var_of(const char *name, pln_type type) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_var(b, symbol(name), type, 0, &ref));
  return ref;
}

static pln_ref var(const char *name) {
  return var_of(name, vector(4));
}

static pln_graph *seal(pln_ref root) {
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, root, &g));
  return g;
}

static uint32_t id(pln_ref var) {
  return pln_node_var(pln_builder_graph(b), var);
}

/* --------------------------------------------------------------- variables */

static pln_status note(void *ud, const pln_graph *g, pln_ref node) {
  char *text = ud;
  size_t n = strlen(text);
  text[n] = pln_symbol_text(g->engine, pln_node_symbol(g, node)).data[0];
  return PLN_OK;
}

static void check_vars(const pln_graph *g, pln_ref node, const char *all,
                       const char *bound, const char *unbound) {
  char text[3][64] = {{0}};
  CHECK_OK(pln_graph_vars(g, node, PLN_VARS_ALL, note, text[0]));
  CHECK_OK(pln_graph_vars(g, node, PLN_VARS_BOUND, note, text[1]));
  CHECK_OK(pln_graph_vars(g, node, PLN_VARS_FREE, note, text[2]));
  CHECK_STR(text[0], all);
  CHECK_STR(text[1], bound);
  CHECK_STR(text[2], unbound);
}

static void variables_are_bound_or_free(void) {
  begin();
  pln_ref x = var("x"), y = var("y"), v = var("v");
  pln_graph *g = seal(function(1, &x, let(v, add(x, y), add(v, v))));
  check_vars(g, pln_graph_root(g), "xvy", "xv", "y");
  pln_ref body = pln_scope_result(g, 1);
  check_vars(g, body, "v", "", "v");
  pln_graph_release(g);
  end();
}

static pln_ref arm_param(const char *name) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_param(b, symbol(name), 0, 0, &ref));
  return ref;
}

static pln_graph *match_graph(void) {
  pln_scope f, arm;
  pln_ref match = PLN_NONE, fn = PLN_NONE, clause, two[2], pattern = PLN_NONE;
  CHECK_OK(pln_build_open(b, &f));
  pln_ref x = arm_param("x");
  CHECK_OK(pln_build_open(b, &arm));
  pln_ref h = arm_param("h"), t = arm_param("t"), body = PLN_NONE;
  CHECK_OK(pln_build_pattern_var(b, h, &two[0]));
  CHECK_OK(pln_build_pattern_var(b, t, &two[1]));
  CHECK_OK(pln_build_pattern_tuple(b, 2, two, &pattern));
  CHECK_OK(pln_build_clause(b, pattern, &clause));
  CHECK_OK(pln_build_tuple(b, 2, (pln_ref[]){h, x}, &body));
  CHECK_OK(pln_build_end(b, arm, body, 0));
  CHECK_OK(pln_build_match(b, x, true, 1, &arm, &match));
  CHECK_OK(pln_build_end(b, f, match, 0));
  CHECK_OK(pln_build_function(b, f, 0, 0, &fn));
  return seal(fn);
}

static void patterns_bind_variables(void) {
  begin();
  pln_graph *g = match_graph();
  check_vars(g, pln_graph_root(g), "xht", "xht", "");
  pln_ref match = pln_scope_result(g, 1);
  check_vars(g, match, "xht", "ht", "x");
  pln_graph_release(g);
  end();
}

/* ------------------------------------------------------------ type variables
 */

static pln_status count_type(void *ud, pln_engine *e, pln_type type) {
  (void)e;
  (void)type;
  ++*(uint32_t *)ud;
  return PLN_OK;
}

static uint32_t n_type_vars(const pln_graph *g, pln_type type,
                            pln_var_set which) {
  uint32_t n = 0;
  if (g)
    CHECK_OK(pln_graph_type_vars(g, pln_graph_root(g), which, count_type, &n));
  else
    CHECK_OK(pln_type_vars(engine, type, which, count_type, &n));
  return n;
}

static void generic_functions_bind_type_variables(void) {
  begin();
  pln_type a = 0, c = 0, f = 0, pair = 0;
  CHECK_OK(pln_type_var(engine, symbol("A"), PLN_TKIND_TYPE, &a));
  CHECK_OK(pln_type_var(engine, symbol("C"), PLN_TKIND_TYPE, &c));
  CHECK_OK(pln_type_func(engine, 1, &a, c, 1, &a, 0, NULL, &f));
  CHECK_EQ_INT(n_type_vars(NULL, f, PLN_VARS_ALL), 2);
  CHECK_EQ_INT(n_type_vars(NULL, f, PLN_VARS_BOUND), 1);
  CHECK_EQ_INT(n_type_vars(NULL, f, PLN_VARS_FREE), 1);
  CHECK_OK(
      pln_type_make(engine, PLN_TYPE_TUPLE, 0, 2, (pln_type[]){a, c}, &pair));
  pln_ref x = var_of("x", pair), fn = function(1, &x, x);
  CHECK_OK(pln_build_generic(b, fn, 1, &c));
  pln_graph *g = seal(fn);
  CHECK_EQ_INT(n_type_vars(g, 0, PLN_VARS_ALL), 2);
  CHECK_EQ_INT(n_type_vars(g, 0, PLN_VARS_BOUND), 1);
  CHECK_EQ_INT(n_type_vars(g, 0, PLN_VARS_FREE), 1);
  pln_graph_release(g);
  end();
}

static pln_type nested(uint32_t depth) {
  pln_type type = vector(4);
  for (uint32_t i = 0; i < depth; i++)
    CHECK_OK(pln_type_make(engine, PLN_TYPE_TUPLE, 0, 1, &type, &type));
  return type;
}

static pln_status widen(void *ud, pln_engine *e, pln_type old, pln_type *type) {
  (void)ud;
  if (pln_type_get_kind(e, old) != PLN_TYPE_TENSOR)
    return PLN_OK;
  int64_t n = 8;
  return pln_type_tensor(e, PLN_FLOAT32, 1, &n, type);
}

static void deep_types_are_walked_and_rebuilt(void) {
  enum { DEPTH = 100000 };
  begin();
  uint32_t n = 0;
  pln_type deep = nested(DEPTH), image = 0;
  CHECK_OK(pln_type_post_order(engine, deep, count_type, &n));
  CHECK_EQ_INT(n, DEPTH + 1);
  pln_type_mutator *m = NULL;
  CHECK_OK(pln_type_mutator_new(engine, widen, NULL, &m));
  CHECK_OK(pln_type_mutate(m, deep, &image));
  CHECK(image != deep);
  for (int i = 0; i < DEPTH; i++)
    image = pln_type_part_at(engine, image, 0);
  CHECK_EQ_INT(image, vector(8));
  pln_type_mutator_free(m);
  end();
}

static void types_of_variables_are_rewritten(void) {
  begin();
  pln_ref x = var("x"), y = var_of("y", nested(1));
  pln_graph *g = seal(function(2, (pln_ref[]){x, y}, add(x, x))), *out = NULL;
  pln_mutator mutator = {.type = widen};
  CHECK_OK(pln_graph_rewrite(g, &mutator, &out));
  CHECK(out != g);
  CHECK_OK(pln_graph_verify(out));
  CHECK_EQ_INT(pln_node_type(out, pln_scope_result(out, 1)), vector(8));
  pln_type type = pln_node_type(out, pln_graph_root(out));
  CHECK_EQ_INT(pln_type_part_at(engine, type, 0), vector(8));
  CHECK_EQ_INT(pln_type_part_at(engine, type, 2), vector(8));
  pln_graph *again = NULL;
  CHECK_OK(pln_graph_rewrite(out, &mutator, &again));
  CHECK(again == out);
  pln_graph_release(again);
  pln_graph_release(out);
  pln_graph_release(g);
  end();
}

/* ----------------------------------------------------------------- binding */

static pln_graph *bound(const pln_graph *g, pln_ref v, const pln_graph *value) {
  pln_graph *out = NULL;
  pln_binding binding = {id(v), value, pln_graph_root(value)};
  CHECK_OK(pln_graph_bind(g, 1, &binding, &out));
  CHECK_OK(pln_graph_verify(out));
  return out;
}

static bool same(const pln_graph *x, const pln_graph *y, bool map) {
  bool equal = false;
  CHECK_OK(
      pln_graph_equal(x, pln_graph_root(x), y, pln_graph_root(y), map, &equal));
  return equal;
}

static void check_bound(pln_ref expr, pln_ref v, pln_ref value,
                        pln_ref wanted) {
  pln_graph *g = seal(expr), *with = seal(value), *w = seal(wanted);
  pln_graph *out = bound(g, v, with);
  CHECK(same(out, w, false));
  pln_graph_release(out);
  pln_graph_release(w);
  pln_graph_release(with);
  pln_graph_release(g);
}

static void free_variables_are_replaced(void) {
  begin();
  pln_ref x = var("x"), y = var("y"), z = var("z");
  check_bound(add(x, z), x, y, add(y, z));
  pln_ref sum = add(y, z);
  check_bound(add(x, x), x, sum, add(sum, sum)); /* shared, not repeated */
  check_bound(add(x, y), x, add(y, y), add(add(y, y), y));
  check_bound(x, x, y, y);
  end();
}

static void parameters_are_bound_and_go(void) {
  begin();
  pln_ref x = var("x"), y = var("y"), z = var("z");
  pln_ref xy[] = {x, y};
  check_bound(function(2, xy, add(x, y)), x, z,
              function(2, (pln_ref[]){y, z}, add(z, y)));
  check_bound(function(2, xy, add(x, y)), x, y, function(1, &y, add(y, y)));
  check_bound(function(2, xy, add(x, y)), y, add(z, z),
              function(2, (pln_ref[]){x, z}, add(x, add(z, z))));
  check_bound(function(2, xy, y), x, z, function(1, &y, y)); /* not used */
  check_bound(function(1, &x, x), x, add(y, z),
              function(2, (pln_ref[]){y, z}, add(y, z)));
  check_bound(function(1, &x, add(x, z)), x, z, function(0, NULL, add(z, z)));
  end();
}

static void several_are_put_in_at_once(void) {
  begin();
  pln_ref x = var("x"), y = var("y");
  pln_graph *g = seal(add(x, add(x, y))), *gx = seal(x), *gy = seal(y);
  pln_graph *wanted = seal(add(y, add(y, x))), *out = NULL;
  pln_binding swap[] = {{id(x), gy, pln_graph_root(gy)},
                        {id(y), gx, pln_graph_root(gx)}};
  CHECK_OK(pln_graph_bind(g, 2, swap, &out));
  CHECK(same(out, wanted, false));
  pln_graph_release(out);
  CHECK_OK(pln_graph_bind(gx, 1, &swap[1], &out));
  CHECK(out == gx);
  pln_graph_release(out);
  pln_graph_release(wanted);
  pln_graph_release(gy);
  pln_graph_release(gx);
  pln_graph_release(g);
  end();
}

static void check_refused(pln_ref expr, pln_ref v) {
  pln_graph *g = seal(expr), *value = seal(var("z")), *out = NULL;
  pln_binding binding = {id(v), value, pln_graph_root(value)};
  CHECK_STATUS(pln_graph_bind(g, 1, &binding, &out), PLN_ERR_ARGUMENT);
  pln_graph_release(value);
  pln_graph_release(g);
}

static void what_is_bound_inside_stays(void) {
  begin();
  pln_ref x = var("x"), y = var("y");
  check_refused(function(1, &x, let(y, x, y)), y);
  check_refused(function(1, &x, function(1, &y, y)), y);
  check_refused(let(y, x, y), y);
  end();
}

static void values_reach_every_scope(void) {
  begin();
  pln_ref x = var("x"), y = var("y"), z = var("z"), v = var("v");
  pln_ref inner = function(1, &y, add(y, x));
  check_bound(inner, x, z, function(1, &y, add(y, z)));
  pln_ref zv = add(z, v), body = let(var_of("w", 0), inner, add(x, v));
  pln_ref wanted = let(var_of("w", 0), function(1, &y, add(y, zv)), add(zv, v));
  check_bound(function(1, &v, body), x, zv, function(1, &v, wanted));
  end();
}

/* ------------------------------------------------------------------ memory */

static pln_status bind_all(pln_engine *e, void *ud) {
  pln_builder *builder;
  pln_ref x, y, f;
  pln_graph *g = NULL, *value = NULL, *out = NULL;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &builder));
  pln_status status = pln_build_var(builder, 0, 0, 0, &x);
  if (status == PLN_OK)
    status = pln_build_var(builder, 0, 0, 0, &y);
  if (status == PLN_OK)
    status = pln_build_tuple(builder, 2, (pln_ref[]){x, y}, &f);
  if (status == PLN_OK)
    status = pln_build_bind(builder, 1, &x, f, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_builder_seal(builder, f, &g);
  if (status == PLN_OK)
    status = pln_builder_seal(builder, y, &value);
  pln_binding binding = {1, value, 0};
  if (status == PLN_OK)
    status = pln_graph_bind(g, 1, &binding, &out);
  pln_mutator mutator = {.type = widen};
  pln_graph_release(out);
  out = NULL;
  if (status == PLN_OK)
    status = pln_graph_rewrite(g, &mutator, &out);
  pln_graph *renewed = NULL;
  if (status == PLN_OK)
    status = pln_graph_alpha_rename(g, &renewed);
  pln_graph_release(renewed);
  uint32_t n = 0;
  if (status == PLN_OK)
    status =
        pln_graph_type_vars(g, pln_graph_root(g), PLN_VARS_ALL, count_type, &n);
  pln_graph_release(out);
  pln_graph_release(value);
  pln_graph_release(g);
  pln_builder_free(builder);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(bind_all, NULL);
}

static const check_test tests[] = {
    {"variables are bound or free", variables_are_bound_or_free},
    {"patterns bind variables", patterns_bind_variables},
    {"generic functions bind type variables",
     generic_functions_bind_type_variables},
    {"deep types are walked and rebuilt", deep_types_are_walked_and_rebuilt},
    {"types of variables are rewritten", types_of_variables_are_rewritten},
    {"free variables are replaced", free_variables_are_replaced},
    {"parameters are bound and go", parameters_are_bound_and_go},
    {"several are put in at once", several_are_put_in_at_once},
    {"what is bound inside stays", what_is_bound_inside_stays},
    {"values reach every scope", values_reach_every_scope},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
