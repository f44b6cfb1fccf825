/* test_egraph.c: e-graphs and equality saturation from C: congruence, the work
 * of rebuilds, and a saturation while memory is short. What the pass does is in
 * spec/rule/saturation_spec.lua. */

#include "base/base.h"
#include "ir/graph/module.h"
#include "oom.h"
#include "rule/egraph/egraph.h"
#include "rule/egraph/saturate.h"

/* ------------------------------------------------------------------ e-graphs
 */

static pln_type floats(pln_engine *e) {
  static const pln_dim dims[] = {4};
  pln_type type;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 1, dims, &type));
  return type;
}

static pln_ref call(pln_builder *b, const char *op, pln_ref x) {
  pln_ref out = PLN_NONE;
  CHECK_OK(pln_build_call(b, pln_op_find(b->engine, pln_text(op)), 0, 0, 1, &x,
                          &out));
  return out;
}

static pln_ref var(pln_builder *b, const char *name) {
  pln_symbol symbol;
  pln_ref out = PLN_NONE;
  CHECK_OK(pln_symbol_intern(b->engine, pln_text(name), &symbol));
  CHECK_OK(pln_build_var(b, symbol, floats(b->engine), 0, &out));
  return out;
}

typedef struct eg_case {
  pln_engine *e;
  pln_builder *b;
  pln_egraph eg;
} eg_case;

static void begin(eg_case *c) {
  c->e = pln_engine_new(NULL, NULL);
  REQUIRE(c->e);
  REQUIRE(pln_builder_new(c->e, &c->b) == PLN_OK);
  pln_egraph_begin(&c->eg, c->e);
  pln_egraph_open(&c->eg, c->b, 0);
}

static void end(eg_case *c) {
  pln_egraph_end(&c->eg);
  pln_builder_free(c->b);
  pln_engine_free(c->e);
}

/* x = y makes f(x) = f(y), and so g(f(x)) = g(f(y)). */
static void closes(void) {
  eg_case c;
  bool merged;
  begin(&c);
  pln_ref x = var(c.b, "x"), y = var(c.b, "y");
  pln_ref fx = call(c.b, "tanh", call(c.b, "nn.relu", x));
  pln_ref fy = call(c.b, "tanh", call(c.b, "nn.relu", y));
  pln_ref again = call(c.b, "nn.relu", x);
  CHECK_OK(pln_egraph_add_tree(&c.eg, fx));
  CHECK_OK(pln_egraph_add_tree(&c.eg, fy));
  CHECK_OK(pln_egraph_add_tree(&c.eg, again));
  CHECK_EQ_INT(c.eg.n_live, 6);
  CHECK(pln_egraph_class(&c.eg, fx) != pln_egraph_class(&c.eg, fy));
  CHECK_OK(pln_egraph_merge(&c.eg, x, y, &merged));
  CHECK(merged);
  CHECK_OK(pln_egraph_rebuild(&c.eg));
  CHECK_EQ_INT(pln_egraph_class(&c.eg, fx), pln_egraph_class(&c.eg, fy));
  CHECK_EQ_INT(c.eg.n_classes, 3);
  CHECK_EQ_INT(c.eg.n_live, 4);
  CHECK_OK(pln_egraph_merge(&c.eg, x, y, &merged));
  CHECK(!merged);
  end(&c);
}

/* x = f(x) makes a cycle of one class. */
static void cycles(void) {
  eg_case c;
  bool merged;
  begin(&c);
  pln_ref x = var(c.b, "x"), fx = call(c.b, "nn.relu", x);
  pln_ref ffx = call(c.b, "nn.relu", fx);
  CHECK_OK(pln_egraph_add_tree(&c.eg, ffx));
  CHECK_OK(pln_egraph_merge(&c.eg, x, fx, &merged));
  CHECK_OK(pln_egraph_rebuild(&c.eg));
  CHECK_EQ_INT(c.eg.n_classes, 1);
  CHECK_EQ_INT(c.eg.n_live, 2);
  end(&c);
}

/* Nothing is looked at where nothing merged; a merge at the end of a long chain
 * looks at the uses of what it merged. */
