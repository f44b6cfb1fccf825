/* test_pass.c: passes, contexts, instruments, sequentials, pipelines, reports.
 */

#include "base/base.h"
#include "ir/analysis/features.h"
#include "oom.h"
#include "op/op.h"
#include "pass/pass.h"

static pln_engine *engine;
static char trace[512];

static void log_text(const char *text) {
  size_t used = strlen(trace);
  snprintf(trace + used, sizeof trace - used, "%s%s", used ? " " : "", text);
}

/* --------------------------------------------------------------- a module of
 * fn(x) { relu(tanh(x)) } */

static pln_status make_graph(pln_engine *e, pln_op last, bool bad,
                             pln_graph **out) {
  const int64_t n = 4;
  pln_builder *b;
  pln_type type;
  pln_ref x, y, f;
  pln_scope body;
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 1, &n, &type));
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_build_open(b, &body);
  if (status == PLN_OK)
    status = pln_build_param(b, 0, type, 0, &x);
  if (status == PLN_OK)
    status = pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &x, &y);
  if (status == PLN_OK)
    status = pln_build_call(b, last, 0, 0, 1, &y, &y);
  if (status == PLN_OK)
    status = pln_build_end(b, body, y, 0);
  if (status == PLN_OK)
    status = pln_build_function(b, body, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_builder_seal(b, f, out);
  pln_builder_free(b);
  if (status == PLN_OK && bad)
    (*out)->operands[0] = (*out)->n_nodes - 1; /* a use before it is made */
  return status;
}

static pln_status make_module(pln_engine *e, pln_module **out) {
  pln_module *empty;
  pln_graph *graph;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &name));
  PLN_TRY(make_graph(e, PLN_OP_RELU, false, &graph));
  pln_status status = pln_module_new(e, &empty);
  if (status == PLN_OK) {
    status = pln_module_with(empty, name, graph, out);
    pln_module_release(empty);
  }
  pln_graph_release(graph);
  return status;
}

static pln_module *begin(void) {
  pln_module *module = NULL;
  engine = pln_engine_new(NULL, NULL);
  trace[0] = 0;
  CHECK_OK(make_module(engine, &module));
  return module;
}

static void end(pln_module *module) {
  pln_module_release(module);
  pln_engine_free(engine);
}

static bool says(const char *text) {
  for (size_t i = 0; i < pln_diag_count(engine); i++)
    if (strstr(pln_diag_at(engine, i)->message, text))
      return true;
  printf("# nothing says '%s'\n", text);
  print_diags(engine);
  return false;
}

/* ------------------------------------------------------------------- passes */

static pln_status log_run(pln_pass_run *run) {
  log_text(pln_pass_name(pln_run_pass(run)));
  return PLN_OK;
}

/* Another last operator: a change. */
static pln_status change(pln_pass_run *run) {
  pln_graph *graph;
  log_text(pln_pass_name(pln_run_pass(run)));
  const pln_graph *old = pln_run_function(run);
  pln_op last = old->nodes[old->scopes[1].result].data;
  pln_op other = last == PLN_OP_RELU ? PLN_OP_EXP : PLN_OP_RELU;
  PLN_TRY(make_graph(pln_run_engine(run), other, false, &graph));
  pln_run_set_function(run, graph);
  return pln_run_count(run, "changes", 2);
}

static pln_status copy(pln_pass_run *run) {
  pln_graph *graph;
  PLN_TRY(make_graph(pln_run_engine(run), PLN_OP_RELU, false, &graph));
  pln_run_set_function(run, graph);
  return PLN_OK;
}

static pln_status spoil(pln_pass_run *run) {
  pln_graph *graph;
  PLN_TRY(make_graph(pln_run_engine(run), PLN_OP_EXP, true, &graph));
  pln_run_set_function(run, graph);
  return PLN_OK;
}

static pln_status fail(pln_pass_run *run) {
  PLN_TRY(change(run));
  return pln_diag_error(pln_run_engine(run), PLN_ERR_UNSUPPORTED, NULL,
                        "this is too much");
}

/* Registers a function pass that requires what stands in `required`. */
static void add(const char *name, int level, pln_status (*run)(pln_pass_run *),
                const char *first, const char *second) {
  const char *required[2] = {first, second};
  pln_pass_spec spec = {.name = name,
                        .kind = PLN_PASS_FUNCTION,
                        .opt_level = level,
                        .n_required = (first != NULL) + (second != NULL),
                        .required = required,
                        .run = run};
  CHECK_OK(pln_pass_register(engine, &spec));
}

