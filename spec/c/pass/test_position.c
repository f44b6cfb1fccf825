/* test_position.c: what a failure of a run in C leaves: the note of its place,
 * that of the hook, the record for a reproducer; and while memory is short. */

#include "base/base.h"
#include "ir/graph/module.h"
#include "oom.h"

static pln_status refuse(pln_pass_run *run) {
  return pln_diag_error(pln_run_engine(run), PLN_ERR_ARGUMENT, NULL, "no");
}

static pln_status idle(pln_pass_run *run) {
  (void)run;
  return PLN_OK;
}

static pln_status make_pass(pln_engine *e, const char *name,
                            pln_status (*run)(pln_pass_run *), pln_pass **out) {
  pln_pass_spec spec = {.name = name, .kind = PLN_PASS_MODULE, .run = run};
  return pln_pass_new(e, &spec, out);
}

/* sequential(outer){Idle,fixpoint(3){Idle,Refuse}} */
static pln_status make_list(pln_engine *e, pln_pass *const *both,
                            pln_pass **out) {
  pln_pass *elements[2] = {both[0], NULL};
  PLN_TRY(pln_combinator_new(e, PLN_COMBINATOR_FIXPOINT, 3, 0, 2, both,
                             &elements[1]));
  pln_status status =
      pln_sequential_new(e, "outer", 0, 0, NULL, 2, elements, out);
  pln_pass_release(elements[1]);
  return status;
}

static pln_status make_pipeline(pln_engine *e, pln_pass **out) {
  pln_pass *both[2] = {NULL, NULL};
  pln_status status = make_pass(e, "Idle", idle, &both[0]);
  if (status == PLN_OK)
    status = make_pass(e, "Refuse", refuse, &both[1]);
  if (status == PLN_OK)
    status = make_list(e, both, out);
  pln_pass_release(both[0]);
  pln_pass_release(both[1]);
  return status;
}

/* A context that wants a reproducer. */
static pln_status enter(pln_engine *e, pln_context **out) {
  pln_attr file = {.kind = PLN_ATTR_STRING, .v.s = pln_text("bug.relay")};
  pln_context_spec spec = {.opt_level = 2};
  PLN_TRY(pln_symbol_intern(e, pln_text("reproducer"), &file.name));
  PLN_TRY(pln_attrs_make(e, 1, &file, &spec.config));
  PLN_TRY(pln_context_new(e, &spec, out));
  pln_status status = pln_context_enter(*out);
  if (status != PLN_OK)
    pln_context_release(*out);
  return status;
}

static pln_status apply(pln_engine *e, pln_pass *pipeline) {
  pln_module *module, *result = NULL;
  PLN_TRY(pln_module_new(e, &module));
  pln_status status = pln_pass_apply(pipeline, module, &result);
  pln_module_release(result);
  pln_module_release(module);
  return status;
}

/* The whole: PLN_ERR_ARGUMENT, which is what Refuse says. */
static pln_status work(pln_engine *e, bool wants) {
  pln_pass *pipeline = NULL;
  pln_context *context = NULL;
  PLN_TRY(make_pipeline(e, &pipeline));
  pln_status status = wants ? enter(e, &context) : PLN_OK;
  if (status == PLN_OK) {
    status = apply(e, pipeline);
    if (context)
      CHECK_OK(pln_context_exit(context));
    pln_context_release(context);
  }
  pln_pass_release(pipeline);
  return status;
}

static void a_failure_has_its_place(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_STATUS(work(e, false), PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(pln_diag_count(e), 2);
  CHECK_STR(pln_diag_at(e, 0)->message, "pass 'Refuse': no");
  const pln_diag *note = pln_diag_at(e, 1);
  CHECK_EQ_INT(note->severity, PLN_NOTE);
  CHECK_STR(note->message,
            "in pipeline 'outer', element 2 of 2, fixpoint(3) round 1, "
            "element 2 of 2: Refuse");
  CHECK_STR(note->span.line,
            "sequential(outer){Idle,fixpoint(3){Idle,Refuse}}");
  CHECK_EQ_INT(note->span.column, 41);
  CHECK_EQ_INT(note->span.end_column, 47);
  CHECK(pln_failure_last(e) == NULL);
  pln_engine_free(e);
}

static void a_failure_is_kept_when_it_is_wanted(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_pass *nothing;
  CHECK_STATUS(work(e, true), PLN_ERR_ARGUMENT);
  const pln_failure *failure = pln_failure_last(e);
  CHECK(failure != NULL);
  CHECK_STR(pln_pass_name(failure->pass), "Refuse");
  CHECK(pln_module_engine(failure->module) == e);
  CHECK_EQ_INT(pln_context_opt_level(failure->context), 2);
  CHECK_OK(pln_sequential_new(e, "nothing", 0, 0, NULL, 0, NULL, &nothing));
  CHECK_OK(apply(e, nothing));
  CHECK(pln_failure_last(e) == NULL);
  pln_pass_release(nothing);
  CHECK_STATUS(work(e, true), PLN_ERR_ARGUMENT); /* freed with the engine */
  pln_engine_free(e);
}

/* Notes and records are left out; the failure is told. */
static void check_short(uint64_t at, bool persistent, bool *more) {
  oom memory = {0};
  pln_engine *e = pln_engine_new(oom_alloc, &memory);
  memory.fail_at = memory.calls + at;
  memory.persistent = persistent;
  pln_status status = work(e, true);
  *more = memory.failed;
  CHECK(status == PLN_ERR_ARGUMENT || status == PLN_ERR_NOMEM);
  CHECK(pln_diag_count(e) > 0);
  CHECK_EQ_INT(pln_diag_at(e, 0)->severity, PLN_ERROR);
  pln_engine_free(e);
  CHECK_EQ_INT(memory.blocks, 0);
}

static void lack_of_memory_hides_no_failure(void) {
  for (int persistent = 0; persistent < 2; persistent++) {
    bool more = true;
    for (uint64_t at = 1; more; at++)
      check_short(at, persistent, &more);
  }
}

static const check_test tests[] = {
    {"a failure has its place", a_failure_has_its_place},
    {"a failure is kept when it is wanted",
     a_failure_is_kept_when_it_is_wanted},
    {"lack of memory hides no failure", lack_of_memory_hides_no_failure},
};

CHECK_MAIN(tests)
