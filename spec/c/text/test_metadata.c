/* test_metadata.c: what stands in the metadata section, and in which order. */

#include "captured_output.h"
#include "ir/graph/module.h"
#include "ir/relay/metadata/object.h"
#include "oom.h"

/* What a test builds with. The first failure stays. */
typedef struct bench {
  pln_engine *e;
  pln_builder *b;
  pln_type vec; /* Tensor[(4), float32] */
  pln_status status;
} bench;

static void keep(bench *t, pln_status status) {
  if (t->status == PLN_OK)
    t->status = status;
}

static bool open_bench(bench *t, pln_engine *e) {
  pln_dim four = 4;
  *t = (bench){.e = e};
  keep(t, pln_builder_new(e, &t->b));
  if (t->status == PLN_OK)
    keep(t, pln_type_tensor(e, PLN_FLOAT32, 1, &four, &t->vec));
  return t->status == PLN_OK;
}

static pln_symbol sym(bench *t, const char *name) {
  pln_symbol out = 0;
  keep(t, pln_symbol_intern(t->e, pln_text(name), &out));
  return out;
}

static pln_attrs attr(bench *t, const char *name, pln_attr_kind kind,
                      const char *value, pln_attrs dict) {
  pln_attr entry = {.kind = (uint8_t)kind};
  pln_attrs out = 0;
  if (kind == PLN_ATTR_LIST)
    entry.v.dict = dict;
  else
    entry.v.s = pln_text(value);
  entry.name = sym(t, name);
  if (t->status == PLN_OK)
    keep(t, pln_attrs_with(t->e, dict, &entry, &out));
  return out;
}

static pln_ref call(bench *t, const char *op, pln_ref x, pln_attrs attrs) {
  pln_ref out = 0;
  pln_op id = pln_op_find(t->e, pln_text(op));
  CHECK(id);
  if (t->status == PLN_OK)
    keep(t, pln_build_call(t->b, id, attrs, 0, 1, &x, &out));
  return out;
}

/* The module of one function, @main(%x), that computes `body`, as text. */
static void print(bench *t, pln_ref x, pln_ref body, pln_attrs attrs,
                  pln_attrs tir_vars, text *out) {
  pln_ref f = 0;
  pln_graph *graph = NULL;
  pln_module *empty = NULL, *m = NULL;
  if (t->status == PLN_OK)
    keep(t, pln_build_bind(t->b, 1, &x, body, attrs, 0, &f));
  if (t->status == PLN_OK)
    keep(t, pln_builder_seal(t->b, f, &graph));
  if (t->status == PLN_OK)
    keep(t, pln_module_new(t->e, &empty));
  if (t->status == PLN_OK)
    keep(t, pln_module_with(empty, sym(t, "main"), graph, &m));
  out->size = 0;
  if (m) {
    m->tir_vars = tir_vars;
    keep(t, pln_print_module(m, NULL, append, out));
  }
  pln_module_release(m);
  pln_module_release(empty);
  pln_graph_release(graph);
}

#define HEAD                                                                  \
  "\n#[metadata]\n{\n  \"root\": 1, \n  \"nodes\": [\n    {\n      "          \
  "\"type_key\": \"\"\n    }, \n    {\n      \"type_key\": \"Map\", \n      " \
  "\"keys\": [\n        "
#define NODE(key) "    }, \n    {\n      \"type_key\": \"" key "\""
#define TAIL                                             \
  "    }\n  ], \n  \"b64ndarrays\": [], \n  \"attrs\": " \
  "{\"tvm_version\": \"0.14.0\"}\n}"
#define VEC "Tensor[(4), float32]"
#define TY " /* ty=" VEC " */"

static const char device[] =
    "[{\"type_key\": \"VirtualDevice\", \"attrs\": {\"device_type_int\": "
    "\"1\", \"memory_scope\": 1, \"target\": 0, \"virtual_device_id\": "
    "\"0\"}}, {\"type_key\": \"runtime.String\"}]";

/* The attributes of an operator that does not declare them are structs there,
 * one for each call; an object is one however often it is met. The table has
 * the type that was met last in front. */