static pln_status apply(const char *pipeline, const pln_module *module,
                        pln_module **out) {
  pln_pass *pass;
  PLN_TRY(pln_pipeline_parse(engine, pln_text(pipeline), &pass));
  pln_status status = pln_pass_apply(pass, module, out);
  pln_pass_release(pass);
  return status;
}

/* Applies, and tells whether the module stayed the same. */
static bool unchanged(const char *pipeline, const pln_module *module) {
  pln_module *out = NULL;
  trace[0] = 0;
  if (!CHECK_OK(apply(pipeline, module, &out))) {
    print_diags(engine);
    return false;
  }
  bool same = out == module;
  pln_module_release(out);
  return same;
}

static pln_context *enter(const pln_context_spec *spec) {
  pln_context *context = NULL;
  if (!CHECK_OK(pln_context_new(engine, spec, &context))) {
    print_diags(engine);
    return NULL;
  }
  CHECK_OK(pln_context_enter(context));
  return context;
}

static void leave(pln_context *context) {
  CHECK_OK(pln_context_exit(context));
  pln_context_release(context);
}

/* ----------------------------------------------------------------- registry */

static void names_are_checked(void) {
  pln_module *module = begin();
  pln_pass *pass;
  pln_pass_spec spec = {
      .name = "FoldConstant", .kind = PLN_PASS_FUNCTION, .run = log_run};
  CHECK_STATUS(pln_pass_make(engine, "FoldConstnat", 0, &pass), PLN_ERR_NAME);
  CHECK(says("did you mean 'FoldConstant'?"));
  CHECK_STATUS(pln_pass_register(engine, &spec), PLN_ERR_NAME);
  CHECK_STATUS(pln_pass_unregister(engine, "FoldConstant"), PLN_ERR_NAME);
  add("Mine", 0, log_run, NULL, NULL);
  REQUIRE_OK(pln_pass_make(engine, "Mine", 0, &pass));
  add("Mine", 0, change, NULL, NULL);
  CHECK_OK(pln_pass_unregister(engine, "Mine"));
  CHECK_STATUS(pln_pass_unregister(engine, "Mine"), PLN_ERR_NAME);
  pln_module *out = NULL; /* a pass that was made goes on as it was */
  CHECK_OK(pln_pass_apply(pass, module, &out));
  CHECK(out == module);
  CHECK_STR(trace, "Mine");
  pln_module_release(out);
  pln_pass_release(pass);
  end(module);
}

static void count_release(void *ud) {
  ++*(int *)ud;
}

