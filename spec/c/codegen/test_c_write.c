/* test_c_write.c: C of PrimFuncs from C: sources, calls, and out of memory at
 * every allocation of the writer. */

#include "base/base.h"
#include "oom.h"

static const char source[] =
    "@T.prim_func\n"
    "def f(a: T.handle, B: T.Buffer((16,), \"float32\"), s: T.int32):\n"
    "    n = T.int32()\n"
    "    A = T.match_buffer(a, (n, 16))\n"
    "    C = T.allocate([n * 2], \"float32\", \"global\")\n"
    "    C_1 = T.Buffer((n * 2,), data=C)\n"
    "    D = T.allocate([16], \"float32\", \"global\")\n"
    "    D_1 = T.Buffer((16,), data=D)\n"
    "    D_1[0:16] = T.Broadcast(T.float32(1), 16)\n"
    "    for i in range(n * 2):\n"
    "        C_1[i] = T.float32(0)\n"
    "    for i in T.parallel(16):\n"
    "        B[i] = A[0, i] + T.Cast(\"float32\", s // 3)\n"
    "    for i, j in T.grid(n, 16):\n"
    "        B[j] = B[j] + T.if_then_else(i < 1, C_1[i], T.exp(D_1[j]))\n"
    "    B[0:16] = T.max(B[0:16], D_1[T.Ramp(15, -1, 16)])\n";

static pln_status write_source(pln_engine *e, const pln_c_options *options,
                               pln_c_code **out) {
  pln_module *module = NULL;
  pln_symbol name = 0;
  PLN_TRY(pln_parse_script(e, pln_text(source), NULL, &module));
  const pln_graph *graph = pln_module_function_at(module, 0);
  pln_status status = pln_symbol_intern(e, pln_text("f"), &name);
  if (status == PLN_OK)
    status = pln_c_write(e, 1, &graph, &name, options, out);
  pln_module_release(module);
  return status;
}

static pln_status work(pln_engine *e, void *ud) {
  static const pln_c_options options = {.threads = 2, .asserts = true};
  pln_c_code *code = NULL;
  (void)ud;
  PLN_TRY(write_source(e, &options, &code));
  CHECK_EQ_INT(pln_c_code_n_functions(code), 1);
  const pln_c_function *fn = pln_c_code_function(code, 0);
  CHECK_EQ_INT(fn->n_params, 3);
  CHECK(!fn->params[0].is_written && fn->params[1].is_written);
  CHECK(!fn->params[2].is_buffer);
  CHECK(pln_c_code_uses_threads(code));
  CHECK(pln_c_code_source(code).size > 1000);
  pln_c_code_free(code);
  return PLN_OK;
}

static void the_source_is_described(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_STATUS(work(e, NULL), PLN_OK);
  pln_engine_free(e);
}

static void every_allocation_may_fail(void) {
  oom_sweep(work, NULL);
}

static void wrong_options_are_refused(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  static const pln_c_options options = {.vector_bytes = 24};
  pln_c_code *code = NULL;
  CHECK_STATUS(write_source(e, &options, &code), PLN_ERR_ARGUMENT);
  CHECK(code == NULL);
  pln_engine_free(e);
}

static const check_test tests[] = {
    {"the source is described", the_source_is_described},
    {"every allocation may fail", every_allocation_may_fail},
    {"wrong options are refused", wrong_options_are_refused},
};
CHECK_MAIN(tests)
