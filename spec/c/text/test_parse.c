/* test_parse.c: Relay text when memory is out, and from C. */

#include "base/base.h"
#include "base/text/json.h"
#include "oom.h"

static const char sample[] =
    "#[version = \"0.0.5\"]\n"
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "def @main[A](%x: Tensor[(2, N + 1), float32], %\"a b\": List[A], "
    "s=\"\\n\", "
    "l=[[1], [2]], d={k=[1f, 2f]}) {\n"
    "  %0 = add(%x, 1f) /* ty=int32 span=a:1:2 */;\n"
    "  let %f = fn (%y: int32) { if (%y < 1) { 0 } else { %y - 1 } };\n"
    "  let %r = ref(%0);\n"
    "  match (%\"a b\") { Cons(_, %t) => { (%f(2), ref_read(%r)) }, "
    "Nil => (1, %0) }\n"
    "}\n"
    "def @other() { meta[relay.Constant][0] }\n"
    "#[metadata]\n"
    "{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Map\", "
    "\"keys\": [\"relay.Constant\"], \"data\": [2]}, {\"type_key\": \"Array\", "
    "\"data\": [3]}, {\"type_key\": \"relay.Constant\", \"attrs\": {\"data\": "
    "\"0\"}}], \"b64ndarrays\": "
    "[\"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACA"
    "AAAAAAAAAIAAAAAAAAAEAAAAAAAAAAAAIA/AAAAAAAAAAAAAIA/\"]}";

static pln_status read_module(pln_engine *engine, void *ud) {
  pln_module *module;
  (void)ud;
  pln_status status =
      pln_parse_module(engine, pln_text(sample), NULL, NULL, &module);
  if (status != PLN_OK)
    return status;
  pln_module_release(module);
  return PLN_OK;
}

static void memory_out(void) {
  oom_sweep(read_module, NULL);
}

/* A module that names what others define, and constants of its caller's. */
static pln_status read_more(pln_engine *engine, const pln_module *base,
                            pln_tensor *const *constants) {
  static const pln_slice device = {"[{\"type_key\": \"VirtualDevice\"}]", 31};
  pln_parse_options given = {.module = base,
                             .n_constants = 1,
                             .constants = constants,
                             .n_objects = 1,
                             .objects = &device};
  pln_module *module = NULL;
  pln_graph *graph = NULL;
  pln_status status = pln_parse_module(
      engine,
      pln_text("#[version = \"0.0.5\"]\ntype Pair { P(List[int32]) }\n"
               "def @more(d=meta[VirtualDevice][0]) { (@other(), "
               "meta[relay.Constant][0]) }"),
      "more", &given, &module);
  if (status == PLN_OK) {
    CHECK_EQ_INT(pln_module_count(module), 3);
    CHECK_EQ_INT(pln_module_n_types(base), 1);
    status =
        pln_parse_expr(engine, pln_text("Cons(meta[relay.Constant][0], Nil)"),
                       NULL, &given, &graph);
  }
  pln_graph_release(graph);
  pln_module_release(module);
  return status;
}

static pln_status read_given(pln_engine *engine, void *ud) {
  pln_module *base = NULL;
  pln_tensor *constant = NULL;
  (void)ud;
  pln_status status =
      pln_parse_module(engine, pln_text(sample), NULL, NULL, &base);
  if (status == PLN_OK)
    status = pln_tensor_new(engine, PLN_FLOAT32, 0, NULL, &constant);
  if (status == PLN_OK)
    status = read_more(engine, base, &constant);
  pln_tensor_release(constant);
  pln_module_release(base);
  return status;
}

static void memory_out_with_what_is_given(void) {
  oom_sweep(read_given, NULL);
}

/* What Relay's text has no words for comes back as it was. */
static const char beyond[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(?), float32] /* ty=Tensor[(?), float32] */, "
    "scope.name=\"g\") -> Tensor[(2), float32] {\n"
    "  keep 1f /* ty=float32 */;\n"
    "  keep %0: Tensor[(2), float32] = tanh(%x) /* ty=Tensor[(2), float32] "
    "*/;\n"
    "  if (True /* ty=bool */, then.name=\"t\") {\n"
    "    %1: Tensor[(2), float32] = exp(%x) /* ty=Tensor[(2), float32] */;\n"
    "    tanh(%1) /* ty=Tensor[(2), float32] */\n"
    "  } else {\n"
    "    %1\n"
    "  }\n"
    "}\n"
    "\n#[metadata]\n"
    "{\n  \"root\": 1, \n  \"nodes\": [\n    {\n      \"type_key\": \"\"\n"
    "    }, \n    {\n      \"type_key\": \"Map\", \n      \"keys\": [\n"
    "        \"IRModule\"\n      ], \n      \"data\": [2]\n    }, \n    {\n"
    "      \"type_key\": \"Array\", \n      \"data\": [3]\n    }, \n    {\n"
    "      \"type_key\": \"runtime.String\", \n      \"repr_str\": "
    "\"a=1, d={k=\\\"v\\\"}\"\n    }\n  ], \n  \"b64ndarrays\": [], \n"
    "  \"attrs\": {\"tvm_version\": \"0.14.0\"}\n}";

typedef struct output {
  char data[2 * sizeof beyond];
  size_t size;
} output;

static pln_status append(void *ud, const char *data, size_t size) {
  output *p = ud;
  CHECK(p->size + size < sizeof p->data);
  if (p->size + size < sizeof p->data)
    memcpy(p->data + p->size, data, size);
  p->size += size;
  return PLN_OK;
}

