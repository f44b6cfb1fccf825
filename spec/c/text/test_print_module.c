/* test_print_module.c: modules with data types, matches, generic functions and
 * places as text, byte for byte as TVM 0.14 prints them. */

#include "captured_output.h"
#include "ir/graph/module.h"
#include "oom.h"

/* What a test builds with. The first failure stays. */
typedef struct bench {
  pln_engine *e;
  pln_builder *b;
  pln_module *m;
  pln_status status;
} bench;

static void keep(bench *t, pln_status status) {
  if (t->status == PLN_OK)
    t->status = status;
}

static pln_symbol sym(bench *t, const char *name) {
  pln_symbol out = 0;
  keep(t, pln_symbol_intern(t->e, pln_text(name), &out));
  return out;
}

static pln_type type_var(bench *t, const char *name) {
  pln_type out = 0;
  keep(t, pln_type_var(t->e, sym(t, name), PLN_TKIND_TYPE, &out));
  return out;
}

static pln_type type_call(bench *t, const char *name, uint32_t n,
                          const pln_type *args) {
  pln_type out = 0;
  keep(t, pln_type_make(t->e, PLN_TYPE_CALL, sym(t, name), n, args, &out));
  return out;
}

static pln_type scalar(bench *t, pln_dtype dtype) {
  pln_type out = 0;
  keep(t, pln_type_tensor(t->e, dtype, 0, NULL, &out));
  return out;
}

static void define(bench *t, const pln_type_def *data) {
  pln_module *next = NULL;
  if (t->status == PLN_OK)
    keep(t, pln_module_with_type(t->m, data, &next));
  if (next) {
    pln_module_release(t->m);
    t->m = next;
  }
}

/* type List[A] { Cons(A, List[A]), Nil } */
static void define_list(bench *t) {
  pln_type a = type_var(t, "A");
  pln_type fields[] = {a, type_call(t, "List", 1, &a)};
  pln_constructor makers[] = {{sym(t, "Cons"), 2, fields},
                              {sym(t, "Nil"), 0, NULL}};
  pln_type_def data = {.name = sym(t, "List"),
                       .n_vars = 1,
                       .vars = &a,
                       .n_constructors = 2,
                       .constructors = makers};
  define(t, &data);
}

static bool open_bench(bench *t, pln_engine *e) {
  *t = (bench){.e = e};
  keep(t, pln_module_new(e, &t->m));
  if (t->status == PLN_OK)
    keep(t, pln_builder_new(e, &t->b));
  return t->status == PLN_OK;
}

static void close_bench(bench *t) {
  pln_builder_free(t->b);
  pln_module_release(t->m);
}

static pln_ref var(bench *t, const char *name, pln_type type) {
  pln_ref out = 0;
  if (t->status == PLN_OK)
    keep(t, pln_build_var(t->b, sym(t, name), type, 0, &out));
  return out;
}

static pln_ref number(bench *t, int32_t value) {
  pln_tensor *tensor = NULL;
  pln_ref out = 0;
  keep(t, pln_tensor_from_bytes(t->e, PLN_INT32, 0, NULL, &value, 4, &tensor));
  if (t->status == PLN_OK)
    keep(t, pln_build_constant(t->b, tensor, &out));
  pln_tensor_release(tensor);
  return out;
}

static pln_ref wildcard(bench *t) {
  pln_ref out = 0;
  keep(t, pln_build_pattern_wildcard(t->b, &out));
  return out;
}

static pln_ref bound(bench *t, pln_ref v) {
  pln_ref out = 0;
  if (t->status == PLN_OK)
    keep(t, pln_build_pattern_var(t->b, v, &out));
  return out;
}

static pln_ref made_by(bench *t, const char *name, uint32_t n,
                       const pln_ref *patterns) {
  pln_ref out = 0;
  if (t->status == PLN_OK)
    keep(t,
         pln_build_pattern_constructor(t->b, sym(t, name), n, patterns, &out));
  return out;
}

/* A place in the text that the module is said to come from. */
static void place(bench *t, pln_ref node, uint32_t row, uint32_t column) {
  pln_source_span at = {
      .source = sym(t, "from_string"), .row = row, .column = column};
  if (t->status == PLN_OK)
    keep(t, pln_build_span(t->b, node, &at, true));
}

