/* test_check_calls.c: calls of functions fit what they call, in the verifier,
 * in changed modules and in what ONNX files call; their type arguments. */

#include "ir/graph/module.h"
#include "onnx_fixture.h"
#include "oom.h"

static pln_symbol name(pln_engine *e, const char *as) {
  pln_symbol symbol = 0;
  CHECK_OK(pln_symbol_intern(e, pln_text(as), &symbol));
  return symbol;
}

static pln_status parse(pln_engine *e, const char *text, pln_module **out) {
  pln_buffer all;
  pln_buffer_init(&all, e);
  pln_status status = pln_buffer_text(&all, "#[version = \"0.0.5\"]\n");
  if (status == PLN_OK)
    status = pln_buffer_text(&all, text);
  if (status == PLN_OK)
    status =
        pln_parse_module(e, (pln_slice){all.data, all.size}, NULL, NULL, out);
  pln_buffer_free(&all);
  return status;
}

static pln_graph *function(const pln_module *m, const char *as) {
  pln_engine *e = pln_module_engine(m);
  return pln_module_function_at(m, pln_module_find(m, name(e, as)));
}

/* The newest error. */
static const char *message(const pln_engine *e) {
  for (size_t i = pln_diag_count(e); i-- > 0;)
    if (pln_diag_at(e, i)->severity == PLN_ERROR)
      return pln_diag_at(e, i)->message;
  return "";
}

/* ---------------------------------------------------------------- verifier */

static const char *const program =
    "def @f(%x: Tensor[(2), float32], %y: int32) { (%x, %y) }\n"
    "def @main(%a: Tensor[(2), float32], %b: int32) { @f(%a, %b) }\n";

/* The node of that kind, the last one when there are several. */
static pln_node *find(pln_graph *g, pln_kind kind) {
  pln_node *found = NULL;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == kind)
      found = &g->nodes[ref];
  return found;
}

static void the_verifier_checks_arguments_and_result(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  REQUIRE_OK(parse(e, program, &m));
  pln_graph *g = function(m, "main");
  CHECK_OK(pln_module_verify(m));
  pln_node *call = find(g, PLN_CALL), *second = find(g, PLN_VAR);
  pln_type type = call->type, was = second->type;
  call->type = was;
  CHECK_STATUS(pln_module_verify(m), PLN_ERR_TYPE);
  CHECK_STR(message(e),
            "the call returns (Tensor[(2), float32], int32), but its "
            "type is int32: in @f(%a: Tensor[(2), float32], "
            "%b: int32) of @main");
  call->type = type;
  second->type = type;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_TYPE);
  CHECK_STR(message(e), "argument 2 must be int32, got (Tensor[(2), float32], "
                        "int32): in @f(%a: Tensor[(2), float32], "
                        "%b: (Tensor[(2), float32], int32))");
  second->type = 0;
  CHECK_OK(pln_graph_verify(g));
  second->type = was;
  call->count = 2;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_TYPE);
  CHECK_STR(message(e), "the function takes 2 arguments, got 1: in "
                        "@f(%a: Tensor[(2), float32])");
  call->count = 3;
  CHECK_OK(pln_module_verify(m));
  pln_module_release(m);
  pln_engine_free(e);
}

static void the_verifier_checks_what_is_called(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  REQUIRE_OK(parse(e, program, &m));
  pln_graph *g = function(m, "main");
  pln_node *callee = find(g, PLN_GLOBAL_VAR);
  pln_type was = callee->type;
  callee->type = find(g, PLN_VAR)->type;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_TYPE);
  callee->type = find(g, PLN_CALL)->type;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_TYPE);
  CHECK_STR(message(e),
            "the callee is not a function: in @f(%a: Tensor[(2), float32], "
            "%b: int32)");
  callee->type = 0;
  CHECK_OK(pln_graph_verify(g));
  callee->type = was;
  pln_module_release(m);
  pln_engine_free(e);
}

