/* test_script.c: TVMScript when memory is out, and from C. */

#include "../fuzz/script_text.h"
#include "base/base.h"
#include "oom.h"

static pln_status read_module(pln_engine *engine, void *ud) {
  pln_module *module;
  (void)ud;
  pln_status status =
      pln_parse_script(engine, pln_text(script_text), NULL, &module);
  if (status == PLN_OK)
    pln_module_release(module);
  return status;
}

static void memory_out(void) {
  oom_sweep(read_module, NULL);
}

static pln_status read_expr(pln_engine *engine, void *ud) {
  pln_graph *graph;
  (void)ud;
  pln_status status = pln_parse_script_expr(
      engine,
      pln_text("x = T.int32()\nA = T.Buffer((4, x), strides=(x, 1))\n"
               "T.Select(x < 3, A[x, 0:4], T.Broadcast(T.float32(1), 4))"),
      "expression", &graph);
  if (status == PLN_OK)
    pln_graph_release(graph);
  return status;
}

static void memory_out_in_an_expression(void) {
  oom_sweep(read_expr, NULL);
}

static void errors_have_places(void) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_graph *graph = NULL;
  pln_status status = pln_parse_script_expr(
      engine, pln_text("x = T.int32()\nx + yy"), "bad", &graph);
  CHECK_EQ_INT(status, PLN_ERR_FORMAT);
  CHECK_EQ_INT(pln_diag_count(engine), 1);
  CHECK_EQ_INT(pln_diag_at(engine, 0)->span.row, 2);
  CHECK_EQ_INT(pln_diag_at(engine, 0)->span.column, 5);
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"memory may be out at any point of reading", memory_out},
    {"and of reading an expression", memory_out_in_an_expression},
    {"errors have places", errors_have_places},
};

CHECK_MAIN(tests)
