/* test_rules.c: rule sets from C: what they make of a program, and both while
 * memory is short. What the language means is in spec/rule/. */

#include "base/base.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "oom.h"
#include "rule/rule.h"
#include "rule/set.h"

static const char program[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(N, 3), float32]) {\n"
    "  %0 = transpose(%x, axes=[1, 0]);\n"
    "  %1 = transpose(%0, axes=[1, 0]);\n"
    "  %2 = multiply(add(%1, 1f), 3f);\n"
    "  %3 = multiply(%y, sigmoid(%y));\n"
    "  %4 = split(%x, indices_or_sections=1, axis=0);\n"
    "  (nn.relu(nn.relu(%2)), reshape(%3, newshape=[-1, 3]), %4.0)\n"
    "}\n";

static const char *const texts[] = {
    "transposes: transpose(transpose(?x, axes=?p), axes=?q)"
    " => transpose(?x, axes=compose(?p, ?q))",
    "same: transpose(?x, axes=?p) => ?x where ?p == iota(len(?p))",
    "distribute: multiply(add(?x, ?a:const), ?b:const)"
    " => add(multiply(?x, ?b), multiply(?a, ?b))",
    "silu: multiply(?x, sigmoid(?x)) => nn.silu(?x)",
    "(nn.relu(?r@nn.relu(?x)) | nn.relu(?r@tanh(?x))) => ?r",
    "?r@reshape(?x, newshape=?s) => ?x where ?r.shape == ?x.shape and len(?s) "
    "in [1, 2, 3] or not (product(?s) + 1 ~= 3)",
    "branches: If(Var(\"c\"), ?t@tanh(_), ?x) => ?t where ?x.rank < 0",
    "inlined: Call(Function(?p..., ?k:const), ?args...) => ?k",
    "field: split(?x).0 => copy(?x) where ?x.rank < 0"};

static pln_status make_set(pln_engine *e, pln_rule_set **out) {
  pln_rule_set *set;
  PLN_TRY(pln_rule_set_new(e, "test", &set));
  pln_status status = PLN_OK;
  for (size_t i = 0; status == PLN_OK && i < PLN_COUNT(texts); i++) {
    pln_rule_info info = {.text = texts[i], .reason = "a reason"};
    status = pln_rule_set_add(set, &info, NULL);
  }
  if (status == PLN_OK)
    status = pln_rule_set_compile(set);
  if (status != PLN_OK)
    pln_rule_set_free(set);
  *out = set;
  return status;
}

/* The same rules, of which those of plain calls are read when they are needed.
 */
static pln_status make_later(pln_engine *e, pln_rule_set **out) {
  static const char *const heads[PLN_COUNT(texts)] = {
      "transpose", "transpose", "multiply", "multiply", "nn.relu", "reshape"};
  pln_rule_set *set;
  PLN_TRY(pln_rule_set_new(e, "test", &set));
  pln_status status = PLN_OK;
  for (size_t i = 0; status == PLN_OK && i < PLN_COUNT(texts); i++) {
    pln_rule_info info = {.name = "rule", .text = texts[i], .file = "test"};
    status = heads[i] ? pln_rule_set_add_later(set, &info, heads[i], NULL)
                      : pln_rule_set_add(set, &info, NULL);
  }
  if (status == PLN_OK)
    status = pln_rule_set_compile_later(set, NULL);
  if (status != PLN_OK)
    pln_rule_set_free(set);
  *out = set;
  return status;
}

/* Applies the set to @main and counts the calls of the result. */
static pln_status apply_set(pln_engine *e, const pln_rule_set *set,
                            uint32_t *calls) {
  pln_module *module;
  pln_graph *out;
  PLN_TRY(pln_parse_module(e, pln_text(program), NULL, NULL, &module));
  pln_rule_options options = {.number_values = true};
  pln_status status =
      pln_rules_apply(set, pln_module_function_at(module, 0), &options, &out);
  *calls = 0;
  if (status == PLN_OK) {
    for (pln_ref i = 0; i < pln_graph_size(out); i++)
      *calls += pln_node_kind(out, i) == PLN_CALL;
    status = pln_graph_verify(out);
    pln_graph_release(out);
  }
  pln_module_release(module);
  return status;
}

static pln_status make_and_apply(pln_engine *e, void *ud) {
  pln_rule_set *set;
  PLN_TRY(make_set(e, &set));
  pln_status status = apply_set(e, set, ud);
  pln_rule_set_free(set);
  return status;
}

/* Twice: the second time nothing is left to read. */
static pln_status make_later_and_apply(pln_engine *e, void *ud) {
  pln_rule_set *set;
  uint32_t again = 0, *calls = ud;
  PLN_TRY(make_later(e, &set));
  pln_status status = apply_set(e, set, calls);
  if (status == PLN_OK)
    status = pln_rule_set_read_all(set);
  if (status == PLN_OK)
    status = apply_set(e, set, &again);
  if (status == PLN_OK)
    CHECK_EQ_INT(again, *calls);
  pln_rule_set_free(set);
  return status;
}

static void reads_later(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_rule_set *set;
  uint32_t calls = 0;
  REQUIRE(e);
  CHECK_OK(make_later(e, &set));
  CHECK_EQ_INT(pln_rule_set_count(set), PLN_COUNT(texts));
  CHECK(set->rules[0].unread && set->rules[5].unread);
  CHECK(!set->rules[6].unread);
  CHECK_OK(apply_set(e, set, &calls));
  CHECK_EQ_INT(calls, 5);
  CHECK(!set->rules[0].unread && !set->rules[5].unread);
  pln_rule_set_free(set);
  CHECK_OK(make_later_and_apply(e, &calls));
  pln_engine_free(e);
}

/* Heads must be what the pattern says; what is no operator is no head. */
static void checks_heads(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_rule_set *set;
  uint32_t calls;
  pln_rule_info silu = {.name = "silu", .text = texts[3], .file = "test"};
  pln_rule_info bad = {.name = "bad", .text = "multiply(", .file = "test"};
  REQUIRE(e);
  CHECK_OK(pln_rule_set_new(e, "test", &set));
  CHECK_OK(pln_rule_set_add_later(set, &silu, "multiply elementwise", NULL));
  CHECK(!set->rules[0].unread);
  CHECK_OK(pln_rule_set_add_later(set, &bad, "multiply", NULL));
  CHECK_OK(pln_rule_set_compile_later(set, NULL));
  CHECK(apply_set(e, set, &calls) == PLN_ERR_FORMAT);
  CHECK(apply_set(e, set, &calls) == PLN_ERR_FORMAT);
  pln_rule_set_free(set);
  CHECK_OK(pln_rule_set_new(e, "test", &set));
  CHECK_OK(pln_rule_set_add_later(set, &silu, "sigmoid", NULL));
  CHECK_OK(pln_rule_set_compile_later(set, NULL));
  CHECK(apply_set(e, set, &calls) == PLN_ERR_FORMAT);
  pln_rule_set_free(set);
  pln_engine_free(e);
}

static void rewrites(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  uint32_t calls = 0;
  REQUIRE(e);
  CHECK_OK(make_and_apply(e, &calls));
  /* multiply, add, relu; silu; split */
  CHECK_EQ_INT(calls, 5);
  pln_engine_free(e);
}

static void memory_out(void) {
  uint32_t calls;
  oom_sweep(make_and_apply, &calls);
  oom_sweep(make_later_and_apply, &calls);
}

static void refuses(void) {
  static const char *const wrong[] = {"",
                                      "add(",
                                      "add(?x, 0) =>",
                                      "add(?x, 0)",
                                      "add(?x, 0) => ?y",
                                      "ad(?x, 0) => ?x",
                                      "add(?x, 0) => ?x where",
                                      "add(?x, ?rest..., ?y) => ?x",
                                      "add(?x:foo, 0) => ?x",
                                      "?x => ?x",
                                      "add(?x, ?x.y) => ?x",
                                      "{add|} (?x) => ?x",
                                      "add(?x, 0)) => ?x",
                                      "add(?x, 0] => ?x",
                                      "add(?x, 0) => {add|subtract}(?x, ?x)",
                                      "add(?x, 0) => ?x where len()",
                                      "add(?x, 0) => ?x where add(?x, ?x)",
                                      "transpose(?x, axis=?a) => ?x",
                                      "add(?x, 0) => **?x",
                                      "add(?x, \"a\") => ?x",
                                      "add(?x, 0x) => ?x"};
  for (size_t i = 0; i < PLN_COUNT(wrong); i++) {
    pln_engine *e = pln_engine_new(NULL, NULL);
    pln_rule_set *set;
    REQUIRE(e);
    CHECK_OK(pln_rule_set_new(e, "test", &set));
    pln_rule_info info = {.text = wrong[i]};
    if (!CHECK(pln_rule_set_add(set, &info, NULL) != PLN_OK))
      printf("# accepted: %s\n", wrong[i]);
    CHECK_EQ_INT(pln_rule_set_count(set), 0);
    CHECK(pln_diag_count(e) > 0);
    pln_rule_set_free(set);
    pln_engine_free(e);
  }
}

static const check_test tests[] = {{"rewrites a program", rewrites},
                                   {"reads rules when needed", reads_later},
                                   {"checks heads", checks_heads},
                                   {"refuses wrong texts", refuses},
                                   {"survives without memory", memory_out}};
CHECK_MAIN(tests)