static void holds_structs_and_objects(void) {
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  pln_ref x = 0;
  keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
  pln_attrs dnnl = attr(&t, "compiler", PLN_ATTR_STRING, "dnnl", 0);
  pln_attrs on = attr(&t, "virtual_device", PLN_ATTR_OBJECT, device, 0);
  pln_ref y = call(&t, "annotation.compiler_begin", x, dnnl);
  y = call(&t, "annotation.compiler_end", y, dnnl);
  y = call(&t, "on_device", call(&t, "on_device", y, on), on);
  print(&t, x, y, 0, 0, &out);
  CHECK_OK(t.status);
  const char *body = strstr(out.data, "{\n") + 2;
  const char *section = strstr(out.data, "\n#[metadata]");
  static const char wanted[] =
      "  %0 = annotation.compiler_begin(%x, "
      "meta[relay.attrs.CompilerAttrs][0])" TY ";\n"
      "  %1 = annotation.compiler_end(%0, "
      "meta[relay.attrs.CompilerAttrs][1])" TY ";\n"
      "  %2 = on_device(%1, virtual_device=meta[VirtualDevice][0])" TY ";\n"
      "  on_device(%2, virtual_device=meta[VirtualDevice][0])" TY "\n}\n";
  CHECK(section && !strncmp(body, wanted, sizeof wanted - 1));
  CHECK_STR(
      section ? section : "",
      HEAD "\"VirtualDevice\", \n        \"relay.attrs.CompilerAttrs\"\n"
           "      ], \n      \"data\": [2, 5]\n" //
      NODE("Array") ", \n      \"data\": [3]\n"  //
      NODE("VirtualDevice") ", \n      \"attrs\": {\n"
                            "        \"device_type_int\": \"1\", \n"
                            "        \"memory_scope\": \"4\", \n"
                            "        \"target\": \"0\", \n"
                            "        \"virtual_device_id\": \"0\"\n      }\n" //
      NODE("runtime.String") "\n"                                             //
      NODE("Array") ", \n      \"data\": [6, 7]\n"                            //
      NODE("relay.attrs.CompilerAttrs") ", \n      \"attrs\": "
                                        "{\"compiler\": \"dnnl\"}\n" //
      NODE("relay.attrs.CompilerAttrs") ", \n      \"attrs\": "
                                        "{\"compiler\": \"dnnl\"}\n" TAIL);
  pln_builder_free(t.b);
  pln_engine_free(e);
}

/* A device of a parameter stands behind its name, that of the function behind
 * its attributes. */
static void holds_devices_of_functions(void) {
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  pln_ref x = 0;
  pln_attr entry = {.kind = PLN_ATTR_OBJECT, .v.s = pln_text(device)};
  pln_attrs attrs = 0;
  pln_attr list = {.kind = PLN_ATTR_LIST,
                   .name = sym(&t, "param_virtual_devices")};
  keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
  keep(&t, pln_attrs_list(e, 1, &entry, &list.v.dict));
  pln_attr own = {.kind = PLN_ATTR_OBJECT,
                  .name = sym(&t, "virtual_device"),
                  .v.s = pln_text(device)};
  pln_attr zone = {
      .kind = PLN_ATTR_STRING, .name = sym(&t, "zone"), .v.s = pln_text("z")};
  keep(&t, pln_attrs_make(e, 3, (pln_attr[]){list, own, zone}, &attrs));
  print(&t, x, x, attrs, 0, &out);
  CHECK_OK(t.status);
  static const char wanted[] =
      "#[version = \"0.0.5\"]\n"
      "def @main(%x {virtual_device=meta[VirtualDevice][0]}: " VEC TY
      ", zone=\"z\", virtual_device=meta[VirtualDevice][0]) -> " VEC " {\n"
      "  %x\n}\n";
  CHECK(!strncmp(out.data, wanted, sizeof wanted - 1));
  pln_builder_free(t.b);
  pln_engine_free(e);
}