/* Adds a function of what was built to the module; a new builder is made. */
static void add_function(bench *t, const char *name, pln_ref root) {
  pln_graph *graph = NULL;
  pln_module *next = NULL;
  if (t->status == PLN_OK)
    keep(t, pln_builder_seal(t->b, root, &graph));
  if (t->status == PLN_OK)
    keep(t, pln_module_with(t->m, sym(t, name), graph, &next));
  pln_graph_release(graph);
  if (next) {
    pln_module_release(t->m);
    t->m = next;
  }
}

static void check_prints(const bench *t, const char *wanted) {
  static captured out;
  out.size = 0;
  CHECK_OK(t->status);
  CHECK_OK(pln_print_module(t->m, NULL, append, &out));
  CHECK_STR(out.data, wanted);
}

static void data_types_stand_first(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bench t;
  REQUIRE(open_bench(&t, e));
  pln_type a = type_var(&t, "A"), b = type_var(&t, "B");
  pln_constructor unit = {sym(&t, "U"), 0, NULL},
                  pair = {sym(&t, "MkPair"), 2, (pln_type[]){a, b}};
  define(&t, &(pln_type_def){.name = sym(&t, "Unit0"),
                             .n_constructors = 1,
                             .constructors = &unit});
  define(&t, &(pln_type_def){.name = sym(&t, "Pair"),
                             .n_vars = 2,
                             .vars = (pln_type[]){a, b},
                             .n_constructors = 1,
                             .constructors = &pair});
  define_list(&t);
  define(&t, &(pln_type_def){.name = sym(&t, "Empty")});
  define(&t, &(pln_type_def){.name = sym(&t, "Far"), .is_extern = true});
  check_prints(&t, "#[version = \"0.0.5\"]\n"
                   "type Empty {\n  \n}\n\n"
                   "extern type Far\n\n"
                   "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n\n"
                   "type Pair[A, B] {\n  MkPair(A, B),\n}\n\n"
                   "type Unit0 {\n  U,\n}\n");
  close_bench(&t);
  pln_engine_free(e);
}

/* def @len[A](%l: List[A]) -> int32 { match (%l) { ... } } */
static void build_len(bench *t) {
  define_list(t);
  pln_type a = type_var(t, "A"), list = type_call(t, "List", 1, &a);
  pln_type ret = scalar(t, PLN_INT32), func = 0;
  if (t->status != PLN_OK)
    return;
  keep(t, pln_type_func(t->e, 1, &list, ret, 1, &a, 0, NULL, &func));
  pln_ref l = var(t, "l", list), rest = var(t, "rest", list), len = 0, call = 0;
  place(t, l, 8, 46);
  place(t, rest, 8, 80);
  keep(t, pln_build_global_var(t->b, sym(t, "len"), func, &len));
  if (t->status == PLN_OK)
    keep(t, pln_build_apply(t->b, len, 0, 0, 1, &rest, &call));
  place(t, call, 8, 75);
  pln_ref zero = number(t, 0), match = 0, function = 0;
  place(t, zero, 8, 96);
  pln_ref fields[] = {wildcard(t), bound(t, rest)};
  pln_ref patterns[] = {made_by(t, "Cons", 2, fields),
                        made_by(t, "Nil", 0, NULL)};
  if (t->status == PLN_OK)
    keep(t, pln_build_floating_match(t->b, l, false, 2, patterns,
                                     (pln_ref[]){call, zero}, &match));
  if (t->status == PLN_OK)
    keep(t, pln_build_bind(t->b, 1, &l, match, 0, ret, &function));
  if (t->status == PLN_OK)
    keep(t, pln_build_generic(t->b, function, 1, &a));
  add_function(t, "len", function);
}

static const char len_text[] =
    "#[version = \"0.0.5\"]\n"
    "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n\n"
    "def @len[A](%l: List[A] /* ty=List[A] span=from_string:8:46 */) -> int32 "
    "{\n"
    "  match? (%l) {\n"
    "    Cons(_, %rest: List[A] /* ty=List[A] span=from_string:8:80 */) => {\n"
    "      @len(%rest) /* ty=int32 span=from_string:8:75 */\n"
    "    },\n"
    "    Nil => {\n"
    "      0 /* ty=int32 span=from_string:8:96 */\n"
    "    },\n"
    "  }\n"
    "}\n";

static void matches_bind_in_their_arms(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bench t;
  REQUIRE(open_bench(&t, e));
  build_len(&t);
  check_prints(&t, len_text);
  close_bench(&t);
  pln_engine_free(e);
}

