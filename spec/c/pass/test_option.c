/* test_option.c: rows of options and config keys: what they may be, their
 * values from C and from text, and keys that come and go. */

#include "base/base.h"
#include "oom.h"
#include "pass/pass.h"

static pln_engine *engine;

static bool says(const char *text) {
  for (size_t i = 0; i < pln_diag_count(engine); i++)
    if (strstr(pln_diag_at(engine, i)->message, text))
      return true;
  printf("# nothing says '%s'\n", text);
  return false;
}

static const pln_option fields[] = {
    {.name = "step",
     .kind = PLN_ATTR_INT,
     .fallback = "1",
     .least = "0",
     .most = "9"},
    {.name = "names", .kind = PLN_ATTR_STRINGS, .fallback = "[\"a\",b]"},
    {.name = "scales",
     .kind = PLN_ATTR_FLOATS,
     .fallback = "[1,0.5]",
     .least = "0"},
    {.name = "loud",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "true"}};
static const pln_option loops = {.name = "x.loops",
                                 .kind = PLN_ATTR_DICT,
                                 .n_fields = PLN_COUNT(fields),
                                 .fields = fields,
                                 .doc = "A table."};

static pln_status one(pln_engine *e, const char *name, pln_attr value,
                      pln_attrs *out) {
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &value.name));
  return pln_attrs_make(e, 1, &value, out);
}

/* A context with one entry of a config. */
static pln_status with(pln_engine *e, const char *name, pln_attr value,
                       pln_context **out) {
  pln_context_spec spec = {.opt_level = 2};
  PLN_TRY(one(e, name, value, &spec.config));
  return pln_context_new(e, &spec, out);
}

static void keys_may_be_tables(void) {
  pln_attr value, step = {.kind = PLN_ATTR_INT, .v.i = 4};
  pln_context *context = NULL;
  engine = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_config_register(engine, &loops));
  REQUIRE_OK(with(engine, "x.loops.step", step, &context));
  CHECK_OK(pln_context_config_value(context, "x.loops.step", &value));
  CHECK_EQ_INT(value.v.i, 4);
  CHECK_OK(pln_context_config_value(context, "x.loops", &value));
  CHECK_EQ_INT(value.kind, PLN_ATTR_DICT);
  CHECK_EQ_INT(pln_attrs_int(engine, value.v.dict, "loud", 0), 1);
  CHECK_EQ_INT(pln_attrs_find(engine, value.v.dict, "names")->count, 2);
  CHECK_STATUS(pln_context_config_value(context, "x.loop", &value),
               PLN_ERR_NAME);
  CHECK(says("there is no config key 'x.loop'; did you mean 'x.loops'?"));
  pln_context_release(context);
  step.v.i = 10;
  CHECK_STATUS(with(engine, "x.loops.step", step, &context), PLN_ERR_TYPE);
  CHECK(says("config key 'x.loops', field 'step' expects an integer from 0 to "
             "9, got 10"));
  pln_engine_free(engine);
}

static void reads(const char *key, const char *text, int64_t wanted) {
  pln_attrs out = 0;
  if (!CHECK_OK(pln_config_parse(engine, key, pln_text(text), &out)))
    return;
  pln_context *context = NULL;
  pln_context_spec spec = {.opt_level = 2, .config = out};
  pln_attr value;
  CHECK_OK(pln_context_new(engine, &spec, &context));
  CHECK_OK(pln_context_config_value(context, "x.loops.step", &value));
  CHECK_EQ_INT(value.v.i, wanted);
  pln_context_release(context);
}

static void refused(const char *key, const char *text, const char *message) {
  pln_attrs out = 0;
  pln_diag_clear(engine);
  CHECK(pln_config_parse(engine, key, pln_text(text), &out) != PLN_OK);
  CHECK(says(message));
}

static void text_gives_values(void) {
  pln_attrs none = 1;
  engine = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_config_register(engine, &loops));
  reads("x.loops.step", "7", 7);
  reads("x.loops", "{step=3,names=[]}", 3);
  reads("x.loops", " step = 0x2 , loud=false", 2);
  reads("x.loops", "", 1);
  refused("x.loops.step", "seven",
          "expects an integer from 0 to 9, got 'seven'");
  refused("x.loops.step", "70", "expects an integer from 0 to 9, got 70");
  refused("x.loops", "step=", "expected a value, got the end");
  refused("x.loops", "step=1}", "expected ',' or '}' after the field, got '}'");
  refused("x.loops", "{step=1", "expected ',' or '}' after the field");
  refused("x.loops", "{step=1}}", "expected the end, got '}'");
  refused("x.loops", "names=[\"a", "the string is not closed");
  refused("x.loops.stop", "1", "has no field 'stop'; did you mean 'step'?");
  CHECK_OK(pln_config_parse(engine, "nobody", pln_text("1"), &none));
  CHECK_EQ_INT(none, 0);
  pln_engine_free(engine);
}

static void bad(const pln_option *row, const char *message) {
  pln_diag_clear(engine);
  CHECK(pln_config_register(engine, row) != PLN_OK);
  CHECK(says(message));
}

