/* test_print.c: expressions and modules as Relay text. */

#include "base/base.h"
#include "captured_output.h"
#include "oom.h"

static pln_status count_bytes(void *ud, const char *data, size_t size) {
  (void)data;
  *(size_t *)ud += size;
  return PLN_OK;
}

/* What a test builds with. */
typedef struct bench {
  pln_engine *e;
  pln_builder *b;
  pln_type vec, flag; /* Tensor[(4), float32], bool */
} bench;

static bool open_bench(bench *t) {
  pln_dim dims[] = {4};
  t->e = pln_engine_new(NULL, NULL);
  return CHECK(t->e) && CHECK_OK(pln_builder_new(t->e, &t->b)) &&
         CHECK_OK(pln_type_tensor(t->e, PLN_FLOAT32, 1, dims, &t->vec)) &&
         CHECK_OK(pln_type_tensor(t->e, PLN_BOOL, 0, NULL, &t->flag));
}

static void close_bench(bench *t) {
  pln_builder_free(t->b);
  pln_engine_free(t->e);
}

static pln_symbol symbol(bench *t, const char *name) {
  pln_symbol out = 0;
  CHECK_OK(pln_symbol_intern(t->e, pln_text(name), &out));
  return out;
}

static pln_ref var(bench *t, const char *name, pln_type type) {
  pln_ref out = 0;
  CHECK_OK(pln_build_var(t->b, symbol(t, name), type, 0, &out));
  return out;
}

static pln_ref call(bench *t, const char *op, uint32_t n, const pln_ref *args) {
  pln_ref out = 0;
  pln_op id = pln_op_find(t->e, pln_text(op));
  CHECK(id);
  CHECK_OK(pln_build_call(t->b, id, 0, 0, n, args, &out));
  return out;
}

static pln_ref scalar(bench *t, pln_dtype dtype, const void *value,
                      size_t size) {
  pln_tensor *tensor;
  pln_ref out = 0;
  CHECK_OK(pln_tensor_from_bytes(t->e, dtype, 0, NULL, value, size, &tensor));
  CHECK_OK(pln_build_constant(t->b, tensor, &out));
  pln_tensor_release(tensor);
  return out;
}

static void check_prints(bench *t, pln_ref node, const char *wanted) {
  static captured out;
  static const pln_print_options program = {.no_metadata = true};
  out.size = 0;
  CHECK_OK(
      pln_print_node(pln_builder_graph(t->b), node, &program, append, &out));
  CHECK_STR(out.data, wanted);
}

#define VEC "Tensor[(4), float32]"
#define TY " /* ty=Tensor[(4), float32] */"

static void every_operand_has_a_line(void) {
  bench t;
  REQUIRE(open_bench(&t));
  pln_ref x = var(&t, "x", t.vec);
  pln_ref y = call(&t, "exp", 1, &x), z = call(&t, "tanh", 1, &y);
  pln_ref w = call(&t, "add", 2, (pln_ref[]){z, y});
  check_prints(&t, w,
               "free_var %x: " VEC TY ";\n"
               "%0 = exp(%x)" TY ";\n"
               "%1 = tanh(%0)" TY ";\n"
               "add(%1, %0)" TY);
  check_prints(&t, x, "free_var %x: " VEC TY ";\n%x");
  close_bench(&t);
}

/* The order of TVM's printer: a node is visited after its operands, and an
 * operand gets its line when its first user is visited. */
static void lines_stand_where_tvm_has_them(void) {
  bench t;
  REQUIRE(open_bench(&t));
  pln_ref x = var(&t, "x", t.vec), y = var(&t, "y", t.vec), f, out;
  pln_ref a = call(&t, "exp", 1, &x), b = call(&t, "tanh", 1, &y);
  REQUIRE_OK(pln_build_bind(t.b, 1, &y, b, 0, 0, &f));
  REQUIRE_OK(pln_build_apply(t.b, f, 0, 0, 1, &a, &out));
  REQUIRE_OK(pln_build_tuple(t.b, 2, (pln_ref[]){out, out}, &out));
  REQUIRE_OK(pln_build_bind(t.b, 1, &x, out, 0, 0, &out));
  check_prints(&t, out,
               "fn (%x: " VEC TY ") -> (" VEC ", " VEC ") {\n"
               "  %0 = exp(%x)" TY ";\n"
               "  %1 = fn (%y: " VEC TY ") -> " VEC " {\n"
               "    tanh(%y)" TY "\n"
               "  } /* ty=fn (" VEC ") -> " VEC " */;\n"
               "  %2 = %1(%0)" TY ";\n"
               "  (%2, %2) /* ty=(" VEC ", " VEC ") */\n"
               "} /* ty=fn (" VEC ") -> (" VEC ", " VEC ") */");
  close_bench(&t);
}