static void user_data_is_released_once(void) {
  pln_module *module = begin();
  int released = 0;
  pln_pass *pass, *named;
  pln_pass_spec spec = {.name = "Mine",
                        .kind = PLN_PASS_FUNCTION,
                        .run = log_run,
                        .ud = &released,
                        .release = count_release};
  REQUIRE_OK(pln_pass_new(engine, &spec, &pass));
  CHECK_OK(pln_pass_register_object(engine, "Other", pass));
  CHECK_OK(pln_pass_make(engine, "Other", 0, &named));
  CHECK_STR(pln_pass_name(named), "Other");
  pln_pass_release(pass);
  pln_pass_release(named);
  CHECK_EQ_INT(released, 0);
  CHECK_OK(pln_pass_unregister(engine, "Other"));
  CHECK_EQ_INT(released, 1);
  spec.run = NULL; /* taken on failure too */
  CHECK_STATUS(pln_pass_new(engine, &spec, &pass), PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(released, 2);
  end(module);
}

/* ---------------------------------------------------------------- pipelines */

static void prints(const char *text, const char *wanted) {
  pln_pass *pass;
  pln_buffer printed;
  pln_buffer_init(&printed, engine);
  if (CHECK_OK(pln_pipeline_parse(engine, pln_text(text), &pass))) {
    CHECK_OK(pln_pipeline_print(pass, pln_buffer_write, &printed));
    CHECK_OK(pln_buffer_add(&printed, "", 1));
    CHECK_STR(printed.data, wanted);
    pln_pass_release(pass);
  } else {
    print_diags(engine);
  }
  pln_buffer_free(&printed);
}

static void pipelines_round_trip(void) {
  static const pln_option rows[] = {
      {.name = "n", .kind = PLN_ATTR_INT, .fallback = "3"},
      {.name = "x", .kind = PLN_ATTR_FLOAT, .fallback = "0.5"},
      {.name = "loud",
       .kind = PLN_ATTR_INT,
       .is_bool = true,
       .fallback = "false"},
      {.name = "s", .kind = PLN_ATTR_STRING, .fallback = ""}};
  pln_module *module = begin();
  pln_pass_spec spec = {.name = "odd name",
                        .kind = PLN_PASS_FUNCTION,
                        .n_options = 4,
                        .options = rows,
                        .run = log_run};
  CHECK_OK(pln_pass_register(engine, &spec));
  prints("", "");
  prints(" SimplifyExpr ", "SimplifyExpr");
  prints("SimplifyExpr, FoldConstant{ fold = all }",
         "SimplifyExpr,FoldConstant{fold=\"all\"}");
  prints("(SimplifyExpr,(FoldConstant),()),SimplifyExpr",
         "(SimplifyExpr,(FoldConstant),()),SimplifyExpr");
  prints("\"odd name\"{n=-7,x=1e-05,loud=true,s=\"a \\\"b\\\\\"}",
         "\"odd name\"{loud=true,n=-7,s=\"a \\\"b\\\\\",x=1e-05}");
  prints("sequential(deploy,opt_level=2,required=SimplifyExpr){FoldConstant}",
         "sequential(deploy,opt_level=2,required=SimplifyExpr){FoldConstant}");
  prints("SimplifyExpr,sequential(a){sequential(b){},FoldConstant{}}",
         "SimplifyExpr,sequential(a){sequential(b){},FoldConstant}");
  end(module);
}

static void refused(const char *text, pln_status status, uint32_t column,
                    const char *message) {
  pln_pass *pass;
  pln_diag_clear(engine);
  CHECK_STATUS(pln_pipeline_parse(engine, pln_text(text), &pass), status);
  CHECK_EQ_INT(pln_diag_count(engine), 1);
  if (!CHECK_EQ_INT(pln_diag_at(engine, 0)->span.column, column))
    print_diags(engine);
  CHECK(says(message));
}

static void pipeline_errors_have_a_place(void) {
  pln_module *module = begin();
  refused("SimplifyExpr,", PLN_ERR_FORMAT, 14, "expected a pass, got the end");
  refused("SimplifyExpr,,", PLN_ERR_FORMAT, 14, "expected a pass");
  refused("SimplifyExp", PLN_ERR_NAME, 1, "did you mean 'SimplifyExpr'?");
  refused("(SimplifyExpr", PLN_ERR_FORMAT, 14, "expected ',' or ')'");
  refused("SimplifyExpr)", PLN_ERR_FORMAT, 13, "expected ','");
  refused("FoldConstant{fodl=all}", PLN_ERR_NAME, 14, "did you mean 'fold'?");
  refused("FoldConstant{fold=some}", PLN_ERR_TYPE, 19, "one of budget|all");
  refused("FoldConstant{fold}", PLN_ERR_FORMAT, 18, "'='");
  refused("FoldConstant{fold=\"all}", PLN_ERR_FORMAT, 19, "not closed");
  refused("FoldConstant{fold=all,fold=all}", PLN_ERR_FORMAT, 23, "twice");
  refused("sequential(a,opt_level=x){}", PLN_ERR_TYPE, 24, "an integer");
  refused("sequential(a,level=1){}", PLN_ERR_NAME, 14, "opt_level");
  char deep[400];
  memset(deep, '(', 200);
  memset(deep + 200, ')', 199);
  deep[399] = 0;
  refused(deep, PLN_ERR_LIMIT, 301, "nested more than 100 deep");
  end(module);
}

/* ----------------------------------------------------------------- contexts */

static void contexts_check_what_they_hold(void) {
  pln_module *module = begin();
  const char *names[] = {"DeadCodeEliminatoin"};
  pln_context *context;
  pln_context_spec spec = {.n_disabled = 1, .disabled = names};
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = 1};
  CHECK_STATUS(pln_context_new(engine, &spec, &context), PLN_ERR_NAME);
  CHECK(says("did you mean 'DeadCodeElimination'?"));
  spec.n_disabled = 0;
  CHECK_OK(pln_symbol_intern(engine, pln_text("fold"), &entry.name));
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &spec.config));
  CHECK_STATUS(pln_context_new(engine, &spec, &context), PLN_ERR_TYPE);
  CHECK(says("config key 'fold' expects one of budget|all, got an integer"));
  CHECK_OK(
      pln_symbol_intern(engine, pln_text("FoldConstant.fodl"), &entry.name));
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &spec.config));
  CHECK_STATUS(pln_context_new(engine, &spec, &context), PLN_ERR_NAME);
  CHECK(says("did you mean 'fold'?"));
  CHECK_OK(pln_symbol_intern(engine, pln_text("nothing"), &entry.name));
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &spec.config));
  CHECK_STATUS(pln_context_new(engine, &spec, &context), PLN_ERR_NAME);
  CHECK(says("there is no config key 'nothing'"));
  end(module);
}