/* Attributes stand as they stood in the source, new ones behind them. */
static void keeps_the_order_of_attributes(void) {
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  pln_ref x = 0, f = 0;
  keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
  pln_attrs attrs = attr(&t, "a", PLN_ATTR_STRING, "1", 0);
  attrs = attr(&t, "c", PLN_ATTR_STRING, "2", attrs);
  attrs = attr(&t, "b", PLN_ATTR_STRING, "3", attrs);
  keep(&t, pln_build_bind(t.b, 1, &x, x, attrs, 0, &f));
  pln_symbol order[] = {sym(&t, "c"), sym(&t, "gone"), sym(&t, "a")};
  REQUIRE_OK(t.status);
  keep(&t, pln_build_attr_order(t.b, f, 3, order));
  out.size = 0;
  keep(&t, pln_print_node(pln_builder_graph(t.b), f, NULL, append, &out));
  CHECK_OK(t.status);
  CHECK(strstr(out.data, ", c=\"2\", a=\"1\", b=\"3\") -> "));
  pln_builder_free(t.b);
  pln_engine_free(e);
}

/* Variables keep the identity that their text gave them; the device that binds
 * nothing is one for all. */
static void tells_equal_objects_apart(void) {
  static const char json[] =
      "[{\"type_key\": \"relay.Var\", \"attrs\": {\"_checked_type_\": 0, "
      "\"span\": 0, \"type_annotation\": 0, \"vid\": 1, \"virtual_device_\": "
      "3}}, {\"type_key\": \"relay.Id\", \"attrs\": {\"name_hint\": 2}}, "
      "{\"type_key\": \"runtime.String\", \"repr_str\": \"n\"}, "
      "{\"type_key\": \"VirtualDevice\", \"attrs\": {\"device_type_int\": "
      "\"-1\", \"memory_scope\": 4, \"target\": 0, \"virtual_device_id\": "
      "\"-1\"}}, {\"type_key\": \"runtime.String\"}]#%d";
  char first[1024], second[1024];
  snprintf(first, sizeof first, json, 0);
  snprintf(second, sizeof second, json, 1);
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  pln_ref x = 0;
  keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
  pln_attrs attrs = attr(&t, "start", PLN_ATTR_OBJECT, first, 0);
  attrs = attr(&t, "step", PLN_ATTR_OBJECT, first, attrs);
  attrs = attr(&t, "stop", PLN_ATTR_OBJECT, second, attrs);
  print(&t, x, x, attrs, 0, &out);
  CHECK_OK(t.status);
  CHECK(strstr(out.data, "start=meta[relay.Var][0], step=meta[relay.Var][0], "
                         "stop=meta[relay.Var][1]"));
  CHECK(strstr(out.data, "\"data\": [3, 8]"));
  CHECK(strstr(out.data, "\"vid\": \"9\", \n        "
                         "\"virtual_device_\": \"6\""));
  pln_builder_free(t.b);
  pln_engine_free(e);
}

static void holds_symbolic_dims(void) {
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  pln_dim n = 0;
  pln_type type = 0;
  pln_ref x = 0;
  keep(&t, pln_dim_named(e, pln_text("n"), &n));
  keep(&t, pln_type_tensor(e, PLN_FLOAT32, 1, &n, &type));
  keep(&t, pln_build_var(t.b, sym(&t, "x"), type, 0, &x));
  print(&t, x, x, 0, attr(&t, "n", PLN_ATTR_STRING, "int32", 0), &out);
  CHECK_OK(t.status);
  CHECK_STR(out.data,
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(meta[tir.Var][0]), float32] /* "
            "ty=Tensor[(meta[tir.Var][0]), float32] */) -> "
            "Tensor[(meta[tir.Var][0]), float32] {\n  %x\n}\n" HEAD
            "\"tir.Var\"\n      ], \n      \"data\": [2]\n" //
            NODE("Array") ", \n      \"data\": [3]\n"       //
            NODE("tir.Var") ", \n      \"attrs\": {\n"
                            "        \"dtype\": \"int32\", \n"
                            "        \"name\": \"4\", \n"
                            "        \"span\": \"0\", \n"
                            "        \"type_annotation\": \"5\"\n      }\n"  //
            NODE("runtime.String") ", \n      \"repr_str\": \"n\"\n"         //
            NODE("PrimType") ", \n      \"attrs\": {\"dtype\": \"int32\"}\n" //
            TAIL);
  pln_builder_free(t.b);
  pln_engine_free(e);
}

