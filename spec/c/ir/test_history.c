/* test_history.c: what made a node, through passes and imports; applications of
 * rules, and their limits. */

#include "graph_fixture.h"

static const char source[] =
    "#[version = \"0.0.5\"]\n"
    "def @f(%y: Tensor[(6), float32], Inline=1) { tanh(%y) }\n"
    "def @main(%x: Tensor[(2, 3), float32]) {\n"
    "  %0 = reshape(%x, newshape=[3, 2]);\n"
    "  %1 = reshape(%0, newshape=[6]);\n"
    "  %2 = @f(%1);\n"
    "  %3 = @f(%1);\n"
    "  let %v = add(%2, %3);\n"
    "  add(%v, %v)\n"
    "}\n";

static const char passes[] =
    "Inline,SimplifyExpr,FoldConstant,EliminateCommonSubexpr,"
    "DeadCodeElimination,ToANormalForm,ToGraphNormalForm";

static pln_status optimise(pln_engine *e, pln_module **out) {
  pln_module *module;
  pln_pass *pass;
  PLN_TRY(pln_parse_module(e, pln_text(source), "net", NULL, &module));
  pln_status status = pln_pipeline_parse(e, pln_text(passes), &pass);
  if (status == PLN_OK) {
    pln_context_spec spec = {.opt_level = 3};
    pln_context *context = NULL;
    status = pln_context_new(e, &spec, &context);
    if (status == PLN_OK)
      status = pln_context_enter(context);
    if (status == PLN_OK) {
      status = pln_pass_apply(pass, module, out);
      pln_status left = pln_context_exit(context);
      if (status == PLN_OK && left != PLN_OK)
        pln_module_release(*out);
      status = status == PLN_OK ? left : status;
    }
    pln_context_release(context);
    pln_pass_release(pass);
  }
  pln_module_release(module);
  return status;
}

static pln_graph *main_of(const pln_module *module) {
  pln_symbol name = 0;
  pln_engine *e = pln_module_engine(module);
  CHECK_OK(pln_symbol_intern(e, pln_text("main"), &name));
  return pln_module_function_at(module, pln_module_find(module, name));
}

static pln_ref find_call(const pln_graph *g, pln_op op) {
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    if (g->nodes[i].kind == PLN_CALL && g->nodes[i].data == op)
      return i;
  return PLN_NONE;
}

/* "pass:rule/pass:rule/net:2:46": the whole history of a node. */
static void tell(const pln_graph *g, pln_ref node, char *text, size_t size) {
  size_t used = 0;
  for (uint32_t at = pln_node_history(g, node); at && used < size;) {
    pln_history_row row;
    pln_symbol pass, rule;
    uint32_t here = at;
    at = pln_history_next(g, at, &row);
    pass = row.pass;
    rule = row.rule;
    if (row.is_source)
      used += pln_history_describe(g, here, text + used, size - used);
    else
      used += (size_t)snprintf(text + used, size - used, "%s:%s/",
                               pln_symbol_text(g->engine, pass).data,
                               pln_symbol_text(g->engine, rule).data);
  }
}

static const char tanh_history[] =
    "EliminateCommonSubexpr:merge/Inline:inline/net:2:46";

static void histories_go_back_to_the_source(void) {
  begin();
  pln_module *module = NULL;
  char text[512] = "";
  if (CHECK_OK(optimise(engine, &module))) {
    const pln_graph *g = main_of(module);
    pln_ref node = find_call(g, PLN_OP_TANH);
    tell(g, node, text, sizeof text);
    CHECK_STR(text, tanh_history);
    pln_history_row row;
    CHECK(pln_history_next(g, pln_node_history(g, node), &row) != 0);
    CHECK(!row.is_source && row.from && row.also);
    CHECK_EQ_INT(row.application, 1);
    CHECK_EQ_INT(row.run, 4);
    pln_module_release(module);
  }
  end();
}

/* A builder that has origins of its own copies those of others, once each. */
static void histories_are_imported(void) {
  begin();
  pln_module *module = NULL;
  pln_ref own = PLN_NONE, image = PLN_NONE, again = PLN_NONE;
  char text[512] = "";
  pln_symbol name = 0;
  CHECK_OK(pln_symbol_intern(engine, pln_text("own"), &name));
  CHECK_OK(pln_build_var(b, name, 0, 0, &own));
  CHECK_OK(pln_build_name(b, own, name));
  if (CHECK_OK(optimise(engine, &module))) {
    const pln_graph *g = main_of(module);
    pln_ref node = find_call(g, PLN_OP_TANH);
    CHECK_OK(pln_build_import(b, g, g->root, &image));
    uint32_t steps = b->graph->origins->n_steps;
    uint32_t rows = b->graph->origins->count;
    CHECK(b->graph->origins != g->origins);
    CHECK_OK(pln_build_import(b, g, node, &again));
    CHECK_EQ_INT(b->graph->origins->n_steps, steps);
    CHECK_EQ_INT(b->graph->origins->count, rows);
    tell(b->graph, find_call(b->graph, PLN_OP_TANH), text, sizeof text);
    CHECK_STR(text, tanh_history);
    pln_module_release(module);
  }
  end();
}