static void disabled_beats_required_beats_level(void) {
  pln_module *module = begin();
  const char *names[] = {"High", "Low"};
  add("High", 3, log_run, NULL, NULL);
  add("Low", 0, log_run, NULL, NULL);
  CHECK(unchanged("High,Low", module));
  CHECK_STR(trace, "Low");
  pln_context_spec spec = {.n_required = 2, .required = names};
  pln_context *context = enter(&spec);
  CHECK(unchanged("High,Low", module));
  CHECK_STR(trace, "High Low");
  spec.n_disabled = 1;
  spec.disabled = names;
  pln_context *inner = enter(&spec);
  CHECK(unchanged("High,Low", module));
  CHECK_STR(trace, "Low");
  CHECK_STATUS(pln_context_exit(context), PLN_ERR_ARGUMENT);
  leave(inner);
  leave(context);
  pln_context_stack *stack;
  REQUIRE_OK(pln_context_stack_new(engine, &stack));
  CHECK(pln_context_stack_use(engine, stack) == NULL);
  context = enter(NULL);
  CHECK(pln_context_stack_use(engine, NULL) == stack);
  CHECK(pln_context_current(engine) != context);
  pln_context_stack_free(stack); /* with a context that was not left */
  pln_context_release(context);
  end(module);
}

/* -------------------------------------------------------------- instruments */

typedef struct hooks {
  const char *name;
  const char *fails; /* the hook that fails */
  bool veto;
} hooks;

static pln_status hook(const hooks *h, const char *what) {
  char text[64];
  bool fails = h->fails && !strcmp(h->fails, what);
  snprintf(text, sizeof text, "%s.%s%s", h->name, what, fails ? "!" : "");
  log_text(text);
  return fails ? pln_diag_error(engine, PLN_ERR_CALLBACK, NULL, "%s", text)
               : PLN_OK;
}

static pln_status at_enter(void *ud, pln_context *context) {
  (void)context;
  return hook(ud, "enter");
}

static pln_status at_exit(void *ud, pln_context *context) {
  (void)context;
  return hook(ud, "exit");
}

static pln_status on_should_run(void *ud, const pln_module *module,
                                const pln_pass *pass, bool *run) {
  (void)module;
  (void)pass;
  const hooks *h = ud;
  *run = !h->veto;
  return hook(h, "should");
}

static pln_status on_before(void *ud, const pln_module *module,
                            const pln_pass *pass) {
  (void)module;
  (void)pass;
  return hook(ud, "before");
}

static pln_status on_after(void *ud, const pln_module *module,
                           const pln_pass *pass) {
  (void)module;
  (void)pass;
  return hook(ud, "after");
}

static pln_instrument instrument(hooks *h) {
  return (pln_instrument){h->name,       h,         at_enter, at_exit,
                          on_should_run, on_before, on_after, NULL};
}

/* What is called around one pass with instruments a and b; the statuses of
 * entering and of applying. */
static void traces(const char *a_fails, const char *b_fails, bool a_veto,
                   const char *wanted) {
  pln_module *module = begin(), *out = NULL;
  hooks a = {"a", a_fails, a_veto}, b = {"b", b_fails, false};
  pln_instrument both[2] = {instrument(&a), instrument(&b)};
  pln_context_spec spec = {.n_instruments = 2, .instruments = both};
  pln_context *context;
  pln_pass *pass;
  pln_pass_spec body = {
      .name = "Mine", .kind = PLN_PASS_FUNCTION, .run = change};
  REQUIRE_OK(pln_pass_new(engine, &body, &pass));
  REQUIRE_OK(pln_context_new(engine, &spec, &context));
  if (pln_context_enter(context) == PLN_OK) {
    if (pln_pass_apply(pass, module, &out) == PLN_OK)
      pln_module_release(out);
    (void)!pln_context_exit(context);
  }
  CHECK(pln_context_current(engine) != context);
  CHECK_STR(trace, wanted);
  pln_context_release(context);
  pln_pass_release(pass);
  end(module);
}

static void hooks_follow_the_table(void) {
  traces(NULL, NULL, false,
         "a.enter b.enter a.should b.should a.before b.before Mine a.after "
         "b.after a.exit b.exit");
  traces(NULL, NULL, true, "a.enter b.enter a.should b.should a.exit b.exit");
  traces(NULL, "enter", false, "a.enter b.enter! a.exit");
  traces("exit", NULL, true, "a.enter b.enter a.should b.should a.exit!");
  traces("should", NULL, false, "a.enter b.enter a.should! a.exit b.exit");
  traces("before", NULL, false,
         "a.enter b.enter a.should b.should a.before! a.exit b.exit");
  traces("after", NULL, false,
         "a.enter b.enter a.should b.should a.before b.before Mine a.after! "
         "a.exit b.exit");
}