static pln_status read_and_print(pln_engine *engine, void *ud) {
  pln_module *module = NULL;
  output p = {.size = 0};
  (void)ud;
  pln_status status =
      pln_parse_module(engine, pln_text(beyond), NULL, NULL, &module);
  if (status == PLN_OK)
    status = pln_print_module(module, NULL, append, &p);
  if (status == PLN_OK)
    CHECK_STR(p.data, beyond);
  pln_module_release(module);
  return status;
}

static void memory_out_beyond_relay(void) {
  oom_sweep(read_and_print, NULL);
}

/* Errors are told in a text that is bad here and there, as memory allows. */
static pln_status read_bad(pln_engine *engine, void *ud) {
  pln_module *module = NULL;
  (void)ud;
  pln_status status = pln_parse_module(
      engine,
      pln_text("#[version = \"0.0.5\"]\ndef @f(%x: int23) { %0 = add(%x, ; "
               "let %y = %z; let %l: int8 = 1f nn.rele(%y, 300i8); "
               "nn.softmax(%y, axi=1); tanh(%y, a=1, a=2) } "
               "def @f() { 1 } def g() { x = 'a'; %q = 2.5 } "
               "def @h(%x) { %x(%x) }"),
      "bad", NULL, &module);
  CHECK(status != PLN_OK);
  for (size_t i = 0; i < pln_diag_count(engine); i++)
    if (pln_diag_at(engine, i)->code == PLN_ERR_NOMEM)
      return PLN_ERR_NOMEM; /* one that could not be told */
  return PLN_OK;
}

static void memory_out_in_errors(void) {
  oom_sweep(read_bad, NULL);
}

static void places(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_graph *graph;
  pln_source_span place;
  bool shown;
  REQUIRE(e);
  REQUIRE(CHECK_OK(
      pln_parse_expr(e, pln_text("negative(1 /* ty=int32 span=s:7:8 */)"),
                     "here", NULL, &graph)));
  pln_ref root = pln_graph_root(graph);
  CHECK(pln_node_place(graph, root, &place, &shown));
  CHECK(!shown);
  CHECK_EQ_INT(place.row, 1);
  CHECK_EQ_INT(place.column, 1);
  CHECK_EQ_INT(place.end_row, 1);
  CHECK(pln_slice_is(pln_symbol_text(e, place.source), "here"));
  pln_ref one = pln_node_operands(graph, root)[0];
  CHECK(pln_node_place(graph, one, &place, &shown));
  CHECK(shown);
  CHECK_EQ_INT(place.row, 7);
  CHECK_EQ_INT(place.column, 8);
  CHECK(pln_slice_is(pln_symbol_text(e, place.source), "s"));
  pln_graph_release(graph);
  pln_engine_free(e);
}

/* -------------------------------------------------------------------- JSON */

static void json_values(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_json j;
  uint64_t n = 0;
  REQUIRE(e);
  CHECK_OK(
      pln_json_read(&j, e,
                    pln_text(" {\"a\": [1, \"2\", {}, []], \"b\\n\": null, "
                             "\"c\": {\"d\": true}} ")));
  const pln_json_value *a = pln_json_get(&j, j.values, "a");
  REQUIRE(a && a->kind == PLN_JSON_ARRAY);
  CHECK_EQ_INT(a->count, 4);
  CHECK(pln_json_number(a + 1, &n));
  CHECK_EQ_INT((int64_t)n, 1);
  CHECK(pln_json_number(a + 2, &n));
  CHECK_EQ_INT((int64_t)n, 2);
  CHECK(!pln_json_number(a + 3, &n));
  const pln_json_value *c = pln_json_get(&j, j.values, "c");
  REQUIRE(c);
  const pln_json_value *d = pln_json_get(&j, c, "d");
  CHECK(d && d->kind == PLN_JSON_TRUE);
  CHECK(!pln_json_get(&j, j.values, "d"));
  pln_json_free(&j);
  pln_engine_free(e);
}

static void json_texts(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_json j;
  pln_buffer out;
  REQUIRE(e);
  pln_buffer_init(&out, e);
  CHECK_OK(pln_json_read(&j, e, pln_text("\"a\\\"\\u00e9\\n\\u20ac\"")));
  CHECK_OK(pln_json_text(j.values, &out));
  CHECK(pln_slice_is((pln_slice){out.data, out.size},
                     "a\"\xc3\xa9\n\xe2\x82\xac"));
  pln_buffer_free(&out);
  pln_json_free(&j);
  pln_engine_free(e);
}

static void json_refused(void) {
  static const char *const bad[] = {"",      "{",       "[1",       "[1,]",
                                    "{1:2}", "{\"a\"}", "\"a",      "[1 2]",
                                    "nul",   "1 1",     "{\"a\":}", "]"};
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  for (size_t i = 0; i < PLN_COUNT(bad); i++) {
    pln_json j;
    CHECK_STATUS(pln_json_read(&j, e, pln_text(bad[i])), PLN_ERR_FORMAT);
    pln_json_free(&j);
  }
  pln_engine_free(e);
}

static const check_test tests[] = {
    {"memory may be out at any point of reading", memory_out},
    {"and of telling errors", memory_out_in_errors},
    {"and of what is given", memory_out_with_what_is_given},
    {"and of what is beyond Relay", memory_out_beyond_relay},
    {"nodes know where they stood", places},
    {"JSON is cut into values", json_values},
    {"escapes in JSON", json_texts},
    {"what is no JSON is refused", json_refused},
};

CHECK_MAIN(tests)
