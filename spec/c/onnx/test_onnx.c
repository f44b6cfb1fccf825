/* test_onnx.c: ONNX models in and out: equality of what nothing changed, names
 * and Identities of what something did, hostile files, lack of memory. */

#include "base/base.h"
#include "ir/graph/graph.h"
#include "onnx_fixture.h"
#include "oom.h"

/* The model as bytes in a buffer. */
static pln_status model(pln_engine *engine, pln_buffer *out) {
  pln_rope rope;
  pln_rope_init(&rope, engine);
  seed_model(&rope);
  pln_buffer_init(out, engine);
  pln_status status = pln_rope_write(&rope, pln_buffer_write, out);
  pln_rope_free(&rope);
  return status;
}

static pln_slice bytes_of(const pln_buffer *b) {
  return (pln_slice){b->data, b->size};
}

static void an_unchanged_model_comes_back(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_buffer in, out;
  pln_module *m = NULL;
  REQUIRE_OK(model(e, &in));
  pln_buffer_init(&out, e);
  CHECK_OK(pln_onnx_parse(e, bytes_of(&in), NULL, &m));
  CHECK_OK(pln_module_verify(m));
  CHECK_OK(pln_onnx_write(m, NULL, pln_buffer_write, &out));
  CHECK(pln_slice_equal(bytes_of(&in), bytes_of(&out)));
  print_diags(e);
  pln_module_release(m);
  pln_buffer_free(&in);
  pln_buffer_free(&out);
  pln_engine_free(e);
}

/* The model itself is made before anything fails. */
static pln_status load_and_write(pln_engine *engine, void *ud) {
  const pln_slice *bytes = ud;
  pln_buffer out;
  pln_module *m;
  PLN_TRY(pln_onnx_parse(engine, *bytes, NULL, &m));
  pln_buffer_init(&out, engine);
  pln_status status = pln_onnx_write(m, NULL, pln_buffer_write, &out);
  pln_buffer_free(&out);
  pln_module_release(m);
  return status;
}

static void survives_lack_of_memory(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_buffer in;
  REQUIRE_OK(model(e, &in));
  pln_slice bytes = bytes_of(&in);
  oom_sweep(load_and_write, &bytes);
  pln_buffer_free(&in);
  pln_engine_free(e);
}

/* ---------------------------------------------------------------- by hand */

/* f(x) = (x, x, relu(x), relu(x), 1): outputs a, x, c, d, e. */
static pln_status build(pln_engine *e, pln_builder *b, pln_graph **out) {
  pln_symbol x_name, key;
  pln_type type;
  pln_scope body;
  pln_ref x, y, one, result, root;
  pln_tensor *t;
  pln_attrs attrs;
  float value = 1;
  int64_t dims[] = {2};
  pln_slice names[] = {pln_text("a"), pln_text("x"), pln_text("c"),
                       pln_text("d"), pln_text("e")};
  PLN_TRY(pln_symbol_intern(e, pln_text("x"), &x_name));
  PLN_TRY(pln_symbol_intern(e, pln_text("output_names"), &key));
  pln_attr entry = {
      .name = key, .kind = PLN_ATTR_STRINGS, .count = 5, .v.strings = names};
  PLN_TRY(pln_attrs_make(e, 1, &entry, &attrs));
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 1, dims, &type));
  PLN_TRY(pln_tensor_splat(e, PLN_FLOAT32, 1, dims, &value, &t));
  PLN_TRY(pln_build_open(b, &body));
  PLN_TRY(pln_build_param(b, x_name, type, 0, &x));
  PLN_TRY(
      pln_build_call(b, pln_op_find(e, pln_text("nn.relu")), 0, 0, 1, &x, &y));
  PLN_TRY(pln_build_constant(b, t, &one));
  pln_tensor_release(t);
  PLN_TRY(pln_build_tuple(b, 5, (pln_ref[]){x, x, y, y, one}, &result));
  PLN_TRY(pln_build_end(b, body, result, attrs));
  PLN_TRY(pln_build_function(b, body, 0, 0, &root));
  return pln_builder_seal(b, root, out);
}