static void instruments_are_overridden(void) {
  pln_module *module = begin();
  hooks a = {"a", NULL, false}, b = {"b", NULL, false},
        c = {"c", "enter", false};
  pln_instrument first = instrument(&a), second = instrument(&b),
                 third = instrument(&c);
  pln_context_spec spec = {.n_instruments = 1, .instruments = &first};
  pln_context *context = enter(&spec);
  CHECK_OK(pln_context_override_instruments(context, 1, &second));
  CHECK_STR(trace, "a.enter a.exit b.enter");
  CHECK_STATUS(pln_context_override_instruments(context, 1, &third),
               PLN_ERR_CALLBACK);
  CHECK_EQ_INT(pln_context_n_instruments(context), 0);
  CHECK(pln_context_current(engine) == context);
  leave(context);
  CHECK_STR(trace, "a.enter a.exit b.enter b.exit c.enter!");
  end(module);
}

static void required_passes_are_not_asked(void) {
  pln_module *module = begin();
  const char *names[] = {"Mine"};
  hooks a = {"a", NULL, true};
  pln_instrument one = instrument(&a);
  add("Mine", 9, log_run, NULL, NULL);
  pln_context_spec spec = {.n_required = 1,
                           .required = names,
                           .n_instruments = 1,
                           .instruments = &one};
  pln_context *context = enter(&spec);
  trace[0] = 0;
  pln_pass *pass;
  pln_module *out;
  REQUIRE_OK(pln_pass_make(engine, "Mine", 0, &pass));
  REQUIRE_OK(pln_pass_apply(pass, module, &out));
  CHECK_STR(trace, "a.before Mine a.after");
  pln_module_release(out);
  pln_pass_release(pass);
  leave(context);
  end(module);
}

/* ----------------------------------------------------------------- required */

static void required_runs_once_and_transitively(void) {
  pln_module *module = begin();
  add("Types", 0, log_run, NULL, NULL);
  add("Shapes", 9, log_run, "Types", NULL);
  add("A", 0, log_run, "Shapes", "Types");
  add("B", 0, change, "Types", NULL);
  add("C", 0, log_run, "Types", "Shapes");
  CHECK(unchanged("A", module));
  CHECK_STR(trace, "Types Shapes A");
  CHECK(!unchanged("A,(B),C", module));
  CHECK_STR(trace, "Types Shapes A B Types Shapes C");
  end(module);
}

static void impossible_requirements_are_errors(void) {
  pln_module *module = begin(), *out;
  const char *names[] = {"Types"};
  add("Types", 0, log_run, NULL, NULL);
  add("A", 0, log_run, "B", NULL);
  add("B", 0, log_run, "A", NULL);
  add("C", 0, log_run, "Typse", NULL);
  add("D", 0, log_run, "Types", NULL);
  CHECK_STATUS(apply("A", module, &out), PLN_ERR_ARGUMENT);
  CHECK(says("pass 'B' requires pass 'A', which in turn requires it"));
  CHECK_STATUS(apply("C", module, &out), PLN_ERR_NAME);
  CHECK(says("required by pass 'C': pass 'Typse' is not registered"));
  pln_context_spec spec = {.n_disabled = 1, .disabled = names};
  pln_context *context = enter(&spec);
  CHECK_STATUS(apply("D", module, &out), PLN_ERR_ARGUMENT);
  CHECK(says("pass 'D' requires pass 'Types', which the context disables"));
  leave(context);
  end(module);
}

/* A sequential whose element requires that very sequential. */
static void endless_nesting_is_an_error(void) {
  pln_module *module = begin(), *out;
  pln_pass *inner, *loop;
  add("Inner", 0, log_run, "Loop", NULL);
  REQUIRE_OK(pln_pass_make(engine, "Inner", 0, &inner));
  REQUIRE_OK(pln_sequential_new(engine, "Loop", 0, 0, NULL, 1, &inner, &loop));
  CHECK_OK(pln_pass_register_object(engine, "Loop", loop));
  CHECK_STATUS(apply("Loop", module, &out), PLN_ERR_LIMIT);
  pln_pass_release(inner);
  pln_pass_release(loop);
  end(module);
}

/* ------------------------------------------------------------- transactions */

static void equal_copies_change_nothing(void) {
  pln_module *module = begin();
  add("Copy", 0, copy, NULL, NULL);
  CHECK(unchanged("Copy", module));
  REQUIRE(pln_report_count(engine) == 1);
  const pln_report_row *row = pln_report_at(engine, 0);
  CHECK(!row->changed);
  CHECK_EQ_INT(pln_attrs_int(engine, row->counts, "equal copy", 0), 1);
  end(module);
}

