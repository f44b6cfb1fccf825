/* test_loop.c: the interpreter of loops from C: programs, runs, results, and
 * out of memory at every allocation. */

#include "base/base.h"
#include "oom.h"

static const char source[] =
    "@T.prim_func\n"
    "def f(a: T.handle, B: T.Buffer((4,), \"float32\")):\n"
    "    n = T.int32()\n"
    "    A = T.match_buffer(a, (n, 4))\n"
    "    C = T.allocate([4], \"float32\", \"global\")\n"
    "    C_1 = T.Buffer((4,), data=C)\n"
    "    C_1[0:4] = T.Broadcast(T.float32(1), 4)\n"
    "    for i, j in T.grid(n, 4):\n"
    "        B[j] = B[j] + T.if_then_else(i < 1, A[i, j], T.exp(C_1[j]))\n";

static pln_status run_once(const pln_loop_program *program, pln_tensor *a,
                           pln_tensor *b) {
  const pln_tensor *args[] = {a, b};
  pln_tensor *results[2] = {NULL, NULL};
  const void *data;
  PLN_TRY(pln_loop_run_program(program, NULL, 2, args, results));
  CHECK(results[0] == a);
  CHECK(results[1] != b);
  pln_status status = pln_tensor_data(results[1], &data);
  if (status == PLN_OK)
    CHECK(((const float *)data)[0] > 2.7f && ((const float *)data)[0] < 2.8f);
  pln_tensor_release(results[0]);
  pln_tensor_release(results[1]);
  return status;
}

static pln_status run_tensors(pln_engine *e, const pln_loop_program *program) {
  pln_tensor *a = NULL, *b = NULL;
  pln_status status = pln_tensor_new(e, PLN_FLOAT32, 2, (int64_t[]){2, 4}, &a);
  if (status == PLN_OK)
    status = pln_tensor_new(e, PLN_FLOAT32, 1, (int64_t[]){4}, &b);
  for (int round = 0; round < 2 && status == PLN_OK; round++)
    status = run_once(program, a, b);
  pln_tensor_release(a);
  pln_tensor_release(b);
  return status;
}

static pln_status work(pln_engine *e, void *ud) {
  pln_module *module = NULL;
  pln_loop_program *program = NULL;
  (void)ud;
  PLN_TRY(pln_parse_script(e, pln_text(source), NULL, &module));
  pln_status status =
      pln_loop_program_new(pln_module_function_at(module, 0), NULL, &program);
  pln_module_release(module);
  if (status == PLN_OK) {
    CHECK_EQ_INT(pln_loop_n_params(program), 2);
    CHECK_EQ_INT(pln_loop_n_results(program), 2);
    status = run_tensors(e, program);
  }
  pln_loop_program_free(program);
  return status;
}

static void a_program_serves_many_runs(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_STATUS(work(e, NULL), PLN_OK);
  pln_engine_free(e);
}

static void every_allocation_may_fail(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"a program serves many runs", a_program_serves_many_runs},
    {"every allocation may fail", every_allocation_may_fail},
};
CHECK_MAIN(tests)
