/* test_flex_attention.c: attention whose scores and weights pass through
 * functions, from C: its result as read, folded, and out of memory at every
 * allocation. */

#include "base/base.h"
#include "oom.h"

static const char source[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%q: Tensor[(1, 2, 1, 2), float32],\n"
    "          %k: Tensor[(1, 1, 2, 2), float32],\n"
    "          %v: Tensor[(1, 1, 2, 1), float32]) {\n"
    "  flex_attention(%q, %k, %v,\n"
    "    fn (%x: Tensor[(1, 2, 1, 2), float32]) { negative(%x) },\n"
    "    fn (%y: Tensor[(1, 2, 1, 2), float32]) { add(%y, %y) },\n"
    "    score_mod=3, prob_mod=4)\n"
    "}\n";

/* All keys are equal, so both weights are 1/2, which the second function
 * doubles. */
static const float ones[4] = {1, 1, 1, 1}, values[2] = {3, 5};

static pln_status make_operands(pln_engine *e, pln_tensor **out) {
  PLN_TRY(pln_tensor_from_bytes(e, PLN_FLOAT32, 4, (int64_t[]){1, 2, 1, 2},
                                ones, sizeof ones, &out[0]));
  PLN_TRY(pln_tensor_from_bytes(e, PLN_FLOAT32, 4, (int64_t[]){1, 1, 2, 2},
                                ones, sizeof ones, &out[1]));
  return pln_tensor_from_bytes(e, PLN_FLOAT32, 4, (int64_t[]){1, 1, 2, 1},
                               values, sizeof values, &out[2]);
}

static pln_status compute(pln_engine *e, const pln_module *module) {
  pln_tensor *operands[3] = {NULL}, *result = NULL;
  const void *data;
  pln_status status = make_operands(e, operands);
  if (status == PLN_OK)
    status = pln_eval_tensors(module, pln_module_function_at(module, 0), 3,
                              (const pln_tensor *const *)operands, 1, &result);
  if (status == PLN_OK)
    status = pln_tensor_data(result, &data);
  if (status == PLN_OK)
    CHECK(((const float *)data)[0] > 7.99f && ((const float *)data)[1] < 8.01f);
  for (int i = 0; i < 3; i++)
    pln_tensor_release(operands[i]);
  pln_tensor_release(result);
  return status;
}

static pln_status work(pln_engine *e, void *ud) {
  pln_module *module = NULL;
  (void)ud;
  PLN_TRY(pln_parse_module(e, pln_text(source), "test", NULL, &module));
  pln_status status = compute(e, module);
  pln_module_release(module);
  return status;
}

static void functions_are_called_between_stages(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_STATUS(work(e, NULL), PLN_OK);
  pln_engine_free(e);
}

static void every_allocation_may_fail(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"functions are called between stages",
     functions_are_called_between_stages},
    {"every allocation may fail", every_allocation_may_fail},
};
CHECK_MAIN(tests)