static void failures_leave_no_trace(void) {
  pln_module *module = begin(), *out = NULL;
  add("Change", 0, change, NULL, NULL);
  add("Spoil", 0, spoil, NULL, NULL);
  add("Fail", 0, fail, NULL, NULL);
  CHECK_STATUS(apply("Change,Spoil", module, &out), PLN_ERR_INVALID);
  CHECK(says("pass 'Spoil', function @main: "));
  CHECK_STATUS(apply("Change,Fail", module, &out), PLN_ERR_UNSUPPORTED);
  CHECK(says("pass 'Fail', function @main: this is too much"));
  CHECK(out == NULL);
  CHECK_OK(pln_module_verify(module));
  CHECK(!unchanged("Change,(Change,Change)", module));
  REQUIRE(pln_report_count(engine) == 3);
  CHECK_EQ_INT(pln_report_at(engine, 0)->depth, 1);
  CHECK_EQ_INT(pln_report_at(engine, 2)->depth, 2);
  CHECK_EQ_INT(pln_report_at(engine, 1)->nodes, 4);
  CHECK(pln_report_at(engine, 1)->changed);
  CHECK_EQ_INT(
      pln_attrs_int(engine, pln_report_at(engine, 1)->counts, "changes", 0), 2);
  end(module);
}

/* What a body of this engine gives from another one. */
static pln_engine *foreign;

static pln_status give_foreign_module(pln_pass_run *run) {
  pln_module *module;
  PLN_TRY(make_module(foreign, &module));
  pln_run_set_module(run, module);
  return PLN_OK;
}

static pln_status give_foreign_function(pln_pass_run *run) {
  pln_graph *graph;
  PLN_TRY(make_graph(foreign, PLN_OP_EXP, false, &graph));
  pln_run_set_function(run, graph);
  return PLN_OK;
}

static void results_of_another_engine_are_refused(void) {
  pln_module *module = begin(), *out = NULL, *theirs = NULL;
  pln_pass_spec spec = {.name = "GiveModule",
                        .kind = PLN_PASS_MODULE,
                        .run = give_foreign_module};
  foreign = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_pass_register(engine, &spec));
  add("GiveFunction", 0, give_foreign_function, NULL, NULL);
  CHECK_STATUS(apply("GiveModule", module, &out), PLN_ERR_ARGUMENT);
  CHECK(says("pass 'GiveModule': the module that it gives belongs to another "
             "engine"));
  CHECK_STATUS(apply("GiveFunction", module, &out), PLN_ERR_ARGUMENT);
  CHECK(says("pass 'GiveFunction', function @main: the function that it gives "
             "belongs to another engine"));
  REQUIRE_OK(make_module(foreign, &theirs));
  CHECK_STATUS(apply("SimplifyExpr", theirs, &out), PLN_ERR_ARGUMENT);
  CHECK(says("the module belongs to another engine"));
  CHECK(out == NULL);
  pln_module_release(theirs);
  end(module);
  pln_engine_free(foreign);
}

static pln_status ask_for_removal(pln_pass_run *run) {
  return pln_run_remove_function(run);
}

static void only_loop_level_functions_are_removed(void) {
  pln_module *module = begin(), *out = NULL;
  add("Remove", 0, ask_for_removal, NULL, NULL);
  CHECK_STATUS(apply("Remove", module, &out), PLN_ERR_ARGUMENT);
  CHECK(says("pass 'Remove', function @main: only a pass over PrimFuncs "
             "removes functions"));
  end(module);
}

static void options_come_from_pass_config_default(void) {
  pln_module *module = begin();
  pln_attr entry = {.kind = PLN_ATTR_STRING, .v.s = pln_text("some")};
  pln_context_spec spec = {.opt_level = 2};
  CHECK(unchanged("FoldConstant", module));
  CHECK_OK(pln_symbol_intern(engine, pln_text("fold"), &entry.name));
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &spec.config));
  pln_context *none;
  CHECK_STATUS(pln_context_new(engine, &spec, &none), PLN_ERR_TYPE);
  CHECK(says("'fold' expects one of budget|all, got 'some'"));
  entry.v.s = pln_text("all");
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &spec.config));
  pln_context *context = enter(&spec);
  CHECK(unchanged("FoldConstant{fold=budget}", module));
  leave(context);
  end(module);
}

/* ------------------------------------------------------------------- memory */

static pln_status sweep(pln_pass_run *run) {
  static const pln_mutator nothing = {0};
  return pln_rewrite_function(run, &nothing);
}