/* Large splats stand as what they are. */
static void keeps_splats(void) {
  bench t;
  pln_engine *e = pln_engine_new(NULL, NULL);
  static text out;
  REQUIRE(open_bench(&t, e));
  const int64_t dims[] = {1024, 1024};
  const float one = 1;
  pln_tensor *splat = NULL;
  pln_ref x = 0, c = 0;
  keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
  keep(&t, pln_tensor_splat(e, PLN_FLOAT32, 2, dims, &one, &splat));
  REQUIRE_OK(t.status);
  keep(&t, pln_build_constant(t.b, splat, &c));
  pln_tensor_release(splat);
  print(&t, x, c, 0, 0, &out);
  CHECK_OK(t.status);
  CHECK(strstr(out.data,
               "\"b64ndarrays\": [\n    {\"dtype\": \"float32\", \"shape\": "
               "[1024, 1024], \"splat\": \"AACAPw==\"}\n  ]"));
  pln_builder_free(t.b);
  pln_engine_free(e);
}

/* Whatever the text of an object is: no harm, and what can be read. */
static void survives_odd_objects(void) {
  static const char *const odd[] = {
      "",
      "[",
      "[{",
      "[{}]",
      "[{\"type_key\"",
      "[{\"type_key\": \"A",
      "[{\"type_key\": \"A\"",
      "[{\"type_key\": \"A\", \"attrs\": {\"b",
      "[{\"type_key\": \"A\", \"data\": [99999999999999999999, 1, 7]}]",
      "[{\"type_key\": \"VirtualDevice\", \"attrs\": {\"device_type_int\": "
      "\"-1\", \"memory_scope\": 1, \"target\": 0, \"virtual_device_id\": "
      "\"-1\"}}]",
      "[{\"type_key\": \"A\", \"data\": [1]}, {\"type_key\": \"B\\\"\"}]"};
  static text out;
  for (size_t i = 0; i < PLN_COUNT(odd); i++) {
    bench t;
    pln_engine *e = pln_engine_new(NULL, NULL);
    REQUIRE(open_bench(&t, e));
    pln_ref x = 0;
    keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
    print(&t, x, x, attr(&t, "o", PLN_ATTR_OBJECT, odd[i], 0), 0, &out);
    CHECK_OK(t.status);
    CHECK(strstr(out.data, "o=meta["));
    pln_builder_free(t.b);
    pln_engine_free(e);
  }
}

static void knows_what_fields_refer_to(void) {
  CHECK(pln_object_refers(pln_text("VirtualDevice"), pln_text("target")));
  CHECK(!pln_object_refers(pln_text("VirtualDevice"), pln_text("get")));
  CHECK(!pln_object_refers(pln_text("VirtualDevice"),
                           pln_text("device_type_int")));
  CHECK(pln_object_refers(pln_text("relay.Var"), pln_text("vid")));
  CHECK(!pln_object_refers(pln_text("Other"), pln_text("vid")));
}

static pln_status print_device(pln_engine *e, void *ud) {
  bench t;
  static text out;
  (void)ud;
  if (open_bench(&t, e)) {
    pln_ref x = 0;
    keep(&t, pln_build_var(t.b, sym(&t, "x"), t.vec, 0, &x));
    pln_attrs dnnl = attr(&t, "compiler", PLN_ATTR_STRING, "dnnl", 0);
    pln_attrs on = attr(&t, "virtual_device", PLN_ATTR_OBJECT, device, 0);
    pln_ref y = t.status ? 0 : call(&t, "annotation.compiler_end", x, dnnl);
    print(&t, x, y, on, dnnl, &out);
  }
  pln_builder_free(t.b);
  return t.status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(print_device, NULL);
}

static const check_test tests[] = {
    {"holds structs and objects", holds_structs_and_objects},
    {"holds devices of functions", holds_devices_of_functions},
    {"keeps the order of attributes", keeps_the_order_of_attributes},
    {"tells equal objects apart", tells_equal_objects_apart},
    {"holds symbolic dims", holds_symbolic_dims},
    {"keeps splats", keeps_splats},
    {"survives odd objects", survives_odd_objects},
    {"knows what fields refer to", knows_what_fields_refer_to},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