static void rows_that_make_no_sense_are_refused(void) {
  engine = pln_engine_new(NULL, NULL);
  bad(&(pln_option){.kind = PLN_ATTR_INT, .fallback = "1"},
      "an option needs a name");
  bad(&(pln_option){.name = "a", .kind = PLN_ATTR_TENSOR, .fallback = "1"},
      "option 'a' needs a kind");
  bad(&(pln_option){.name = "a", .kind = PLN_ATTR_DICT},
      "option 'a' needs a kind");
  bad(&(pln_option){.name = "a", .kind = PLN_ATTR_INT, .fallback = "x"},
      "the default of option 'a' expects an integer, got 'x'");
  bad(
      &(pln_option){
          .name = "a", .kind = PLN_ATTR_INT, .fallback = "1", .most = "0"},
      "the default of option 'a' expects an integer up to 0, got 1");
  bad(
      &(pln_option){
          .name = "a", .kind = PLN_ATTR_INT, .fallback = "1", .least = "0.5"},
      "option 'a' needs bounds");
  bad(
      &(pln_option){
          .name = "a", .kind = PLN_ATTR_DICT, .n_fields = 1, .fields = &loops},
      "option 'x.loops' needs a kind");
  const pln_option twice[] = {fields[0], fields[0]};
  bad(
      &(pln_option){
          .name = "a", .kind = PLN_ATTR_DICT, .n_fields = 2, .fields = twice},
      "field 'step' of option 'a' is listed twice");
  pln_engine_free(engine);
}

static void keys_of_scripts_come_and_go(void) {
  pln_option again = {
      .name = "x.loops", .kind = PLN_ATTR_STRING, .fallback = ""};
  engine = pln_engine_new(NULL, NULL);
  uint32_t n = 0;
  while (pln_config_key_at(engine, n))
    n++;
  CHECK_OK(pln_config_register(engine, &loops));
  CHECK_OK(pln_config_register(engine, &again));
  REQUIRE(pln_config_key_at(engine, n) && !pln_config_key_at(engine, n + 1));
  CHECK_EQ_INT(pln_config_key_at(engine, n)->kind, PLN_ATTR_STRING);
  CHECK_OK(pln_config_unregister(engine, "x.loops"));
  CHECK(!pln_config_key_at(engine, n));
  CHECK_STATUS(pln_config_unregister(engine, "x.loops"), PLN_ERR_NAME);
  CHECK_STATUS(pln_config_unregister(engine, "fold"), PLN_ERR_NAME);
  again.name = "fold";
  CHECK_STATUS(pln_config_register(engine, &again), PLN_ERR_NAME);
  CHECK(says("config key 'fold' is built in and stays as it is"));
  pln_engine_free(engine);
}

/* Integers too, from C and from text. */
static void numbers_make_lists(void) {
  const int64_t whole[] = {3, 4};
  const double below[] = {1, -0.5};
  pln_attr value, given = {.kind = PLN_ATTR_INTS, .count = 2, .v.ints = whole};
  pln_context *context = NULL;
  engine = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_config_register(engine, &loops));
  REQUIRE_OK(with(engine, "x.loops.scales", given, &context));
  CHECK_OK(pln_context_config_value(context, "x.loops.scales", &value));
  CHECK_EQ_INT(value.kind, PLN_ATTR_FLOATS);
  CHECK(value.count == 2 && value.v.floats[0] == 3 && value.v.floats[1] == 4);
  pln_context_release(context);
  given.kind = PLN_ATTR_FLOATS;
  given.v.floats = below;
  CHECK_STATUS(with(engine, "x.loops.scales", given, &context), PLN_ERR_TYPE);
  CHECK(says("config key 'x.loops', field 'scales' expects a list of numbers "
             "from 0 on, got -0.5"));
  reads("x.loops", "{step=5,scales=[2,1e-3]}", 5);
  refused("x.loops", "{scales=[1,two]}", "from 0 on, got 'two'");
  pln_engine_free(engine);
}

/* ------------------------------------------------------------------- memory */

static pln_status nothing(pln_pass_run *run) {
  (void)run;
  return PLN_OK;
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_pass *pass;
  pln_attrs read;
  pln_attr value;
  pln_context *context;
  const pln_option rows[] = {loops, fields[1]};
  pln_pass_spec spec = {.name = "P",
                        .kind = PLN_PASS_FUNCTION,
                        .n_options = 2,
                        .options = rows,
                        .run = nothing};
  PLN_TRY(pln_config_register(e, &loops));
  PLN_TRY(pln_pass_register(e, &spec));
  PLN_TRY(pln_pipeline_parse(
      e,
      pln_text("P{\"x.loops\"={names=[a,b],scales=[1,.5],step=2},names=[c]}"),
      &pass));
  pln_pass_release(pass);
  PLN_TRY(pln_config_parse(e, "x.loops", pln_text("names=[a,b]"), &read));
  pln_context_spec wanted = {.opt_level = 2, .config = read};
  PLN_TRY(pln_context_new(e, &wanted, &context));
  pln_status status =
      pln_context_config_value(context, "x.loops.names", &value);
  pln_context_release(context);
  PLN_TRY(status);
  const int64_t whole[] = {7, 8};
  pln_attr list = {.kind = PLN_ATTR_INTS, .count = 2, .v.ints = whole};
  PLN_TRY(with(e, "x.loops.scales", list, &context));
  pln_context_release(context);
  return pln_config_unregister(e, "x.loops");
}

static void lack_of_memory_is_an_error(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"keys may be tables", keys_may_be_tables},
    {"text gives values", text_gives_values},
    {"rows that make no sense are refused",
     rows_that_make_no_sense_are_refused},
    {"keys of scripts come and go", keys_of_scripts_come_and_go},
    {"lists of numbers take integers too", numbers_make_lists},
    {"lack of memory is an error", lack_of_memory_is_an_error},
};
CHECK_MAIN(tests)