/* A stop asked for while a pass is at work, as a signal handler asks. */
static pln_status interrupt(pln_pass_run *run) {
  pln_engine_interrupt(pln_run_engine(run));
  return sweep(run);
}

static void count_asked(void *ud) {
  ++*(int *)ud;
}

static void an_interrupted_pass_leaves_no_trace(void) {
  pln_module *module = begin(), *out = NULL;
  int requested = 0;
  pln_engine_on_interrupt(engine, count_asked, &requested);
  add("Change", 0, change, NULL, NULL);
  add("Interrupt", 0, interrupt, NULL, NULL);
  CHECK_STATUS(apply("Change,Interrupt,Change", module, &out),
               PLN_ERR_INTERRUPTED);
  CHECK(says("pass 'Interrupt', function @main: interrupted"));
  CHECK_STR(trace, "Change");
  CHECK_EQ_INT(requested, 1);
  CHECK(!pln_engine_interrupted(engine));
  CHECK_STATUS(apply("try{Interrupt}else{Change}", module, &out),
               PLN_ERR_INTERRUPTED);
  CHECK(!unchanged("Change", module));
  end(module);
}

static void a_request_stops_what_begins_next(void) {
  pln_module *module = begin(), *out = NULL;
  add("Change", 0, change, NULL, NULL);
  pln_engine_interrupt(engine);
  CHECK(pln_engine_interrupted(engine));
  CHECK_STATUS(apply("Change", module, &out), PLN_ERR_INTERRUPTED);
  CHECK(!unchanged("Change", module));
  end(module);
}

/* Loops until the time limit of the context ends it. */
static pln_status endless(pln_pass_run *run) {
  pln_status status;
  do
    status = sweep(run);
  while (status == PLN_OK);
  return status;
}

static void a_time_limit_stops_a_pass_in_c(void) {
  pln_module *module = begin(), *out = NULL;
  pln_attr limit = {.kind = PLN_ATTR_FLOAT, .v.f = 0.02};
  pln_context_spec spec = {.opt_level = 2};
  CHECK_OK(pln_symbol_intern(engine, pln_text("limit.seconds"), &limit.name));
  CHECK_OK(pln_attrs_make(engine, 1, &limit, &spec.config));
  add("Endless", 0, endless, NULL, NULL);
  pln_context *context = enter(&spec);
  CHECK_STATUS(apply("Endless", module, &out), PLN_ERR_LIMIT);
  CHECK(says("it took longer than limit.seconds = 0.02"));
  leave(context);
  end(module);
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *module, *out;
  pln_pass *pass;
  PLN_TRY(make_module(e, &module));
  pln_status status = pln_pipeline_parse(
      e,
      pln_text("sequential(s,required=SimplifyExpr){(SimplifyExpr),"
               "FoldConstant{fold=all},EliminateCommonSubexpr,"
               "DeadCodeElimination}"),
      &pass);
  if (status == PLN_OK) {
    status = pln_pass_apply(pass, module, &out);
    pln_pass_release(pass);
  }
  pln_module_release(module);
  if (status == PLN_OK)
    pln_module_release(out);
  return status;
}

/* ---------------------------------------------------- options of functions */

static pln_status skip_calls(void *ud, const pln_pass_run *run,
                             const pln_graph *graph, pln_ref node,
                             bool *answer) {
  CHECK(!strcmp(pln_pass_name(pln_run_pass(run)), "EliminateCommonSubexpr"));
  *answer = pln_node_kind(graph, node) == PLN_CALL;
  (*(int *)ud)++;
  return PLN_OK;
}

static void an_option_is_a_function(void) {
  pln_module *module = begin(), *out;
  pln_pass *pass;
  int asked = 0;
  pln_predicate skip = {skip_calls, &asked, NULL};
  CHECK_OK(pln_pass_make(engine, "EliminateCommonSubexpr", 0, &pass));
  CHECK(!pln_pass_predicate(pass, "fskip"));
  CHECK_OK(pln_pass_set_predicate(pass, "fskip", &skip));
  CHECK(pln_pass_predicate(pass, "fskip")->ud == &asked);
  CHECK(!pln_pass_parallel(pass) && !pln_pass_cacheable(pass));
  CHECK_OK(pln_pass_apply(pass, module, &out));
  CHECK(out == module && asked > 0);
  pln_module_release(out);
  CHECK_STATUS(pln_pass_set_predicate(pass, "skip", &skip), PLN_ERR_NAME);
  CHECK(says("has no option 'skip'"));
  pln_pass_release(pass);
  CHECK_OK(pln_pass_make(engine, "FoldConstant", 0, &pass));
  CHECK_STATUS(pln_pass_set_predicate(pass, "fold", &skip), PLN_ERR_TYPE);
  CHECK(says("expects one of budget|all, got a function"));
  pln_pass_release(pass);
  end(module);
}