/* The module of @main = `graph`; releases the graph. */
static pln_status module_of(pln_engine *e, pln_graph *graph, pln_module **out) {
  pln_module *empty;
  pln_symbol name;
  PLN_TRY(pln_module_new(e, &empty));
  pln_status status = pln_symbol_intern(e, pln_text("main"), &name);
  if (status == PLN_OK)
    status = pln_module_with(empty, name, graph, out);
  pln_module_release(empty);
  pln_graph_release(graph);
  return status;
}

static unsigned occurrences(const pln_buffer *b, const char *text) {
  size_t n = strlen(text);
  unsigned count = 0;
  for (size_t i = 0; i + n <= b->size; i++)
    count += !memcmp(b->data + i, text, n);
  return count;
}

/* a and x are the input: a is an Identity, x the input itself; c and d are one
 * value, e an initializer. */
static void outputs_that_are_no_results_get_identities(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_builder *b;
  pln_graph *g;
  pln_module *m = NULL, *again = NULL;
  pln_buffer out;
  REQUIRE_OK(pln_builder_new(e, &b));
  CHECK_OK(build(e, b, &g));
  pln_builder_free(b);
  CHECK_OK(module_of(e, g, &m));
  pln_buffer_init(&out, e);
  CHECK_OK(pln_onnx_write(m, NULL, pln_buffer_write, &out));
  CHECK_EQ_INT(occurrences(&out, "Identity"), 3);
  CHECK_EQ_INT(occurrences(&out, "Relu"), 1);
  CHECK_OK(pln_onnx_parse(e, bytes_of(&out), NULL, &again));
  print_diags(e);
  CHECK_EQ_INT(pln_diag_count(e), 0);
  pln_module_release(again);
  pln_module_release(m);
  pln_buffer_free(&out);
  pln_engine_free(e);
}

/* ------------------------------------------------------------------ changes */

/* Replaces the Transpose by its operand. */
static pln_status drop_transpose(void *ud, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  (void)ud;
  (void)old;
  if (pln_node_kind(g, *node) == PLN_CALL &&
      pln_slice_is(pln_op_name(g->engine, pln_node_op(g, *node)), "transpose"))
    *node = pln_node_operands(g, *node)[0];
  return PLN_OK;
}

/* Swaps the operands of each product, in place of the old node. */
static pln_status swap_product(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  (void)ud;
  (void)old;
  pln_op op = pln_node_op(g, *node);
  if (pln_node_kind(g, *node) != PLN_CALL ||
      !pln_slice_is(pln_op_name(g->engine, op), "multiply"))
    return PLN_OK;
  const pln_ref *args = pln_node_operands(g, *node);
  return pln_build_call(pln_rewrite_builder(rw), op, 0, 0, 2,
                        (pln_ref[]){args[1], args[0]}, node);
}

static pln_status changed(pln_engine *e, const pln_mutator *mutator,
                          pln_buffer *before, pln_buffer *after) {
  pln_module *m, *n;
  pln_symbol name;
  pln_graph *g;
  PLN_TRY(model(e, before));
  PLN_TRY(pln_onnx_parse(e, bytes_of(before), NULL, &m));
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &name));
  const pln_graph *old = pln_module_function_at(m, pln_module_find(m, name));
  PLN_TRY(pln_graph_rewrite(old, mutator, &g));
  PLN_TRY(pln_module_with(m, name, g, &n));
  pln_buffer_init(after, e);
  pln_status status = pln_onnx_write(n, NULL, pln_buffer_write, after);
  pln_graph_release(g);
  pln_module_release(m);
  pln_module_release(n);
  return status;
}

