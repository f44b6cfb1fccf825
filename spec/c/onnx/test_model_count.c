/* test_model_count.c: what a model file holds. */

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "onnx_bytes.h"
#include "oom.h"

static char path[] = "/tmp/perilune-count-XXXXXX";

static void put_external(bytes *graph, const char *name, const char *file) {
  bytes tensor = {.size = 0}, entry = tensor;
  put_int(&tensor, 1, 4);
  put_int(&tensor, 2, 1);
  put_text(&tensor, 8, name);
  put_text(&entry, 1, "location");
  put_text(&entry, 2, file);
  put_message(&tensor, 13, &entry);
  put_int(&tensor, 14, 1);
  put_message(graph, 5, &tensor);
}

/* Relu, Constant, an If around a Relu, a node of another domain. */
static bytes sample(void) {
  bytes graph = {.size = 0}, inner = graph, odd = graph;
  put_node(&inner, "Relu", "x", "z", NULL);
  bytes branch = subgraph_attribute("then_branch", &inner);
  put_node(&graph, "Relu", "x", "y", NULL);
  put_node(&graph, "Constant", "", "c", NULL);
  put_node(&graph, "If", "c", "z", &branch);
  put_text(&odd, 4, "Odd");
  put_text(&odd, 7, "my");
  put_message(&graph, 1, &odd);
  put_external(&graph, "a", "w.bin");
  put_external(&graph, "b", "w.bin");
  return model_of(&graph);
}

static void write_file(const bytes *b, size_t size) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(b->data, 1, size, file) == size);
  if (file)
    fclose(file);
}

static void counts_nodes(void) {
  bytes model = sample();
  write_file(&model, model.size);
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_onnx_model_stats n;
  REQUIRE_OK(pln_onnx_stats(e, path, &n));
  CHECK_EQ_INT(n.nodes, 5);
  CHECK_EQ_INT(n.compute_nodes, 4);
  CHECK_EQ_INT(n.n_operators, 4);
  CHECK_STR(pln_symbol_text(e, n.operators[0].name).data, "Relu");
  CHECK_EQ_INT(n.operators[0].count, 2);
  CHECK_STR(pln_symbol_text(e, n.operators[3].name).data, "my::Odd");
  CHECK_EQ_INT(n.n_files, 1);
  CHECK_STR(pln_symbol_text(e, n.files[0]).data, "w.bin");
  pln_onnx_model_stats_free(e, &n);
  pln_base_free(e);
}

static void refuses_cut_files(void) {
  bytes model = sample();
  pln_engine *e = pln_base_new(NULL, NULL);
  for (size_t size = 0; size < model.size; size++) {
    pln_onnx_model_stats n;
    write_file(&model, size);
    pln_status status = pln_onnx_stats(e, path, &n);
    if (status == PLN_OK)
      pln_onnx_model_stats_free(e, &n);
    else
      CHECK_STATUS(status, PLN_ERR_FORMAT);
    pln_diag_clear(e);
  }
  pln_base_free(e);
}

static pln_status count(pln_engine *e, void *ud) {
  (void)ud;
  pln_onnx_model_stats n;
  PLN_TRY(pln_onnx_stats(e, path, &n));
  pln_onnx_model_stats_free(e, &n);
  return PLN_OK;
}

static void survives_oom(void) {
  bytes model = sample();
  write_file(&model, model.size);
  oom_sweep(count, NULL);
}

static const check_test tests[] = {
    {"counts the nodes of subgraphs", counts_nodes},
    {"refuses files that are cut", refuses_cut_files},
    {"survives lack of memory", survives_oom},
};

int check_main(int argc, char **argv) {
  int fd = mkstemp(path);
  if (fd < 0)
    return 1;
  close(fd);
  int status = check_run(tests, PLN_COUNT(tests), argc, argv);
  unlink(path);
  return status;
}
