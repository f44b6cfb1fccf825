/* test_op_attr.c: attributes of operators: levels, texts, functions. */

#include "base/base.h"
#include "oom.h"

static unsigned released;

static void count_release(void *ud) {
  (void)ud;
  released++;
}

/* Answers with the first argument, doubled. */
static pln_status twice(void *ud, pln_op_call *call) {
  (void)ud;
  call->result->v.i = 2 * call->args[0].v.i;
  return PLN_OK;
}

static pln_status refuse(void *ud, pln_op_call *call) {
  (void)ud;
  return pln_diag_error(call->engine, PLN_ERR_INVALID, NULL, "%s refuses",
                        call->key);
}

static pln_op_attr integer(int64_t i, int32_t level) {
  return (pln_op_attr){.value = {.kind = PLN_ATTR_INT, .v.i = i},
                       .level = level};
}

static pln_op_attr function(pln_status (*call)(void *, pln_op_call *)) {
  return (pln_op_attr){.is_function = true,
                       .function = {.call = call, .release = count_release},
                       .level = PLN_OP_ATTR_LEVEL};
}

static pln_op add_of(const pln_engine *e) {
  return pln_op_find(e, pln_text("add"));
}

static void a_higher_level_stays(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_op add = add_of(e);
  bool set;
  pln_op_attr low = integer(1, 5), high = integer(2, 15), same = integer(3, 15);
  CHECK(pln_op_attr_get(e, add, "key") == NULL);
  CHECK_OK(pln_op_attr_set(e, add, "key", &high, &set));
  CHECK(set);
  CHECK_OK(pln_op_attr_set(e, add, "key", &low, &set));
  CHECK(!set);
  CHECK_EQ_INT(pln_op_attr_int(e, add, "key", 0), 2);
  CHECK_OK(pln_op_attr_set(e, add, "key", &same, NULL));
  CHECK_EQ_INT(pln_op_attr_int(e, add, "key", 0), 3);
  CHECK_EQ_INT(pln_op_attr_int(e, add, "other", 7), 7);
  CHECK_OK(pln_op_attr_reset(e, add, "key"));
  CHECK(pln_op_attr_get(e, add, "key") == NULL);
  CHECK_OK(pln_op_attr_set(e, add, "key", &low, &set));
  CHECK(set);
  pln_engine_free(e);
}

static void texts_are_copied(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  char text[] = "llvm";
  pln_op_attr attr = {.value = {.kind = PLN_ATTR_STRING, .v.s = {text, 4}}};
  CHECK_OK(pln_op_attr_set(e, add_of(e), "target", &attr, NULL));
  text[0] = 'x';
  CHECK_STR(pln_op_attr_get(e, add_of(e), "target")->value.v.s.data, "llvm");
  pln_engine_free(e);
}

static pln_status call_with(pln_engine *e, const char *key, int64_t argument,
                            bool *called, int64_t *out) {
  pln_op_value args[] = {{.kind = PLN_OP_INT, .v.i = argument}};
  pln_op_value result = {.kind = PLN_OP_INT};
  pln_op_call call = {.n_args = 1, .args = args, .result = &result};
  PLN_TRY(pln_op_attr_call(e, add_of(e), key, &call, called));
  *out = result.v.i;
  return PLN_OK;
}

static void functions_are_called_and_released(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  bool called;
  int64_t answer = 0;
  pln_op_attr f = function(twice), g = function(refuse), plain = integer(1, 10);
  released = 0;
  CHECK_OK(pln_op_attr_set(e, add_of(e), "f", &f, NULL));
  CHECK_OK(call_with(e, "f", 21, &called, &answer));
  CHECK(called);
  CHECK_EQ_INT(answer, 42);
  CHECK_OK(call_with(e, "none", 21, &called, &answer));
  CHECK(!called);
  CHECK_OK(pln_op_attr_set(e, add_of(e), "f", &g, NULL));
  CHECK_EQ_INT(released, 1);
  CHECK_STATUS(call_with(e, "f", 21, &called, &answer), PLN_ERR_INVALID);
  CHECK_OK(pln_op_attr_set(e, add_of(e), "plain", &plain, NULL));
  CHECK_STATUS(call_with(e, "plain", 21, &called, &answer), PLN_ERR_TYPE);
  pln_engine_free(e);
  CHECK_EQ_INT(released, 2);
}

static void nonsense_is_refused(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_op_attr attr = integer(1, 10);
  pln_op_attr list = {.value = {.kind = PLN_ATTR_INTS}};
  CHECK_STATUS(pln_op_attr_set(e, 0, "key", &attr, NULL), PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_op_attr_set(e, pln_op_count(e) + 1, "key", &attr, NULL),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_op_attr_set(e, add_of(e), "", &attr, NULL),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_op_attr_set(e, add_of(e), "key", &list, NULL), PLN_ERR_TYPE);
  pln_engine_free(e);
}

static pln_status set_some(pln_engine *e, void *ud) {
  static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
  (void)ud;
  pln_op_attr attr = {.value = {.kind = PLN_ATTR_STRING, .v.s = {"text", 4}}};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    PLN_TRY(pln_op_attr_set(e, add_of(e), keys[i], &attr, NULL));
  return pln_op_attr_reset(e, add_of(e), "a");
}

static void survive_failing_allocations(void) {
  oom_sweep(set_some, NULL);
}

static const check_test tests[] = {
    {"a higher level stays", a_higher_level_stays},
    {"texts are copied", texts_are_copied},
    {"functions are called and released", functions_are_called_and_released},
    {"nonsense is refused", nonsense_is_refused},
    {"survive failing allocations", survive_failing_allocations},
};

CHECK_MAIN(tests)
