/* test_fold_weights.c: the passes that fold into weights, while memory is
 * short. What they make is checked by spec/fold_weights_spec.lua. */

#include "base/base.h"
#include "oom.h"
#include "op/op.h"
#include "pass/pass.h"

/* ----------------------------------------- a model for each of the passes:
 * relu(batch_norm(conv(pad(x), w), ...) + k) and matmul(a, b) + c */

typedef struct model {
  pln_engine *e;
  pln_builder *b;
} model;

static pln_status put_param(model *m, uint32_t rank, const int64_t *dims,
                            pln_ref *out) {
  pln_type type;
  PLN_TRY(pln_type_tensor(m->e, PLN_FLOAT32, (int32_t)rank, dims, &type));
  return pln_build_param(m->b, 0, type, 0, out);
}

static pln_status put_numbers(model *m, uint32_t rank, const int64_t *dims,
                              pln_ref *out) {
  pln_tensor *t;
  PLN_TRY(pln_tensor_new(m->e, PLN_FLOAT32, rank, dims, &t));
  float *data = pln_tensor_writable(t);
  for (size_t i = 0; i < pln_tensor_count(t); i++)
    data[i] = (float)(i % 7) + 1;
  pln_status status = pln_build_constant(m->b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status put_pads(model *m, pln_ref *out) {
  static const int64_t pads[8] = {0, 0, 1, 1, 0, 0, 1, 1}, dims[1] = {8};
  pln_tensor *t;
  PLN_TRY(
      pln_tensor_from_bytes(m->e, PLN_INT64, 1, dims, pads, sizeof pads, &t));
  pln_status status = pln_build_constant(m->b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status put_convolution(model *m, pln_ref x, pln_ref *out) {
  static const int64_t weight[4] = {3, 2, 3, 3}, one[1] = {3},
                       all[3] = {3, 1, 1};
  pln_ref args[5] = {x}, sum[2];
  PLN_TRY(put_pads(m, &args[1]));
  PLN_TRY(pln_build_call(m->b, PLN_OP_PAD, 0, 0, 2, args, &args[0]));
  PLN_TRY(put_numbers(m, 4, weight, &args[1]));
  PLN_TRY(pln_build_call(m->b, PLN_OP_CONV, 0, 0, 2, args, &args[0]));
  for (int i = 1; i < 5; i++)
    PLN_TRY(put_numbers(m, 1, one, &args[i]));
  PLN_TRY(
      pln_build_call(m->b, PLN_OP_BATCH_NORMALIZATION, 0, 0, 5, args, &sum[0]));
  PLN_TRY(put_numbers(m, 3, all, &sum[1]));
  return pln_build_call(m->b, PLN_OP_ADD, 0, 0, 2, sum, out);
}

static pln_status put_product(model *m, pln_ref a, pln_ref *out) {
  static const int64_t weight[2] = {4, 3}, bias[1] = {3};
  pln_ref args[2] = {a};
  PLN_TRY(put_numbers(m, 2, weight, &args[1]));
  PLN_TRY(pln_build_call(m->b, PLN_OP_MAT_MUL, 0, 0, 2, args, &args[0]));
  PLN_TRY(put_numbers(m, 1, bias, &args[1]));
  return pln_build_call(m->b, PLN_OP_ADD, 0, 0, 2, args, out);
}

static pln_status put_function(model *m, pln_graph **out) {
  static const int64_t image[4] = {1, 2, 5, 5}, rows[2] = {2, 4};
  pln_scope body;
  pln_ref x, a, fields[2], result;
  PLN_TRY(pln_build_open(m->b, &body));
  PLN_TRY(put_param(m, 4, image, &x));
  PLN_TRY(put_param(m, 2, rows, &a));
  PLN_TRY(put_convolution(m, x, &fields[0]));
  PLN_TRY(put_product(m, a, &fields[1]));
  PLN_TRY(pln_build_tuple(m->b, 2, fields, &result));
  PLN_TRY(pln_build_end(m->b, body, result, 0));
  PLN_TRY(pln_build_function(m->b, body, 0, 0, &result));
  return pln_builder_seal(m->b, result, out);
}

static pln_status make_module(pln_engine *e, pln_module **out) {
  model m = {.e = e};
  pln_module *empty;
  pln_graph *graph;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &name));
  PLN_TRY(pln_builder_new(e, &m.b));
  pln_status status = put_function(&m, &graph);
  pln_builder_free(m.b);
  PLN_TRY(status);
  status = pln_module_new(e, &empty);
  if (status == PLN_OK) {
    status = pln_module_with(empty, name, graph, out);
    pln_module_release(empty);
  }
  pln_graph_release(graph);
  return status;
}

/* -------------------------------------------------------------------- tests */

static pln_status fold(pln_engine *e, pln_module **out) {
  pln_module *module;
  pln_pass *pipeline;
  PLN_TRY(make_module(e, &module));
  pln_status status = pln_pipeline_parse(
      e,
      pln_text("FoldExplicitPadding,FoldBatchNorm,FoldConvBias,"
               "MatMulAddToGemm,DeadCodeElimination"),
      &pipeline);
  if (status == PLN_OK) {
    status = pln_pass_apply(pipeline, module, out);
    pln_pass_release(pipeline);
  }
  pln_module_release(module);
  return status;
}

static pln_status whole(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *out;
  PLN_TRY(fold(e, &out));
  pln_module_release(out);
  return PLN_OK;
}

static void folds_all(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *out;
  uint32_t n = 0;
  REQUIRE(e);
  REQUIRE_OK(fold(e, &out));
  const pln_graph *g = pln_module_function_at(out, 0);
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    n += pln_node_kind(g, i) == PLN_CALL;
  CHECK_EQ_INT(n, 2);
  pln_module_release(out);
  pln_engine_free(e);
}

static void survives_oom(void) {
  oom_sweep(whole, NULL);
}

static const check_test tests[] = {
    {"a convolution and a product are all that is left", folds_all},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int check_main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