/* A change costs a step, whatever the number of nodes. */
static void steps_are_as_many_as_changes(void) {
  begin();
  pln_module *module = NULL;
  if (CHECK_OK(optimise(engine, &module))) {
    const pln_origins *origins = main_of(module)->origins;
    CHECK(origins->n_steps <= 24);
    CHECK(origins->n_changes <= 8);
    CHECK_EQ_INT(sizeof(pln_origin_step), 16);
    pln_module_release(module);
  }
  end();
}

static pln_status ask(pln_pass_run *run) {
  bool *answers = pln_run_ud(run);
  for (int i = 0; i < 4; i++)
    PLN_TRY(pln_rule_apply(pln_run_engine(run), i % 2 ? "odd" : "even",
                           (pln_ref)i, &answers[i]));
  return PLN_OK;
}

static void ask_within(int64_t limit, bool *answers) {
  pln_pass_spec spec = {.name = "Ask",
                        .kind = PLN_PASS_MODULE,
                        .doc = "Asks four times.",
                        .run = ask,
                        .ud = answers};
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = limit};
  pln_context_spec setting = {.opt_level = 2};
  pln_context *context = NULL;
  pln_module *module = NULL, *out = NULL;
  pln_pass *pass = NULL;
  CHECK_OK(
      pln_symbol_intern(engine, pln_text("bisect.applications"), &entry.name));
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &setting.config));
  CHECK_OK(pln_context_new(engine, &setting, &context));
  CHECK_OK(pln_pass_new(engine, &spec, &pass));
  CHECK_OK(pln_module_new(engine, &module));
  CHECK_OK(pln_context_enter(context));
  if (CHECK_OK(pln_pass_apply(pass, module, &out)))
    pln_module_release(out);
  CHECK_OK(pln_context_exit(context));
  pln_module_release(module);
  pln_pass_release(pass);
  pln_context_release(context);
}

static void applications_are_counted_and_limited(void) {
  begin();
  bool answers[4];
  ask_within(3, answers);
  CHECK(answers[0] && answers[1] && answers[2] && !answers[3]);
  CHECK_EQ_INT(pln_report_at(engine, 0)->applications, 4);
  CHECK_EQ_INT(pln_report_at(engine, 0)->run, 1);
  CHECK_EQ_INT(pln_rule_count(engine), 2);
  const pln_rule_row *even = pln_rule_at(engine, 0);
  const pln_rule_row *odd = pln_rule_at(engine, 1);
  CHECK_STR(even->pass, "Ask");
  CHECK_STR(even->rule, "even");
  CHECK_EQ_INT(even->applied, 2);
  CHECK_EQ_INT(even->last, 2);
  CHECK_EQ_INT(odd->applied, 1);
  CHECK_EQ_INT(odd->refused, 1);
  CHECK_EQ_INT(odd->tried, 2);
  CHECK(pln_rule_at(engine, 2) == NULL);
  ask_within(-1, answers);
  CHECK(answers[3]);
  end();
}

/* Outside of passes nothing is counted, and nothing refused. */
static void applications_outside_are_free(void) {
  begin();
  bool allowed = false;
  CHECK_OK(pln_rule_apply(engine, "any", PLN_NONE, &allowed));
  CHECK(allowed);
  CHECK_EQ_INT(pln_rule_count(engine), 0);
  end();
}

static pln_status work(pln_engine *e, void *ud) {
  pln_module *module;
  pln_builder *to;
  pln_ref own, image;
  pln_symbol name;
  (void)ud;
  PLN_TRY(optimise(e, &module));
  pln_status status = pln_builder_new(e, &to);
  if (status == PLN_OK) {
    status = pln_symbol_intern(e, pln_text("own"), &name);
    if (status == PLN_OK)
      status = pln_build_var(to, name, 0, 0, &own);
    if (status == PLN_OK)
      status = pln_build_name(to, own, name);
    const pln_graph *g = pln_module_function_at(module, 0);
    if (status == PLN_OK)
      status = pln_build_import(to, g, g->root, &image);
    pln_builder_free(to);
  }
  pln_module_release(module);
  return status;
}

static void survive_failing_allocations(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"go back to the source", histories_go_back_to_the_source},
    {"are imported", histories_are_imported},
    {"take as many steps as there are changes", steps_are_as_many_as_changes},
    {"applications are counted and limited",
     applications_are_counted_and_limited},
    {"applications outside of passes are free", applications_outside_are_free},
    {"survive failing allocations", survive_failing_allocations},
};

CHECK_MAIN(tests)