/* ----------------------------------------------------------------- features */

static pln_status parse(pln_engine *e, pln_module **out) {
  return pln_parse_module(
      e,
      pln_text("#[version = \"0.0.5\"]\n"
               "def @main(%x: float32) { let %f: fn (float32) -> float32 = "
               "fn (%y: float32) -> float32 { %f(%y) }; %f(%x) }\n"),
      "a", NULL, out);
}

static void passes_refuse_and_skip_features(void) {
  static const char *const some[] = {"let", "closures"};
  pln_module *module = begin(), *recursive = NULL, *out = NULL;
  pln_pass_spec spec = {.name = "Some",
                        .kind = PLN_PASS_FUNCTION,
                        .n_handles = 2,
                        .handles = some,
                        .run = change};
  CHECK_OK(parse(engine, &recursive));
  CHECK_OK(pln_pass_register(engine, &spec));
  spec.name = "Skips";
  spec.skips_unhandled = true;
  CHECK_OK(pln_pass_register(engine, &spec));
  CHECK_STATUS(apply("Some", recursive, &out), PLN_ERR_UNSUPPORTED);
  CHECK(says("pass 'Some', function @main: the pass does not handle the "
             "feature 'letrec'"));
  CHECK(unchanged("Skips", recursive));
  CHECK(!unchanged("Skips", module));
  CHECK(!unchanged("Some", module));
  spec.handles = (const char *const[]){"let", "loop"};
  CHECK_STATUS(pln_pass_register(engine, &spec), PLN_ERR_NAME);
  CHECK(says("there is no feature 'loop'; did you mean 'loops'?"));
  pln_module_release(recursive);
  end(module);
}

static pln_status find_features(pln_engine *e, void *ud) {
  pln_module *module;
  uint32_t found = 0;
  (void)ud;
  PLN_TRY(parse(e, &module));
  pln_status status =
      pln_graph_features(pln_module_function_at(module, 0), &found);
  pln_module_release(module);
  PLN_TRY(status);
  CHECK_EQ_INT(found,
               PLN_FEATURE_LET | PLN_FEATURE_LETREC | PLN_FEATURE_CLOSURES);
  return PLN_OK;
}

static void features_need_memory(void) {
  oom_sweep(find_features, NULL);
}

static void lack_of_memory_is_an_error(void) {
  oom_sweep(work, NULL);
}

/* The engine itself: none is made, nothing is left. */
static void an_engine_without_memory_is_none(void) {
  for (uint64_t n = 1;; n++) {
    oom memory = {.fail_at = n};
    pln_engine *e = pln_engine_new(oom_alloc, &memory);
    bool failed = memory.failed;
    CHECK((e == NULL) == failed);
    pln_engine_free(e);
    if (!CHECK_EQ_INT(memory.blocks, 0) || !failed)
      return;
  }
}

static const check_test tests[] = {
    {"names are checked", names_are_checked},
    {"user data is released once", user_data_is_released_once},
    {"pipelines round trip", pipelines_round_trip},
    {"pipeline errors have a place", pipeline_errors_have_a_place},
    {"contexts check what they hold", contexts_check_what_they_hold},
    {"disabled beats required beats level",
     disabled_beats_required_beats_level},
    {"hooks follow the table", hooks_follow_the_table},
    {"instruments are overridden", instruments_are_overridden},
    {"required passes are not asked", required_passes_are_not_asked},
    {"an interrupted pass leaves no trace",
     an_interrupted_pass_leaves_no_trace},
    {"a request stops what begins next", a_request_stops_what_begins_next},
    {"a time limit stops a pass in C", a_time_limit_stops_a_pass_in_c},
    {"required runs once and transitively",
     required_runs_once_and_transitively},
    {"impossible requirements are errors", impossible_requirements_are_errors},
    {"endless nesting is an error", endless_nesting_is_an_error},
    {"equal copies change nothing", equal_copies_change_nothing},
    {"failures leave no trace", failures_leave_no_trace},
    {"results of another engine are refused",
     results_of_another_engine_are_refused},
    {"only loop-level functions are removed",
     only_loop_level_functions_are_removed},
    {"options come from pass, config, default",
     options_come_from_pass_config_default},
    {"an option is a function", an_option_is_a_function},
    {"passes refuse and skip features", passes_refuse_and_skip_features},
    {"features need memory", features_need_memory},
    {"lack of memory is an error", lack_of_memory_is_an_error},
    {"an engine without memory is none", an_engine_without_memory_is_none},
};
CHECK_MAIN(tests)