static void lets_and_ifs(void) {
  bench t;
  REQUIRE(open_bench(&t));
  pln_ref p = var(&t, "p", t.flag), x = var(&t, "x", t.vec);
  pln_ref v = var(&t, "x", t.vec), w = var(&t, "if.1", t.vec), body, out;
  pln_ref sum = call(&t, "add", 2, (pln_ref[]){v, w});
  REQUIRE_OK(pln_build_floating_let(t.b, w, v, sum, &body));
  REQUIRE_OK(
      pln_build_floating_let(t.b, v, call(&t, "exp", 1, &x), body, &body));
  REQUIRE_OK(pln_build_floating_if(t.b, p, body, x, &out));
  REQUIRE_OK(pln_build_bind(t.b, 2, (pln_ref[]){p, x}, out, 0, 0, &out));
  check_prints(&t, out,
               "fn (%p: bool /* ty=bool */, %x: " VEC TY ") -> " VEC " {\n"
               "  if (%p) {\n"
               "    let %x1: " VEC TY " = exp(%x)" TY ";\n"
               "    let %\"if.1\": " VEC TY " = %x1;\n"
               "    add(%x1, %\"if.1\")" TY "\n"
               "  } else {\n"
               "    %x\n"
               "  }\n"
               "} /* ty=fn (bool, " VEC ") -> " VEC " */");
  close_bench(&t);
}

static void scalars_are_literals(void) {
  bench t;
  REQUIRE(open_bench(&t));
  int64_t i = -5;
  int16_t h = 7;
  float f = 1e-8f, third = 1.0f / 3.0f;
  double d = 0.1;
  uint8_t yes = 1, no = 255;
  pln_ref fields[] = {
      scalar(&t, PLN_INT64, &i, 8),   scalar(&t, PLN_INT16, &h, 2),
      scalar(&t, PLN_FLOAT32, &f, 4), scalar(&t, PLN_FLOAT32, &third, 4),
      scalar(&t, PLN_FLOAT64, &d, 8), scalar(&t, PLN_BOOL, &yes, 1),
      scalar(&t, PLN_UINT8, &no, 1)};
  pln_ref out;
  REQUIRE_OK(pln_build_tuple(t.b, PLN_COUNT(fields), fields, &out));
  check_prints(
      &t, out,
      "(-5i64 /* ty=int64 */, 7i16 /* ty=int16 */, 1e-08f /* ty=float32 */, "
      "0.33333334f /* ty=float32 */, 0.1f64 /* ty=float64 */, "
      "True /* ty=bool */, meta[relay.Constant][0] /* ty=uint8 */) "
      "/* ty=(int64, int16, float32, float32, float64, bool, uint8) */");
  close_bench(&t);
}

static void attributes_follow_the_arguments(void) {
  bench t;
  REQUIRE(open_bench(&t));
  int64_t perm[] = {0};
  pln_attr a[] = {{.name = symbol(&t, "axes"), .kind = PLN_ATTR_INTS},
                  {.name = symbol(&t, "dtype"), .kind = PLN_ATTR_STRING},
                  {.name = symbol(&t, "a b"), .kind = PLN_ATTR_NONE},
                  {.name = symbol(&t, "eps"), .kind = PLN_ATTR_FLOAT}};
  a[0].count = 1;
  a[0].v.ints = perm;
  a[1].v.s = pln_text("a\"b\n");
  a[3].v.f = 0.1f;
  pln_attrs attrs;
  captured out = {.size = 0};
  REQUIRE_OK(pln_attrs_make(t.e, 4, a, &attrs));
  CHECK_OK(pln_print_attrs(t.e, attrs, append, &out));
  CHECK_STR(out.data, "\"a b\"=None, axes=[0], dtype=\"a\\\"b\\n\", eps=0.1f");
  close_bench(&t);
}

static void the_limit_cuts_off(void) {
  bench t;
  REQUIRE(open_bench(&t));
  pln_ref x = var(&t, "x", t.vec), y = call(&t, "exp", 1, &x);
  captured out = {.size = 0};
  pln_print_options ten = {.limit = 10};
  CHECK_OK(pln_print_node(pln_builder_graph(t.b), y, &ten, append, &out));
  CHECK_STR(out.data, "free_var %...");
  close_bench(&t);
}

static void chains_and_nesting_of_any_length(void) {
  bench t;
  REQUIRE(open_bench(&t));
  pln_ref p = var(&t, "p", t.flag), x = var(&t, "x", t.vec), c = x, d = x;
  size_t size = 0;
  for (int i = 0; i < 300000; i++)
    c = call(&t, "exp", 1, &c);
  for (int i = 0; i < 100000 && check_failures == 0; i++)
    CHECK_OK(pln_build_floating_if(t.b, p, d, x, &d));
  CHECK_OK(pln_print_node(pln_builder_graph(t.b), c, NULL, count_bytes, &size));
  CHECK(size > 300000 * 20);
  size = 0;
  CHECK_OK(pln_print_node(pln_builder_graph(t.b), d, NULL, count_bytes, &size));
  CHECK(size > 100000 * 20);
  close_bench(&t);
}

