/* test_fold_function.c: FoldConstant on calls of functions and in branches,
 * when memory runs out. What it computes is in
 * spec/transform/fold/fold_function_spec.lua and branch_values_spec.lua. */

#include "base/base.h"
#include "oom.h"
#include "pass/pass.h"

static const char source[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%q: int32) {\n"
    "  let %a = add(1, 1);\n"
    "  let %f = fn (%n: int32, %x: int32) -> int32 {\n"
    "    if (equal(%n, 0)) { %x } else { %f(subtract(%n, %a), add(%x, %a)) }\n"
    "  };\n"
    "  %0 = fn (%n: int32) { (%n, add(%n, %a)) };\n"
    "  %1 = if (equal(%q, 3)) { add(%q, %a) } else { 1 };\n"
    "  (%0(10), %f(4, 1), %1)\n"
    "}\n";

static pln_status fold(pln_engine *e, pln_module **out) {
  pln_module *module;
  pln_pass *pass;
  PLN_TRY(pln_parse_module(e, pln_text(source), "calls", NULL, &module));
  pln_status status = pln_pipeline_parse(e, pln_text("FoldConstant"), &pass);
  if (status == PLN_OK) {
    status = pln_pass_apply(pass, module, out);
    pln_pass_release(pass);
  }
  pln_module_release(module);
  return status;
}

static pln_status fold_and_release(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *out;
  PLN_TRY(fold(e, &out));
  pln_module_release(out);
  return PLN_OK;
}

static void folds_both(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *out;
  uint32_t n = 0;
  REQUIRE(e);
  REQUIRE_OK(fold(e, &out));
  const pln_graph *g = pln_module_function_at(out, 0);
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    n += pln_node_kind(g, i) == PLN_CALL;
  CHECK_EQ_INT(n, 5); /* those in the body of %f, and the condition */
  pln_module_release(out);
  pln_engine_free(e);
}

static void survives_oom(void) {
  oom_sweep(fold_and_release, NULL);
}

static const check_test tests[] = {
    {"calls of constants become constants", folds_both},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int check_main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