static void the_verifier_checks_what_is_known_of_effects(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  REQUIRE_OK(parse(e,
                   "def @f(%r: ref(int32)) { ref_write(%r, 1) }\n"
                   "def @main(%r: ref(int32)) { @f(%r) }\n",
                   &m));
  pln_node *callee = find(function(m, "main"), PLN_GLOBAL_VAR);
  CHECK_EQ_INT(pln_node_call_effect(callee), PLN_EFFECT_WRITES);
  callee->flags = PLN_EFFECT_UNKNOWN << PLN_NODE_CALL_EFFECT_SHIFT;
  CHECK_OK(pln_module_verify(m));
  callee->flags = PLN_EFFECT_READS << PLN_NODE_CALL_EFFECT_SHIFT;
  CHECK_STATUS(pln_module_verify(m), PLN_ERR_INVALID);
  CHECK_STR(message(e),
            "invalid IR at node 1: '@f' has effects that its caller "
            "lacks");
  pln_module_release(m);
  pln_engine_free(e);
}

/* ----------------------------------------------------------------- modules */

static const char *const wider =
    "def @f(%x: Tensor[(2), float32], %y: int64) { (%x, %y) }\n"
    "def @main(%a: Tensor[(2), float32], %b: int64) { @f(%a, %b).1 }\n";

static void a_function_and_its_caller_change_at_once(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL, *w = NULL, *out = NULL;
  REQUIRE_OK(parse(e, program, &m));
  REQUIRE_OK(parse(e, wider, &w));
  pln_symbol names[] = {name(e, "f"), name(e, "main")};
  const pln_graph *both[] = {function(w, "f"), function(w, "main")};
  CHECK_STATUS(pln_module_with(m, names[0], both[0], &out), PLN_ERR_TYPE);
  CHECK_STR(message(e), "argument 2 must be int64, got int32: in "
                        "@f(%a: Tensor[(2), float32], %b: int32) of @main");
  CHECK_STATUS(pln_module_with(m, names[1], both[1], &out), PLN_ERR_TYPE);
  CHECK_OK(pln_module_with_functions(m, 2, names, both, &out));
  CHECK_OK(pln_module_verify(out));
  CHECK(function(out, "main") == both[1]);
  pln_module *same = NULL;
  CHECK_OK(pln_module_with_functions(out, 2, names, both, &same));
  CHECK(same == out);
  pln_module_release(same);
  CHECK_OK(pln_module_with_functions(out, 0, NULL, NULL, &same));
  CHECK(same == out);
  pln_module_release(same);
  pln_module_release(out);
  pln_module_release(m);
  pln_module_release(w);
  pln_engine_free(e);
}

/* A chain of callers, whose results change one after the other. */
static const char *const chain =
    "def @a(%x: Tensor[(2), float32]) { %x }\n"
    "def @b(%x: Tensor[(2), float32]) { @a(%x) }\n"
    "def @c(%x: Tensor[(2), float32]) { @b(%x) }\n"
    "def @id[A](%x: A) { %x }\n"
    "def @main(%x: Tensor[(2), float32]) { (@id(@c(%x)), @id(1)) }\n";
static const char *const shorter = "def @a(%x: Tensor[(?), float32]) { 1f }\n";

/* @a gives a scalar; *out, when not NULL, is what the module became. */
static pln_status change(pln_engine *e, const pln_module *m, pln_module **out) {
  pln_module *w, *changed = NULL;
  pln_symbol a;
  PLN_TRY(parse(e, shorter, &w));
  pln_status status = pln_symbol_intern(e, pln_text("a"), &a);
  if (status == PLN_OK)
    status = pln_module_with(m, a, pln_module_function_at(w, 0), &changed);
  if (status == PLN_OK)
    status = pln_module_verify(changed);
  pln_module_release(w);
  if (out)
    *out = changed;
  else
    pln_module_release(changed);
  return status;
}

static pln_status change_chain(pln_engine *e, void *ud) {
  pln_module *m;
  (void)ud;
  PLN_TRY(parse(e, chain, &m));
  pln_status status = change(e, m, NULL);
  pln_module_release(m);
  return status;
}

static void a_change_reaches_all_callers(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL, *out = NULL;
  pln_type scalar = 0;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 0, NULL, &scalar));
  REQUIRE_OK(parse(e, chain, &m));
  REQUIRE_OK(change(e, m, &out));
  CHECK(find(function(out, "c"), PLN_CALL)->type == scalar);
  pln_type pair = find(function(out, "main"), PLN_TUPLE)->type;
  CHECK(pln_type_part_at(e, pair, 0) == scalar);
  CHECK(function(out, "id") == function(m, "id"));
  pln_module_release(out);
  pln_module_release(m);
  pln_engine_free(e);
}