static void a_changed_node_is_encoded_anew(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_buffer before, after;
  CHECK_OK(changed(e, &(pln_mutator){.visit = swap_product}, &before, &after));
  print_diags(e);
  /* The condition of the If that gives y is none: nothing is known of y. Its
   * graph has another node, so value_info tells of t and k instead, which are
   * inferred. */
  CHECK_EQ_INT(occurrences(&before, "j\x14\x0a\1y"), 1);
  CHECK_EQ_INT(occurrences(&after, "j\x14\x0a\1y"), 0);
  CHECK_EQ_INT(occurrences(&after, "j\x14\x0a\1t"), 1);
  CHECK_EQ_INT(occurrences(&before, "\x0a\1x\x0a\1w\x12\5inner\x22\3Mul"), 1);
  CHECK_EQ_INT(occurrences(&after, "\x0a\1w\x0a\1x\x12\5inner\x22\3Mul"), 1);
  pln_buffer_free(&before);
  pln_buffer_free(&after);
  pln_engine_free(e);
}

static void unused_nodes_stay_until_they_are_dropped(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_buffer before, after;
  CHECK_OK(
      changed(e, &(pln_mutator){.visit = drop_transpose}, &before, &after));
  print_diags(e);
  CHECK_EQ_INT(occurrences(&before, "Constant"), 1);
  CHECK_EQ_INT(occurrences(&after, "Constant"), 1);
  pln_buffer_free(&before);
  pln_buffer_free(&after);
  pln_engine_free(e);
}

/* ------------------------------------------------------------------ hostile */

static void expect(const char *what, void (*make)(pln_rope *)) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_rope r;
  pln_module *m = NULL;
  pln_rope_init(&r, e);
  size_t graph = seed_begin(&r, MODEL_GRAPH);
  make(&r);
  seed_end(&r, graph);
  pln_slice bytes = {r.bytes.data, r.bytes.size};
  CHECK_STATUS(pln_onnx_parse(e, bytes, NULL, &m), PLN_ERR_FORMAT);
  CHECK_STR(pln_diag_count(e) ? pln_diag_at(e, 0)->message : "", what);
  pln_rope_free(&r);
  pln_engine_free(e);
}

static void no_producer(pln_rope *r) {
  size_t at = seed_node(r, GRAPH_NODE, "Relu", "q\0", "y\0");
  seed_text(r, NODE_NAME, "n1");
  seed_end(r, at);
}

static void twice(pln_rope *r) {
  seed_value_info(r, GRAPH_INPUT, "x");
  seed_simple_node(r, GRAPH_NODE, "Relu", "x\0", "y\0");
  seed_simple_node(r, GRAPH_NODE, "Abs", "x\0", "y\0");
}

static void no_output(pln_rope *r) {
  seed_value_info(r, GRAPH_OUTPUT, "y");
}

static void overflow(pln_rope *r) {
  size_t t = seed_begin(r, GRAPH_INITIALIZER);
  seed_number(r, TENSOR_DIMS, UINT64_C(1) << 40);
  seed_number(r, TENSOR_DIMS, UINT64_C(1) << 40);
  seed_number(r, TENSOR_DATA_TYPE, PLN_FLOAT32);
  seed_text(r, TENSOR_NAME, "w");
  seed_end(r, t);
}

static void hostile_models_are_told_where(void) {
  expect("(memory): node 'n1' (Relu): input 'q' has no producer before it",
         no_producer);
  expect("(memory): the node of 'y' (Abs): the value 'y' is defined twice in "
         "one graph",
         twice);
  expect("(memory): the graph output 'y' has no producer", no_output);
  expect("(memory): tensor 'w': its dimensions overflow", overflow);
}

static const check_test tests[] = {
    {"an unchanged model comes back", an_unchanged_model_comes_back},
    {"outputs that are no results get Identities",
     outputs_that_are_no_results_get_identities},
    {"a changed node is encoded anew", a_changed_node_is_encoded_anew},
    {"unused nodes stay until they are dropped",
     unused_nodes_stay_until_they_are_dropped},
    {"hostile models are told where", hostile_models_are_told_where},
    {"survives lack of memory", survives_lack_of_memory}};
CHECK_MAIN(tests)