/* Patterns of tuples and of what is bound as it is; none of it typed. */
static void patterns_nest(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bench t;
  REQUIRE(open_bench(&t, e));
  pln_ref x = var(&t, "x", 0), all = var(&t, "x", 0), h = var(&t, "_h", 0);
  pln_ref fields[] = {bound(&t, h), wildcard(&t)}, tuple = 0, one = 0, match;
  keep(&t, pln_build_pattern_tuple(t.b, 2, fields, &tuple));
  pln_ref parts[] = {tuple, made_by(&t, "Nil", 0, NULL)};
  pln_ref cons = made_by(&t, "Cons", 2, parts);
  keep(&t, pln_build_pattern_tuple(t.b, 1, &cons, &one));
  REQUIRE_OK(pln_build_floating_match(t.b, x, true, 2,
                                      (pln_ref[]){one, bound(&t, all)},
                                      (pln_ref[]){h, all}, &match));
  static captured out;
  out.size = 0;
  CHECK_OK(pln_print_node(pln_builder_graph(t.b), match, NULL, append, &out));
  CHECK_STR(out.data, "free_var %x;\n"
                      "match (%x) {\n"
                      "  (Cons((%v_h, _), Nil)) => {\n"
                      "    %v_h\n"
                      "  },\n"
                      "  %x1 => {\n"
                      "    %x1\n"
                      "  },\n"
                      "}");
  out.size = 0;
  CHECK_OK(pln_print_node(pln_builder_graph(t.b), one, NULL, append, &out));
  CHECK_STR(out.data, "(Cons((%v_h, _), Nil))");
  close_bench(&t);
  pln_engine_free(e);
}

/* A type variable that hides another gets a number; TVM's text could not be
 * read back. */
static void type_variables_are_told_apart(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bench t;
  REQUIRE(open_bench(&t, e));
  pln_type a = type_var(&t, "A"), inner_a = type_var(&t, "A");
  pln_ref x = var(&t, "x", a), y = var(&t, "y", inner_a), pair, inner, outer;
  REQUIRE_OK(pln_build_tuple(t.b, 2, (pln_ref[]){x, y}, &pair));
  REQUIRE_OK(pln_build_bind(t.b, 1, &y, pair, 0, 0, &inner));
  REQUIRE_OK(pln_build_generic(t.b, inner, 1, &inner_a));
  REQUIRE_OK(pln_build_bind(t.b, 1, &x, inner, 0, 0, &outer));
  REQUIRE_OK(pln_build_generic(t.b, outer, 1, &a));
  add_function(&t, "main", outer);
  check_prints(&t, "#[version = \"0.0.5\"]\n"
                   "def @main[A](%x: A /* ty=A */) -> "
                   "fn [A1](A1) -> (A, A1) {\n"
                   "  fn [A1](%y: A1 /* ty=A1 */) -> (A, A1) {\n"
                   "    (%x, %y) /* ty=(A, A1) */\n"
                   "  } /* ty=fn [A1](A1) -> (A, A1) */\n"
                   "}\n");
  close_bench(&t);
  pln_engine_free(e);
}

static void references_have_no_comments(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bench t;
  REQUIRE(open_bench(&t, e));
  pln_ref x = var(&t, "x", scalar(&t, PLN_FLOAT32)), ref, read, f;
  REQUIRE_OK(pln_build_ref_create(t.b, x, &ref));
  REQUIRE_OK(pln_build_ref_read(t.b, ref, &read));
  REQUIRE_OK(pln_build_bind(t.b, 1, &x, read, 0, 0, &f));
  add_function(&t, "main", f);
  check_prints(&t, "#[version = \"0.0.5\"]\n"
                   "def @main(%x: float32 /* ty=float32 */) -> float32 {\n"
                   "  %0 = ref(%x);\n"
                   "  ref_read(%0)\n"
                   "}\n");
  close_bench(&t);
  pln_engine_free(e);
}

static pln_status print_len(pln_engine *e, void *ud) {
  static captured out;
  bench t;
  out.size = 0;
  if (open_bench(&t, e))
    build_len(&t);
  if (t.status == PLN_OK)
    keep(&t, pln_print_module(t.m, NULL, append, &out));
  if (t.status == PLN_OK)
    CHECK_STR(out.data, (const char *)ud);
  close_bench(&t);
  return t.status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(print_len, (void *)(uintptr_t)len_text);
}

static const check_test tests[] = {
    {"data types stand first", data_types_stand_first},
    {"matches bind in their arms", matches_bind_in_their_arms},
    {"patterns nest", patterns_nest},
    {"type variables are told apart", type_variables_are_told_apart},
    {"references have no comments", references_have_no_comments},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
