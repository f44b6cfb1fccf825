/* test_register.c: operators that a host registers: typing, computing, what is
 * refused, threads, and memory that runs out. */

#include "eval/eval.h"
#include "ir/registered_op.h"
#include "ir/worker/child_engine.h"
#include "pass/parallel/parallel.h"

#include "graph_fixture.h"

static unsigned released;

static void count_release(void *ud) {
  (void)ud;
  released++;
}

/* The type of the first operand, with the dtype of the attribute. */
static pln_status infer_cast(void *ud, pln_operator_typing *call) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "dtype");
  (void)ud;
  if (!a)
    return pln_diag_error(call->engine, PLN_ERR_TYPE, NULL, "no dtype");
  return pln_type_tensor(call->engine, pln_dtype_find(a->v.s),
                         pln_type_rank(call->engine, call->args[0]),
                         pln_type_dims(call->engine, call->args[0]),
                         &call->results[0]);
}

/* A scalar of that dtype, whatever the operand is. */
static pln_status eval_scalar(void *ud, pln_operator_evaluation *call) {
  (void)ud;
  return pln_tensor_new(call->engine,
                        pln_type_dtype(call->engine, call->types[0]), 0, NULL,
                        &call->results[0]);
}

static const pln_operator_arg operand[] = {{.name = "x"}};
static const pln_operator_attr dtype[] = {
    {.name = "dtype",
     .kind = PLN_ATTR_STRING,
     .has_default = true,
     .value = {.kind = PLN_ATTR_STRING, .v.s = {"int8", 4}}}};

static pln_operator_spec cast_spec(void) {
  return (pln_operator_spec){.name = "host.cast",
                             .doc = "A cast.",
                             .n_args = 1,
                             .args = operand,
                             .n_attrs = 1,
                             .attrs = dtype,
                             .rule = PLN_OPERATOR_INFERS,
                             .infer = infer_cast,
                             .eval = eval_scalar,
                             .release = count_release};
}

static pln_ref constant_of(pln_engine *e, pln_builder *builder, uint32_t rank) {
  int64_t dims[1] = {2};
  pln_tensor *tensor;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_tensor_new(e, PLN_FLOAT32, rank, dims, &tensor));
  CHECK_OK(pln_build_constant(builder, tensor, &ref));
  pln_tensor_release(tensor);
  return ref;
}

static void calls_are_typed_and_computed(void) {
  begin();
  pln_op op;
  pln_operator_spec spec = cast_spec();
  released = 0;
  REQUIRE_OK(pln_op_register(engine, &spec, &op));
  CHECK(pln_op_find(engine, pln_text("host.cast")) == op);
  CHECK(pln_op_registered(engine, op)->infer == infer_cast);
  CHECK(pln_op_registered(engine, PLN_OP_ADD) == NULL);
  pln_attr said = dtype[0].value;
  CHECK_OK(pln_symbol_intern(engine, pln_text("dtype"), &said.name));
  pln_attrs attrs;
  CHECK_OK(pln_attrs_make(engine, 1, &said, &attrs));
  pln_ref x = constant_of(engine, b, 0), call = PLN_NONE;
  CHECK_OK(pln_build_call(b, op, attrs, 0, 1, &x, &call));
  const pln_graph *g = pln_builder_graph(b);
  CHECK_EQ_INT(g->nodes[call].attrs, 0); /* the default is left out */
  CHECK_EQ_INT(pln_type_dtype(engine, g->nodes[call].type), PLN_INT8);
  pln_tensor *result = NULL;
  CHECK_OK(pln_eval_call(g, call, &result));
  CHECK(result && pln_tensor_dtype(result) == PLN_INT8);
  pln_tensor_release(result);
  end();
  CHECK_EQ_INT(released, 1);
}

static void a_wrong_result_is_an_error(void) {
  begin();
  pln_op op;
  pln_operator_spec spec = cast_spec();
  REQUIRE_OK(pln_op_register(engine, &spec, &op));
  pln_ref x = constant_of(engine, b, 1), call = PLN_NONE;
  CHECK_OK(pln_build_call(b, op, 0, 0, 1, &x, &call));
  pln_tensor *result = NULL;
  CHECK_STATUS(pln_eval_call(pln_builder_graph(b), call, &result),
               PLN_ERR_TYPE);
  CHECK(result == NULL);
  CHECK_STR(pln_diag_at(engine, pln_diag_count(engine) - 1)->message,
            "'host.cast', result 0: its function computed a int8, but the call "
            "has type Tensor[(2), int8]");
  end();
}