/* -------------------------------------------------------------- whole texts */

/* As TVM writes uint16(65535). */
static const char meta_section[] =
    "\n#[metadata]\n"
    "{\n  \"root\": 1, \n  \"nodes\": [\n"
    "    {\n      \"type_key\": \"\"\n    }, \n"
    "    {\n      \"type_key\": \"Map\", \n      \"keys\": [\n"
    "        \"relay.Constant\"\n      ], \n      \"data\": [2]\n    }, \n"
    "    {\n      \"type_key\": \"Array\", \n      \"data\": [3]\n    }, \n"
    "    {\n      \"type_key\": \"relay.Constant\", \n      \"attrs\": {\n"
    "        \"_checked_type_\": \"6\", \n        \"data\": \"0\", \n"
    "        \"span\": \"0\", \n        \"virtual_device_\": \"4\"\n"
    "      }\n    }, \n"
    "    {\n      \"type_key\": \"VirtualDevice\", \n      \"attrs\": {\n"
    "        \"device_type_int\": \"-1\", \n"
    "        \"memory_scope\": \"5\", \n        \"target\": \"0\", \n"
    "        \"virtual_device_id\": \"-1\"\n      }\n    }, \n"
    "    {\n      \"type_key\": \"runtime.String\"\n    }, \n"
    "    {\n      \"type_key\": \"relay.TensorType\", \n"
    "      \"attrs\": {\n        \"dtype\": \"uint16\", \n"
    "        \"shape\": \"7\", \n        \"span\": \"0\"\n"
    "      }\n    }, \n"
    "    {\n      \"type_key\": \"Array\"\n    }\n  ], \n"
    "  \"b64ndarrays\": [\n"
    "    \"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAEQAQACAAAAAAAAAP//\"\n"
    "  ], \n  \"attrs\": {\"tvm_version\": \"0.14.0\"}\n}";

static void modules_carry_their_constants(void) {
  bench t;
  REQUIRE(open_bench(&t));
  uint16_t value = 0xffff;
  pln_ref c = scalar(&t, PLN_UINT16, &value, 2), f;
  pln_graph *graph;
  pln_module *empty, *module;
  static captured out;
  out.size = 0;
  REQUIRE_OK(pln_build_bind(t.b, 0, NULL, c, 0, 0, &f));
  REQUIRE_OK(pln_builder_seal(t.b, f, &graph));
  REQUIRE_OK(pln_module_new(t.e, &empty));
  REQUIRE_OK(pln_module_with(empty, symbol(&t, "main"), graph, &module));
  CHECK_OK(pln_print_module(module, NULL, append, &out));
  char *section = strstr(out.data, "\n#[metadata]");
  REQUIRE(section);
  CHECK_STR(section, meta_section);
  *section = '\0';
  CHECK_STR(out.data, "#[version = \"0.0.5\"]\n"
                      "def @main() -> uint16 {\n"
                      "  meta[relay.Constant][0] /* ty=uint16 */\n"
                      "}\n");
  pln_module_release(module);
  pln_module_release(empty);
  pln_graph_release(graph);
  close_bench(&t);
}

static pln_status build_and_print(pln_builder *b, pln_type type) {
  pln_ref p, x, y, f;
  size_t size = 0;
  PLN_TRY(pln_build_var(b, 0, type, 0, &p));
  PLN_TRY(pln_build_var(b, 0, 0, 0, &x));
  PLN_TRY(pln_build_tuple(b, 1, &x, &y));
  PLN_TRY(pln_build_floating_let(b, x, p, y, &y));
  PLN_TRY(pln_build_bind(b, 1, &p, y, 0, 0, &f));
  return pln_print_node(pln_builder_graph(b), f, NULL, count_bytes, &size);
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_builder *b;
  pln_type type;
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 0, NULL, &type));
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = build_and_print(b, type);
  pln_builder_free(b);
  return status;
}

static void survives_oom(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"every operand has a line", every_operand_has_a_line},
    {"lines stand where TVM has them", lines_stand_where_tvm_has_them},
    {"lets and ifs", lets_and_ifs},
    {"scalars are literals", scalars_are_literals},
    {"attributes follow the arguments", attributes_follow_the_arguments},
    {"the limit cuts off", the_limit_cuts_off},
    {"chains and nesting of any length", chains_and_nesting_of_any_length},
    {"modules carry their constants", modules_carry_their_constants},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