static void survives_lack_of_memory(void) {
  oom_sweep(change_chain, NULL);
}

/* ----------------------------------------------------------- type arguments */

/* A call of an fn [A, B](A) -> A. */
static pln_status call_at(pln_engine *e, uint32_t n, const pln_type *types,
                          pln_builder *b, pln_ref *call) {
  pln_type vars[2], type, i32;
  pln_symbol a;
  pln_ref f, x;
  PLN_TRY(pln_symbol_intern(e, pln_text("A"), &a));
  PLN_TRY(pln_type_var(e, a, PLN_TKIND_TYPE, &vars[0]));
  PLN_TRY(pln_type_var(e, a, PLN_TKIND_TYPE, &vars[1]));
  PLN_TRY(pln_type_func(e, 1, vars, vars[0], 2, vars, 0, NULL, &type));
  PLN_TRY(pln_type_tensor(e, PLN_INT32, 0, NULL, &i32));
  PLN_TRY(pln_build_var(b, a, type, 0, &f));
  PLN_TRY(pln_build_var(b, a, i32, 0, &x));
  return pln_build_apply_with_types(b, f, n, types, 0, 0, 1, &x, call);
}

static void type_arguments_are_found_or_written(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_builder *b = NULL;
  pln_type types[3], args = 0;
  pln_ref call = 0;
  CHECK_OK(pln_type_tensor(e, PLN_INT32, 0, NULL, &types[0]));
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 0, NULL, &types[1]));
  types[2] = types[1];
  REQUIRE_OK(pln_builder_new(e, &b));
  for (uint32_t n = 0; n < 3; n++) {
    CHECK_OK(call_at(e, n, types, b, &call));
    CHECK_OK(pln_call_type_args(pln_builder_graph(b), call, &args));
    CHECK_EQ_INT(pln_type_n_parts(e, args), 2);
    CHECK(pln_type_part_at(e, args, 0) == types[0]);
    CHECK(pln_type_part_at(e, args, 1) == (n == 2 ? types[1] : 0));
    CHECK((pln_node_attrs(pln_builder_graph(b), call) != 0) == (n == 2));
  }
  CHECK_STATUS(call_at(e, 3, types, b, &call), PLN_ERR_TYPE);
  CHECK_STATUS(call_at(e, 1, types + 1, b, &call), PLN_ERR_TYPE);
  CHECK_STR(message(e), "argument 1 must be float32, got int32: in "
                        "%A(%A: int32)");
  pln_builder_free(b);
  pln_engine_free(e);
}

static pln_status ask_type_args(pln_engine *e, void *ud) {
  pln_builder *b;
  pln_type types[2], args;
  pln_ref call;
  (void)ud;
  PLN_TRY(pln_type_tensor(e, PLN_INT32, 0, NULL, &types[0]));
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 0, NULL, &types[1]));
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = call_at(e, 2, types, b, &call);
  if (status == PLN_OK)
    status = pln_call_type_args(pln_builder_graph(b), call, &args);
  pln_builder_free(b);
  return status;
}

static void type_arguments_survive_lack_of_memory(void) {
  oom_sweep(ask_type_args, NULL);
}

/* -------------------------------------------------------------------- files */

/* main(x) = F(x), of a function F(p, q) = p. */
static void seed_call(pln_rope *r, const char *domain, bool declared) {
  seed_number(r, MODEL_IR_VERSION, 10);
  size_t graph = seed_begin(r, MODEL_GRAPH);
  size_t call = seed_node(r, GRAPH_NODE, "F", "x\0", "y\0");
  seed_text(r, NODE_DOMAIN, domain);
  seed_end(r, call);
  seed_text(r, GRAPH_NAME, "g");
  seed_value_info(r, GRAPH_INPUT, "x");
  seed_value_info(r, GRAPH_OUTPUT, "y");
  seed_end(r, graph);
  seed_opset(r, MODEL_OPSET_IMPORT, "", 17);
  seed_opset(r, MODEL_OPSET_IMPORT, domain, 1);
  size_t function = seed_begin(r, MODEL_FUNCTIONS);
  seed_text(r, FUNCTION_NAME, "F");
  seed_text(r, FUNCTION_INPUT, "p");
  seed_text(r, FUNCTION_INPUT, "q");
  seed_text(r, FUNCTION_OUTPUT, "r");
  seed_simple_node(r, FUNCTION_NODE, declared ? "Shape" : "Identity", "p\0",
                   "r\0");
  seed_opset(r, FUNCTION_OPSET_IMPORT, "", 17);
  seed_text(r, FUNCTION_DOMAIN, domain);
  seed_end(r, function);
}

