/* test_dataflow.c: dataflow patterns from C: what they match and partition, and
 * both while memory is short. What patterns mean is in
 * spec/rule/dataflow_pattern_spec.lua. */

#include "base/base.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "oom.h"
#include "rule/dataflow/dataflow.h"

static const char program[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32], %c: bool) {\n"
    "  %0 = multiply(%x, 2f);\n"
    "  %1 = tanh(nn.relu(nn.relu(%0)));\n"
    "  %2 = add(%1, exp(%0));\n"
    "  %3 = if (%c) { let %v = nn.relu(%2); add(%v, %x) } else { %2 };\n"
    "  sigmoid(%3)\n"
    "}\n";

/* Adds a row with up to three operands, numbers of earlier rows. */
static pln_status add(pln_dataflow_pattern *p, pln_dataflow_kind kind,
                      const char *op, uint32_t n, uint32_t a, uint32_t b,
                      uint32_t c) {
  pln_dataflow_node node = {.kind = (uint8_t)kind};
  uint32_t operands[3] = {a, b, c};
  if (op)
    node.data = pln_op_find(p->engine, pln_text(op));
  return pln_dataflow_add(p, &node, n, operands);
}

/* dominates(multiply(_, Constant), ?r -> relu(?r) | tanh(_) | exp(_), add(_,
 * _)); the path is recursive. */
static pln_status build(pln_dataflow_pattern *p) {
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));    /* 0 */
  PLN_TRY(add(p, PLN_DATAFLOW_CONSTANT, NULL, 0, 0, 0, 0));    /* 1 */
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "multiply", 0, 0, 0, 0));    /* 2 */
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 3, 2, 0, 1));        /* 3 */
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "nn.relu", 0, 0, 0, 0));     /* 4 */
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 1, 10, 0, 0));   /* 5 */
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 2, 4, 5, 0));        /* 6 */
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "tanh", 0, 0, 0, 0));        /* 7 */
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 2, 7, 5, 0));        /* 8 */
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));    /* 9 */
  PLN_TRY(add(p, PLN_DATAFLOW_ALT, NULL, 2, 11, 9, 0));        /* 10 */
  PLN_TRY(add(p, PLN_DATAFLOW_ALT, NULL, 2, 6, 8, 0));         /* 11 */
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "exp", 0, 0, 0, 0));         /* 12 */
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 2, 12, 9, 0));       /* 13 */
  PLN_TRY(add(p, PLN_DATAFLOW_ALT, NULL, 2, 11, 13, 0));       /* 14 */
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "add", 0, 0, 0, 0));         /* 15 */
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));    /* 16 */
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 3, 15, 16, 9));      /* 17 */
  PLN_TRY(add(p, PLN_DATAFLOW_DOMINATOR, NULL, 3, 3, 14, 17)); /* 18 */
  return pln_dataflow_finish(p, 18);
}

/* sigmoid(If(_, _, _)) */
static pln_status build_if(pln_dataflow_pattern *p) {
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));
  PLN_TRY(add(p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));
  PLN_TRY(add(p, PLN_DATAFLOW_IF, NULL, 3, 0, 1, 2));
  PLN_TRY(add(p, PLN_DATAFLOW_OP, "sigmoid", 0, 0, 0, 0));
  PLN_TRY(add(p, PLN_DATAFLOW_CALL, NULL, 2, 4, 3, 0));
  return pln_dataflow_finish(p, 5);
}

/* Partitions by a pattern and adds the number of new functions. */
static pln_status partition(pln_engine *e, const pln_graph *graph, bool lets,
                            pln_status (*make)(pln_dataflow_pattern *p),
                            uint32_t *functions) {
  pln_dataflow_pattern p = {.engine = e};
  pln_graph *out = NULL;
  pln_status status = make(&p);
  if (status == PLN_OK)
    status = pln_dataflow_partition(&p, graph, lets, 0, NULL, NULL, &out);
  for (pln_ref i = 0; status == PLN_OK && i < pln_graph_size(out); i++)
    *functions += pln_node_kind(out, i) == PLN_FUNCTION;
  if (status == PLN_OK)
    status = pln_graph_verify(out);
  if (out)
    pln_graph_release(out);
  pln_dataflow_free(&p);
  return status;
}

static pln_status partition_both(pln_engine *e, void *ud) {
  pln_module *module;
  uint32_t *functions = ud;
  *functions = 0;
  PLN_TRY(pln_parse_module(e, pln_text(program), NULL, NULL, &module));
  const pln_graph *main = pln_module_function_at(module, 0);
  pln_status status = partition(e, main, false, build, functions);
  if (status == PLN_OK)
    status = partition(e, main, false, build_if, functions);
  if (status == PLN_OK)
    status = partition(e, main, true, build, functions);
  pln_module_release(module);
  return status;
}

static void partitions(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  uint32_t functions;
  REQUIRE(e);
  CHECK_OK(partition_both(e, &functions));
  /* three times @main and one new function */
  CHECK_EQ_INT(functions, 6);
  pln_engine_free(e);
}

static void memory_out(void) {
  uint32_t functions;
  oom_sweep(partition_both, &functions);
}

/* Rows of wrong operands, and a pattern that contains itself. */
static void refuses(void) {
  static const struct {
    pln_dataflow_kind kind;
    uint32_t n, operand;
  } wrong[] = {{PLN_DATAFLOW_IF, 2, 0},    {PLN_DATAFLOW_CALL, 0, 0},
               {PLN_DATAFLOW_ALT, 2, 7},   {PLN_DATAFLOW_OP, 1, 0},
               {PLN_DATAFLOW_TUPLE, 1, 1}, {PLN_DATAFLOW_EXPR, 0, 0}};
  for (size_t i = 0; i < PLN_COUNT(wrong); i++) {
    pln_engine *e = pln_engine_new(NULL, NULL);
    pln_dataflow_pattern p = {.engine = e};
    REQUIRE(e);
    CHECK_OK(add(&p, PLN_DATAFLOW_WILDCARD, NULL, 0, 0, 0, 0));
    CHECK_OK(add(&p, wrong[i].kind, NULL, wrong[i].n, wrong[i].operand,
                 wrong[i].operand, 0));
    CHECK_STATUS(pln_dataflow_finish(&p, 1), PLN_ERR_ARGUMENT);
    CHECK(pln_diag_count(e) > 0);
    pln_dataflow_free(&p);
    pln_engine_free(e);
  }
}

static const check_test tests[] = {{"partitions a program", partitions},
                                   {"refuses wrong rows", refuses},
                                   {"out of memory", memory_out}};
CHECK_MAIN(tests)