static void wrong_specs_are_refused(void) {
  begin();
  static const pln_operator_arg twice[] = {{.name = "x"}, {.name = "x"}};
  static const pln_operator_arg early[] = {{.name = "x", .variadic = true},
                                           {.name = "y"}};
  pln_op op;
  released = 0;
  pln_operator_spec spec = cast_spec();
  spec.name = "add";
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_NAME);
  spec.name = NULL;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_NAME);
  spec.name = "host.";
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_NAME);
  spec = cast_spec();
  spec.infer = NULL;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_ARGUMENT);
  spec = cast_spec();
  spec.n_args = 2;
  spec.args = twice;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_NAME);
  spec.args = early;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_ARGUMENT);
  spec = cast_spec();
  spec.n_results = PLN_MAX_OPERATOR_ARGS + 1;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_ARGUMENT);
  spec = cast_spec();
  spec.traits = 1u << 30;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_ARGUMENT);
  spec = cast_spec();
  spec.rule = PLN_OPERATOR_LIKE;
  spec.like = 1;
  CHECK_STATUS(pln_op_register(engine, &spec, &op), PLN_ERR_ARGUMENT);
  CHECK(pln_op_find(engine, pln_text("host.cast")) == 0);
  end();
  CHECK_EQ_INT(released, 0);
}

/* The status of typing a call in a child engine. */
static pln_status type_in_child(bool any_thread, bool *refused) {
  begin();
  pln_op op;
  pln_operator_spec spec = cast_spec();
  spec.any_thread = any_thread;
  CHECK_OK(pln_op_register(engine, &spec, &op));
  pln_worker_group family;
  pln_worker_group_begin(&family, engine);
  pln_engine *child = pln_child_new(&family, pln_context_current(engine));
  pln_builder *builder;
  pln_ref call;
  CHECK_OK(pln_builder_new(child, &builder));
  pln_ref x = constant_of(child, builder, 1);
  pln_status status = pln_build_call(builder, op, 0, 0, 1, &x, &call);
  *refused = pln_op_callback_refused(child);
  CHECK_STATUS(pln_op_register(child, &spec, &op), PLN_ERR_ARGUMENT);
  pln_builder_free(builder);
  pln_child_free(child);
  pln_worker_group_end(&family);
  end();
  return status;
}

static void only_free_callbacks_run_on_threads(void) {
  bool refused;
  CHECK_OK(type_in_child(true, &refused));
  CHECK(!refused);
  CHECK_STATUS(type_in_child(false, &refused), PLN_ERR_CALLBACK);
  CHECK(refused);
}

static pln_status register_and_use(pln_engine *e, void *ud) {
  static const char *const inputs[] = {"x"};
  static const pln_operator_onnx_attr renamed[] = {{"dtype", "to"}};
  pln_operator_spec spec = cast_spec();
  pln_op op;
  pln_builder *builder;
  pln_ref call;
  (void)ud;
  spec.onnx = (pln_operator_onnx){.domain = "com.example",
                                  .op_type = "Cast",
                                  .since_version = 1,
                                  .n_inputs = 1,
                                  .inputs = inputs,
                                  .n_attrs = 1,
                                  .attrs = renamed};
  PLN_TRY(pln_op_register(e, &spec, &op));
  PLN_TRY(pln_builder_new(e, &builder));
  pln_tensor *tensor = NULL, *result = NULL;
  pln_ref x;
  pln_status status = pln_tensor_new(e, PLN_FLOAT32, 0, NULL, &tensor);
  if (status == PLN_OK)
    status = pln_build_constant(builder, tensor, &x);
  pln_tensor_release(tensor);
  if (status == PLN_OK)
    status = pln_build_call(builder, op, 0, 0, 1, &x, &call);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(builder), call, &result);
  pln_tensor_release(result);
  pln_builder_free(builder);
  return status;
}

static void memory_may_run_out(void) {
  oom_sweep(register_and_use, NULL);
}

static const check_test tests[] = {
    {"calls are typed and computed", calls_are_typed_and_computed},
    {"a wrong result is an error", a_wrong_result_is_an_error},
    {"wrong specs are refused", wrong_specs_are_refused},
    {"only free callbacks run on threads", only_free_callbacks_run_on_threads},
    {"memory may run out", memory_may_run_out}};
CHECK_MAIN(tests)