static pln_status call_model(pln_engine *engine, const char *domain,
                             bool declared, pln_buffer *out) {
  pln_rope rope;
  pln_rope_init(&rope, engine);
  seed_call(&rope, domain, declared);
  pln_buffer_init(out, engine);
  pln_status status = pln_rope_write(&rope, pln_buffer_write, out);
  pln_rope_free(&rope);
  return status;
}

static void load(pln_engine *e, const char *domain, bool declared,
                 pln_buffer *in, pln_module **out) {
  REQUIRE_OK(call_model(e, domain, declared, in));
  CHECK_OK(pln_onnx_parse(e, (pln_slice){in->data, in->size}, NULL, out));
}

static void what_a_file_leaves_out_is_absent(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  pln_buffer in, out;
  load(e, "own", false, &in, &m);
  print_diags(e);
  CHECK_EQ_INT(pln_diag_count(e), 0);
  CHECK_OK(pln_module_verify(m));
  pln_node *call = find(function(m, "main"), PLN_CALL);
  CHECK_EQ_INT(call->count, 3);
  CHECK(find(function(m, "main"), PLN_ABSENT) != NULL);
  pln_buffer_init(&out, e);
  CHECK_OK(pln_onnx_write(m, NULL, pln_buffer_write, &out));
  CHECK(out.size == in.size && !memcmp(out.data, in.data, in.size));
  pln_buffer_free(&out);
  pln_buffer_free(&in);
  pln_module_release(m);
  pln_engine_free(e);
}

/* The module as text, read again. */
static void reread(const pln_module *m, pln_module **out) {
  pln_engine *e = pln_module_engine(m);
  pln_buffer text;
  pln_buffer_init(&text, e);
  CHECK_OK(pln_print_module(m, NULL, pln_buffer_write, &text));
  CHECK_OK(
      pln_parse_module(e, (pln_slice){text.data, text.size}, NULL, NULL, out));
  pln_buffer_free(&text);
}

/* The graph declares that the call gives float32[N, 2]; it gives int64[?]. */
static void declare_against_call(const char *domain) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL, *typed = NULL, *again = NULL;
  pln_buffer in;
  load(e, domain, true, &in, &m);
  CHECK(pln_diag_count(e) > 0);
  CHECK_OK(pln_module_verify(m));
  CHECK_OK(pln_module_infer(m, &typed));
  CHECK_OK(pln_module_verify(typed));
  reread(m, &again);
  REQUIRE(again != NULL);
  CHECK_OK(pln_module_verify(again));
  pln_module_release(again);
  pln_module_release(typed);
  pln_module_release(m);
  pln_buffer_free(&in);
  pln_engine_free(e);
}

static void what_a_file_declares_against_its_calls_stands(void) {
  declare_against_call("a"); /* @"a::F" stands before @main */
  declare_against_call("own");
}

static const check_test tests[] = {
    {"the verifier checks arguments and result",
     the_verifier_checks_arguments_and_result},
    {"the verifier checks the callee", the_verifier_checks_what_is_called},
    {"the verifier checks what is known of effects",
     the_verifier_checks_what_is_known_of_effects},
    {"a function and its caller change at once",
     a_function_and_its_caller_change_at_once},
    {"a change reaches all callers", a_change_reaches_all_callers},
    {"survives lack of memory", survives_lack_of_memory},
    {"type arguments are found or written",
     type_arguments_are_found_or_written},
    {"type arguments survive lack of memory",
     type_arguments_survive_lack_of_memory},
    {"what a file leaves out is absent", what_a_file_leaves_out_is_absent},
    {"what a file declares against its calls stands",
     what_a_file_declares_against_its_calls_stands},
};
CHECK_MAIN(tests)