static void rebuilds_little(void) {
  enum { LENGTH = 20000 };
  eg_case c;
  bool merged;
  begin(&c);
  pln_ref x = var(c.b, "x"), y = var(c.b, "y"), out = x;
  for (int i = 0; i < LENGTH; i++)
    out = call(c.b, i % 2 ? "tanh" : "nn.relu", out);
  CHECK_OK(pln_egraph_add_tree(&c.eg, out));
  CHECK_OK(pln_egraph_add_tree(&c.eg, y));
  CHECK_OK(pln_egraph_rebuild(&c.eg));
  CHECK_EQ_INT(c.eg.n_rehashed, 0);
  CHECK_OK(pln_egraph_merge(&c.eg, out, y, &merged));
  CHECK_OK(pln_egraph_rebuild(&c.eg));
  CHECK_EQ_INT(c.eg.n_rehashed, 0);
  CHECK_OK(pln_egraph_add_tree(&c.eg, call(c.b, "exp", y)));
  pln_ref z = var(c.b, "z");
  CHECK_OK(pln_egraph_add_tree(&c.eg, call(c.b, "exp", z)));
  CHECK_OK(pln_egraph_merge(&c.eg, x, z, &merged));
  CHECK_OK(pln_egraph_rebuild(&c.eg));
  CHECK(c.eg.n_rehashed <= 2);
  end(&c);
}

/* ---------------------------------------------------------------- saturation
 */

static const char program[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(8, 64), float32], %c: bool) {\n"
    "  %0 = nn.relu(nn.relu(%x));\n"
    "  %1 = add(add(multiply(%0, 2f), tanh(%0)), exp(%0));\n"
    "  %2 = if (%c) { divide(multiply(%1, 4f), 4f) } else { %1 };\n"
    "  (add(%2, 0f), split(%2, indices_or_sections=2, axis=1).1)\n"
    "}\n";

static const char *const rules[] = {
    "group: add(add(?x, ?y), ?z) <=> add(?x, add(?y, ?z))",
    "?x * ?a / ?b <=> ?x * (?a / ?b)",
    "tanh(?x), exp(?x) => ?y@exp(?x), tanh(?x)",
    "nn.relu(nn.relu(?x)) => nn.relu(?x)", "add(?x, 0) => ?x"};

static pln_status make_set(pln_engine *e, pln_rule_set **out) {
  PLN_TRY(pln_rule_set_new(e, "test", out));
  for (size_t i = 0; i < PLN_COUNT(rules); i++) {
    pln_rule_info info = {.text = rules[i], .grows = true};
    PLN_TRY(pln_rule_set_add_equation(*out, &info, NULL));
  }
  return pln_rule_set_compile(*out);
}

static pln_status saturate_module(const pln_module *m, const pln_rule_set *set,
                                  pln_saturate_report *report) {
  pln_graph *out;
  pln_saturate_options options = {.sets = &set,
                                  .n_sets = 1,
                                  .rules = {.lenient = true},
                                  .node_limit = 120,
                                  .k_multi = 2,
                                  .iter_limit = 4};
  PLN_TRY(
      pln_rules_saturate(pln_module_function_at(m, 0), &options, report, &out));
  pln_status status = pln_graph_verify(out);
  pln_graph_release(out);
  return status;
}

static pln_status saturate_program(pln_engine *e, void *ud) {
  pln_module *m = NULL;
  pln_rule_set *set = NULL;
  pln_saturate_report *report = ud;
  pln_status status = pln_parse_module(e, pln_text(program), "test", NULL, &m);
  if (status == PLN_OK)
    status = make_set(e, &set);
  if (status == PLN_OK)
    status = saturate_module(m, set, report);
  pln_rule_set_free(set);
  pln_module_release(m);
  return status;
}

static void saturates(void) {
  pln_saturate_report report = {0};
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  CHECK_OK(saturate_program(e, &report));
  CHECK(report.changed > 0);
  CHECK(report.cost_after < report.cost_before);
  pln_engine_free(e);
  oom_sweep(saturate_program, &report);
}

static const check_test tests[] = {
    {"congruent nodes become one", closes},
    {"a class may contain its own users", cycles},
    {"a rebuild looks at uses of what merged only", rebuilds_little},
    {"saturates, also while memory is short", saturates}};

CHECK_MAIN(tests)
