/* test_combine.c: the passes that look at more than one call and its operands,
 * while memory is short. What they make is checked by
 * the specs of CombineParallelOps, FlattenRows and FoldConstantScale in
 * spec/transform. */

#include "base/base.h"
#include "oom.h"
#include "op/op.h"
#include "pass/pass.h"

typedef struct model {
  pln_engine *e;
  pln_builder *b;
} model;

static pln_status put_numbers(model *m, uint32_t rank, const int64_t *dims,
                              pln_ref *out) {
  pln_tensor *t;
  PLN_TRY(pln_tensor_new(m->e, PLN_FLOAT32, rank, dims, &t));
  float *data = pln_tensor_writable(t);
  for (size_t i = 0; i < pln_tensor_count(t); i++)
    data[i] = (float)(i % 7) - 2.5f;
  pln_status status = pln_build_constant(m->b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status put_ints(model *m, uint32_t n, const int64_t *ints,
                           pln_ref *out) {
  int64_t dims[1] = {n};
  pln_tensor *t;
  PLN_TRY(pln_tensor_from_bytes(m->e, PLN_INT64, n == 1 ? 0 : 1, dims, ints,
                                n * sizeof *ints, &t));
  pln_status status = pln_build_constant(m->b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status put_call(model *m, pln_op op, pln_attrs attrs, uint32_t n,
                           pln_ref a, pln_ref b, pln_ref *out) {
  pln_ref args[2] = {a, b};
  return pln_build_call(m->b, op, attrs, 0, n, args, out);
}

static pln_status make_attrs(model *m, const char *name, uint32_t n,
                             const int64_t *ints, pln_attrs *out) {
  pln_attr entry = {.kind = n ? PLN_ATTR_INTS : PLN_ATTR_INT, .count = n};
  if (n)
    entry.v.ints = ints;
  else
    entry.v.i = *ints;
  PLN_TRY(pln_symbol_intern(m->e, pln_text(name), &entry.name));
  return pln_attrs_make(m->e, 1, &entry, out);
}

static pln_status put_dense(model *m, pln_ref x, pln_ref *out) {
  static const int64_t dims[2] = {8, 8};
  pln_ref w, b;
  PLN_TRY(put_numbers(m, 2, dims, &w));
  PLN_TRY(put_numbers(m, 1, dims, &b));
  PLN_TRY(put_call(m, PLN_OP_MAT_MUL, 0, 2, x, w, &w));
  return put_call(m, PLN_OP_ADD, 0, 2, w, b, out);
}

static pln_status put_heads(model *m, pln_ref x, const int64_t *axes,
                            pln_ref *out) {
  static const int64_t shape[4] = {0, 0, 2, 4};
  pln_ref list;
  pln_attrs attrs;
  PLN_TRY(put_dense(m, x, &x));
  PLN_TRY(put_ints(m, 4, shape, &list));
  PLN_TRY(make_attrs(m, "axes", 4, axes, &attrs));
  PLN_TRY(put_call(m, PLN_OP_RESHAPE, 0, 2, x, list, &x));
  return put_call(m, PLN_OP_TRANSPOSE, attrs, 1, x, 0, out);
}

/* Attention, the scores scaled: CombineParallelOps, FoldConstantScale. */
static pln_status put_attention(model *m, pln_ref x, pln_ref *out) {
  static const int64_t rows[4] = {0, 2, 1, 3}, columns[4] = {0, 2, 3, 1};
  static const int64_t shape[3] = {0, 0, 8}, none[1] = {1};
  pln_ref q, k, v, factor, list;
  pln_attrs attrs;
  PLN_TRY(put_heads(m, x, rows, &q));
  PLN_TRY(put_heads(m, x, columns, &k));
  PLN_TRY(put_heads(m, x, rows, &v));
  PLN_TRY(put_numbers(m, 1, none, &factor));
  PLN_TRY(put_call(m, PLN_OP_MAT_MUL, 0, 2, q, k, &q));
  PLN_TRY(put_call(m, PLN_OP_MUL, 0, 2, q, factor, &q));
  PLN_TRY(put_call(m, PLN_OP_SOFTMAX, 0, 1, q, 0, &q));
  PLN_TRY(put_call(m, PLN_OP_MAT_MUL, 0, 2, q, v, &q));
  PLN_TRY(make_attrs(m, "axes", 4, rows, &attrs));
  PLN_TRY(put_call(m, PLN_OP_TRANSPOSE, attrs, 1, q, 0, &q));
  PLN_TRY(put_ints(m, 3, shape, &list));
  return put_call(m, PLN_OP_RESHAPE, 0, 2, q, list, out);
}

/* Two elements of a sequence of parts: SequenceToSplit. */
static pln_status put_sequence(model *m, pln_ref x, pln_ref *out) {
  static const int64_t axis[1] = {2}, size[1] = {4}, first[1] = {0},
                       last[1] = {-1};
  pln_ref list, parts[2], at;
  pln_attrs attrs;
  PLN_TRY(make_attrs(m, "axis", 0, axis, &attrs));
  PLN_TRY(put_ints(m, 1, size, &list));
  PLN_TRY(put_call(m, PLN_OP_SPLIT_TO_SEQUENCE, attrs, 2, x, list, &list));
  PLN_TRY(put_ints(m, 1, first, &at));
  PLN_TRY(put_call(m, PLN_OP_SEQUENCE_AT, 0, 2, list, at, &parts[0]));
  PLN_TRY(put_ints(m, 1, last, &at));
  PLN_TRY(put_call(m, PLN_OP_SEQUENCE_AT, 0, 2, list, at, &parts[1]));
  PLN_TRY(put_call(m, PLN_OP_TANH, 0, 1, parts[0], 0, &parts[0]));
  PLN_TRY(put_call(m, PLN_OP_TANH, 0, 1, parts[1], 0, &parts[1]));
  return put_call(m, PLN_OP_ADD, 0, 2, parts[0], parts[1], out);
}

/* Takes of all positions of an axis: SlicesToSplit. */
static pln_status put_takes(model *m, pln_ref x, pln_ref *out) {
  static const int64_t shape[4] = {0, 0, 2, 4}, axis[1] = {2}, at[2] = {0, 1};
  pln_ref list, parts[2];
  pln_attrs attrs;
  PLN_TRY(put_ints(m, 4, shape, &list));
  PLN_TRY(put_call(m, PLN_OP_RESHAPE, 0, 2, x, list, &x));
  PLN_TRY(make_attrs(m, "axis", 0, axis, &attrs));
  for (uint32_t i = 0; i < 2; i++) {
    PLN_TRY(put_ints(m, 1, &at[i], &list));
    PLN_TRY(put_call(m, PLN_OP_GATHER, attrs, 2, x, list, &parts[i]));
  }
  return put_call(m, PLN_OP_SUB, 0, 2, parts[0], parts[1], out);
}

/* Broadcasts before an operator whose result is added to x:
 * EliminateBroadcast. */
static pln_status put_broadcasts(model *m, pln_ref x, pln_ref *out) {
  static const int64_t shape[3] = {2, 5, 8}, axes[2] = {0, 2}, at[2] = {0, 1};
  pln_ref list, row, column;
  pln_attrs attrs;
  PLN_TRY(make_attrs(m, "axis", 0, &at[0], &attrs));
  PLN_TRY(put_ints(m, 1, at, &list));
  PLN_TRY(put_call(m, PLN_OP_GATHER, attrs, 2, x, list, &row));
  PLN_TRY(make_attrs(m, "axis", 0, &at[1], &attrs));
  PLN_TRY(put_call(m, PLN_OP_GATHER, attrs, 2, row, list, &column));
  PLN_TRY(put_ints(m, 2, axes, &list));
  PLN_TRY(put_call(m, PLN_OP_UNSQUEEZE, 0, 2, column, list, &column));
  PLN_TRY(put_ints(m, 3, shape, &list));
  PLN_TRY(put_call(m, PLN_OP_EXPAND, 0, 2, row, list, &row));
  PLN_TRY(put_call(m, PLN_OP_SUB, 0, 2, row, column, &row));
  PLN_TRY(put_call(m, PLN_OP_CONSTANT_OF_SHAPE, 0, 1, list, 0, &column));
  PLN_TRY(put_call(m, PLN_OP_MUL, 0, 2, row, column, &row));
  return put_call(m, PLN_OP_ADD, 0, 2, x, row, out);
}

static pln_status put_body(model *m, pln_ref x, pln_ref *out) {
  pln_ref fields[4];
  PLN_TRY(put_attention(m, x, &fields[0]));
  for (int i = 0; i < 3; i++) /* FlattenRows */
    PLN_TRY(put_dense(m, fields[0], &fields[0]));
  PLN_TRY(put_sequence(m, x, &fields[1]));
  PLN_TRY(put_takes(m, x, &fields[2]));
  PLN_TRY(put_broadcasts(m, x, &fields[3]));
  return pln_build_tuple(m->b, 4, fields, out);
}

static pln_status put_function(model *m, pln_graph **out) {
  static const int64_t dims[3] = {2, 5, 8};
  pln_scope body;
  pln_type type;
  pln_ref x, result;
  PLN_TRY(pln_build_open(m->b, &body));
  PLN_TRY(pln_type_tensor(m->e, PLN_FLOAT32, 3, dims, &type));
  PLN_TRY(pln_build_param(m->b, 0, type, 0, &x));
  PLN_TRY(put_body(m, x, &result));
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

static pln_status combine(pln_engine *e, pln_module **out) {
  pln_module *module;
  pln_pass *pipeline;
  PLN_TRY(make_module(e, &module));
  pln_status status = pln_pipeline_parse(
      e,
      pln_text("SequenceToSplit,EliminateBroadcast,SlicesToSplit,"
               "CombineParallelOps,"
               "FoldConstantScale,FlattenRows,MatMulAddToGemm"),
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
  PLN_TRY(combine(e, &out));
  pln_module_release(out);
  return PLN_OK;
}

static void combines_all(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *out;
  uint32_t n = 0;
  REQUIRE(e);
  REQUIRE_OK(combine(e, &out));
  const pln_graph *g = pln_module_function_at(out, 0);
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    n += pln_node_kind(g, i) == PLN_CALL;
  CHECK_EQ_INT(n, 27);
  pln_module_release(out);
  pln_engine_free(e);
}

static void survives_oom(void) {
  oom_sweep(whole, NULL);
}

static const check_test tests[] = {
    {"parallel products, parts and rows are each computed as one",
     combines_all},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int check_main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
