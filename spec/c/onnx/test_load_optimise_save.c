/* test_load_optimise_save.c: load, optimise, save, as a C program does it; and
 * the same while memory runs out. */

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "onnx_bytes.h"
#include "oom.h"

static char folder[] = "/tmp/perilune-whole-XXXXXX";
static char in_path[64], out_path[64];

/* Work for every pass, in the main graph and in the branches of an If. */
static bytes sample(void) {
  const float a[4] = {1, 2, 3, 4};
  bytes graph = {.size = 0}, then_graph = graph, else_graph = graph;
  put_node(&then_graph, "Identity", "s", "t", NULL);
  put_node(&then_graph, "Relu", "t", "u", NULL);
  put_value(&then_graph, 12, "u", 4);
  put_node(&else_graph, "Add", "s a", "v", NULL);
  put_value(&else_graph, 12, "v", 4);
  put_text(&graph, 2, "sample");
  put_floats(&graph, "a", 4, a);
  put_node(&graph, "Add", "a a", "b", NULL);
  put_node(&graph, "Add", "x b", "s", NULL);
  put_node(&graph, "ReduceSum", "s", "sum", NULL);
  put_node(&graph, "Greater", "sum sum", "p", NULL);
  put_node(&graph, "Squeeze", "p", "c", NULL);
  bytes node = {.size = 0}, then_branch, else_branch;
  then_branch = subgraph_attribute("then_branch", &then_graph);
  else_branch = subgraph_attribute("else_branch", &else_graph);
  put_text(&node, 1, "c");
  put_text(&node, 2, "w");
  put_text(&node, 4, "If");
  put_message(&node, 5, &then_branch);
  put_message(&node, 5, &else_branch);
  put_message(&graph, 1, &node);
  put_node(&graph, "Relu", "s", "r1", NULL);
  put_node(&graph, "Relu", "s", "r2", NULL);
  put_node(&graph, "Sum", "r1 r2 w", "y", NULL);
  put_value(&graph, 11, "x", 4);
  put_value(&graph, 12, "y", 4);
  return model_of(&graph);
}

static pln_status optimise(pln_engine *e, const pln_module *module,
                           pln_module **out) {
  pln_pass *pipeline;
  pln_context *context = NULL;
  pln_context_spec spec = {.opt_level = 3};
  PLN_TRY(pln_pipeline_parse(e,
                             pln_text("SimplifyExpr,FoldConstant,"
                                      "EliminateCommonSubexpr,"
                                      "DeadCodeElimination"),
                             &pipeline));
  pln_status status = pln_context_new(e, &spec, &context);
  if (status == PLN_OK && (status = pln_context_enter(context)) == PLN_OK) {
    status = pln_pass_apply(pipeline, module, out);
    pln_status left = pln_context_exit(context);
    if (status == PLN_OK && left != PLN_OK) {
      pln_module_release(*out);
      status = left;
    }
  }
  if (context)
    pln_context_release(context);
  pln_pass_release(pipeline);
  return status;
}

static pln_status whole(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *module, *better;
  PLN_TRY(pln_onnx_load(e, in_path, &module));
  pln_status status = optimise(e, module, &better);
  pln_module_release(module);
  PLN_TRY(status);
  status = pln_onnx_save(better, out_path, NULL);
  pln_module_release(better);
  return status;
}

static void makes_it_smaller(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  CHECK_OK(whole(e, NULL));
  print_diags(e);
  pln_onnx_model_stats before, after;
  REQUIRE_OK(pln_onnx_stats(e, in_path, &before));
  REQUIRE_OK(pln_onnx_stats(e, out_path, &after));
  CHECK_EQ_INT(before.nodes, 12);
  CHECK(after.nodes <= 9);
  pln_onnx_model_stats_free(e, &before);
  pln_onnx_model_stats_free(e, &after);
  pln_engine_free(e);
}

static void survives_oom(void) {
  oom_sweep(whole, NULL);
}

static const check_test tests[] = {
    {"a model becomes smaller", makes_it_smaller},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int check_main(int argc, char **argv) {
  if (!mkdtemp(folder))
    return 1;
  snprintf(in_path, sizeof in_path, "%s/in.onnx", folder);
  snprintf(out_path, sizeof out_path, "%s/out.onnx", folder);
  bytes model = sample();
  FILE *file = fopen(in_path, "wb");
  if (!file || fwrite(model.data, 1, model.size, file) != model.size ||
      fclose(file) != 0)
    return 1;
  int status = check_run(tests, PLN_COUNT(tests), argc, argv);
  unlink(in_path);
  unlink(out_path);
  if (rmdir(folder) != 0) {
    puts("# a failed save left a file behind");
    status = 1;
  }
  return status;
}
